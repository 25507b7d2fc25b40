"""Audits: what a compiled function or a graph costs, and where it could cost less."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor_fuse import _page
from pytensor_fuse._audit_cache import CachingSection, audit_cache
from pytensor_fuse._audit_graph import Section, graph_context
from pytensor_fuse._audit_kernels import KernelsSection, audit_kernels
from pytensor_fuse._audit_matrices import MatricesSection, audit_matrices
from pytensor_fuse._audit_memory import MemorySection, audit_memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor.compile.executor import Function
    from pytensor.graph.basic import Variable
    from pytensor.graph.fg import FunctionGraph


@dataclass(frozen=True, eq=False)
class Audit:
    """What `audit` found. Printed, it is a report.

    Attributes
    ----------
    kernels
        The Elemwise kernels.
    memory
        What is allocated, copied, and done in place.
    matrices
        Expensive work on matrices.
    caching
        Whether Numba's compilation can be kept for other processes.
    """

    kernels: KernelsSection
    memory: MemorySection
    matrices: MatricesSection
    caching: CachingSection

    @property
    def _sections(self) -> tuple[tuple[str, Section], ...]:
        return (
            ("kernels", self.kernels),
            ("memory", self.memory),
            ("matrices", self.matrices),
            ("caching", self.caching),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain types, which JSON can hold."""
        return {name: section.to_dict() for name, section in self._sections}

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the audit as a page of its own, or return that page.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        body = "".join(
            f"<section><h2>{_page.escape(name.capitalize())}</h2>{section.html()}</section>"
            for name, section in self._sections
        )
        text = _page.page("Audit", body)
        if path is None:
            return text
        _page.write(path, text)
        return None

    def __str__(self) -> str:
        lines = []
        for name, section in self._sections:
            lines.append(name)
            lines += [f"  {line}" for line in section.lines()]
        return "\n".join(lines)


def audit(
    compiled: Function | FunctionGraph,
    *,
    shapes: Mapping[Variable[Any, Any] | str, Sequence[int | None]] | None = None,
) -> Audit:
    """Say what a compiled function or a graph costs. Nothing is changed, nothing is run.

    Parameters
    ----------
    compiled
        What `pytensor.function` returns, or a graph.
    shapes
        The shape of inputs, by variable or name.
    """
    context = graph_context(compiled, shapes)
    return Audit(
        kernels=audit_kernels(context),
        memory=audit_memory(context),
        matrices=audit_matrices(context),
        caching=audit_cache(context),
    )
