"""The interface of reports, and how they show themselves in notebooks and browsers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, overload, runtime_checkable

from pytensor_fuse._reports.files import written
from pytensor_fuse._reports.page import escape

if TYPE_CHECKING:
    import os


@runtime_checkable
class Report(Protocol):
    """The interface of all that `explain` returns.

    A report prints as text and shows itself in a notebook; iterating over it yields its entries.
    """

    def __str__(self) -> str: ...

    def __iter__(self) -> Any: ...

    def _repr_html_(self) -> str: ...

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON.

        Returns
        -------
        dict
            ``format`` is the version of the layout.
        """
        ...


class TextReport:
    """A report that notebooks show as its text."""

    def _repr_html_(self) -> str:
        """Return the report for a notebook."""
        return f"<pre>{escape(self)}</pre>"


class PageReport(TextReport, ABC):
    """A report that also renders itself as a page for a browser."""

    @overload
    def to_html(self, path: None = None) -> str: ...

    @overload
    def to_html(self, path: str | os.PathLike[str]) -> None: ...

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Render the report as a page for a browser.

        Parameters
        ----------
        path : str or os.PathLike, optional
            The file to write. It is self-contained and loads nothing from a network.

        Returns
        -------
        str or None
            The page if no path is given.

        Raises
        ------
        OSError
            If the file cannot be written. An existing file is then left unchanged.
        """
        return written(self._page(), path)

    @abstractmethod
    def _page(self) -> str:
        """Return the page."""
