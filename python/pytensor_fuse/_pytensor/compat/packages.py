"""Whose a class, a function or a method is: PyTensor's, one of ours, or somebody else's."""

from __future__ import annotations


def package_of(module: object) -> str:
    """Return the top package of the module of that name; an empty one of what has no module."""
    return str(module or "").partition(".")[0]


def is_pytensors(thing: object) -> bool:
    """Whether a class or a function says that it comes from PyTensor."""
    return package_of(getattr(thing, "__module__", None)) == "pytensor"


def does_as(function: object, stock: object) -> bool:
    """Whether a function is the one that PyTensor has there, or ours that takes its place.

    A drop-in (`_pytensor.patching.drop_ins`) wraps what it replaces.
    """
    return function is stock or getattr(function, "__wrapped__", None) is stock
