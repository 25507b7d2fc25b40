"""Which package a class, function or method belongs to: PyTensor, this one, or another."""

from __future__ import annotations


def package_of(module: object) -> str:
    """Return the top package of a module name; an empty one for anything else."""
    return str(module or "").partition(".")[0]


def is_pytensors(thing: object) -> bool:
    """Whether a class or a function says that it comes from PyTensor."""
    return package_of(getattr(thing, "__module__", None)) == "pytensor"


def does_as(function: object, stock: object) -> bool:
    """Whether a function is PyTensor's own at that place, or our drop-in for it.

    A drop-in (`_pytensor.patching.drop_ins`) wraps the function that it replaces.
    """
    return function is stock or getattr(function, "__wrapped__", None) is stock
