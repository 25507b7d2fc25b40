"""Questions: predicates of rewriters about the data of a constant, with short answers.

A question is a named function. It is identified by its code, which reads the data and passes on
only the answer.
"""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pytensor_fuse._identity.contents import content, data_content
from pytensor_fuse._pytensor.rewriting.constant_reads import HARMLESS_READERS, codes_of
from pytensor_fuse._pytensor.rewriting.constant_reads import questions as questions_of_pytensor

if TYPE_CHECKING:
    from types import CodeType

    from pytensor.tensor.variable import TensorConstant

# Takes the place of an answer that is not short: then the data themselves must be equal.
LONG: Final = "long"

# The code of the function that compares constants bit for bit.
_IDENTIFYING: Final = frozenset(codes_of(content))


class Readers(NamedTuple):
    """Codes of functions that read the data of constants, by their use of the data.

    Attributes
    ----------
    identifying
        Functions that compare constants.
    harmless
        Functions that pass nothing on.
    asking
        Functions with short answers, and the names of the questions.
    """

    identifying: frozenset[CodeType]
    harmless: frozenset[CodeType]
    asking: dict[CodeType, tuple[str, ...]]


def known_readers() -> Readers:
    """Return the readers that are known now: rules may be registered later."""
    asking: dict[CodeType, tuple[str, ...]] = {}
    for name, (function, _) in _questions().items():
        for code in codes_of(function):
            asking[code] = (*asking.get(code, ()), name)
    return Readers(_IDENTIFYING, HARMLESS_READERS, asking)


def answer(name: str, constant: TensorConstant[Any]) -> Any:
    """Return the answer to a question about a constant, which can be compared and pickled.

    It is ``LONG`` if it is not short, or if the question no longer exists.
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


# The questions of the rules of linear algebra: the module and the name of a function, its options.
_OF_RULES: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "whether it is zero": ("matrices", "is_zero", {}),
    "whether it is a lower triangle of ones": ("triangles.masks", "is_triangle", {"lower": True}),
    "whether it is an upper triangle of ones": ("triangles.masks", "is_triangle", {"lower": False}),
    "in which triangles it is": ("triangles.triangular", "triangle_of_constant", {}),
    "for its diagonal, if it has no more": ("diagonal", "diagonal_of_constant", {}),
}


def _questions() -> dict[str, tuple[Any, dict[str, Any]]]:
    found = questions_of_pytensor()
    for question, (module, name, options) in _OF_RULES.items():
        # Loaded by the first rule that runs.
        home = sys.modules.get(f"pytensor_fuse._linalg.structure.{module}")
        if home is not None:
            found[question] = getattr(home, name), options
    return found
