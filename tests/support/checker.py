"""An independent judge of fusion plans, written from the definition of a legal plan.

It shares no code with the planner, and prefers the naive algorithm everywhere.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol
from unittest import mock

import pytensor.tensor.rewriting.elemwise as stock_module
from pytensor.graph.basic import Apply, Constant, Variable, clone_get_equiv
from pytensor.graph.fg import FunctionGraph, Output
from pytensor.graph.traversal import toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.elemwise import FusionOptimizer, elemwise_max_operands_fct
from pytensor.tensor.variable import TensorConstant


class KernelLike(Protocol):
    @property
    def nodes(self) -> Sequence[Apply]: ...
    @property
    def inputs(self) -> Sequence[Variable]: ...
    @property
    def outputs(self) -> Sequence[Variable]: ...


@dataclass(frozen=True)
class SimpleKernel:
    nodes: tuple[Apply, ...]
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]


# Terms of the definition ------------------------------------------------------------------


def is_elemwise(node: Apply) -> bool:
    return isinstance(node.op, Elemwise)


def has_c_code(node: Apply) -> bool:
    return bool(node.op.scalar_op.supports_c_code(node.inputs, node.outputs))


def is_fusable(node: Apply, can_compile: Callable[[Apply], bool] = has_c_code) -> bool:
    return is_elemwise(node) and len(node.outputs) == 1 and can_compile(node)


def pattern(var: Variable) -> tuple[bool, ...]:
    return tuple(var.type.broadcastable)


def leaves(var: Variable, members: Set[Apply], fgraph: FunctionGraph) -> bool:
    """Whether something other than ``members`` reads the variable."""
    return any(
        isinstance(client.op, Output) or client not in members
        for client, _ in fgraph.clients.get(var, ())
    )


def external_inputs(members: Sequence[Apply]) -> list[Variable]:
    made = {out for node in members for out in node.outputs}
    return list(dict.fromkeys(i for node in members for i in node.inputs if i not in made))


def external_outputs(members: Sequence[Apply], fgraph: FunctionGraph) -> list[Variable]:
    inside = set(members)
    return [out for node in members for out in node.outputs if leaves(out, inside, fgraph)]


def arrays_of(members: Sequence[Apply], fgraph: FunctionGraph) -> int:
    inputs = [i for i in external_inputs(members) if not isinstance(i, Constant)]
    return len(inputs) + len(external_outputs(members, fgraph))


def count_kernels(fgraph: FunctionGraph) -> int:
    return sum(is_elemwise(node) for node in fgraph.apply_nodes)


def count_arrays(fgraph: FunctionGraph) -> int:
    return sum(arrays_of([node], fgraph) for node in fgraph.apply_nodes if is_elemwise(node))


def is_uniform_constant(var: Variable) -> bool:
    return isinstance(var, TensorConstant) and var.unique_value is not None


def linked(a: Sequence[Apply], b: Sequence[Apply], *, constants: bool = True) -> bool:
    """Whether a data edge or a shared input of their broadcast pattern joins two groups.

    Parameters
    ----------
    constants
        Whether a shared uniform constant counts, which a kernel may contain inline.
    """
    outputs_a = {out for node in a for out in node.outputs}
    outputs_b = {out for node in b for out in node.outputs}
    inputs_a = {inp for node in a for inp in node.inputs}
    inputs_b = {inp for node in b for inp in node.inputs}
    if outputs_a & inputs_b or outputs_b & inputs_a:
        return True
    return any(
        pattern(inp) == pattern(a[0].outputs[0]) and (constants or not is_uniform_constant(inp))
        for inp in inputs_a & inputs_b
    )


def is_connected(members: Sequence[Apply]) -> bool:
    """Whether data edges and shared inputs of their broadcast pattern hold the members together."""
    made = {out for node in members for out in node.outputs}
    joins: dict[Variable, list[Apply]] = defaultdict(list)
    for node in members:
        joins[node.outputs[0]].append(node)
        for inp in set(node.inputs):
            if inp in made or pattern(inp) == pattern(node.outputs[0]):
                joins[inp].append(node)
    reached = {members[0]}
    pending = [members[0]]
    while pending:
        node = pending.pop()
        for var in (*node.inputs, node.outputs[0]):
            for other in joins.pop(var, ()):
                if other not in reached:
                    reached.add(other)
                    pending.append(other)
    return len(reached) == len(members)


def dependencies(fgraph: FunctionGraph) -> dict[Apply, list[Apply]]:
    """Return what each node waits for: its inputs' nodes, and nodes that features order first."""
    waits: dict[Apply, list[Apply]] = {}
    for node in fgraph.apply_nodes:
        waits[node] = [inp.owner for inp in node.inputs if inp.owner is not None]
    for node, earlier in fgraph.orderings().items():
        if node in waits:
            waits[node].extend(e for e in earlier if e in waits)
    return waits


