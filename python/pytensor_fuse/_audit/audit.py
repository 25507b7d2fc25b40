"""Audits: the costs of a compiled function or a graph, and possible savings."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.sections.cache.analysis import audit_cache
from pytensor_fuse._audit.sections.cache.section import CachingSection
from pytensor_fuse._audit.sections.kernels.analysis import audit_kernels
from pytensor_fuse._audit.sections.kernels.section import KernelsSection
from pytensor_fuse._audit.sections.matrices.analysis import audit_matrices
from pytensor_fuse._audit.sections.matrices.section import MatricesSection
from pytensor_fuse._audit.sections.memory.analysis import audit_memory
from pytensor_fuse._audit.sections.memory.section import MemorySection
from pytensor_fuse._audit.sections.native.analysis import audit_native
from pytensor_fuse._audit.sections.native.section import NativeSection
from pytensor_fuse._audit.sections.ops.analysis import audit_ops
from pytensor_fuse._audit.sections.ops.section import OpsSection
from pytensor_fuse._cache.store.origin import origin_of
from pytensor_fuse._pytensor.ops.targets import Target
from pytensor_fuse._reports import page
from pytensor_fuse._reports.asked import function_or_graph, subject
from pytensor_fuse._reports.report import PageReport
from pytensor_fuse._reports.text import cached_text, count, short
from pytensor_fuse._reports.versions import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytensor.graph.basic import Variable

    from pytensor_fuse._audit.context.graph import GraphContext
    from pytensor_fuse._audit.section import Section
    from pytensor_fuse._reports.asked import GraphLike

# The version of the format of the dicts.
_FORMAT = 1

# The metadata key of a section's constructor.
_MAKER = "made by"


@dataclass(frozen=True, eq=False)
class Audit(PageReport):
    """The result of `audit`. Printed, it is a report of a screen or two, important parts first.

    Nodes are named by their positions in the order in which they run, and their ops.

    Attributes
    ----------
    title
        The subject of the audit.
    linker
        The class of the linker that compiled a function; None for a graph.
    target
        The kind of that linker: ``"c"``, ``"python"`` or ``"numba"``. None for a graph, and for a
        function of another linker. Then only the graph is known, but not how it runs, where arrays
        are stored and when they are freed.
    matrices
        Expensive work on matrices, and possible sharing of it.
    memory
        Allocations, copies and work in place, and the peak of live memory.
    kernels
        The kernels: computations, reads and writes of each, and which are equal.
    caching
        Whether other processes can reuse Numba's compilation.
    native
        Whether the function is machine code without Numba, and the obstacles otherwise.
    ops
        The ops of the graph, and those that the audit does not know.
    """

    title: str
    linker: str | None
    target: str | None
    # The table of sections, in the order of the report.
    matrices: MatricesSection = field(metadata={_MAKER: audit_matrices})
    memory: MemorySection = field(metadata={_MAKER: audit_memory})
    kernels: KernelsSection = field(metadata={_MAKER: audit_kernels})
    caching: CachingSection = field(metadata={_MAKER: audit_cache})
    native: NativeSection = field(metadata={_MAKER: audit_native})
    ops: OpsSection = field(metadata={_MAKER: audit_ops})

    @property
    def _sections(self) -> Iterator[tuple[str, Section]]:
        return ((name, getattr(self, name)) for name, _ in _makers())

    @property
    def _head(self) -> dict[str, Any]:
        return {"title": self.title, "linker": self.linker, "target": self.target}

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, as in JSON.

        Returns
        -------
        dict
            ``format`` is the version of the format. The other keys are ``versions`` of PyTensor and
            this package, ``title``, ``linker``, ``target``, and the names of the sections, each
            with a dict. Sizes are in bytes, or None if unknown.
        """
        sections = {name: section.to_dict() for name, section in self._sections}
        return {"format": _FORMAT, "versions": versions(), **self._head, **sections}

    def _page(self) -> str:
        figures = [
            (f"{self.ops.nodes:,}", "nodes"),
            (f"{len(self.kernels.kernels):,}", "kernels"),
            (self.memory.peak.figure, "live at the peak"),
            (f"{len(self.memory.copies):,}", "copies"),
            (f"{sum(self.matrices.counts.values()):,}", "cubic operations"),
            (f"{len(self.ops.unknown):,}", "unknown ops"),
        ]
        tiles = "".join(
            f"<li><b>{page.escape(figure)}</b><span>{page.escape(what)}</span></li>"
            for figure, what in figures
        )
        body = "".join(
            f"<section><h2>{page.escape(name.capitalize())}</h2>{section.html()}</section>"
            for name, section in self._sections
        )
        head = f'<h1>{page.escape(self.title)}</h1><ul class="figures">{tiles}</ul>'
        style = page.asset(__package__, "audit.css")
        return page.page(self.title, f"<main>{head}{body}</main>", style=style)

    def __str__(self) -> str:
        lines = [self.title]
        for name, section in self._sections:
            lines.append(name)
            lines += [f"  {line}" for line in section.lines()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.title}>"


