"""Graphs of the ops that write joins, without the pass that makes them."""

import pytensor
from pytensor.scalar.basic import Composite, float64, get_scalar_type

from pytensor_fuse._joins.ops.elemwise import WriteElemwise
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import JoinLayout, dim_length
from pytensor_fuse._joins.ops.split import WriteSplit

BACKENDS = ["NUMBA", "CVM", "py"]


def mode(name):
    """Return a mode that changes nothing in the graph."""
    linker = {"NUMBA": "numba", "CVM": "cvm", "py": "py"}[name]
    return pytensor.compile.mode.Mode(linker=linker, optimizer=None)


def doubled(stream, part):
    """Write ``2 * stream`` into ``part``."""
    x, target = float64(), get_scalar_type(part.type.dtype)()
    return WriteElemwise(Composite([x, target], [x * 2.0]), {0: 1})(stream, part)


def split_and_join(streams, written, axis=0, dtype="float64"):
    ndim = streams[0].type.ndim
    shapes = tuple(
        tuple(dim_length(i, d) for d in range(s.type.ndim)) for i, s in enumerate(streams)
    )
    split = WriteSplit(JoinLayout(axis, ndim, dtype, shapes, written))
    memory, *parts = split.make_node(*streams).outputs
    parts = iter(parts)
    done = [
        doubled(s, next(parts)) if is_written else s
        for s, is_written in zip(streams, written, strict=True)
    ]
    join = WriteJoin(axis, dtype, (None,) * ndim, written)
    return join.make_node(memory, *done).outputs[0]


def compile_(inputs, outputs, name):
    return pytensor.function(inputs, outputs, mode=mode(name), accept_inplace=True)
