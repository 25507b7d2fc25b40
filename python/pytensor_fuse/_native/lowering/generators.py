"""Random generators during lowering: ownership and copies.

Machine code changes generators in place, and constructs none. A node that must not change its
generator uses a copy instead. Copies are made before the call, so the generator must be an argument
of the function in the state of that time. A node that is declared to preserve its generator may
change it all the same if it is the only reader, and the program owns the generator: a copy, an
overwritable argument, or the result of a draw from one of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.tensor.random.type import RandomGeneratorType

from pytensor_fuse._native.lowering.parts import copy_of_argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._native.lowering.annotations import Context, Node, Tensor, Variable


def is_generator(variable: Variable[Any, Any]) -> bool:
    """Whether a variable is a random generator."""
    return isinstance(variable.type, RandomGeneratorType)


def used_once(
    nodes: Iterable[Node], outputs: Sequence[Variable[Any, Any]]
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
    """Return a generator that a node may change: its operand, or a copy.

    Parameters
    ----------
    context
        The lowering.
    given, variable
        The tensor and the variable of the generator.
    destroys
        Whether the op declares that it overwrites the generator.

    Raises
    ------
    NoRuleError
        If a copy would be needed of a generator that is not in its state before the call.
    """
    [state] = given.parts
    may_change = destroys or variable in context.used_once
    if not may_change or state.buffer not in context.overwritable:
        given = copy_of_argument(context, given, variable.type)
        [state] = given.parts
    assert state.buffer is not None
    context.overwritten.add(state.buffer)
    return given
