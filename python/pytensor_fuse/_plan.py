"""Fusion plans: what would be fused, why not more, and the way to apply it."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from pytensor.graph.fg import FunctionGraph

from pytensor_fuse._errors import StalePlanError
from pytensor_fuse._fusion.apply import apply_clusters
from pytensor_fuse._fusion.effort import DEFAULT as DEFAULT_EFFORT
from pytensor_fuse._fusion.effort import resolve_effort
from pytensor_fuse._fusion.extract import extract, plan
from pytensor_fuse._fusion.why_not import WhyNot, why_not
from pytensor_fuse._pictures.dot import dot
from pytensor_fuse._pictures.drawing import Drawing, draw
from pytensor_fuse._pictures.from_plan import bound_text, picture_of
from pytensor_fuse._pictures.page import figures_table, plan_page
from pytensor_fuse._pictures.svg import svg
from pytensor_fuse._pytensor.targets import Target, resolve_target
from pytensor_fuse._pytensor.targets import max_operands as default_limit
from pytensor_fuse._reports.files import write
from pytensor_fuse._reports.page import escape
from pytensor_fuse._reports.palette import FRAME

if TYPE_CHECKING:
    import os

    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Apply, Variable
    from pytensor.link.basic import Linker

    from pytensor_fuse import _core
    from pytensor_fuse._fusion.extract import ExtractedGraph
    from pytensor_fuse._pictures.picture import Picture

# Operand counts are 32-bit ids in the planner.
_MAX_OPERANDS = 2**32 - 1

# How many kernels the text of a plan lists.
_SHOWN_KERNELS = 20

# A notebook keeps what it shows: 200 to 250 bytes per node.
_NOTEBOOK_NODES = 2000


@dataclass(frozen=True, eq=False)
class Kernel:
    """Nodes that become one kernel.

    Attributes
    ----------
    nodes
        Elemwise nodes of the graph, in topological order.
    inputs
        Distinct variables that they read from elsewhere, constants among them.
    outputs
        Their results that are read elsewhere or are outputs of the graph.
    """

    nodes: tuple[Apply[Any], ...]
    inputs: tuple[Variable[Any, Any], ...]
    outputs: tuple[Variable[Any, Any], ...]

    def __str__(self) -> str:
        ops = Counter(str(node.op).lower() for node in self.nodes)
        names = ", ".join(f"{op} x{n}" if n > 1 else op for op, n in sorted(ops.items()))
        sizes = f"{len(self.nodes)} nodes, {len(self.inputs)} in, {len(self.outputs)} out"
        return f"{sizes}: {names}"


@dataclass(frozen=True)
class PlanStats:
    """Figures of a plan. A kernel is any Elemwise node.

    Attributes
    ----------
    nodes
        Apply nodes in the graph.
    fusable
        Elemwise nodes that may be fused.
    kernels_before, kernels_after
        Kernels in the graph, and in the graph after fusion.
    arrays_before, arrays_after
        Arrays that kernels read and write: for each the distinct inputs that are not constants,
        and the outputs that are read elsewhere.
    kernels_bound, arrays_bound
        What no plan of the graph is better than: none has fewer kernels than ``kernels_bound``, and
        none with that few has fewer arrays than ``arrays_bound``.
    proven
        Whether the plan comes up to the bounds, so that there is none better. If not, there may be
        none all the same.
    """

    nodes: int
    fusable: int
    kernels_before: int
    kernels_after: int
    arrays_before: int
    arrays_after: int
    kernels_bound: int
    arrays_bound: int
    proven: bool


class FusionPlan:
    """Which Elemwise nodes of a graph become which kernels; made by `plan_fusion`.

    A plan is legal: kernels hold single-output Elemwise nodes of one broadcast pattern that the
    target can compile, each connected by data flow or by shared inputs of that pattern; all kernels
    together leave the graph acyclic; none has more operands than the limit. On graphs of up to
    46,000 nodes it never has more kernels than PyTensor's own fusion would make, nor more arrays at
    equal kernels; on larger ones PyTensor's order is not tried.
    """

    def __init__(
        self,
        fgraph: FunctionGraph,
        graph: ExtractedGraph,
        clusters: _core.FusedClusters,
        target: Target,
        max_operands: int,
    ) -> None:
        self._fgraph = fgraph
        self._graph = graph
        self._clusters = clusters
        self._target = target
        self._max_operands = max_operands

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, each after those whose results it needs, by whatever path."""
        nodes, variables = self._nodes, self._graph.arrays.variables
        return tuple(
            Kernel(
                tuple(nodes[i] for i in members),
                tuple(variables[i] for i in inputs),
                tuple(variables[i] for i in outputs),
            )
            for members, inputs, outputs in self._clusters.clusters()
        )

    @cached_property
    def unfused(self) -> tuple[Apply[Any], ...]:
        """The nodes that stay as they are, in topological order."""
        fused = {i for members, _, _ in self._clusters.clusters() for i in members}
        return tuple(node for i, node in enumerate(self._nodes) if i not in fused)

    @cached_property
    def stats(self) -> PlanStats:
        """Figures before and after, and what the best plan can come to.

        The bounds of a plan that was made with effort ``"fast"`` are found here, in near-linear
        time and some milliseconds for a short search.
        """
        kernels_before, arrays_before = self._clusters.before
        kernels_after, arrays_after = self._clusters.after
        kernels_bound, arrays_bound = self._clusters.bound
        return PlanStats(
            nodes=len(self._graph.arrays),
            fusable=self._clusters.n_fusable,
            kernels_before=kernels_before,
            kernels_after=kernels_after,
            arrays_before=arrays_before,
            arrays_after=arrays_after,
            kernels_bound=kernels_bound,
            arrays_bound=arrays_bound,
            proven=(kernels_after, arrays_after) == (kernels_bound, arrays_bound),
        )

    @property
    def strategy(self) -> str | None:
        """Which of the planner's strategies made the plan; None if fusing nothing is as cheap.

        It is the one whose plan of the whole graph is the cheapest. Where parts of the graph can be
        planned by themselves, those are taken from others that have them cheaper. With
        ``effort="optimal"``, it is ``"exact search"`` if that found something better.
        """
        return self._clusters.strategy

    @property
    def exhausted(self) -> tuple[str, ...]:
        """The strategies that came to their limit of effort before they had tried all merges.

        With more, the plan might be cheaper. As a rule there are none.
        """
        return self._clusters.exhausted

    def why_not(self, node_a: Apply[Any], node_b: Apply[Any]) -> WhyNot:
        """Say why two nodes do not share a kernel.

        Parameters
        ----------
        node_a, node_b
            Apply nodes of the graph as it was when the plan was made. The question is about the
            kernels that they are in.

        Raises
        ------
        ValueError
            If one of them is not in that graph.

        Notes
        -----
        O(nodes + edges).
        """
        pair = (self._node_id(node_a), self._node_id(node_b))
        (answer,) = why_not(self._graph, self._clusters, self._target, self._max_operands, [pair])
        return answer

    def apply(self) -> None:
        """Replace the planned nodes by kernels, in the graph that the plan was made from.

        Raises
        ------
        StalePlanError
            If the graph is not as it was when the plan was made, for instance because the plan has
            been applied. Nothing is changed then.
        Exception
            What a feature of the graph raises when it is asked to validate the result. The graph
            is then as it was before.
        """
        now = extract(self._fgraph)
        if not (
            now.arrays.same_objects(self._graph.arrays) and now.orderings == self._graph.orderings
        ):
            raise StalePlanError(
                "the graph has changed since the plan was made; make a new one with plan_fusion()"
            )
        apply_clusters(self._fgraph, self._graph, self._clusters, reason="pytensor_fuse")

    @overload
    def to_html(self, path: None = None) -> str: ...

    @overload
    def to_html(self, path: str | os.PathLike[str]) -> None: ...

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Make a page that shows the plan, for a browser.

        The graph is drawn from left to right, kernels as colored boxes that open and close, nodes
        that cannot be fused in gray. Hovering over a node tells its op, dtype, static shape and the
        line that made it: one of yours if PyTensor noted any, else a library's. A click on an edge
        tells why its ends do not share a kernel. Five nodes or more that are alike and have the
        same neighbors share a box that opens and closes too.

        Parameters
        ----------
        path
            The file to write. It holds all that it needs, and asks nothing of a network.

        Returns
        -------
        str or None
            The page if no path is given.

        Raises
        ------
        OSError
            If the file cannot be written. One that was there is then as it was.

        Notes
        -----
        Near-linear: about a second for 10,000 nodes, whose page has one to two megabytes.
        """
        text = plan_page(self._drawing, f"Fusion plan for target {self._target.value!r}")
        if path is None:
            return text
        write(path, text)
        return None

    def to_svg(self) -> str:
        """Return the plan as a still picture, an SVG document.

        Kernels are open in pictures of up to 250 nodes, and drawn as one box in larger ones. Edges
        that would hide the rest, of what very many read, are drawn at their ends only.
        """
        return svg(self._drawing)

    def to_dot(self) -> str:
        """Return the plan as text for Graphviz, each kernel a cluster."""
        return dot(self._picture)

    def _repr_html_(self) -> str:
        """Return what Jupyter shows: the figures, and the page in a frame if it is not large."""
        table = figures_table(self._picture)
        if len(self._picture.nodes) > _NOTEBOOK_NODES:
            return (
                f"{table}<p>{len(self._nodes):,} nodes: too many to be shown here; "
                "<code>to_html(path)</code> writes a page.</p>"
            )
        # The frame has no origin: its script can reach neither the notebook nor a network.
        return (
            f'{table}<iframe title="Fusion plan" sandbox="allow-scripts" '
            f'style="width:100%;height:560px;border:1px solid {FRAME};border-radius:6px" '
            f'srcdoc="{escape(self.to_html())}"></iframe>'
        )

    def __repr__(self) -> str:
        (kernels_before, arrays_before) = self._clusters.before
        (kernels_after, arrays_after) = self._clusters.after
        return (
            f"<FusionPlan of {len(self._nodes)} nodes: {kernels_before} -> "
            f"{kernels_after} kernels, {arrays_before} -> {arrays_after} arrays>"
        )

    def __str__(self) -> str:
        stats = self.stats
        lines = [
            f"FusionPlan for target {self._target.value!r}, at most {self._max_operands} operands",
            f"  nodes    {stats.nodes}, of which {stats.fusable} may be fused",
            f"  kernels  {stats.kernels_before} -> {stats.kernels_after}",
            f"  arrays   {stats.arrays_before} -> {stats.arrays_after}",
            f"  bound    {bound_text(self._clusters.after, self._clusters.bound)}",
        ]
        kernels = self.kernels
        lines += [f"  kernel {i}: {kernel}" for i, kernel in enumerate(kernels[:_SHOWN_KERNELS])]
        if len(kernels) > _SHOWN_KERNELS:
            lines.append(f"  ... and {len(kernels) - _SHOWN_KERNELS} more kernels")
        return "\n".join(lines)

    @cached_property
    def _picture(self) -> Picture:
        return picture_of(self._graph, self._clusters, self._target, self._max_operands)

    @cached_property
    def _drawing(self) -> Drawing:
        return draw(self._picture)

    @cached_property
    def _nodes(self) -> list[Apply[Any]]:
        return self._graph.arrays.nodes

    @cached_property
    def _ids(self) -> dict[Apply[Any], int]:
        return {node: i for i, node in enumerate(self._nodes)}

    def _node_id(self, node: Apply[Any]) -> int:
        try:
            return self._ids[node]
        except (KeyError, TypeError):
            raise ValueError(f"{node} is not an apply node of the planned graph") from None


def plan_fusion(
    fgraph: FunctionGraph,
    *,
    target: str | Mode | Linker | None = None,
    max_operands: int | None = None,
    effort: str = DEFAULT_EFFORT,
) -> FusionPlan:
    """Plan which Elemwise nodes of a graph to fuse. The graph is not changed.

    Parameters
    ----------
    fgraph
        The graph.
    target
        Who compiles the kernels: ``"c"``, ``"python"``, ``"numba"``, a mode or a linker. By default
        the mode that PyTensor is compiling ``fgraph`` for, if that is known; otherwise only what
        every target can compile is fused.
    max_operands
        Most inputs plus outputs of a kernel; by default what the target takes.
    effort
        ``"fast"``: near-linear, for every compile. ``"optimal"``: a search for the best plan, in
        those parts of the graph where a bound does not show that the plan is that already; seconds
        at most, for a function that is compiled once and called a million times.

    Returns
    -------
    FusionPlan
        The same for the same graph, in every process.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``target`` or ``effort`` is unknown or ``max_operands`` is less than 2.

    Notes
    -----
    A portfolio of greedy orders, PyTensor's among them, each improved by further merges on a
    maintained topological order (Pearce and Kelly, "A dynamic topological sort algorithm for
    directed acyclic graphs", 2007); the plan with the fewest kernels wins, at equal kernels
    the one with the fewest arrays, in each part of the graph that can be planned by itself.
    Near-linear in practice. The search is A* (Hart, Nilsson and Raphael, 1968) over the sets of
    nodes that kernels so far can have; what it may look at is limited, not its time.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.graph.fg import FunctionGraph
    >>> from pytensor_fuse import plan_fusion
    >>> x = pt.vector("x")
    >>> fgraph = FunctionGraph([x], [pt.exp(x) + pt.sin(x), pt.exp(x).sum()])
    >>> plan = plan_fusion(fgraph)
    >>> plan.stats.kernels_before, plan.stats.kernels_after
    (4, 1)
    >>> plan.apply()
    """
    if not isinstance(fgraph, FunctionGraph):
        hint = "; call its unfreeze() first" if hasattr(fgraph, "unfreeze") else ""
        raise TypeError(f"fgraph must be a FunctionGraph, not {type(fgraph).__name__}{hint}")
    resolved = resolve_target(target, fgraph)
    limit = default_limit(resolved) if max_operands is None else _check_limit(max_operands)
    steps = resolve_effort(effort)
    graph = extract(fgraph)
    return FusionPlan(fgraph, graph, plan(graph, resolved, limit, steps), resolved, limit)


def _check_limit(max_operands: int) -> int:
    if isinstance(max_operands, bool):
        raise TypeError("max_operands must be an integer, not bool")
    try:
        limit = operator.index(max_operands)
    except TypeError:
        given = type(max_operands).__name__
        raise TypeError(f"max_operands must be an integer, not {given}") from None
    if limit < 2:
        raise ValueError(f"max_operands must be at least 2 (an input and an output), not {limit}")
    return min(limit, _MAX_OPERANDS)
