"""`WriteElemwise`: a kernel that overwrites inputs without reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse._pytensor.ops.contiguous_loops import ContiguousElemwise

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply


class WriteElemwise(ContiguousElemwise):
    """An Elemwise with inputs that its outputs overwrite and that it does not read.

    In C, it has a loop for contiguous operands, even if their lengths are unknown.

    In Python, a Composite of one scalar op would be called for each element; NumPy's function for
    the op is called instead, as it would be without the overwritten input.
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
        """Return a plain node for the written output if it is the only one and one scalar op."""
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

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:
        """Overwrite the inputs in the in-place pattern.

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