def quotient_is_acyclic(
    fgraph: FunctionGraph, groups: Sequence[Sequence[Apply]], *, in_sequence: bool = False
) -> bool:
    """Whether the graph is acyclic when each group has become one node.

    Parameters
    ----------
    in_sequence
        Whether each group also waits for the previous one.
    """
    block: dict[Apply, Hashable] = {node: node for node in fgraph.apply_nodes}
    for index, members in enumerate(groups):
        block.update((node, index) for node in members)
    waits: dict[Hashable, set[Hashable]] = {b: set() for b in block.values()}
    for node, earlier in dependencies(fgraph).items():
        waits[block[node]].update(block[e] for e in earlier if block[e] != block[node])
    if in_sequence:
        for index in range(1, len(groups)):
            waits[index].add(index - 1)
    readers: dict[Hashable, list[Hashable]] = defaultdict(list)
    for reader, earlier_blocks in waits.items():
        for e in earlier_blocks:
            readers[e].append(reader)
    ready = [b for b, earlier_blocks in waits.items() if not earlier_blocks]
    n_done = 0
    while ready:
        done = ready.pop()
        n_done += 1
        for reader in readers[done]:
            waits[reader].discard(done)
            if not waits[reader]:
                ready.append(reader)
    return n_done == len(waits)


# Judgements -------------------------------------------------------------------------------


def check_kernels(
    kernels: Sequence[KernelLike],
    fgraph: FunctionGraph,
    *,
    max_operands: int | None = None,
    can_compile: Callable[[Apply], bool] = has_c_code,
) -> None:
    """Assert that the kernels make a legal plan for the graph."""
    times_computed = Counter(node for kernel in kernels for node in kernel.nodes)
    assert all(n == 1 for n in times_computed.values()), "a node is in two kernels"
    for index, kernel in enumerate(kernels):
        where = f"kernel {index}"
        assert len(kernel.nodes) >= 2, f"{where} fuses nothing"
        for node in kernel.nodes:
            assert node in fgraph.apply_nodes, f"{where}: {node} is not of this graph"
            assert is_fusable(node, can_compile), f"{where}: {node} may not be fused"
        patterns = {pattern(node.outputs[0]) for node in kernel.nodes}
        assert len(patterns) == 1, f"{where} mixes broadcast patterns {patterns}"
        assert is_connected(kernel.nodes), f"{where} is not connected"

        assert len(set(kernel.inputs)) == len(kernel.inputs), f"{where} repeats an input"
        assert len(set(kernel.outputs)) == len(kernel.outputs), f"{where} repeats an output"
        assert set(kernel.inputs) == set(external_inputs(kernel.nodes)), f"{where}: inputs"
        assert set(kernel.outputs) == set(external_outputs(kernel.nodes, fgraph)), (
            f"{where}: outputs"
        )
        if max_operands is not None:
            n_operands = len(kernel.inputs) + len(kernel.outputs)
            assert n_operands <= max_operands, f"{where} has {n_operands} operands"
    assert quotient_is_acyclic(fgraph, [k.nodes for k in kernels]), "the plan has a cycle"


def check_order(kernels: Sequence[KernelLike], fgraph: FunctionGraph) -> None:
    """Assert that each kernel follows all nodes that it needs, and each node its inputs."""
    assert quotient_is_acyclic(fgraph, [k.nodes for k in kernels], in_sequence=True), (
        "a kernel is listed before one that it needs"
    )
    for index, kernel in enumerate(kernels):
        pending = set(kernel.nodes)
        for node in kernel.nodes:
            assert not pending & {inp.owner for inp in node.inputs}, f"kernel {index}: node order"
            pending.discard(node)


