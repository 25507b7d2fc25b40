"""Fusion plans of graphs and functions, which can be inspected, drawn and applied."""

from __future__ import annotations

import operator
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from pytensor.compile.executor import Function

from pytensor_fuse._errors import FusionError, StalePlanError
from pytensor_fuse._fusion.apply import apply_clusters
from pytensor_fuse._fusion.effort import DEFAULT as DEFAULT_EFFORT
from pytensor_fuse._fusion.effort import resolve_effort
from pytensor_fuse._fusion.extract import ExtractedGraph, extract, plan
from pytensor_fuse._fusion.why_not import WhyNot, why_not
from pytensor_fuse._pictures.dot import dot
from pytensor_fuse._pictures.drawing import Drawing, draw
from pytensor_fuse._pictures.from_plan import bound_text, picture_of
from pytensor_fuse._pictures.page import figures_table, plan_page
from pytensor_fuse._pictures.svg import svg
from pytensor_fuse._plan.plain import graph_to_dict
from pytensor_fuse._plan.records import Kernel, PlanStats
from pytensor_fuse._pytensor.ops.fused_elemwise import is_kernel
from pytensor_fuse._pytensor.ops.targets import Target, resolve_target
from pytensor_fuse._pytensor.ops.targets import max_operands as default_limit
from pytensor_fuse._reports.asked import function_or_graph, graph_of
from pytensor_fuse._reports.files import written
from pytensor_fuse._reports.page import frame
from pytensor_fuse._reports.report import PageReport
from pytensor_fuse._reports.text import count
from pytensor_fuse._reports.versions import versions

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pytensor.compile.mode import Mode
    from pytensor.graph.basic import Apply, Variable
    from pytensor.graph.fg import FunctionGraph
    from pytensor.link.basic import Linker

    from pytensor_fuse import _core
    from pytensor_fuse._pictures.picture import Picture
    from pytensor_fuse._reports.asked import GraphLike

# Operand counts are 32-bit ids in the planner.
_MAX_OPERANDS = 2**32 - 1

# The version of the format of `FusionPlan.to_dict`.
_FORMAT = 1

# The most kernels that the text of a plan lists.
_SHOWN_KERNELS = 20

# A notebook stores its outputs in its file: 200 to 250 bytes per node.
_NOTEBOOK_NODES = 2000


