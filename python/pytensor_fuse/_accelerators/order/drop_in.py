"""Topological order: `toposort` with a list instead of a generator for each node's inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph import traversal

from pytensor_fuse._pytensor.patching.drop_ins import ReplacedCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytensor_fuse._pytensor.patching.patches import Patch


def _toposort(graphs: Any, blockers: Any = None) -> Iterator[Any]:
    computed = set(blockers or ())
    todo = list(graphs)
    pop = todo.pop
    try:
        while True:
            cur = pop()
            if cur not in computed and (apply := cur.owner) is not None:
                uncomputed_inputs = [
                    i for i in apply.inputs if i.owner is not None and i not in computed
                ]
                if uncomputed_inputs:
                    todo.append(cur)
                    todo.extend(uncomputed_inputs)
                else:
                    yield apply
                    computed.update(apply.outputs)
    except IndexError:
        return


def patch() -> Patch:
    """Return the patch."""
    return ReplacedCode(traversal.toposort, _toposort)
