"""Serialization of plans to plain types, as in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Apply, Constant, Variable

from pytensor_fuse._fusion.why_not import OpTexts
from pytensor_fuse._pictures.texts import Texts
from pytensor_fuse._reports.text import without_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._plan.records import Kernel


def graph_to_dict(
    nodes: Sequence[Apply[Any]], inputs: Sequence[Variable[Any, Any]], kernels: Sequence[Kernel]
) -> dict[str, Any]:
    """Return the nodes of a graph, with the kernel of each, and the kernels; O(nodes + edges)."""
    position = {node: i for i, node in enumerate(nodes)}
    kernel_of = {node: i for i, kernel in enumerate(kernels) for node in kernel.nodes}
    place = {variable: i for i, variable in enumerate(inputs)}
    op_texts, constant_texts = OpTexts(), Texts()

    def op(node: Apply[Any]) -> str:
        return without_address(op_texts(node.op))

    def name(variable: Variable[Any, Any]) -> str:
        """Return the name of a variable, as in audits."""
        if variable.name is not None:
            return str(variable.name)
        if variable.owner is not None:
            node = variable.owner
            several = f".{node.outputs.index(variable)}" if len(node.outputs) > 1 else ""
            return f"{position[node]}: {op(node)}{several}"
        if isinstance(variable, Constant):
            return constant_texts.constant(variable)
        return f"input {place[variable]}"

    return {
        "nodes": [{"op": op(node), "kernel": kernel_of.get(node)} for node in nodes],
        "kernels": [
            {
                "nodes": [position[node] for node in kernel.nodes],
                "ops": [op(node) for node in kernel.nodes],
                "inputs": [name(variable) for variable in kernel.inputs],
                "outputs": [name(variable) for variable in kernel.outputs],
            }
            for kernel in kernels
        ],
        "unfused": [i for i, node in enumerate(nodes) if node not in kernel_of],
    }
