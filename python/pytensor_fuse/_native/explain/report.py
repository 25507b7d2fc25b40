"""Report on a graph's compilation to machine code."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, overload

from pytensor_fuse._native.explain.picture import picture
from pytensor_fuse._reports.files import written
from pytensor_fuse._reports.page import escape, page
from pytensor_fuse._reports.report import PageReport
from pytensor_fuse._reports.tables import paragraphs, table
from pytensor_fuse._reports.text import bounded, count, size
from pytensor_fuse._reports.versions import versions

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pytensor_fuse._native.explain.records import (
        NativeCall,
        NativeLoop,
        NativeRegion,
        NativeState,
        NotNative,
        PythonRuns,
    )

# The version of the dicts' layout.
_FORMAT = 1

# The number of loops of a region that the text shows; the rest is counted.
_SHOWN = 24


@dataclass(frozen=True, eq=False)
class NativeReport(PageReport):
    """A report on the machine code of a graph. Printed, it takes about one screen.

    Iterating over it yields the regions.

    Attributes
    ----------
    title
        The subject of the report.
    linker
        The class of the linker that compiled a function; None for a graph.
    state
        The state of the graph's compilation, as a `NativeState`.
    not_native
        The reasons why the graph is not machine code as a whole.
    regions
        The graph's functions of machine code: one if all of it is machine code. For a graph that
        has not been compiled, the function that it would become.
    python_runs
        The number of runs in Python of a function that Numba has not compiled; None for all others.
    """

    title: str
    linker: str | None
    state: NativeState
    not_native: tuple[NotNative, ...]
    regions: tuple[NativeRegion, ...]
    python_runs: PythonRuns | None = None

    def __iter__(self) -> Iterator[NativeRegion]:
        return iter(self.regions)

    @property
    def is_native(self) -> bool:
        """Whether a compiled function is machine code as a whole."""
        return self.state.name == "WHOLE"

    @property
    def loops(self) -> tuple[NativeLoop, ...]:
        """The loops of all regions."""
        return tuple(loop for region in self.regions for loop in region.loops)

    @property
    def calls(self) -> tuple[NativeCall, ...]:
        """The calls of routines of BLAS and LAPACK, and the draws, in all regions."""
        return tuple(call for region in self.regions for call in region.calls)

    @property
    def text(self) -> str:
        """The loops of all regions as text."""
        return "\n".join(region.text for region in self.regions)

    @property
    def llvm(self) -> str:
        """The LLVM text of all regions."""
        return "\n".join(region.llvm for region in self.regions)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON.

        Returns
        -------
        dict
            ``format`` is the version of this layout: ``versions`` of PyTensor and this package,
            ``title``, ``linker``, ``state`` and ``is_native``, a dict or None for ``python_runs``,
            and lists of dicts for ``not_native`` and ``regions``. Sizes are in bytes, None where
            they are unknown.
        """
        return {
            "format": _FORMAT,
            "versions": versions(),
            "title": self.title,
            "linker": self.linker,
            "state": self.state.name.lower(),
            "is_native": self.is_native,
            "python_runs": None if self.python_runs is None else asdict(self.python_runs),
            "not_native": [asdict(one) for one in self.not_native],
            "regions": [region.to_dict() for region in self.regions],
        }

    @overload
    def to_svg(self, path: None = None) -> str: ...

    @overload
    def to_svg(self, path: str | os.PathLike[str]) -> None: ...

    def to_svg(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Draw the nested loops and the buffers that they access.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file to write.

        Returns
        -------
        str or None
            The picture if no path is given.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        return written(picture(self.regions), path)

    def _page(self) -> str:
        said = [self.state.value]
        if self.python_runs is not None:
            said.append(str(self.python_runs))
        parts = [f"<h1>{escape(self.title)}</h1>", paragraphs(said)]
        if self.not_native:
            rows = [(one.name, one.why) for one in self.not_native]
            parts.append(f"<section><h2>Not native</h2>{table(('node', 'why'), rows)}</section>")
        if self.regions:
            drawn = f'<div class="scroll">{picture(self.regions)}</div>'
            parts.append(f"<section><h2>Loops</h2>{drawn}</section>")
        for number, region in enumerate(self.regions):
            name = f"Region {number}" if len(self.regions) > 1 else "Machine code"
            buffers = [(b.name, b.kind, b.dtype, b.shape, size(b.n_bytes)) for b in region.buffers]
            parts += [
                f"<section><h2>{name}</h2>{paragraphs(list(_summary(region)))}",
                table(("buffer", "kind", "dtype", "shape", "size"), buffers, numbers=(4,)),
                paragraphs([str(call) for call in region.calls]),
                _folded("loops as text", region.text),
                _folded("LLVM", region.llvm),
                "</section>",
            ]
        return page(self.title, f"<main>{''.join(parts)}</main>")

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.state.value}"]
        if self.python_runs is not None:
            lines.append(str(self.python_runs))
        if self.not_native:
            lines.append("not native")
            lines += [f"  {line}" for line in bounded(self.not_native, str, "of these", _SHOWN)]
        for number, region in enumerate(self.regions):
            nodes = count(len(region.nodes), "node")
            lines.append(f"region {number}: {nodes}" if len(self.regions) > 1 else "machine code")
            lines += [f"  {line}" for line in _summary(region)]
            lines += [f"  {line}" for line in bounded(region.loops, str, "loops", _SHOWN)]
            lines += [f"  {line}" for line in bounded(region.calls, str, "calls", _SHOWN)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.title}: {self.state.value}>"


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary><pre>{escape(text)}</pre></details>"


def _summary(region: NativeRegion) -> Iterator[str]:
    if region.origin is not None:
        came = {"compiled": "compiled by LLVM"}.get(region.origin, f"taken from {region.origin}")
        steps = ", ".join(f"{name} {1e3 * took:.1f}" for name, took in region.seconds.items())
        yield f"{came}; milliseconds by step: {steps}"
    kinds: dict[str, list[int | None]] = {}
    for buffer in region.buffers:
        kinds.setdefault(buffer.kind, []).append(buffer.n_bytes)
    temporary = len(kinds.get("temporary", ()))
    more = ", and more that depends on the arguments" if region.has_late_sizes else ""
    yield f"scratch memory: {size(region.scratch_bytes)}{more}, for {count(temporary, 'array')}"
    constants = kinds.get("constant", [])
    if constants:
        total = sum(n for n in constants if n is not None)
        yield f"constants: {size(total)} in {count(len(constants), 'array')}"
    if region.native_math == "libm":
        yield "mathematical functions: those that Numba calls, one number at a time"
    n_draws = sum(one.is_draw for one in region.calls)
    n_routines = len(region.calls) - n_draws
    calls = f", {count(n_routines, 'call')} of BLAS or LAPACK" if n_routines else ""
    calls += f", {count(n_draws, 'draw')} of random numbers" if n_draws else ""
    yield f"{count(len(region.loops), 'loop')}{calls}"
