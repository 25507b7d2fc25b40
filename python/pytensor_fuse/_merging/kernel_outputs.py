"""Merging of equal outputs of kernels, and removal of the outputs that become unused.

A comparison of outputs looks at the whole graph, so this module also decides when one is due.
"""

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


class KernelComparisons:
    """The schedule of comparisons of kernel outputs in one graph.

    A comparison is due after the look-up of a kernel. If the graph has kernels, it is also due
    after so many look-ups of other nodes that its time is in proportion to them; for the first few
    times, one look-up suffices.
    """

    def __init__(self) -> None:
        self._has_kernels = False
        # Counted since the last comparison.
        self._n_looked_up = 0
        self._met_kernels = False
        self._n_free_comparisons = 20

    def note(self, n_looked_up: int, *, met_kernels: bool) -> None:
        """Record that nodes were looked up, and whether there were kernels among them."""
        self._has_kernels |= met_kernels
        self._met_kernels |= met_kernels
        self._n_looked_up += n_looked_up

    def start_if_due(self, n_nodes: int) -> bool:
        """Return whether a comparison is due in a graph of ``n_nodes``; it then counts as done."""
        is_proportionate = self._n_looked_up * 8 > n_nodes
        is_free = self._n_looked_up > 0 and self._n_free_comparisons > 0
        is_due = self._met_kernels or (self._has_kernels and (is_proportionate or is_free))
        if is_due:
            self._n_free_comparisons -= not (self._met_kernels or is_proportionate)
            self._met_kernels = False
            self._n_looked_up = 0
        return is_due

    def start_again(self) -> None:
        """Make a comparison due again, since the last one failed."""
        self._met_kernels = True


def merge_outputs(fgraph: FunctionGraph, refused: set[Pair], reason: str) -> list[Pair]:
    """Replace outputs of kernels by the first outputs with the same values.

    Parameters
    ----------
    fgraph
        The graph, whose equal nodes have been merged.
    refused
        Pairs that features of the graph did not allow. They are skipped, and new ones are added.
    reason
        The reason that the features get.

    Returns
    -------
    list of tuple
        Pairs of an output and its replacement.

    Raises
    ------
    Exception
        Any exception of a feature except `InconsistencyError`.
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
    """Make the replacements that are allowed, in one edit if it is allowed as a whole."""
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
    """Return whether ``node`` still computes its other outputs once ``outputs`` are unused.

    PyTensor drops unused outputs, and the inputs that only these depend on, even if such an input
    affects the shape of the others.
    """
    used = [i for i, v in enumerate(node.outputs) if fgraph.clients[v] and v not in outputs]
    return not used or not _is_composite(node) or _with_outputs(node, used) is not None


def _is_composite(node: Apply[Any]) -> bool:
    return isinstance(node.op.scalar_op, Composite)


def _drop_unused_outputs(fgraph: FunctionGraph, nodes: Iterable[Apply[Any]], reason: str) -> None:
    """Remove the unused outputs of kernels, where features allow that."""
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

    None if there is none: if their shapes also depend on other inputs, or they depend on no input.
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
