"""Producers: the kinds of nodes that can write their results straight into a join's, one a module.

A producer decides whether it can write a stream, and makes the node that does. To add one, write
its module and list it in `PRODUCERS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._joins.producers.elemwise import ElemwiseProducer
from pytensor_fuse._joins.producers.fill import FillProducer
from pytensor_fuse._joins.producers.product import ProductProducer

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

    from pytensor_fuse._joins.producers.producer import Producer

# The kinds are disjoint.
PRODUCERS: tuple[type[Producer], ...] = (ElemwiseProducer, FillProducer, ProductProducer)


def producer_of(node: Apply[Any]) -> type[Producer] | None:
    """Return the producer that can write the results of ``node``, or None."""
    return next((producer for producer in PRODUCERS if producer.produces(node)), None)
