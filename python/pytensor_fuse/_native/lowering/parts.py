"""Parts: values that are not arrays, passed to programs as several arrays.

A program takes and returns arrays only. A random generator is passed as the address of its state.
Inputs and results of a program are numbered by part. `linking.parts` splits the arguments of a
function, and assembles its results.

Machine code changes generators in place, and constructs none. A node that must not change its
generator uses a copy instead. Copies are made before the call, so the generator must be an argument
of the function in the state of that time. A node that is declared to preserve its generator may
nevertheless change it if it is the only reader, and the program owns the generator: a copy, an
overwritable argument, or the result of a draw from one of these.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.type import TensorType

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.tensors import DTYPES, of_parts, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._native.lowering.types import (
        Constant,
        Context,
        Node,
        Tensor,
        Tensors,
        Variable,
        Variables,
    )


class Part(NamedTuple):
    """An array that is passed for a variable, or for a part of one.

    Attributes
    ----------
    dtype
        The dtype of its elements, in NumPy's notation.
    shape
        The length of each axis; None if unknown.
    """

    dtype: str
    shape: tuple[int | None, ...]


@singledispatch
def type_parts(kind: Any) -> tuple[Part, ...] | None:
    """Return the parts of variables of a type; None if machine code does not support them.

    An array has one part, itself.
    """
    return None


@type_parts.register(TensorType)
@type_parts.register(ScalarType)
def _array(kind: Any) -> tuple[Part, ...] | None:
    return (Part(kind.dtype, getattr(kind, "shape", ())),) if kind.dtype in DTYPES else None


@type_parts.register(RandomGeneratorType)
def _generator(kind: RandomGeneratorType) -> tuple[Part, ...]:
    # The part is the address of its `bitgen_t`.
    return (Part("uint64", (1,)),)


def is_array(variable: Variable) -> bool:
    """Whether a variable is passed as a single array."""
    # An `isinstance` check would accept sparse matrices, whose type derives from that of arrays.
    return type_parts.dispatch(type(variable.type)) is _array


@singledispatch
def received(kind: Any, context: Context, parts: Sequence[Tensor]) -> Tensor:
    """Return the tensor of a split argument from the tensors of its parts."""
    return of_parts(parts)


@singledispatch
def constant_of(kind: Any, context: Context, variable: Constant) -> Tensor:
    """Return the tensor of a constant of a type.

    Raises
    ------
    NoRuleError
        If programs do not support it.
    """
    return context.constant_tensor(variable)


def input_parts(inputs: Variables, copies: Sequence[int]) -> list[tuple[int, Part]]:
    """Return the parts that a program receives, with the positions of their inputs in the graph.

    Parameters
    ----------
    inputs
        The inputs of the graph.
    copies
        The positions of inputs of which the program receives copies, behind all others.
    """
    return [
        (place, part)
        for place in (*range(len(inputs)), *copies)
        for part in type_parts(inputs[place].type) or ()
    ]


def new_inputs(context: Context, kind: Any, *, may_destroy: bool) -> Tensors:
    """Add a variable of a type as inputs of the program, one for each part."""
    builder, tensors = context.builder, []
    for dtype, shape in type_parts(kind) or ():
        buffer = context.input(DTYPES[dtype], shape)
        if may_destroy:
            builder.program.buffers[buffer].is_once = False
            context.overwritable.add(buffer)
        if shape == ():
            # Load it now: the buffer may be overwritten later.
            tensors.append(scalar(builder, builder.load(buffer, ())))
        else:
            tensors.append(stored(builder, buffer))
    return tensors


def copy_of_argument(context: Context, given: Tensor, kind: Any) -> Tensor:
    """Return a copy of a split argument, made before the program runs.

    Parameters
    ----------
    context
        The lowering.
    given
        The argument.
    kind
        Its type.

    Raises
    ------
    NoRuleError
        If it is not an argument, or has been overwritten by then.
    """
    position = context.arguments.get(given)
    if position is None:
        raise NoRuleError(
            f"a copy of a variable of type {kind} that is not an input of the function"
        )
    if any(part.buffer in context.overwritten for part in given.parts):
        raise NoRuleError(f"a copy of a variable of type {kind} that has been changed")
    context.copies.append(position)
    copy = of_parts(new_inputs(context, kind, may_destroy=True))
    # Until it is overwritten, a copy of it is a copy of the argument.
    context.arguments[copy] = position
    return copy


def is_generator(variable: Variable) -> bool:
    """Whether a variable is a random generator."""
    return isinstance(variable.type, RandomGeneratorType)


def used_once(nodes: Iterable[Node], outputs: Variables) -> set[Variable]:
    """Return the generators of a graph that only one node reads."""
    n_uses: dict[Variable, int] = {}
    for variables in (*[node.inputs for node in nodes], outputs):
        for one in variables:
            if is_generator(one):
                n_uses[one] = n_uses.get(one, 0) + 1
    return {variable for variable, n in n_uses.items() if n == 1}


def own_generator(context: Context, given: Tensor, variable: Variable, *, destroys: bool) -> Tensor:
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
