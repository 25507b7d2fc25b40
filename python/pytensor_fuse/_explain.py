"""Explanation of a compiled function: each feature's report on it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from pytensor_fuse._audit.sections.matrices.explain import MatrixReports, explain_linalg
from pytensor_fuse._cache.information import CacheReport, explain_cache
from pytensor_fuse._joins.reports import JoinReports, explain_joins
from pytensor_fuse._native.explain.explain import explain_native
from pytensor_fuse._plan.plan import FusionPlan, plan_fusion
from pytensor_fuse._reports.asked import function_or_graph, graph_of, subject
from pytensor_fuse._reports.page import escape, page
from pytensor_fuse._reports.report import PageReport, Report
from pytensor_fuse._reports.text import count
from pytensor_fuse._reports.versions import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytensor.graph.basic import Variable

    from pytensor_fuse._native.explain.report import NativeReport
    from pytensor_fuse._reports.asked import GraphLike

    Shapes = Mapping[Variable[Any, Any] | str, Sequence[int | None]]

# The version of the dicts' layout.
_FORMAT: Final = 1

_EXPLAINERS: Final[dict[str, Callable[[GraphLike], Report]]] = {
    "fusion": plan_fusion,
    "native": explain_native,
    "joins": explain_joins,
    "linalg": explain_linalg,
    "cache": explain_cache,
}


@dataclass(frozen=True, eq=False)
class Explanation(PageReport):
    """The result of `explain`: a report for each part. Printed, it is one page.

    Iterating over it yields the reports.

    Attributes
    ----------
    title
        The subject.
    fusion
        The plan of further fusion, with the reasons against more.
    native
        Which parts are machine code, and why others are not.
    joins
        Whether kernels write directly into the results of joins.
    linalg
        The work on each matrix, with the rules that were applied.
    cache
        Why the graph was rewritten instead of taken from the cache.
    """

    title: str
    fusion: FusionPlan
    native: NativeReport
    joins: JoinReports
    linalg: MatrixReports
    cache: CacheReport

    def __iter__(self) -> Iterator[Report]:
        return iter(self._parts().values())

    def __str__(self) -> str:
        parts = (f"{name}\n{_indented(str(part))}" for name, part in self._parts().items())
        return "\n".join([self.title, *parts])

    def __repr__(self) -> str:
        return f"<explanation of {self.title}>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON.

        Returns
        -------
        dict
            ``format`` is the version of this layout: ``versions`` of PyTensor and this package,
            ``title``, and the dict of each part by its name.
        """
        parts = {name: part.to_dict() for name, part in self._parts().items()}
        return {"format": _FORMAT, "versions": versions(), "title": self.title} | parts

    def _page(self) -> str:
        parts = "".join(
            f"<section><h2>{name}</h2><pre>{escape(part)}</pre></section>"
            for name, part in self._parts().items()
        )
        body = f"<main><h1>{escape(self.title)}</h1>{parts}</main>"
        return page(self.title, body)

    def _parts(self) -> dict[str, Report]:
        return {each.name: getattr(self, each.name) for each in fields(self)[1:]}


@overload
def explain(graph: GraphLike, *, shapes: Shapes | None = None) -> Explanation: ...
@overload
def explain(graph: GraphLike, part: Literal["fusion"]) -> FusionPlan: ...
@overload
def explain(graph: GraphLike, part: Literal["native"]) -> NativeReport: ...
@overload
def explain(graph: GraphLike, part: Literal["joins"]) -> JoinReports: ...
@overload
def explain(
    graph: GraphLike, part: Literal["linalg"], *, shapes: Shapes | None = None
) -> MatrixReports: ...
@overload
def explain(graph: GraphLike, part: Literal["cache"]) -> CacheReport: ...
def explain(graph: Any, part: str | None = None, *, shapes: Shapes | None = None) -> Any:
    """Explain what this package did to a function, and why it did not do more.

    Parameters
    ----------
    graph : Function, FunctionGraph or Variable
        A compiled function, PyMC's point function that holds one, or a graph. A variable that has
        been evaluated stands for its latest function.
    part : {"fusion", "native", "joins", "linalg", "cache"}, optional
        The part to explain; by default, all of them.
    shapes : mapping of Variable or str to sequence of int or None, optional
        Shapes of inputs for the work on matrices, as for `audit`.

    Returns
    -------
    Explanation, FusionPlan, NativeReport, JoinReports, MatrixReports or CacheReport
        A report: printed it is text, in a notebook it shows itself, iterating over it yields its
        entries, and ``to_dict()`` returns it in plain types.

    Raises
    ------
    TypeError
        If ``graph`` is none of these.
    ValueError
        If there is no such part, or ``shapes`` does not fit.

    Examples
    --------
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> from pytensor_fuse import explain
    >>> x, y = pt.vectors("x", "y")
    >>> f = pytensor.function([x, y], pt.concatenate([x * 2 + 1, pt.exp(y) - 1]))
    >>> print(explain(f, "joins"))  # doctest: +ELLIPSIS
    Join...: eliminated, 2 of 2 streams written
    >>> [report] = explain(f).joins
    >>> report.eliminated
    True
    """
    if part not in (None, *_EXPLAINERS):
        raise ValueError(f"no part is called {part!r}; there are {', '.join(_EXPLAINERS)}")
    if shapes is not None and part not in (None, "linalg"):
        raise ValueError(f"shapes are for the part 'linalg', not for {part!r}")
    compiled = function_or_graph("explain", graph)
    explainers = _EXPLAINERS | {"linalg": lambda each: explain_linalg(each, shapes=shapes)}
    if part is not None:
        return explainers[part](compiled)
    title = f"{subject(compiled)} of {count(len(graph_of(compiled).apply_nodes), 'node')}"
    found: dict[str, Any] = {name: of(compiled) for name, of in explainers.items()}
    return Explanation(title, **found)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
