"""Merging the outputs of kernels that are the same values, and dropping what nothing reads then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.utils import InconsistencyError
from pytensor.scalar.basic import Composite
from pytensor.tensor.rewriting.elemwise import local_useless_composite_outputs

from pytensor_fuse._value_numbering import equal_outputs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Apply, Variable
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
    pairs = [
        pair
        for pair in equal_outputs(fgraph.toposort())
        if fgraph.clients[pair[0]] and pair not in refused
    ]
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


def _drop_unused_outputs(fgraph: FunctionGraph, nodes: Iterable[Apply[Any]], reason: str) -> None:
    for node in nodes:
        if node not in fgraph.apply_nodes or not isinstance(node.op.scalar_op, Composite):
            continue
        if all(fgraph.clients[output] for output in node.outputs):
            continue
        smaller = local_useless_composite_outputs.transform(fgraph, node)
        if smaller:
            fgraph.replace_all_validate(list(smaller.items()), reason=reason, verbose=False)
