"""Which shapes the arrays of a graph will have, as far as that is sure before it runs.

PyTensor's ops say how the shapes of their outputs follow from those of their inputs, as graphs.
Here they are asked about numbers, node by node, so that every answer is a number or nothing. Where
a shape depends on values, as that of a slice does, small integers are computed along.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.basic import constant
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.type import TensorType, lscalar

from pytensor_fuse._audit.context.integers import computed_integers, holds_integers
from pytensor_fuse._audit.context.sparse import sparse_parts
from pytensor_fuse._pytensor.ops import infer_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytensor.graph.basic import Apply

    from pytensor_fuse._audit.context.lengths import Lengths


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
            return np.asarray(data) if holds_integers(variable) else None
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
        if all(map(holds_integers, node.outputs)):
            shape = self.shape(node.inputs[0]) if node.inputs else None
            values = computed_integers(node, shape, [self.value(v) for v in node.inputs])
            self._values.update(zip(node.outputs, values, strict=False))

    def know(self, variable: Variable[Any, Any], value: np.ndarray | None) -> None:
        """Note what an input will be, if that is known."""
        if value is not None and holds_integers(variable):
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

    The inner graph has an input for each of the node's. If the node runs it for each element of a
    batch, it gets the last axes of these.
    """
    lengths, values = {}, {}
    for inside, outside in zip(graph.inputs, node.inputs, strict=True):
        shape, value = known.shape(outside), known.value(outside)
        is_whole = True
        if shape is not None and isinstance(inside.type, TensorType):
            n_batch = len(shape) - inside.type.ndim
            is_whole = n_batch == 0
            lengths[inside] = shape[n_batch:]
        if value is not None and is_whole:
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
        type_ = variable.type
        if (
            isinstance(type_, TensorType)
            and isinstance(answer, list | tuple)
            and len(answer) == type_.ndim
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
