"""Ops by which the kernels of a join write into its result.

A join of computed streams copies each of them once. Here `WriteSplit` makes the array of the result
and hands out, for each stream that a kernel can write, the part where the stream belongs; the
kernel works in place on that part; `WriteJoin` gives back the whole. The whole is no variable of
the graph before it is complete, so what the ops declare is all there is to know:

- the parts are fresh and disjoint, each the root of its own memory for PyTensor's destroy handler;
- what passes from the one op to the other beside them is a view of no elements, which keeps the
  memory and shares none of it;
- `WriteJoin` destroys that and every written stream, by one output for each, since its result takes
  over their memory. So all that reads a stream comes before the join, whatever passes run later,
  and no part outlives the memory.

`WriteJoin` computes the concatenation of the values that it is given, wherever these are. When it
runs it finds out whether each is where it belongs in the memory that it was handed, which nothing
else can be while that is kept, and copies what is not: a stream that nobody could write, or one
that a pass or a debugger has moved. (DebugMode copies every input of every node.) So no pass can
make the result wrong, only slower.

An op that handed out the whole beside its parts would need no such test, but variables that share
memory and are both used are a wrong view map, as DebugMode says rightly. Declared as views, the
parts would be one root with several destroyers, which the destroy handler refuses. Without the
outputs for the streams, a later pass could let another node read one after the join.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType, values_eq_approx_always_true
from pytensor.tensor.type_other import none_type_t

from pytensor_fuse._imports import after_import

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph

# Where the length of a dimension comes from: an input and a dimension of it, or VALUE if the input
# is the length; or STATIC and the length.
Length = tuple[int, int]
STATIC = -1
VALUE = -1

# Shorter rows are as fast in PyTensor's loop over any strides.
_MIN_ROW = 16

# The bounds of a slice; the second may be missing.
Slot = tuple[int, int | None]

SLOT_MISMATCH = "shape mismatch: what is assigned to a slice must be as long as the slice"
NEGATIVE = "the length of a joined tensor is negative"
MISMATCH = "all dimensions of joined tensors other than the axis must match"


@cache
def _implement_in_numba() -> None:
    """Register Numba's implementations once Numba's dispatch is there, which may be never."""
    after_import(
        "pytensor.link.numba.dispatch", lambda: import_module("pytensor_fuse._joins.ops.numba")
    )


class _WriteOp(COp):
    """What the ops have in common: wherever there is one, also unpickled, Numba can compile it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> _WriteOp:
        _implement_in_numba()
        return super().__new__(cls)