def audit(
    graph: GraphLike,
    *,
    shapes: Mapping[Variable[Any, Any] | str, Sequence[int | None]] | None = None,
) -> Audit:
    """Report the costs of a compiled function or a graph, without changing or running it.

    Parameters
    ----------
    graph : Function or FunctionGraph
        The result of `pytensor.function`, or a graph.
    shapes : mapping of Variable or str to sequence of int or None, optional
        Shapes of inputs, by variable or name; None in a shape stands for an unknown length. The
        shapes of other arrays are inferred from these, from static types and from constants where
        they are certain; shared variables without an update have their current shapes. Sizes are
        in bytes, and None where they cannot be inferred.

    Returns
    -------
    Audit
        The audit, which is the same for the same graph, except for ``caching.stored``, which
        describes what earlier calls of the function have left on disk, and for ``title``, which
        contains the time when a graph from the cache was rewritten.

    Raises
    ------
    TypeError
        If ``graph`` is neither a function nor a graph, or ``shapes`` is of the wrong type.
    ValueError
        If ``shapes`` names something that is not an input, contradicts the type of an input, or
        leads to different lengths of the inputs of an Elemwise node or to a result that contradicts
        its type. Whether other nodes can run on such shapes is not checked.

    Notes
    -----
    O(nodes + edges), except for the reachability that work in place requires, which takes
    O(nodes^2) bits. Inner graphs are included.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from pytensor.graph.fg import FunctionGraph
    >>> from pytensor_fuse import audit
    >>> x = pt.vector("x")
    >>> found = audit(FunctionGraph([x], [pt.exp(pt.sin(x))]), shapes={"x": (1000,)})
    >>> [(kernel.name, kernel.bytes_written) for kernel in found.kernels.kernels]
    [('0: Sin', 8000), ('1: Exp', 8000)]
    >>> found.memory.peak.nbytes
    16000
    """
    context = graph_context(function_or_graph("audit", graph), shapes)
    sections: dict[str, Any] = {name: make(context) for name, make in _makers()}
    return Audit(
        title=_title(context),
        linker=None if context.linker is None else type(context.linker).__name__,
        target=None if context.target is Target.STRICT else context.target.value,
        **sections,
    )


def _makers() -> Iterator[tuple[str, Callable[[GraphContext], Section]]]:
    """Iterate over the names and constructors of the sections of an audit."""
    return ((f.name, f.metadata[_MAKER]) for f in fields(Audit) if _MAKER in f.metadata)


def _title(context: GraphContext) -> str:
    what = subject(context.function)
    if context.function is not None:
        if context.target is not Target.STRICT:
            what += f", compiled for {context.target.value}"
        else:
            linker = type(context.linker).__name__
            what += f", compiled by {short(linker)}, whose way of running is unknown to the audit"
        origin = origin_of(context.fgraph)
        if origin is not None and origin.made is not None:
            what += f", {cached_text(origin.made)}"
    return f"Audit of {what}: {count(len(context.order), 'node')}"
