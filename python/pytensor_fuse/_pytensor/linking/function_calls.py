"""The work of a PyTensor function before and after it runs its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytensor.compile.executor import Function
    from pytensor.graph.type import Type


def n_plain_arguments(function: Function) -> int:
    """Return how many arguments a function takes.

    Parameters
    ----------
    function
        The function.

    Returns
    -------
    int
        -1 if an argument needs more checks than that of its type.
    """
    if function._potential_aliased_input_groups:
        return -1
    containers: list[Any] = function.input_storage
    n_arguments = sum(1 for one in containers if one.required and not one.implicit)
    arguments = containers[:n_arguments]
    if any(one.implicit or not one.required or _checks_more(one.type) for one in arguments):
        return -1
    return n_arguments


def _checks_more(kind: Type[Any]) -> bool:
    """Whether PyTensor checks the elements of an argument of a type."""
    return bool(getattr(kind, "filter_checks_isfinite", False))


def updated(function: Any, outputs: list[Any]) -> list[Any]:
    """Store the new values of shared variables, and return the other outputs."""
    for place, container in function._update_input_storage:
        container.storage[0] = outputs[place]
    return outputs[: function._n_returned_outputs]
