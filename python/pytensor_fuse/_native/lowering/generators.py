"""Generators of random numbers while a graph is lowered: which of them may be changed.

Machine code changes generators, and makes none. A generator that a node must leave as it is becomes
another one, a copy that is made before the call: so it must be an argument of the function, as it
was when the call began. A node that says of a generator that it does not change it may change it
all the same if it is the only one that reads it, and it is the program's own: a copy, an argument
that may be changed, or what draws from one of these have left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.random.type import RandomGeneratorType

from pytensor_fuse._native.lowering.parts import copy_of_argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Tensor


def is_generator(variable: Variable[Any, Any]) -> bool:
    """Whether a variable is a generator of random numbers."""
    return isinstance(variable.type, RandomGeneratorType)


def used_once(
    nodes: Iterable[Apply[Any]], outputs: Sequence[Variable[Any, Any]]
) -> set[Variable[Any, Any]]:
    """Return the generators of a graph that only one node reads."""
    n_uses: dict[Variable[Any, Any], int] = {}
    for variables in (*[node.inputs for node in nodes], outputs):
        for one in variables:
            if is_generator(one):
                n_uses[one] = n_uses.get(one, 0) + 1
    return {variable for variable, n in n_uses.items() if n == 1}


def own_generator(
    context: Context, given: Tensor, variable: Variable[Any, Any], *, destroys: bool
) -> Tensor:
    """Return a generator that a node may change: the one that it is given, or a copy.

    Parameters
    ----------
    context
        The lowering.
    given, variable
        The generator.
    destroys
        Whether the node says that it changes it.

    Raises
    ------
    NoRuleError
        If it would have to be copied on the way.
    """
    [state] = given.parts
    may_change = destroys or variable in context.used_once
    if not may_change or state.buffer not in context.overwritable:
        given = copy_of_argument(context, given, variable.type)
        [state] = given.parts
    assert state.buffer is not None
    context.overwritten.add(state.buffer)
    return given