class WriteSplit(_WriteOp):
    """Allocates the result of a join, and returns the parts of it that are to be written.

    Its inputs are read for their shapes alone. The first output is the view of no elements that
    keeps the memory.

    Parameters
    ----------
    axis
        The axis of the join.
    ndim, dtype
        Of the result.
    shapes
        For each stream of the join, the lengths of its dimensions. In a result of one dimension a
        stream may have any number of them: it stands there raveled.
    written
        For each stream of the join, whether it gets a part. The rest of the result is for
        `WriteJoin` to fill.
    slots
        For each stream, where it has to begin and end along the axis if it has to, as the bounds of
        a slice of a tensor as long as the result; or nothing at all.
    total
        With ``slots``, the length of that tensor.
    number
        Tells apart nodes of one graph that are otherwise equal, which merging must not make one.
    reuse
        Whether C code keeps the result, to write the next one over it if nothing else holds it by
        then. Run by Python or Numba, the op allocates for each call all the same: from there it
        cannot be seen who holds what.
    borrowed
        For each part, whether nothing but the join is for the sake of what is written there: with
        the join goes what writes, so that in Numba the part need not keep the memory. Or nothing
        at all: all parts keep it.
    """

    __props__ = (
        "axis",
        "ndim",
        "dtype",
        "shapes",
        "written",
        "slots",
        "total",
        "number",
        "reuse",
        "borrowed",
    )
    check_input = False

    def __init__(
        self,
        axis: int,
        ndim: int,
        dtype: str,
        shapes: tuple[tuple[Length, ...], ...],
        written: tuple[bool, ...],
        slots: tuple[Slot | None, ...] = (),
        total: Length | None = None,
        number: int = 0,
        reuse: bool = False,
        borrowed: tuple[bool, ...] = (),
    ) -> None:
        self.axis = axis
        self.ndim = ndim
        self.dtype = dtype
        self.shapes = shapes
        self.written = written
        self.slots = slots
        self.total = total
        self.number = number
        self.reuse = reuse
        self.borrowed = borrowed

    def __str__(self) -> str:
        return f"WriteSplit{{axis={self.axis}, parts={sum(self.written)}/{len(self.written)}}}"

    def make_node(self, *sources: Variable[Any, Any]) -> Apply[Any]:
        """Return the node; the parts are in the order of the written streams."""
        parts = [TensorType(self.dtype, shape=(0,))()]
        for shape, written in zip(self.shapes, self.written, strict=True):
            if not written:
                continue
            static = tuple(n if source == STATIC else None for source, n in shape)
            # A type of its own, as what a part holds before it is written is not to be looked at.
            kind = TensorType(self.dtype, shape=static)
            kind.filter_checks_isfinite = False
            part = kind()
            part.tag.values_eq_approx = values_eq_approx_always_true
            part.tag.nan_guard_mode_check = False
            parts.append(part)
        return Apply(self, list(sources), parts)

    def do_constant_folding(self, fgraph: FunctionGraph, node: Apply[Any]) -> bool:
        """Never: the parts are memory, not values."""
        return False

    def perform(
        self, node: Apply[Any], inputs: Sequence[Any], output_storage: Sequence[list[Any]]
    ) -> None:
        """Allocate with NumPy.

        Raises
        ------
        ValueError
            If the streams differ in a dimension other than the axis, or do not fit their slots, or
            a length is negative.
        """
        shapes = [tuple(_length(inputs, *length) for length in shape) for shape in self.shapes]
        lengths, whole_shape = _joined(shapes, self.axis, self.ndim)
        if self.total is not None:
            total = _length(inputs, *self.total)
            for length, slot in zip(lengths, self.slots, strict=True):
                if slot is not None and length != len(range(total)[slice(*slot)]):
                    raise ValueError(f"{SLOT_MISMATCH}: {length} elements for {slot} of {total}")
        whole = np.empty(whole_shape, self.dtype)
        start = 0
        storage = iter(output_storage)
        next(storage)[0] = whole.reshape(-1)[:0]
        for shape, length, written in zip(shapes, lengths, self.written, strict=True):
            if written:
                next(storage)[0] = _part(whole, self.axis, start, length, shape)
            start += length

    def debug_perform(
        self, node: Apply[Any], inputs: Sequence[Any], output_storage: Sequence[list[Any]]
    ) -> None:
        """Allocate, and fill the parts with what is unlikely to be right by chance."""
        self.perform(node, inputs, output_storage)
        for storage in output_storage:
            storage[0].fill(True if self.dtype == "bool" else 123)

    def c_code_cache_version(self) -> tuple[int, ...]:
        return (4,)

    def c_support_code_struct(self, node: Apply[Any], name: str) -> str:
        return f"PyArrayObject *kept_{name};" if self.reuse else ""

    def c_init_code_struct(self, node: Apply[Any], name: str, sub: dict[str, Any]) -> str:
        return f"kept_{name} = NULL;" if self.reuse else ""

    def c_cleanup_code_struct(self, node: Apply[Any], name: str) -> str:
        return f"Py_CLEAR(kept_{name});" if self.reuse else ""

    def c_code(
        self,
        node: Apply[Any],
        name: str,
        inputs: list[str],
        outputs: list[str],
        sub: dict[str, Any],
    ) -> str:
        fail = sub["fail"]
        code = [f"npy_intp lengths[{len(self.shapes)}];"]
        for i, shape in enumerate(self.shapes):
            lengths = [_c_length(inputs, *length) for length in shape]
            # C has no arrays of no elements.
            code.append(f"npy_intp shape{i}[] = {{{', '.join(lengths) or '1'}}};")
            code += [
                f"if (shape{i}[{d}] < 0) {{"
                # What PyTensor's C code for Alloc raises.
                f' PyErr_SetString(PyExc_MemoryError, "{NEGATIVE}"); {fail} }}'
                for d, (source, n) in enumerate(shape)
                if source != STATIC and n == VALUE
            ]
            code.append(
                f"lengths[{i}] = {' * '.join(f'shape{i}[{d}]' for d in range(len(shape))) or '1'};"
                if self.ndim == 1
                else f"lengths[{i}] = shape{i}[{self.axis}];"
            )
        code.append(f"npy_intp dims[{self.ndim}];")
        if self.ndim > 1:
            code.append(f"memcpy(dims, shape0, {self.ndim} * sizeof(npy_intp));")
            for i in range(1, len(self.shapes)):
                test = " || ".join(
                    f"shape{i}[{d}] != dims[{d}]" for d in range(self.ndim) if d != self.axis
                )
                code.append(
                    f'if ({test}) {{ PyErr_SetString(PyExc_ValueError, "{MISMATCH}"); {fail} }}'
                )
        if self.total is not None:
            code.append(f"npy_intp total = {_c_length(inputs, *self.total)};")
            for i, slot in enumerate(self.slots):
                if slot is not None:
                    start, stop = slot
                    end = "total" if stop is None else f"(total < {stop} ? total : {stop})"
                    code.append(
                        f"if (lengths[{i}] != {end} - (total < {start} ? total : {start})) {{"
                        f' PyErr_SetString(PyExc_ValueError, "{SLOT_MISMATCH}"); {fail} }}'
                    )
        total = " + ".join(f"lengths[{i}]" for i in range(len(self.shapes)))
        code.append(f"""
            dims[{self.axis}] = {total};
            {self._c_allocation(name, outputs, fail)}
            char *place = PyArray_BYTES(whole);
            npy_intp step = PyArray_STRIDES(whole)[{self.axis}];
            """)
        parts = iter(outputs[1:])
        code.append(f"""
            npy_intp none[1] = {{0}};
            Py_XDECREF({outputs[0]});
            {_c_view(outputs[0], 1, "none", 0, f"Py_DECREF(whole); {fail}")}
            if (PyArray_SetBaseObject({outputs[0]}, (PyObject *)whole) < 0) {{ {fail} }}
            """)
        for i, (shape, written) in enumerate(zip(self.shapes, self.written, strict=True)):
            if written:
                part = next(parts)
                code.append(f"Py_XDECREF({part});")
                code.append(f"""
                    {_c_view(part, len(shape), f"shape{i}", self.axis, fail)}
                    Py_INCREF(whole);
                    if (PyArray_SetBaseObject({part}, (PyObject *)whole) < 0) {{ {fail} }}
                    """)
            code.append(f"place += lengths[{i}] * step;")
        return "{\n" + "\n".join(code) + "\n}\n"

    def _c_allocation(self, name: str, outputs: list[str], fail: str) -> str:
        """Return C code that makes ``whole``, the array of the result."""
        number = _type_number(self.dtype)
        allocation = f"""
            whole = (PyArrayObject *)PyArray_EMPTY({self.ndim}, dims, {number}, 0);
            if (whole == NULL) {{ {fail} }}
            """
        if not self.reuse:
            return f"PyArrayObject *whole; {allocation}"
        kept = f"kept_{name}"
        # The views of the last call would be taken for readers.
        cleared = " ".join(f"Py_CLEAR({output});" for output in outputs)
        return f"""
            {cleared}
            PyArrayObject *whole = {kept};
            if (whole != NULL && Py_REFCNT(whole) == 1 && PyArray_CheckExact((PyObject *)whole)
                    && PyArray_NDIM(whole) == {self.ndim} && PyArray_TYPE(whole) == {number}
                    && PyArray_CHKFLAGS(whole, NPY_ARRAY_OWNDATA | NPY_ARRAY_CARRAY)
                    && PyArray_CompareLists(PyArray_DIMS(whole), dims, {self.ndim})) {{
                Py_INCREF(whole);
            }} else {{
                Py_CLEAR({kept});
                {allocation}
                Py_INCREF(whole);
                {kept} = whole;
            }}
            """


