"""Warnings where no caller could handle an error: in imports, in compiles, halfway in a switch."""

from __future__ import annotations

import warnings


def warn(text: str) -> None:
    """Warn, and where the program has warnings be errors, print the warning instead of raising it.

    Importing PyTensor must not fail because of this package, nor must a compile.
    """
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    except RuntimeWarning as error:
        warnings.showwarning(error, RuntimeWarning, __file__, 0)
