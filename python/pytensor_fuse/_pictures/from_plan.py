"""Conversion of a plan into a picture: nodes, boxes and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytensor.graph.basic import Constant

from pytensor_fuse._fusion.why_not import Unfusable, shown_steps, why_not
from pytensor_fuse._pictures.boxes import group_nodes, labeled_box
from pytensor_fuse._pictures.picture import Edge, Node, Picture, Role
from pytensor_fuse._pictures.texts import LABEL, Texts, cut, short
from pytensor_fuse._pytensor.graphs.provenance import line_that_made

if TYPE_CHECKING:
    from pytensor_fuse import _core
    from pytensor_fuse._fusion.extract import ExtractedGraph
    from pytensor_fuse._pytensor.ops.targets import Target


def picture_of(
    graph: ExtractedGraph, clusters: _core.FusedClusters, target: Target, max_operands: int
) -> Picture:
    """Describe a plan; O(nodes + edges), plus `why_not` for each edge."""
    arrays = graph.arrays
    applies, variables = arrays.nodes, arrays.variables
    reads = [arrays.inputs(i) for i in range(len(applies))]
    makes = [arrays.outputs(i) for i in range(len(applies))]
    owner = {variable: i for i, row in enumerate(makes) for variable in row}
    leaves = dict.fromkeys(
        variable
        for row in (*reads, arrays.results)
        for variable in row
        if variable not in owner and not isinstance(variables[variable], Constant)
    )
    # Constants that nodes read are part of these nodes; constants that are results are shown.
    constants = dict.fromkeys(
        variable for variable in arrays.results if isinstance(variables[variable], Constant)
    )
    leaves |= constants
    node_of = owner | {variable: len(applies) + i for i, variable in enumerate(leaves)}
    results: dict[int, list[int]] = {}
    for i, variable in enumerate(arrays.results):
        if variable in node_of:
            results.setdefault(node_of[variable], []).append(i)

    pairs = list(
        dict.fromkeys(
            (node_of[variable], i)
            for i, row in enumerate(reads)
            for variable in row
            if variable in node_of and variable not in constants
        )
    )
    members = [nodes for nodes, _, _ in clusters.clusters()]
    fused = {node for nodes in members for node in nodes}
    unfusable = Unfusable(graph, target)
    texts = Texts()
    ops = [unfusable.texts(apply.op) for apply in applies]
    roles = [
        Role.FUSED if i in fused else Role.UNFUSABLE if unfusable.reason(i) else Role.ALONE
        for i in range(len(applies))
    ]
    likenesses = [
        (role, op, i in results) for i, (role, op) in enumerate(zip(roles, ops, strict=True))
    ]
    leaf_roles = [Role.CONSTANT if v in constants else Role.INPUT for v in leaves]
    likenesses += [
        (role, "", node_of[variable] in results)
        for role, variable in zip(leaf_roles, leaves, strict=True)
    ]
    groups = group_nodes(likenesses, members, pairs)
    box_of = {node: i for i, group in enumerate(groups) for node in group.nodes}

    nodes = [
        Node(
            role=roles[i],
            op=ops[i],
            label=short(ops[i]),
            names=tuple(str(variables[v].name) for v in makes[i] if variables[v].name),
            types=tuple(texts.type(variables[v].type) for v in makes[i]),
            constants=tuple(
                texts.constant(variables[v]) for v in reads[i] if isinstance(variables[v], Constant)
            ),
            results=tuple(results.get(i, ())),
            source_line=line_that_made(variables[v] for v in makes[i]),
            box=box_of[i],
        )
        for i in range(len(applies))
    ]
    for role, variable in zip(leaf_roles, leaves, strict=True):
        leaf = variables[variable]
        i = node_of[variable]
        label = (
            texts.constant(leaf) if role is Role.CONSTANT else leaf.name or texts.type(leaf.type)
        )
        nodes.append(
            Node(
                role=role,
                op="",
                label=cut(str(label), LABEL),
                names=(str(leaf.name),) if leaf.name else (),
                types=(texts.type(leaf.type),),
                constants=(),
                results=tuple(results.get(i, ())),
                source_line=line_that_made([leaf]),
                box=box_of[i],
            )
        )

    between = [
        (a, b)
        for a, b in pairs
        if a < len(applies) and (box_of[a] != box_of[b] or groups[box_of[a]].kernel is None)
    ]
    reasons = dict(
        zip(between, why_not(graph, clusters, target, max_operands, between), strict=True)
    )
    position = {apply: i for i, apply in enumerate(applies)}
    edges = tuple(Edge(*pair, reasons.get(pair)) for pair in pairs)
    paths = {}
    for i, edge in enumerate(edges):
        if edge.why is not None and edge.why.path:
            # Listing all steps of all paths would be quadratic in the graph.
            shown, left_out = shown_steps(edge.why.path)
            paths[i] = (tuple(position[node] for node in shown), left_out)
    figures = (
        ("kernels", clusters.before[0], clusters.after[0]),
        ("arrays read and written", clusters.before[1], clusters.after[1]),
        ("nodes", len(applies), len(applies) - len(fused) + len(members)),
    )
    boxes = tuple(labeled_box(group, nodes) for group in groups)
    is_proven = clusters.after == clusters.bound
    best = "proven" if is_proven else "\u2265 {:,} kernels, {:,} arrays".format(*clusters.bound)
    bound = (best, bound_text(clusters.after, clusters.bound))
    return Picture(tuple(nodes), boxes, edges, figures, paths, bound)


def bound_text(after: tuple[int, int], bound: tuple[int, int]) -> str:
    """Return the known bound on the best plan in words, given the cost of a plan and the bound."""
    kernels, arrays = bound
    if after == bound:
        return "proven: no plan has fewer kernels, nor fewer arrays with as many"
    if after[0] == kernels:
        return f"no plan has fewer kernels, nor with as many fewer than {arrays:,} arrays"
    return (
        f"no plan has fewer than {kernels:,} kernels, nor with so few fewer than {arrays:,} arrays"
    )
