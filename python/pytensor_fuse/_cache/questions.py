"""What rewriters ask of the data of a constant, where the answer is short: functions, by names.

A function is known by its code, which reads the data and hands on nothing but its answer.
"""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pytensor_fuse._identity.contents import content, data_content
from pytensor_fuse._pytensor.constant_reads import HARMLESS_READERS, codes_of
from pytensor_fuse._pytensor.constant_reads import questions as questions_of_pytensor

if TYPE_CHECKING:
    from types import CodeType

    from pytensor.tensor.variable import TensorConstant

# In place of an answer that is not short: then the data themselves have to be the same.
LONG: Final = "long"

# Of the function by which constants are compared, bit for bit.
_IDENTIFYING: Final = frozenset(codes_of(content))


class Readers(NamedTuple):
    """Codes of functions that read the data of constants, by what they do with them.

    Attributes
    ----------
    identifying
        Those that find out which constants are the same.
    harmless
        Those that hand on nothing.
    asking
        Those whose answers are short, with the names of the questions.
    """

    identifying: frozenset[CodeType]
    harmless: frozenset[CodeType]
    asking: dict[CodeType, tuple[str, ...]]


def known_readers() -> Readers:
    """Return those that are known now: rules may be registered."""
    asking: dict[CodeType, tuple[str, ...]] = {}
    for name, (function, _) in _questions().items():
        for code in codes_of(function):
            asking[code] = (*asking.get(code, ()), name)
    return Readers(_IDENTIFYING, HARMLESS_READERS, asking)


def answer(name: str, constant: TensorConstant[Any]) -> Any:
    """Return the answer to a question about a constant: it can be compared, and pickled.

    ``LONG`` if it is not short, or if nobody answers that question any more.
    """
    found = _questions().get(name)
    if found is None:
        return LONG
    function, options = found
    given = function(constant, **options)
    if given is None or isinstance(given, bool | Enum):
        return given
    if isinstance(given, np.ndarray | np.generic) and given.size == 1:
        told = data_content(np.asarray(given))
        return LONG if told is None else told
    return LONG


def _questions() -> dict[str, tuple[Any, dict[str, Any]]]:
    found = questions_of_pytensor()
    # Loaded by the first rule that runs.
    matrices: Any = sys.modules.get("pytensor_fuse._linalg.matrices")
    if matrices is not None:
        found["whether it is zero"] = matrices.is_zero, {}
    masks: Any = sys.modules.get("pytensor_fuse._linalg.triangle_masks")
    if masks is not None:
        found["whether it is a lower triangle of ones"] = masks.is_triangle, {"lower": True}
        found["whether it is an upper triangle of ones"] = masks.is_triangle, {"lower": False}
    triangular: Any = sys.modules.get("pytensor_fuse._linalg.triangular")
    if triangular is not None:
        found["in which triangles it is"] = triangular.triangle_of_constant, {}
    diagonals: Any = sys.modules.get("pytensor_fuse._linalg.diagonal_matrices")
    if diagonals is not None:
        found["for its diagonal, if it has no more"] = diagonals.diagonal_of_constant, {}
    return found
