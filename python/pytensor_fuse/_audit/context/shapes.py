"""Shape inference: the shapes of a graph's arrays that are certain before it runs.

PyTensor's ops describe the shapes of their outputs as graphs of the shapes of their inputs. Here
they are given numbers, node by node, so that every answer is a number or unknown. Where a shape
depends on values, such as that of a slice, small integers are evaluated, too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import constant
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.type import TensorType, lscalar

from pytensor_fuse._audit.context.integers import computed_integers, holds_integers
from pytensor_fuse._audit.context.sparse import sparse_parts
from pytensor_fuse._pytensor.ops.versions_of_ops import infer_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytensor_fuse._audit.context.lengths import Lengths


class ShapesDifferError(ValueError):
    """A graph cannot run on the given shapes of its inputs."""


class Known:
    """Facts about the variables of a graph that are known before it runs."""

    def __init__(self, lengths: Mapping[Variable[Any, Any], Lengths], *, strict: bool) -> None:
        self._lengths = dict(lengths)
        self._strict = strict
        self._values: dict[Variable[Any, Any], np.ndarray] = {}
        self._learned: set[Apply[Any]] = set()
        self._stored: dict[Variable[Any, Any], int] = {}

    def shape(self, variable: Variable[Any, Any]) -> Lengths | None:
        """Return the known lengths of a tensor, or None for a variable of another type."""
        known = self._lengths.get(variable)
        if known is not None:
            return known
        if not isinstance(variable.type, TensorType):
            return None
        if isinstance(variable, Constant):
            return tuple(map(int, variable.data.shape))
        return variable.type.shape

    def value(self, variable: Variable[Any, Any]) -> np.ndarray | None:
        """Return the value of an integer or a short vector of integers, if known."""
        if isinstance(variable, Constant):
            data = variable.data
            return np.asarray(data) if holds_integers(variable) else None
        return self._values.get(variable)

    def learn(self, node: Apply[Any]) -> None:
        """Infer the facts about the outputs of ``node`` from those of earlier nodes.

        Raises
        ------
        ValueError
            If this is strict, and the node cannot run on the shapes of its inputs.
        """
        # Marked first, since an op may answer with the shape of its own output.
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
        """Note the value of an input, if known."""
        if value is not None and holds_integers(variable):
            self._values[variable] = value

    def know_stored(self, variable: Variable[Any, Any], matrix: Any) -> None:
        """Note the current matrix of a sparse input."""
        self._stored[variable] = sum(part.nbytes for part in sparse_parts(matrix))

    def stored(self, variable: Variable[Any, Any]) -> int | None:
        """Return the bytes of a sparse matrix: its stored elements and their indices.

        They are known for constants and for noted inputs.
        """
        if isinstance(variable, Constant):
            return sum(part.nbytes for part in sparse_parts(variable.data))
        return self._stored.get(variable)

    def has_learned(self, node: Apply[Any]) -> bool:
        """Return whether `learn` has been called for ``node``."""
        return node in self._learned


def infer(
    inputs: Iterable[Variable[Any, Any]],
    order: Sequence[Apply[Any]],
    given: Mapping[Variable[Any, Any], Lengths],
    values: Mapping[Variable[Any, Any], np.ndarray] | None = None,
    *,
    strict: bool = False,
) -> Known:
    """Return the facts about a graph whose inputs have given lengths; O(nodes + edges).

    Parameters
    ----------
    inputs
        The inputs.
    order
        The nodes in a topological order.
    given
        Lengths of inputs.
    values
        Values of integer inputs.
    strict
        Whether to reject a graph that cannot run on such inputs. Otherwise, contradictory facts
        are treated as unknown.

    Raises
    ------
    ValueError
        If this is strict, and the graph cannot run.
    """
    lengths = {v: _refined(v, given[v]) for v in inputs if v in given}
    known = Known(lengths, strict=strict)
    for variable, value in (values or {}).items():
        known.know(variable, value)
    # The temporary variables are never shown, so that their tracebacks are not needed.
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
        # A constant in code that never runs may be a negative length.
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
    """Infer the shapes of the outputs of an inner graph."""
    graph = node.op.fgraph
    inner = infer(graph.inputs, graph.toposort(), *handed_in(node, graph, known))
    return [inner.shape(variable) for variable in graph.outputs]


def handed_in(
    node: Apply[Any], graph: Any, known: Known
) -> tuple[dict[Variable[Any, Any], Lengths], dict[Variable[Any, Any], np.ndarray]]:
    """Return the lengths and values of an inner graph's inputs that follow from its node's.

    The inner graph has one input for each of the node's. If the node runs it for each element of a
    batch, its inputs have the last axes of the node's.
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
    """Return the shape of the outputs of an Elemwise node.

    Only dimensions of static length 1 are broadcast; along the others the lengths agree.
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
        # The output type may be less specific than the input types.
        one = all(pattern[axis] for pattern in patterns)
        lengths.append(next(iter(along), 1 if one else None))
    return tuple(lengths)


def _asked(node: Apply[Any], known: Known) -> Sequence[Lengths | None]:
    """Infer shapes by the op's own rule, with numbers for the known lengths."""
    unknown = [None] * len(node.outputs)
    shapes = []
    for variable in node.inputs:
        shape = known.shape(variable)
        shapes.append(None if shape is None else tuple(map(_symbol, shape)))
    try:
        answers = infer_shape(node, shapes)
    except Exception:  # A third-party op with a faulty rule: its shapes are unknown.
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
    """Return the nodes that ``variable`` requires and that are not learned yet, in order."""
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
