"""Which shapes the arrays of a graph will have, as far as that is sure before it runs.

PyTensor's ops say how the shapes of their outputs follow from those of their inputs, as graphs.
Here they are asked about numbers, node by node, so that every answer is a number or nothing. Where
a shape depends on values, as that of a slice does, small integers are computed along.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar.basic import ScalarOp, ScalarType
from pytensor.tensor.basic import Join, MakeVector, ScalarFromTensor, TensorFromScalar, constant
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType, lscalar

from pytensor_fuse._pytensor.ops import infer_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.basic import Apply
    from pytensor.graph.fg import FunctionGraph

# Lengths of the dimensions of a tensor; None where one is not known.
Lengths = tuple[int | None, ...]

# Integers are computed along in arrays of no more elements than this.
_MOST_VALUES = 64


class ShapesDifferError(ValueError):
    """A graph cannot run on inputs of the shapes that they have."""


class Known:
    """What is known of the variables of a graph before it runs."""

    def __init__(self, lengths: Mapping[Variable[Any, Any], Lengths], *, strict: bool) -> None:
        self._lengths = dict(lengths)
        self._strict = strict
        self._values: dict[Variable[Any, Any], np.ndarray] = {}
        self._learned: set[Apply[Any]] = set()
        self._stored: dict[Variable[Any, Any], int] = {}

    def shape(self, variable: Variable[Any, Any]) -> Lengths | None:
        """Return the lengths that are known of a tensor; None for what is no tensor."""
        known = self._lengths.get(variable)
        if known is not None:
            return known
        if not isinstance(variable.type, TensorType):
            return None
        if isinstance(variable, Constant):
            return tuple(map(int, variable.data.shape))
        return variable.type.shape

    def value(self, variable: Variable[Any, Any]) -> np.ndarray | None:
        """Return what an integer or a short vector of integers will be, if that is known."""
        if isinstance(variable, Constant):
            data = variable.data
            return np.asarray(data) if _holds_integers(variable) else None
        return self._values.get(variable)

    def learn(self, node: Apply[Any]) -> None:
        """Find out about the outputs of ``node``, those of earlier nodes being known.

        Raises
        ------
        ValueError
            If this is strict, and the node cannot run on inputs of the shapes that they have.
        """
        # An op may answer with the shape of its own output.
        self._learned.add(node)
        try:
            for variable, inferred in zip(node.outputs, _output_shapes(node, self), strict=True):
                if isinstance(variable.type, TensorType):
                    self._lengths[variable] = _both(node, variable.type.shape, inferred)
        except ShapesDifferError:
            if self._strict:
                raise
        if all(map(_holds_integers, node.outputs)):
            self._values.update(zip(node.outputs, _values(node, self), strict=False))

    def know(self, variable: Variable[Any, Any], value: np.ndarray | None) -> None:
        """Note what an input will be, if that is known."""
        if value is not None and _holds_integers(variable):
            self._values[variable] = value

    def know_stored(self, variable: Variable[Any, Any], matrix: Any) -> None:
        """Note which sparse matrix an input holds."""
        self._stored[variable] = sum(part.nbytes for part in sparse_parts(matrix))

    def stored(self, variable: Variable[Any, Any]) -> int | None:
        """Return the bytes of the stored elements of a sparse matrix, and of where they are.

        That is known of constants and of what has been noted.
        """
        if isinstance(variable, Constant):
            return sum(part.nbytes for part in sparse_parts(variable.data))
        return self._stored.get(variable)

    def has_learned(self, node: Apply[Any]) -> bool:
        """Whether `learn` has been called for ``node``."""
        return node in self._learned


def infer(
    inputs: Iterable[Variable[Any, Any]],
    order: Sequence[Apply[Any]],
    given: Mapping[Variable[Any, Any], Lengths],
    values: Mapping[Variable[Any, Any], np.ndarray] | None = None,
    *,
    strict: bool = False,
) -> Known:
    """Return what is known of a graph whose inputs have these lengths; O(nodes + edges).

    Parameters
    ----------
    inputs
        The inputs.
    order
        The nodes, each after those that it reads.
    given
        Lengths of inputs.
    values
        What inputs of integers will be.
    strict
        Whether to refuse a graph that cannot run on such inputs. Otherwise what does not agree is
        not known.

    Raises
    ------
    ValueError
        If this is strict, and the graph cannot run.
    """
    lengths = {v: _refined(v, given[v]) for v in inputs if v in given}
    known = Known(lengths, strict=strict)
    for variable, value in (values or {}).items():
        known.know(variable, value)
    # Nobody will see the variables that are made, so where they were made is not noted.
    with config.change_flags(traceback__limit=0):
        for node in order:
            known.learn(node)
    return known


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
        What else its inputs are known as.
    shapes
        Shapes by input, alias or name.

    Raises
    ------
    TypeError
        If ``shapes`` is no mapping from variables and names to sequences of integers and None.
    ValueError
        If it names what is no input, or an input cannot have the shape.
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
    kind = variable.type
    if not isinstance(kind, TensorType):
        raise ValueError(f"shapes gives {_label(variable)} a shape, but it is a {kind}, no tensor")
    try:
        lengths = tuple(None if n is None else operator.index(n) for n in shape)
    except TypeError:
        raise TypeError(
            f"the shape of {_label(variable)} must be a sequence of integers and None, not "
            f"{shape!r}"
        ) from None
    if len(lengths) != kind.ndim:
        raise ValueError(
            f"shapes gives {_label(variable)} {len(lengths)} dimensions, but it has {kind.ndim}"
        )
    for axis, (n, static) in enumerate(zip(lengths, kind.shape, strict=True)):
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


def _refined(variable: Variable[Any, Any], lengths: Lengths) -> Lengths:
    static = variable.type.shape
    return tuple(s if n is None else n for n, s in zip(lengths, static, strict=True))


def _both(node: Apply[Any], static: Lengths, inferred: Lengths | None) -> Lengths:
    if inferred is None:
        inferred = (None,) * len(static)
    lengths = []
    for axis, (s, n) in enumerate(zip(static, inferred, strict=True)):
        if None not in (s, n) and s != n:
            raise ShapesDifferError(
                f"{node} cannot run on inputs of these shapes: its result would have the length "
                f"{n} along axis {axis}, where its type says {s}"
            )
        length = n if s is None else s
        # A constant may ask for what cannot be, where it is never run.
        lengths.append(length if length is None or length >= 0 else None)
    return tuple(lengths)


# Sparse matrices


def is_sparse(kind: Any) -> bool:
    """Whether a type is of sparse matrices, which is a kind of `TensorType`.

    The class itself is not asked for, as few graphs need its module and SciPy's.
    """
    return isinstance(kind, TensorType) and hasattr(kind, "format")


def sparse_parts(data: Any) -> list[np.ndarray]:
    """Return the arrays of a sparse matrix; none of anything else."""
    parts = [getattr(data, name, None) for name in ("data", "indices", "indptr")]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    return arrays if len(arrays) == len(parts) else []


# Shapes


def _output_shapes(node: Apply[Any], known: Known) -> Sequence[Lengths | None]:
    op = node.op
    if isinstance(op, Elemwise):
        return [_joint(node, known)] * len(node.outputs)
    if isinstance(op, DimShuffle):
        shape = known.shape(node.inputs[0]) or ()
        return [tuple(1 if i == "x" else shape[i] for i in op.new_order)]
    if isinstance(op, CAReduce):
        axes = op.axis
        shape = known.shape(node.inputs[0]) or ()
        return [tuple(n for i, n in enumerate(shape) if axes is not None and i not in axes)]
    if all(_is_static(variable) for variable in node.outputs):
        return [None] * len(node.outputs)
    if isinstance(op, OpFromGraph) and len(op.fgraph.inputs) == len(node.inputs):
        return _through(node, known)
    return _asked(node, known)


def _through(node: Apply[Any], known: Known) -> list[Lengths | None]:
    """Work out the shapes of what an inner graph computes."""
    graph = node.op.fgraph
    inner = infer(graph.inputs, graph.toposort(), *handed_in(node, graph, known))
    return [inner.shape(variable) for variable in graph.outputs]


def handed_in(
    node: Apply[Any], graph: Any, known: Known
) -> tuple[dict[Variable[Any, Any], Lengths], dict[Variable[Any, Any], np.ndarray]]:
    """Return the lengths and values that the inputs of an inner graph get from those of its node.

    The inner graph has an input for each of the node's.
    """
    lengths, values = {}, {}
    for inside, outside in zip(graph.inputs, node.inputs, strict=True):
        shape, value = known.shape(outside), known.value(outside)
        if shape is not None and isinstance(inside.type, TensorType):
            lengths[inside] = shape
        if value is not None:
            values[inside] = value
    return lengths, values


def _is_static(variable: Variable[Any, Any]) -> bool:
    return not isinstance(variable.type, TensorType) or None not in variable.type.shape


def _joint(node: Apply[Any], known: Known) -> Lengths:
    """Return the shape of what an Elemwise computes.

    Only dimensions that are 1 by their type are stretched; along the others the lengths agree.
    """
    lengths: list[int | None] = []
    shapes = [known.shape(variable) or () for variable in node.inputs]
    patterns = [variable.type.broadcastable for variable in node.inputs]
    for axis in range(node.outputs[0].type.ndim):
        along = {
            shape[axis]: i
            for i, (shape, pattern) in enumerate(zip(shapes, patterns, strict=True))
            if not pattern[axis] and shape[axis] is not None
        }
        if len(along) > 1:
            pairs = ", ".join(f"{n} in input {i}" for n, i in along.items())
            raise ShapesDifferError(
                f"{node} cannot run on inputs of these shapes: the lengths along axis {axis} "
                f"differ ({pairs})"
            )
        # The type of the output may say less than those of the inputs.
        one = all(pattern[axis] for pattern in patterns)
        lengths.append(next(iter(along), 1 if one else None))
    return tuple(lengths)


def _asked(node: Apply[Any], known: Known) -> Sequence[Lengths | None]:
    """Ask the op, about numbers where they are known."""
    unknown = [None] * len(node.outputs)
    shapes = []
    for variable in node.inputs:
        shape = known.shape(variable)
        shapes.append(None if shape is None else tuple(map(_symbol, shape)))
    try:
        answers = infer_shape(node, shapes)
    except Exception:  # Somebody's op that cannot say is one whose shapes are not known.
        return unknown
    if answers is None or len(answers) != len(node.outputs):
        return unknown
    found: list[Lengths | None] = []
    for variable, answer in zip(node.outputs, answers, strict=True):
        kind = variable.type
        if (
            isinstance(kind, TensorType)
            and isinstance(answer, list | tuple)
            and len(answer) == kind.ndim
        ):
            found.append(tuple(_length(n, known) for n in answer))
        else:
            found.append(None)
    return found


def _symbol(n: int | None) -> Any:
    return lscalar() if n is None else _number(n)


@lru_cache(maxsize=4096)
def _number(n: int) -> Any:
    return constant(n, dtype="int64")


def _length(answer: Any, known: Known) -> int | None:
    if isinstance(answer, Variable):
        try:
            for node in _unlearned(answer, known):
                known.learn(node)
        except ShapesDifferError:
            return None
        value = known.value(answer)
    else:
        value = np.asarray(answer)
    if value is None or value.ndim != 0 or value.dtype.kind not in "iu" or value < 0:
        return None
    return int(value)


def _unlearned(variable: Variable[Any, Any], known: Known) -> list[Apply[Any]]:
    """Return the nodes that ``variable`` needs and that are not known yet, in order."""
    nodes: dict[Apply[Any], None] = {}
    stack = [variable.owner]
    while stack:
        node = stack[-1]
        if node is None or node in nodes or known.has_learned(node):
            stack.pop()
            continue
        pending = [
            owner
            for owner in (v.owner for v in node.inputs)
            if owner is not None and owner not in nodes and not known.has_learned(owner)
        ]
        if pending:
            stack += pending
        else:
            nodes[node] = None
            stack.pop()
    return list(nodes)


# Values


def _holds_integers(variable: Variable[Any, Any]) -> bool:
    kind = variable.type
    if isinstance(kind, ScalarType):
        return np.dtype(kind.dtype).kind in "biu"
    return isinstance(kind, TensorType) and kind.ndim <= 1 and np.dtype(kind.dtype).kind in "biu"


# Ops of which `perform` is asked for a value; it depends on nothing but the values of the inputs.
_PURE = (ScalarFromTensor, TensorFromScalar, MakeVector, Subtensor, Join, DimShuffle, Reshape)


def _values(node: Apply[Any], known: Known) -> list[np.ndarray]:
    """Return the integers that a node computes, or nothing if they are not known."""
    op = node.op
    if isinstance(op, Shape_i | Shape):
        shape = known.shape(node.inputs[0])
        lengths = shape if isinstance(op, Shape) or shape is None else (shape[op.i],)
        if lengths is None or None in lengths:
            return []
        return [np.asarray(lengths if isinstance(op, Shape) else lengths[0], dtype="int64")]
    inputs = [known.value(variable) for variable in node.inputs]
    if isinstance(op, CheckAndRaise):
        # Where it does not hold, nothing runs.
        return [value for value in inputs[:1] if value is not None]
    if any(value is None or value.size > _MOST_VALUES for value in inputs):
        return []
    try:
        with np.errstate(all="ignore"):
            computed = _computed(node, inputs)
    except Exception:  # What fails now will fail then, and has no value.
        return []
    return [
        np.asarray(value, dtype=variable.type.dtype)
        for variable, value in zip(node.outputs, computed, strict=True)
    ]


def _computed(node: Apply[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    op: Any = node.op
    if isinstance(op, ScalarOp):
        computed: Any = op.impl(*[value[()] for value in inputs])
        return computed if len(node.outputs) > 1 else [computed]
    if isinstance(op, Elemwise):
        arrays = np.broadcast_arrays(*inputs)
        elements = zip(*(array.flat for array in arrays), strict=True)
        computed = [op.scalar_op.impl(*operands) for operands in elements]
        results = zip(*computed, strict=True) if len(node.outputs) > 1 else [computed]
        return [np.reshape(result, arrays[0].shape) for result in results]
    if isinstance(op, _PURE):
        storage: list[list[Any]] = [[None]]
        perform: Any = op.perform
        perform(node, [value if value.ndim else value[()] for value in inputs], storage)
        return storage[0]
    raise TypeError
