"""`WriteFill`: an op that fills a part of a join's result with a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp

from pytensor_fuse._pytensor.ops.versions_of_ops import shape_inference

if TYPE_CHECKING:
    from pytensor.graph.basic import Variable


class WriteFill(COp):
    """Fills a part with a number, instead of allocating and filling a stream as PyTensor does."""

    __props__ = ()
    destroy_map = {0: [1]}  # noqa: RUF012 - as PyTensor's own ops declare it
    check_input = False

    def make_node(self, *operands: Variable[Any, Any]) -> Apply[Any]:
        """Return the node that fills a part, the second operand, with a zero-dimensional tensor."""
        number, part = operands
        return Apply(self, [number, part], [part.type()])

    @shape_inference
    def infer_shape(self, node: Apply[Any], shapes: list[Any]) -> list[Any]:
        """Return the shape of the part."""
        return [shapes[1]]

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Fill with NumPy."""
        number, part = inputs
        part[...] = number
        output_storage[0][0] = part

    def c_code_cache_version(self) -> tuple[int, ...]:
        return (1,)

    def c_code(
        self, node: Apply[Any], name: str, inputs: list[str], outputs: list[str], sub: Any
    ) -> str:
        number, part = inputs
        [filled] = outputs
        fill = f"if (PyArray_CopyInto({part}, {number}) < 0) {{ {sub['fail']} }}"
        if node.inputs[0].type.dtype == node.inputs[1].type.dtype:
            _, element, _ = node.inputs[0].type.dtype_specs()
            fill = f"""
                if (PyArray_ISCARRAY({part})) {{
                    {element} number = *({element} *)PyArray_DATA({number});
                    {element} *p = ({element} *)PyArray_DATA({part});
                    npy_intp n = PyArray_SIZE({part});
                    for (npy_intp i = 0; i < n; i++) p[i] = number;
                }} else {fill}
                """
        return f"""
            {{
                {fill}
                Py_INCREF({part});
                Py_XDECREF({filled});
                {filled} = {part};
            }}
            """