def check_plan(
    plan: Any,
    fgraph: FunctionGraph,
    *,
    max_operands: int | None = None,
    can_compile: Callable[[Apply], bool] = has_c_code,
) -> None:
    """Assert that a FusionPlan is legal and that its own statements are true."""
    kernels = plan.kernels
    check_kernels(kernels, fgraph, max_operands=max_operands, can_compile=can_compile)
    check_order(kernels, fgraph)
    fused = {node for kernel in kernels for node in kernel.nodes}
    assert len(set(plan.unfused)) == len(plan.unfused), "a node is unfused twice"
    assert set(plan.unfused) == fgraph.apply_nodes - fused, "unfused is not the rest"

    stats = plan.stats
    alone = [node for node in fgraph.apply_nodes if is_elemwise(node) and node not in fused]
    assert stats.nodes == len(fgraph.apply_nodes)
    assert stats.fusable == sum(is_fusable(node, can_compile) for node in fgraph.apply_nodes)
    assert stats.kernels_before == count_kernels(fgraph)
    assert stats.kernels_after == len(kernels) + len(alone)
    assert stats.arrays_before == count_arrays(fgraph)
    assert stats.arrays_after == sum(arrays_of(k.nodes, fgraph) for k in kernels) + sum(
        arrays_of([node], fgraph) for node in alone
    )


def possible_merges(
    plan: Any,
    fgraph: FunctionGraph,
    *,
    max_operands: int | None = None,
    can_compile: Callable[[Apply], bool] = has_c_code,
) -> list[tuple[tuple[Apply, ...], tuple[Apply, ...]]]:
    """Return pairs of kernels (or lone nodes) of the plan that could legally be one kernel."""
    fused = {node for kernel in plan.kernels for node in kernel.nodes}
    groups = [tuple(kernel.nodes) for kernel in plan.kernels]
    groups += [
        (node,) for node in fgraph.toposort() if node not in fused and is_fusable(node, can_compile)
    ]
    found = []
    for i, a in enumerate(groups):
        for b in groups[i + 1 :]:
            if pattern(a[0].outputs[0]) != pattern(b[0].outputs[0]):
                continue
            if not linked(a, b, constants=False):
                continue
            joined = a + b
            n_operands = len(external_inputs(joined)) + len(external_outputs(joined, fgraph))
            if max_operands is not None and n_operands > max_operands:
                continue
            others = [g for g in groups if g is not a and g is not b]
            if quotient_is_acyclic(fgraph, [*others, joined]):
                found.append((a, b))
    return found


# Stock's plan -----------------------------------------------------------------------------


@dataclass(frozen=True)
class StockPlan:
    kernels: tuple[SimpleKernel, ...]
    """Consists of nodes of the given graph."""
    kernels_after: int
    arrays_after: int


class _RecordingFusion(FusionOptimizer):
    """Stock's pass, which records the subgraphs that it replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.subgraphs: list[tuple[tuple[Variable, ...], tuple[Variable, ...]]] = []

    # A static method in stock, but called through the instance.
    def elemwise_to_scalar(self, inputs, outputs):
        self.subgraphs.append((tuple(inputs), tuple(outputs)))
        return FusionOptimizer.elemwise_to_scalar(inputs, outputs)


def stock_plan(fgraph: FunctionGraph, *, max_operands: int | None = None) -> StockPlan:
    """Return stock PyTensor's plan for a copy of the graph, which itself is not changed."""
    copies = clone_get_equiv(fgraph.inputs, fgraph.outputs)
    originals = {copy: original for original, copy in copies.items()}
    work = FunctionGraph(
        [copies[i] for i in fgraph.inputs], [copies[o] for o in fgraph.outputs], clone=False
    )
    limit = elemwise_max_operands_fct(None) if max_operands is None else max_operands
    fusion = _RecordingFusion()
    with (
        mock.patch.object(stock_module, "elemwise_max_operands_fct", return_value=limit),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Loop fusion failed")
        fusion.add_requirements(work)
        fusion.apply(work)
    kernels = []
    for copied_inputs, copied_outputs in fusion.subgraphs:
        inputs = tuple(originals[i] for i in copied_inputs)
        outputs = tuple(originals[o] for o in copied_outputs)
        kernels.append(SimpleKernel(tuple(toposort(outputs, blockers=inputs)), inputs, outputs))
    return StockPlan(tuple(kernels), count_kernels(work), count_arrays(work))
