"""Asking what is known of the variables of a graph that changes in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.assumptions import core
from pytensor.assumptions.core import AssumptionFeature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytensor.graph.fg import FunctionGraph

KEYS = list(core.ALL_KEYS)


def asked(
    fgraph: FunctionGraph,
    variables: list[Any],
    names: dict[Any, int],
    queries: Iterable[tuple[int, int, int]],
    method: str,
    *,
    goes_on: bool = True,
) -> list[Any]:
    """Return the answers of a feature's ``method``, and what it has noted after each query.

    What it has noted is in its order. A query is of a variable and a key, or has a variable
    replaced by an input. ``goes_on`` says whether another query follows after a conflict.
    """
    feature = AssumptionFeature()
    fgraph.attach_feature(feature)
    found: list[Any] = []
    for a, b, kind in queries:
        var = variables[a % len(variables)]
        other = fgraph.inputs[b % 2]
        if kind % 4 == 0 and var in fgraph.variables and var.type.is_super(other.type):
            fgraph.replace(var, other)
        else:
            try:
                found.append(getattr(feature, method)(var, KEYS[b % len(KEYS)]))
            except core.ConflictingAssumptionsError as error:
                found.append(str(error).partition(" on ")[0])
                if not goes_on:
                    break
        noted = [
            ((names.get(v, str(v)), key.name), state) for (v, key), state in feature.cache.items()
        ]
        keys = {
            names.get(v, str(v)): {k.name for k in keys} for v, keys in feature._var_to_keys.items()
        }
        found.append((noted, keys, len(feature._stale_vars)))
    return found
