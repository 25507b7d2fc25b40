"""Warnings where no caller could handle an error: in imports, compiles and partial switches."""

from __future__ import annotations

import warnings


def warn(text: str) -> None:
    """Issue a warning; if the program turns warnings into errors, print it instead.

    Neither an import of PyTensor nor a compile may fail because of this package.
    """
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    except RuntimeWarning as error:
        warnings.showwarning(error, RuntimeWarning, __file__, 0)