class FusionPlan(PageReport):
    """A partition of a graph's Elemwise nodes into kernels; made by `plan_fusion`.

    A plan is legal: each kernel holds single-output Elemwise nodes of one broadcast pattern that
    the target can compile, connected by data flow or by shared inputs of that pattern; the kernels
    together leave the graph acyclic; and none has more operands than the limit. A plan never has
    more kernels than PyTensor's own fusion would make, nor more arrays with as many kernels, in
    graphs of up to 46,000 nodes; in larger ones PyTensor's order is not tried.

    On the page that ``to_html`` makes, the graph is drawn from left to right, with kernels as
    colored boxes that open and close, and with nodes that cannot be fused in gray. Hovering over a
    node shows its op, dtype, static shape and the source line that made it: a line of yours if
    PyTensor recorded one, else a library's. A click on an edge shows why its ends do not share a
    kernel. Five or more nodes that are alike and have the same neighbors share a box, which opens
    and closes, too. Drawing is near-linear: about a second for 10,000 nodes, whose page takes one
    to two megabytes.
    """

    def __init__(
        self,
        fgraph: FunctionGraph,
        graph: ExtractedGraph,
        clusters: _core.FusedClusters,
        target: Target,
        max_operands: int,
        *,
        is_compiled: bool = False,
    ) -> None:
        self._fgraph = fgraph
        self._is_compiled = is_compiled
        self._inputs = tuple(fgraph.inputs)
        self._graph = graph
        self._clusters = clusters
        self._target = target
        self._max_operands = max_operands

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    @property
    def target(self) -> str:
        """The compiler of the kernels, as an argument of `plan_fusion`.

        ``"strict"`` stands for the common subset of all targets.
        """
        return self._target.value

    @property
    def max_operands(self) -> int:
        """The maximum number of inputs plus outputs of a kernel."""
        return self._max_operands

    @property
    def nodes(self) -> tuple[Apply[Any], ...]:
        """The nodes of the graph when the plan was made, in topological order."""
        return tuple(self._nodes)

    @property
    def inputs(self) -> tuple[Variable[Any, Any], ...]:
        """The inputs of the graph when the plan was made."""
        return self._inputs

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, each after those that it depends on, directly or not."""
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
        """The nodes that are in no kernel, in topological order."""
        fused = {i for members, _, _ in self._clusters.clusters() for i in members}
        return tuple(node for i, node in enumerate(self._nodes) if i not in fused)

    @cached_property
    def stats(self) -> PlanStats:
        """Figures before and after fusion, and bounds on those of an optimal plan.

        For a plan that was made with effort ``"fast"``, the bounds are computed here, in
        near-linear time plus some milliseconds for a short search.
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
        """The planner's strategy that made the plan; None if fusing nothing is as cheap.

        It is the strategy whose plan of the whole graph is the cheapest. Parts of the graph that
        can be planned independently come from other strategies if these plan them more cheaply.
        With ``effort="optimal"``, it is ``"exact search"`` if that found a cheaper plan.
        """
        return self._clusters.strategy

    @property
    def exhausted(self) -> tuple[str, ...]:
        """The strategies that reached their effort limit before they had tried all merges.

        A higher limit might give a cheaper plan. Usually there are none.
        """
        return self._clusters.exhausted

    def why_not(self, node_a: Apply[Any], node_b: Apply[Any]) -> WhyNot:
        """Explain why two nodes do not share a kernel.

        Parameters
        ----------
        node_a, node_b : Apply
            Apply nodes of the graph as it was when the plan was made. They stand for the kernels
            that contain them.

        Returns
        -------
        WhyNot
            The first reason found, or the fact that the nodes do share a kernel. If both are the
            same node, and it is in no kernel, the reason for that.

        Raises
        ------
        ValueError
            If one of the nodes is not in that graph.

        Notes
        -----
        O(nodes + edges).
        """
        pair = (self._node_id(node_a), self._node_id(node_b))
        (answer,) = why_not(self._graph, self._clusters, self._target, self._max_operands, [pair])
        return answer

    def apply(self) -> None:
        """Replace the planned nodes by kernels, in the graph that was planned.

        Raises
        ------
        StalePlanError
            If the graph has changed since the plan was made, for instance because the plan has been
            applied. The graph is then left unchanged.
        FusionError
            If the plan is of a compiled function, whose machine code would not change.
        Exception
            Any exception of a graph feature that validates the result. The graph is then restored.
        """
        if self._is_compiled:
            raise FusionError(
                "the plan is of a compiled function, which stays as it is; plan a FunctionGraph to "
                "apply the plan"
            )
        now = extract(self._fgraph)
        if not (
            now.arrays.same_objects(self._graph.arrays) and now.orderings == self._graph.orderings
        ):
            raise StalePlanError(
                "the graph has changed since the plan was made; make a new one with plan_fusion()"
            )
        apply_clusters(self._fgraph, self._graph, self._clusters, reason="pytensor_fuse")

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in plain types, as in JSON.

        Returns
        -------
        dict
            ``format`` is the version of the format. The other keys are ``versions`` of PyTensor and
            this package, ``target``, ``max_operands``, ``strategy``, ``exhausted``, ``stats`` (see
            `PlanStats`), ``nodes`` (op and kernel of each, in topological order), ``kernels``
            (positions and ops of their nodes, names of their inputs and outputs) and ``unfused``
            (positions of nodes). A variable without a name is called, as in audits, by the position
            and op of its node, or by the position of the input. The same graph gives the same
            result in every process.
        """
        return {
            "format": _FORMAT,
            "versions": versions(),
            "target": self.target,
            "max_operands": self.max_operands,
            "strategy": self.strategy,
            "exhausted": list(self.exhausted),
            "stats": asdict(self.stats),
            **graph_to_dict(self.nodes, self.inputs, self.kernels),
        }

    def _page(self) -> str:
        return plan_page(self._drawing, f"Fusion plan for target {self._target.value!r}")

    @overload
    def to_svg(self, path: None = None) -> str: ...

    @overload
    def to_svg(self, path: str | os.PathLike[str]) -> None: ...

    def to_svg(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Render the plan as a static picture, an SVG document.

        Kernels are shown open in pictures of up to 250 nodes, and as one box each in larger ones.
        Edges from variables with very many readers are drawn at their ends only, since they would
        hide the rest.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file to write.

        Returns
        -------
        str or None
            The text of the file if no path is given.

        Raises
        ------
        OSError
            If the file cannot be written. An existing file is then left unchanged.
        """
        return written(svg(self._drawing), path)

    @overload
    def to_dot(self, path: None = None) -> str: ...

    @overload
    def to_dot(self, path: str | os.PathLike[str]) -> None: ...

    def to_dot(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Render the plan in Graphviz's DOT language, with a cluster for each kernel.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file to write.

        Returns
        -------
        str or None
            The text of the file if no path is given.

        Raises
        ------
        OSError
            If the file cannot be written. An existing file is then left unchanged.
        """
        return written(dot(self._picture), path)

    def _repr_html_(self) -> str:
        """Return HTML for Jupyter: the figures, and the page in a frame unless it is large."""
        table = figures_table(self._picture)
        if len(self._picture.nodes) > _NOTEBOOK_NODES:
            return (
                f"{table}<p>{len(self._nodes):,} nodes: too many to be shown here; "
                "<code>to_html(path)</code> writes a page.</p>"
            )
        return table + frame("Fusion plan", self.to_html())

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
            f"  nodes    {stats.nodes}, of which {stats.fusable} may be fused{self._fused_before}",
            f"  kernels  {stats.kernels_before} -> {stats.kernels_after}{self._of_one_node}",
            f"  arrays   {stats.arrays_before} -> {stats.arrays_after}",
            f"  bound    {bound_text(self._clusters.after, self._clusters.bound)}",
        ]
        kernels = self.kernels
        lines += [f"  kernel {i}: {kernel}" for i, kernel in enumerate(kernels[:_SHOWN_KERNELS])]
        if len(kernels) > _SHOWN_KERNELS:
            lines.append(f"  ... and {len(kernels) - _SHOWN_KERNELS} more kernels")
        return "\n".join(lines)

    @property
    def _fused_before(self) -> str:
        """Return a note on the kernels that the graph has already, as that of a function."""
        made = sum(is_kernel(node.op) for node in self._nodes)
        return f"; {count(made, 'kernel')} made before" if made else ""

    @property
    def _of_one_node(self) -> str:
        """Return a note on the kernels that are not listed, since nothing is fused into them."""
        alone = self.stats.kernels_after - len(self.kernels)
        return f", of which {alone} are single nodes" if self.kernels and alone else ""

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
    graph: GraphLike,
    *,
    target: str | Mode | Linker | None = None,
    max_operands: int | None = None,
    effort: str = DEFAULT_EFFORT,
) -> FusionPlan:
    """Plan the fusion of the Elemwise nodes of a graph, which is not changed.

    Parameters
    ----------
    graph : FunctionGraph or Function
        The graph, or a compiled function whose graph is searched for further fusion. A plan of a
        function cannot be applied.
    target : str, Mode or Linker, optional
        The compiler of the kernels: ``"c"``, ``"python"``, ``"numba"``, a mode or a linker; or
        ``"strict"`` for the common subset of all targets. By default, the linker of a compiled
        function, or the mode that PyTensor is compiling ``graph`` for, if that is known; otherwise
        ``"strict"``.
    max_operands : int, optional
        Maximum number of inputs plus outputs of a kernel; by default, the target's limit.
    effort : {"fast", "optimal"}, optional
        ``"fast"``: near-linear, for every compile. ``"optimal"``: a search for the optimum in those
        parts of the graph whose plan does not attain its bound. The search takes seconds at most;
        use it for a function that is compiled once and called a million times.

    Returns
    -------
    FusionPlan
        The plan. The same graph gets the same plan in every process.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``target`` or ``effort`` is unknown or ``max_operands`` is less than 2.

    Notes
    -----
    The planner runs a portfolio of greedy orders, PyTensor's among them, and improves each by
    further merges on a maintained topological order (Pearce and Kelly, "A dynamic topological sort
    algorithm for directed acyclic graphs", 2007). The plan with the fewest kernels wins, and among
    those the one with the fewest arrays, for each part of the graph that can be planned
    independently. The time is near-linear in practice. The search is A* (Hart, Nilsson and Raphael,
    1968) over the sets of nodes that the kernels so far can cover; its size is limited, not its
    time.

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
    compiled = function_or_graph("plan_fusion", graph)
    is_compiled = isinstance(compiled, Function)
    if isinstance(compiled, Function) and target is None:
        target = compiled.maker.linker
    fgraph = graph_of(compiled)
    resolved = resolve_target(target, fgraph)
    limit = default_limit(resolved) if max_operands is None else _check_limit(max_operands)
    steps = resolve_effort(effort)
    extracted = extract(fgraph)
    clusters = plan(extracted, resolved, limit, steps)
    return FusionPlan(fgraph, extracted, clusters, resolved, limit, is_compiled=is_compiled)


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
