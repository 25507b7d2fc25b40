"""What can write its result straight into a join's: each producer is a module.

A producer says whether it can write a stream, and makes the node that does. To add one, write its
module and list it in `PRODUCERS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor_fuse._joins.producers.elemwise import ElemwiseProducer
from pytensor_fuse._joins.producers.fill import FillProducer
from pytensor_fuse._joins.producers.product import ProductProducer

if TYPE_CHECKING:
    from pytensor.graph.basic import Apply

    from pytensor_fuse._joins.producers.producer import Producer

# No node is of two kinds.
PRODUCERS: tuple[type[Producer], ...] = (ElemwiseProducer, FillProducer, ProductProducer)


def producer_of(node: Apply[Any]) -> type[Producer] | None:
    """Return what can write the results of ``node``, if anything."""
    return next((producer for producer in PRODUCERS if producer.produces(node)), None)
