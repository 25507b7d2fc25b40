"""Merging the outputs of kernels that are the same values, and dropping what nothing reads then."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply
from pytensor.graph.rewriting.basic import copy_stack_trace
from pytensor.graph.traversal import ancestors
from pytensor.graph.utils import InconsistencyError
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._core import in_order
from pytensor_fuse._identity.value_numbering import equal_outputs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

    Pair = tuple[Variable[Any, Any], Variable[Any, Any]]


def merge_outputs(fgraph: FunctionGraph, refused: set[Pair], reason: str) -> list[Pair]:
    """Let one output of a kernel be read in the place of those that are the same values.

    Parameters
    ----------
    fgraph
        The graph. Equal nodes have been merged.
    refused
        Pairs that features of the graph did not allow, to be left alone; more are added.
    reason
        For the features.

    Returns
    -------
    list of tuple
        Pairs of an output and the one that took its place.

    Raises
    ------
    Exception
        Whatever a feature raises but `InconsistencyError`.
    """
    nodes = in_order([variable.owner for variable in fgraph.outputs], fgraph.apply_nodes)
    pairs = [
        pair for pair in equal_outputs(nodes) if fgraph.clients[pair[0]] and pair not in refused
    ]
    old = {pair[0] for pair in pairs}
    leave = {node for node in {v.owner for v in old} if not _may_lose(fgraph, node, old)}
    pairs = [pair for pair in pairs if pair[0].owner not in leave]
    done = _replace(fgraph, pairs, refused, reason)
    _drop_unused_outputs(fgraph, dict.fromkeys(old.owner for old, _ in done), reason)
    return done


def _replace(
    fgraph: FunctionGraph, pairs: list[Pair], refused: set[Pair], reason: str
) -> list[Pair]:
    """Make the replacements that are allowed, together if they are allowed together."""
    if not pairs:
        return []
    try:
        fgraph.replace_all_validate(pairs, reason=reason, verbose=False)
    except InconsistencyError:
        if len(pairs) == 1:
            refused.update(pairs)
            return []
        return [done for pair in pairs for done in _replace(fgraph, [pair], refused, reason)]
    return pairs


def _may_lose(fgraph: FunctionGraph, node: Apply[Any], outputs: set[Variable[Any, Any]]) -> bool:
    """Whether ``node`` computes the same when nothing reads these of its outputs any more.

    PyTensor drops such outputs, and inputs that no other one depends on, without regard to what
    those inputs do to the shape.
    """
    used = [i for i, v in enumerate(node.outputs) if fgraph.clients[v] and v not in outputs]
    return not used or not _is_composite(node) or _with_outputs(node, used) is not None


def _is_composite(node: Apply[Any]) -> bool:
    return isinstance(node.op.scalar_op, Composite)


def _drop_unused_outputs(fgraph: FunctionGraph, nodes: Iterable[Apply[Any]], reason: str) -> None:
    """Make kernels compute no more than what is read, where features allow that."""
    for node in nodes:
        if node not in fgraph.apply_nodes or not _is_composite(node):
            continue
        used = [i for i, output in enumerate(node.outputs) if fgraph.clients[output]]
        smaller = _with_outputs(node, used) if len(used) < len(node.outputs) else None
        if smaller is not None:
            pairs = list(zip([node.outputs[i] for i in used], smaller.outputs, strict=True))
            for old, new in pairs:
                copy_stack_trace(old, new)
            with suppress(InconsistencyError):
                fgraph.replace_all_validate(pairs, reason=reason, verbose=False)


def _with_outputs(node: Apply[Any], used: list[int]) -> Apply[Any] | None:
    """Return a kernel that computes these outputs from the inputs that they depend on.

    None if it cannot: if their shapes depend on other inputs, too, or they depend on none.
    """
    inner = node.op.scalar_op.fgraph
    outputs = [inner.outputs[i] for i in used]
    read = set(ancestors(outputs))
    kept = [i for i, scalar in enumerate(inner.inputs) if scalar in read]
    if not kept:
        return None
    op = Elemwise(Composite([inner.inputs[i] for i in kept], outputs))
    smaller = op.make_node(*[node.inputs[i] for i in kept])
    same = all(
        new.type == node.outputs[i].type for i, new in zip(used, smaller.outputs, strict=True)
    )
    return smaller if same else None
