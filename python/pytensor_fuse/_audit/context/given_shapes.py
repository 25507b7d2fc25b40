"""Validation of the shapes of inputs that a caller gives."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Variable
from pytensor.tensor.type import TensorType

if TYPE_CHECKING:
    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._audit.context.lengths import Lengths


def given_lengths(
    fgraph: FunctionGraph,
    aliases: Mapping[Variable[Any, Any], Variable[Any, Any]],
    shapes: Mapping[Any, Sequence[int | None]] | None,
) -> dict[Variable[Any, Any], Lengths]:
    """Return the lengths of inputs that a caller gives.

    Parameters
    ----------
    fgraph
        The graph.
    aliases
        The graph's inputs by the corresponding variables of the user.
    shapes
        Shapes by input, alias or name.

    Raises
    ------
    TypeError
        If ``shapes`` is not a mapping from variables and names to sequences of integers and None.
    ValueError
        If it names something that is not an input, or an input cannot have its shape.
    """
    if shapes is None:
        return {}
    if not isinstance(shapes, Mapping):
        raise TypeError(
            f"shapes must map inputs or their names to shapes, not be a {type(shapes).__name__}"
        )
    lengths: dict[Variable[Any, Any], Lengths] = {}
    for key, shape in shapes.items():
        variable = _input(fgraph, aliases, key)
        if variable in lengths:
            raise ValueError(f"shapes gives the shape of {_label(variable)} twice")
        lengths[variable] = _checked(variable, shape)
    return lengths


def _input(
    fgraph: FunctionGraph, aliases: Mapping[Variable[Any, Any], Variable[Any, Any]], key: object
) -> Variable[Any, Any]:
    if isinstance(key, Variable):
        variable = aliases.get(key, key)
        if variable in fgraph.inputs:
            return variable
        text = f"shapes names {_label(key)}, which is not an input of the graph"
        if key.name is not None and any(v.name == key.name for v in fgraph.inputs):
            text += (
                "; an input of that name is: the graph holds copies, so use the name, or make it "
                "by FunctionGraph(..., clone=False)"
            )
        raise ValueError(text)
    if not isinstance(key, str):
        raise TypeError(
            f"the keys of shapes must be variables or names, not {type(key).__name__}: {key!r}"
        )
    found = [variable for variable in fgraph.inputs if variable.name == key]
    if not found:
        names = ", ".join(sorted({v.name for v in fgraph.inputs if v.name is not None}))
        raise ValueError(
            f"shapes names {key!r}, but no input of the graph has that name; "
            + (f"those with names are {names}" if names else "none has a name; use the variables")
        )
    if len(found) > 1:
        raise ValueError(f"shapes names {key!r}, but {len(found)} inputs have that name")
    return found[0]


def _checked(variable: Variable[Any, Any], shape: Sequence[int | None]) -> Lengths:
    type_ = variable.type
    if not isinstance(type_, TensorType):
        raise ValueError(f"shapes gives {_label(variable)} a shape, but it is a {type_}, no tensor")
    try:
        lengths = tuple(None if n is None else operator.index(n) for n in shape)
    except TypeError:
        raise TypeError(
            f"the shape of {_label(variable)} must be a sequence of integers and None, not "
            f"{shape!r}"
        ) from None
    if len(lengths) != type_.ndim:
        raise ValueError(
            f"shapes gives {_label(variable)} {len(lengths)} dimensions, but it has {type_.ndim}"
        )
    for axis, (n, static) in enumerate(zip(lengths, type_.shape, strict=True)):
        if n is not None and n < 0:
            raise ValueError(f"shapes gives {_label(variable)} the length {n} along axis {axis}")
        if None not in (n, static) and n != static:
            raise ValueError(
                f"shapes gives {_label(variable)} the length {n} along axis {axis}, but its type "
                f"says {static}"
            )
    return lengths


def _label(variable: Variable[Any, Any]) -> str:
    return repr(variable.name) if variable.name is not None else str(variable)
