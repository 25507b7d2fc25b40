"""A loop for contiguous operands in the C code of an Elemwise.

PyTensor's C code has a loop for contiguous operands that compilers can vectorize, but uses it with
several inputs only if all their lengths are known at compile time. All lengths have been checked
for equality before the loop, so `ContiguousElemwise` always includes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.tensor.elemwise import Elemwise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.basic import Apply

# Shorter rows are as fast in PyTensor's loop over any strides.
_MIN_ROW = 16


class _Names(NamedTuple):
    """The names of the operands in C; PyTensor declares ``dtype_x`` for an operand ``x``."""

    inputs: list[str]
    outputs: list[str]


class ContiguousElemwise(Elemwise):
    """An Elemwise whose C code has that loop, for contiguous arrays and for contiguous rows."""

    def _c_all(
        self, node: Apply[Any], name: str, inputs: list[str], outputs: list[str], sub: Any
    ) -> tuple[str, str, str, str, str]:
        declarations, checks, allocations, loop, end = super()._c_all(  # type: ignore[no-untyped-call]
            node, name, inputs, outputs, sub
        )
        if not self.openmp:
            loop = self._with_contiguous_loop(node, name, _Names(inputs, outputs), sub, loop)
        return declarations, checks, allocations, loop, end

    def _with_contiguous_loop(
        self, node: Apply[Any], name: str, names: _Names, sub: dict[str, Any], any_strides: str
    ) -> str:
        """Return C code that takes the loop for contiguous operands, or rows, where it can."""
        shape = node.outputs[0].type.shape
        if all(length == 1 for length in shape):
            return any_strides
        operands = zip((*names.inputs, *names.outputs), (*node.inputs, *node.outputs), strict=True)
        arrays, single_elements = [], []
        for operand, variable in dict(operands).items():
            single = [length == 1 for length in variable.type.shape]
            if all(single):
                single_elements.append(
                    f"const dtype_{operand} {operand}_i = *(dtype_{operand} *)"
                    f"PyArray_DATA({operand});"
                )
            elif single == [length == 1 for length in shape]:
                arrays.append(operand)
            else:
                return any_strides
        code = self.scalar_op.c_code(
            node.tag.fake_node,
            # The prefix that the op's support code is generated with.
            f"{name}_scalar_",
            [f"{operand}_i" for operand in names.inputs],
            [f"{operand}_i" for operand in names.outputs],
            sub,
        )
        loop = f"""
            for (npy_intp i = 0; i < n; i++) {{
                {_lines(f"dtype_{a} &{a}_i = {a}_p[i];" for a in arrays)}
                {code}
            }}
            """
        are_contiguous = " && ".join(f"PyArray_ISCONTIGUOUS({a})" for a in arrays)
        over_all = f"""
            npy_intp n = PyArray_SIZE({names.outputs[0]});
            {_lines(f"dtype_{a} *{a}_p = (dtype_{a} *)PyArray_DATA({a});" for a in arrays)}
            {loop}
            """
        if len(shape) == 1:
            test = are_contiguous
            fast = f"{_lines(single_elements)} {over_all}"
        else:
            row = f"PyArray_DIMS({names.outputs[0]})[{len(shape) - 1}]"
            are_rows = " && ".join(
                f"PyArray_STRIDES({a})[{len(shape) - 1}] == sizeof(dtype_{a})" for a in arrays
            )
            test = f"({are_contiguous}) || ({row} >= {_MIN_ROW} && {are_rows})"
            # Two loops: if one used the counters of the other, it would have fewer registers.
            fast = f"""
                {_lines(single_elements)}
                if ({are_contiguous}) {{ {over_all} }}
                else {{ {_over_rows(arrays, names.outputs[0], len(shape), loop)} }}
                """
        return f"if ({test}) {{ {fast} }} else {{ {any_strides} }}"

    def c_code_cache_version_apply(self, node: Apply[Any]) -> tuple[Any, ...]:
        version = super().c_code_cache_version_apply(node)  # type: ignore[no-untyped-call]
        return (*version, "contiguous", 5) if version else ()


def _over_rows(arrays: list[str], first: str, ndim: int, loop: str) -> str:
    """Return C code that runs ``loop`` for each row of arrays of the shape of ``first``.

    ``places`` are the byte offsets at which a row begins in each array; ``index`` counts the rows.
    """
    last = ndim - 1
    starts = (
        f"dtype_{a} *{a}_p = (dtype_{a} *)(PyArray_BYTES({a}) + places[{k}]);"
        for k, a in enumerate(arrays)
    )
    return f"""
        npy_intp n = PyArray_DIMS({first})[{last}], rows = PyArray_SIZE({first}) / n;
        PyArrayObject *arrays[{len(arrays)}] = {{{", ".join(arrays)}}};
        npy_intp places[{len(arrays)}] = {{0}}, index[{last}] = {{0}};
        while (rows--) {{
            {_lines(starts)}
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
        """


def _lines(statements: Iterable[str]) -> str:
    return "\n".join(statements)
