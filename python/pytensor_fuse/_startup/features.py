"""What can be switched, by name, and what the environment says of it when the package is imported.

That is features, and a word: which mathematical functions machine code calls. ``"vector"`` stands
for our own functions of vectors, ``"libm"`` for those of the C library and of SciPy, lane by lane,
as Numba calls them.

Nothing here imports PyTensor: worker processes are told of it before they do.
"""

from __future__ import annotations

import os
import warnings
from typing import Final

VARIABLE: Final = "PYTENSOR_FUSE"
MATH_VARIABLE: Final = "PYTENSOR_FUSE_NATIVE_MATH"

# Each with what it does, in the order in which they are switched on.
FEATURES: Final[dict[str, str]] = {
    "exact_constants": "constants are the same only if every bit is",
    "merging": "equal apply nodes are merged with a hash-cons table",
    "fusion": "Elemwise nodes are fused by a planner in Rust",
    "joins": "kernels write straight into the result of a join",
    "linalg": "work on matrices that grows with the cube of their size is saved",
    "cache": "what was rewritten once is kept for the next time",
    "other_data": "what was rewritten once is used for other data, too",
    "native": "graphs in Numba mode become machine code without Numba",
    "single_runs": "what runs once and is not machine code runs in Python, without Numba",
    "nutpie": "nutpie calls machine code without Numba",
    "accelerators": "parts of PyTensor that compiles spend their time in do the same in less",
}

# The parts of the feature "accelerators", each of which can be switched alone.
ACCELERATORS: Final[dict[str, str]] = {
    "instance_checks": "isinstance on ops, types, nodes and variables without a table look-up",
    "graph_edits": "a replacement in a graph takes the time of what it changes",
    "validation": "a graph is asked once who overwrites what",
    "cycles": "cycles are looked for in what has changed",
    "order": "topological order without a generator for each node",
    "rewriter_loops": "passes try node rewriters with nothing between",
    "queries": "the passes of a mode are made once, and copied for each graph",
    "base_orders": "the classes that an op derives from are put in order once",
    "assumptions": "the rules for a class of ops are looked up once",
    "blank_assumptions": "of what nothing is known of, nothing is asked",
    "no_gemm": "sums are not searched for products of matrices where there are none",
    "tags": "tags of nodes are read and copied without Python code",
    "rewriter_names": "a rewriter that has a name is not described to be named",
    "elemwise_nodes": "what an Elemwise gives for types of inputs is remembered",
    "clones": "nodes are copied in one call each",
    "tensor_types": "types of tensors are made without parsing a dtype",
    "sum_factors": "sums and products are not simplified in vain",
    "declines": "rewriters are not tried where the inputs of a node show that it is in vain",
    "canonizers": "what is in its canonical form is seen to be",
    "underlying_constants": "what cannot be a constant is not searched for one",
    "increments": "increments of parts of an array are strung together in one edit",
    "whole_kernels": "kernels all of which is read are not searched for what is not",
    "shape_changes": "who asks for a shape is found without a call for each reader",
    "compiler_errors": "linking does not import what only compiling in C needs",
    "virtual_machines": "functions that run without C do not have its machine compiled",
    "inner_functions": "inner functions of what runs without C are not compiled in C",
    "special_functions": "constants are folded without importing scipy.special",
    "sparse_checks": "data that is not sparse is told from sparse without importing scipy.sparse",
    "garbage": "full garbage collections are rare while a function is made",
}

# The words for mathematical functions.
VECTOR: Final = "vector"
LIBM: Final = "libm"
MATH_WORDS: Final = (VECTOR, LIBM)

# Those that are switched on now, in the order above; for those who only ask.
_on_now: tuple[str, ...] = ()

ON: Final = ("1", "true", "on", "yes")
OFF: Final = ("0", "false", "off", "no")


def wanted_by_environment() -> frozenset[str]:
    """Return the features that ``PYTENSOR_FUSE`` leaves on: all where it is unset or empty.

    Warns
    -----
    RuntimeWarning
        If it has a value that means neither on nor off nor features; all are then on. If it names
        a feature that there is not; the others that it names are then on.
    """
    value = os.environ.get(VARIABLE, "")
    words = [word for word in value.lower().replace(",", " ").split() if word]
    if not words or (len(words) == 1 and words[0] in ON):
        return frozenset(FEATURES)
    if len(words) == 1 and words[0] in OFF:
        return frozenset()
    known = frozenset(word for word in words if word in FEATURES)
    unknown = [word for word in words if word not in FEATURES]
    if not known:
        warnings.warn(
            f"{VARIABLE}={value!r} is neither on ({', '.join(ON)}) nor off ({', '.join(OFF)}) "
            f"nor names features ({', '.join(FEATURES)}); all features of pytensor_fuse are on",
            RuntimeWarning,
            stacklevel=2,
        )
        return frozenset(FEATURES)
    if unknown:
        warnings.warn(
            f"{VARIABLE}={value!r} names no feature of pytensor_fuse by {', '.join(unknown)}; "
            f"there are {', '.join(FEATURES)}",
            RuntimeWarning,
            stacklevel=2,
        )
    return known


def note_on(names: tuple[str, ...]) -> None:
    """Note which features have been switched on."""
    global _on_now
    _on_now = names


def on_now() -> tuple[str, ...]:
    """Return the features that are switched on."""
    return _on_now


def _math_by_environment() -> str:
    value = os.environ.get(MATH_VARIABLE, "").strip().lower()
    if not value or value in MATH_WORDS:
        return value or VECTOR
    warnings.warn(
        f"{MATH_VARIABLE}={value!r} is none of {', '.join(MATH_WORDS)}; it is taken for {VECTOR}",
        RuntimeWarning,
        stacklevel=2,
    )
    return VECTOR


_math_now: str = _math_by_environment()


def checked_math(word: object) -> str:
    """Return a word that somebody gives, or say which there are.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    if isinstance(word, str) and word in MATH_WORDS:
        return word
    raise ValueError(f"native_math must be one of {', '.join(MATH_WORDS)}, not {word!r}")


def note_native_math(word: str) -> None:
    """Note which functions graphs call that are compiled from now on."""
    global _math_now
    _math_now = word


def native_math_now() -> str:
    """Return which functions graphs call that are compiled now."""
    return _math_now