class WriteJoin(_WriteOp):
    """Joins streams of which the written ones are in their places already, if nothing moved them.

    The first input is what keeps the memory, the first output the joined tensor. The other outputs
    stand for the destruction of the written streams, and hold nothing.

    Parameters
    ----------
    axis
        The axis of the join.
    dtype, shape
        Of the result; ``shape`` as in a tensor type. In a result of one dimension, streams of
        other numbers of dimensions are raveled.
    written
        For each stream, whether `WriteSplit` made its memory.
    """

    __props__ = ("axis", "dtype", "shape", "written")
    check_input = False

    def __init__(
        self, axis: int, dtype: str, shape: tuple[int | None, ...], written: tuple[bool, ...]
    ) -> None:
        self.axis = axis
        self.dtype = dtype
        self.shape = shape
        self.written = written
        taken = [0, *(i for i, is_written in enumerate(written, 1) if is_written)]
        self.destroy_map = {i: [position] for i, position in enumerate(taken)}

    @property
    def ndim(self) -> int:
        """The number of dimensions of the result."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"WriteJoin{{axis={self.axis}, written={sum(self.written)}/{len(self.written)}}}"

    def make_node(self, *inputs: Variable[Any, Any]) -> Apply[Any]:
        """Return the node that joins the inputs after the first, which keeps the memory."""
        joined = TensorType(self.dtype, shape=self.shape)()
        return Apply(
            self,
            list(inputs),
            [joined, *(none_type_t() for _ in range(len(self.destroy_map) - 1))],
        )

    def perform(
        self, node: Apply[Any], inputs: Sequence[Any], output_storage: Sequence[list[Any]]
    ) -> None:
        """Return the array that the written streams lie in, after copying the others into it.

        Raises
        ------
        ValueError
            If the streams differ in a dimension other than the axis.
        """
        memory, *streams = inputs
        lengths, shape = _joined([stream.shape for stream in streams], self.axis, self.ndim)
        whole = self._written_whole(memory, streams, lengths, shape)
        in_place = whole is not None
        if whole is None:
            whole = np.empty(shape, self.dtype)
        start = 0
        for stream, length, written in zip(streams, lengths, self.written, strict=True):
            if not (in_place and written):
                _part(whole, self.axis, start, length, stream.shape)[...] = stream
            start += length
        output_storage[0][0] = whole
        for storage in output_storage[1:]:
            storage[0] = None

    def _written_whole(
        self, memory: Any, streams: Sequence[Any], lengths: list[int], shape: tuple[int, ...]
    ) -> Any:
        whole = memory.base
        if (
            type(whole) is not np.ndarray
            or not whole.flags.owndata
            or not whole.flags.c_contiguous
            or whole.shape != shape
            or whole.dtype != self.dtype
        ):
            return None
        start = 0
        for stream, length, written in zip(streams, lengths, self.written, strict=True):
            if written and (
                stream.dtype != whole.dtype
                or not _same_memory(stream, _part(whole, self.axis, start, length, stream.shape))
            ):
                return None
            start += length
        return whole

    def c_code_cache_version(self) -> tuple[int, ...]:
        return (2,)

    def c_code(
        self,
        node: Apply[Any],
        name: str,
        inputs: list[str],
        outputs: list[str],
        sub: dict[str, Any],
    ) -> str:
        fail = sub["fail"]
        memory, *inputs = inputs
        n, ndim, axis = len(inputs), self.ndim, self.axis
        number = _type_number(self.dtype)
        joined, *others = outputs
        if ndim == 1:
            lengths = "lengths[i] = PyArray_SIZE(streams[i]);"
        else:
            lengths = f"""
                for (int d = 0; d < {ndim}; d++) {{
                    if (d != {axis} && PyArray_DIMS(streams[i])[d] != dims[d]) {{
                        PyErr_SetString(PyExc_ValueError, "{MISMATCH}"); {fail}
                    }}
                }}
                lengths[i] = PyArray_DIMS(streams[i])[{axis}];
                """
        if axis == 0:
            in_place = "PyArray_IS_C_CONTIGUOUS(streams[i])"
            strides = "NULL"
            flags = "NPY_ARRAY_CARRAY"
        else:
            in_place = "1"
            strides = "PyArray_STRIDES(whole)"
            flags = "NPY_ARRAY_BEHAVED"
        nothing = "\n".join(
            f"Py_XDECREF({other}); Py_INCREF(Py_None); {other} = Py_None;" for other in others
        )
        same_strides = (
            ""
            if axis == 0
            else f"""
                for (int d = 0; d < {ndim}; d++) {{
                    in_place &= PyArray_DIMS(streams[i])[d] <= 1
                        || PyArray_STRIDES(streams[i])[d] == PyArray_STRIDES(whole)[d];
                }}
                """
        )
        return f"""
        {{
            PyArrayObject *streams[{n}] = {{{", ".join(inputs)}}};
            static const char written[{n}] = {{{", ".join(str(int(w)) for w in self.written)}}};
            npy_intp lengths[{n}], dims[{ndim}], total = 0;
            memcpy(dims, PyArray_DIMS(streams[0]), {ndim if ndim > 1 else 0} * sizeof(npy_intp));
            for (int i = 0; i < {n}; i++) {{
                {lengths}
                total += lengths[i];
            }}
            dims[{axis}] = total;
            PyArrayObject *whole = (PyArrayObject *)PyArray_BASE({memory});
            int in_place = whole != NULL && PyArray_CheckExact((PyObject *)whole)
                && PyArray_NDIM(whole) == {ndim} && PyArray_TYPE(whole) == {number}
                && PyArray_CHKFLAGS(whole, NPY_ARRAY_OWNDATA | NPY_ARRAY_CARRAY)
                && PyArray_CompareLists(PyArray_DIMS(whole), dims, {ndim});
            if (in_place) {{
                char *place = PyArray_BYTES(whole);
                for (int i = 0; i < {n}; i++) {{
                    if (written[i]) {{
                        in_place &= PyArray_TYPE(streams[i]) == {number}
                            && PyArray_BYTES(streams[i]) == place && {in_place};
                        {same_strides}
                    }}
                    place += lengths[i] * PyArray_STRIDES(whole)[{axis}];
                }}
            }}
            if (in_place) {{
                Py_INCREF(whole);
            }} else {{
                whole = (PyArrayObject *)PyArray_EMPTY({ndim}, dims, {number}, 0);
                if (whole == NULL) {{ {fail} }}
            }}
            char *place = PyArray_BYTES(whole);
            for (int i = 0; i < {n}; i++) {{
                if (in_place && written[i]) {{
                }} else if ({axis} == 0 && PyArray_TYPE(streams[i]) == {number}
                           && PyArray_ISCARRAY_RO(streams[i])) {{
                    memcpy(place, PyArray_BYTES(streams[i]), PyArray_NBYTES(streams[i]));
                }} else {{
                    Py_INCREF(PyArray_DESCR(whole));
                    PyArrayObject *part = (PyArrayObject *)PyArray_NewFromDescr(
                        &PyArray_Type, PyArray_DESCR(whole), PyArray_NDIM(streams[i]),
                        PyArray_DIMS(streams[i]), {strides}, place, {flags}, NULL);
                    int failed = part == NULL || PyArray_CopyInto(part, streams[i]) < 0;
                    Py_XDECREF(part);
                    if (failed) {{ Py_DECREF(whole); {fail} }}
                }}
                place += lengths[i] * PyArray_STRIDES(whole)[{axis}];
            }}
            Py_XDECREF({joined});
            {joined} = whole;
            {nothing}
        }}
        """


class WriteFill(_WriteOp):
    """Fills a part with a number: what a stream is that PyTensor would allocate and fill."""

    __props__ = ()
    destroy_map = {0: [1]}  # noqa: RUF012
    check_input = False

    def make_node(self, *operands: Variable[Any, Any]) -> Apply[Any]:
        """Return the node that fills a part, the second operand, with a tensor of no dimensions."""
        number, part = operands
        return Apply(self, [number, part], [part.type()])

    def perform(
        self, node: Apply[Any], inputs: Sequence[Any], output_storage: Sequence[list[Any]]
    ) -> None:
        """Fill with NumPy."""
        number, part = inputs
        part[...] = number
        output_storage[0][0] = part

    def c_code_cache_version(self) -> tuple[int, ...]:
        return (1,)

    def c_code(
        self,
        node: Apply[Any],
        name: str,
        inputs: list[str],
        outputs: list[str],
        sub: dict[str, Any],
    ) -> str:
        number, part = inputs
        [out] = outputs
        copy = f"if (PyArray_CopyInto({part}, {number}) < 0) {{ {sub['fail']} }}"
        if node.inputs[0].type.dtype == node.inputs[1].type.dtype:
            _, kind, _ = node.inputs[0].type.dtype_specs()
            copy = f"""
                if (PyArray_ISCARRAY({part})) {{
                    {kind} number = *({kind} *)PyArray_DATA({number});
                    {kind} *p = ({kind} *)PyArray_DATA({part});
                    npy_intp n = PyArray_SIZE({part});
                    for (npy_intp i = 0; i < n; i++) p[i] = number;
                }} else {copy}
                """
        return f"""
            {{
                {copy}
                Py_INCREF({part});
                Py_XDECREF({out});
                {out} = {part};
            }}
            """


class WriteElemwise(Elemwise):
    """An Elemwise with inputs that it does not read, since its outputs are written over them.

    PyTensor's C code has a loop for contiguous operands that compilers can vectorize, but takes it
    with several inputs only if all their lengths are known when the graph is compiled. Where the
    loop begins the lengths have been found equal, so this class always has that loop.

    Run in Python, a Composite of one scalar op would be called for each element; NumPy's function
    for the op is called instead, as without the input.
    """

    def prepare_node(
        self, node: Apply[Any], storage_map: Any, compute_map: Any, impl: str | None
    ) -> None:
        if impl == "py":
            node.tag.alone = alone = self._alone(node)
            if alone is not None:
                alone.op.prepare_node(alone, storage_map, compute_map, impl)
        super().prepare_node(node, storage_map, compute_map, impl)  # type: ignore[no-untyped-call]

    def _alone(self, node: Apply[Any]) -> Apply[Any] | None:
        """Return the node that computes what is written, if that is all and is one scalar op."""
        if (
            not isinstance(self.scalar_op, Composite)
            or len(node.outputs) != 1
            or self.inplace_pattern != {0: len(node.inputs) - 1}
        ):
            return None
        inner: Any = self.scalar_op.fgraph
        scalar_node = inner.outputs[0].owner
        if scalar_node is None or list(scalar_node.inputs) != list(inner.inputs[:-1]):
            return None
        make: Any = Elemwise
        alone: Apply[Any] = make(scalar_node.op).make_node(*(v.type() for v in node.inputs[:-1]))
        return alone if alone.outputs[0].type.dtype == node.outputs[0].type.dtype else None

    def perform(
        self, node: Apply[Any], inputs: Sequence[Any], output_storage: Sequence[list[Any]]
    ) -> None:
        """Write over the inputs that the pattern names.

        Raises
        ------
        ValueError
            If shapes do not match.
        """
        alone = getattr(node.tag, "alone", None)
        if alone is None:
            super().perform(node, inputs, output_storage)  # type: ignore[no-untyped-call]
            return
        *read, target = inputs
        computed: list[Any] = [None]
        alone.op.perform(alone, read, [computed])
        if computed[0].shape != target.shape:
            raise ValueError(f"shape mismatch: {computed[0].shape} written over {target.shape}")
        target[...] = computed[0]
        output_storage[0][0] = target

    def _c_all(
        self,
        node: Apply[Any],
        name: str,
        inputs: list[str],
        outputs: list[str],
        sub: dict[str, Any],
    ) -> tuple[str, str, str, str, str]:
        declarations, checks, allocations, loop, end = super()._c_all(  # type: ignore[no-untyped-call]
            node, name, inputs, outputs, sub
        )
        contiguous = None if self.openmp else self._contiguous(node, name, inputs, outputs, sub)
        if contiguous is not None:
            test, fast = contiguous
            loop = f"if ({test}) {{ {fast} }} else {{ {loop} }}"
        return declarations, checks, allocations, loop, end

    def _contiguous(
        self,
        node: Apply[Any],
        name: str,
        inputs: list[str],
        outputs: list[str],
        sub: dict[str, Any],
    ) -> tuple[str, str] | None:
        """Return a test of whether operands, or their rows, are contiguous, and the loop for it."""
        shape = node.outputs[0].type.shape
        if all(length == 1 for length in shape):
            return None
        operands = dict(zip((*inputs, *outputs), (*node.inputs, *node.outputs), strict=True))
        arrays, before, inside = [], [], []
        for operand, variable in operands.items():
            pointer = f"(dtype_{operand} *)PyArray_DATA({operand})"
            single = [length == 1 for length in variable.type.shape]
            if all(single):
                before.append(f"const dtype_{operand} {operand}_i = *({pointer});")
            elif single != [length == 1 for length in shape]:
                return None
            else:
                arrays.append(operand)
                inside.append(f"dtype_{operand} &{operand}_i = {operand}_p[i];")
        code = self.scalar_op.c_code(
            node.tag.fake_node,
            # The name that the support code of the op is made with.
            f"{name}_scalar_",
            [f"{operand}_i" for operand in inputs],
            [f"{operand}_i" for operand in outputs],
            sub,
        )
        newline = "\n"
        loop = f"""
            for (npy_intp i = 0; i < n; i++) {{
                {newline.join(inside)}
                {code}
            }}
            """
        first = outputs[0]
        contiguous = " && ".join(f"PyArray_ISCONTIGUOUS({operand})" for operand in arrays)
        whole = [f"dtype_{a} *{a}_p = (dtype_{a} *)PyArray_DATA({a});" for a in arrays]
        if len(shape) < 2:
            before += whole
            return contiguous, f"npy_intp n = PyArray_SIZE({first}); {newline.join(before)} {loop}"
        # Two loops, for one with the counters of the other would have fewer registers.
        last = len(shape) - 1
        unit = " && ".join(f"PyArray_STRIDES({a})[{last}] == sizeof(dtype_{a})" for a in arrays)
        starts = [
            f"dtype_{a} *{a}_p = (dtype_{a} *)(PyArray_BYTES({a}) + places[{k}]);"
            for k, a in enumerate(arrays)
        ]
        return (
            f"({contiguous}) || (PyArray_DIMS({first})[{last}] >= {_MIN_ROW} && {unit})",
            f"""
            {newline.join(before)}
            if ({contiguous}) {{
                npy_intp n = PyArray_SIZE({first});
                {newline.join(whole)}
                {loop}
            }} else {{
            npy_intp n = PyArray_DIMS({first})[{last}], rows = PyArray_SIZE({first}) / n;
            PyArrayObject *arrays[{len(arrays)}] = {{{", ".join(arrays)}}};
            npy_intp places[{len(arrays)}] = {{0}}, index[{last}] = {{0}};
            while (rows--) {{
                {newline.join(starts)}
                {loop}
                for (int d = {last - 1}; rows && d >= 0; d--) {{
                    npy_intp steps = ++index[d] < PyArray_DIMS({first})[d] ? 1 : 1 - index[d];
                    for (int k = 0; k < {len(arrays)}; k++) {{
                        places[k] += steps * PyArray_STRIDES(arrays[k])[d];
                    }}
                    if (steps == 1) break;
                    index[d] = 0;
                }}
            }}
            }}
            """,
        )

    def c_code_cache_version_apply(self, node: Apply[Any]) -> tuple[Any, ...]:
        version = super().c_code_cache_version_apply(node)  # type: ignore[no-untyped-call]
        return (*version, "contiguous", 4) if version else ()


def _length(inputs: Sequence[Any], source: int, n: int) -> int:
    if source == STATIC:
        return n
    if n != VALUE:
        return int(inputs[source].shape[n])
    length = int(inputs[source])
    if length < 0:
        raise ValueError(f"{NEGATIVE}: {length}")
    return length


def _c_length(inputs: Sequence[str], source: int, n: int) -> str:
    if source == STATIC:
        return str(n)
    if n == VALUE:
        return f"*(npy_int64 *)PyArray_DATA({inputs[source]})"
    return f"PyArray_DIMS({inputs[source]})[{n}]"


def _joined(
    shapes: Sequence[tuple[int, ...]], axis: int, ndim: int
) -> tuple[list[int], tuple[int, ...]]:
    """Return the lengths of the streams along the axis, and the shape of what they make."""
    if ndim == 1:
        lengths = [int(np.prod(shape, dtype=np.intp)) for shape in shapes]
        return lengths, (sum(lengths),)
    first = shapes[0]
    for shape in shapes:
        if shape[:axis] != first[:axis] or shape[axis + 1 :] != first[axis + 1 :]:
            raise ValueError(f"{MISMATCH}: {first} and {shape} along axis {axis}")
    lengths = [shape[axis] for shape in shapes]
    return lengths, (*first[:axis], sum(lengths), *first[axis + 1 :])


def _part(whole: Any, axis: int, start: int, length: int, shape: tuple[int, ...]) -> Any:
    part = whole[(slice(None),) * axis + (slice(start, start + length),)]
    return part.reshape(shape) if whole.ndim == 1 else part


def _same_memory(one: Any, other: Any) -> bool:
    """Whether arrays of one shape and dtype have each element in the same place."""
    return one.ctypes.data == other.ctypes.data and all(
        n <= 1 or a == b for n, a, b in zip(one.shape, one.strides, other.strides, strict=True)
    )


def _type_number(dtype: str) -> str:
    return f"NPY_{dtype.upper()}"


def _c_view(name: str, ndim: int, shape: str, axis: int, fail: str) -> str:
    """Return C code that makes ``name`` the view of ``whole`` at ``place``, without a base yet."""
    strides, flags = (
        ("NULL", "NPY_ARRAY_CARRAY")
        if axis == 0
        else ("PyArray_STRIDES(whole)", "NPY_ARRAY_BEHAVED")
    )
    return f"""
        Py_INCREF(PyArray_DESCR(whole));
        {name} = (PyArrayObject *)PyArray_NewFromDescr(
            &PyArray_Type, PyArray_DESCR(whole), {ndim}, {shape}, {strides}, place, {flags}, NULL);
        if ({name} == NULL) {{ {fail} }}
        """
