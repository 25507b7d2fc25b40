"""Ops by which the kernels of a join write into its result.

A join of computed streams copies each of them once. Here `WriteSplit` makes the array of the result
and hands out, for each stream that a kernel can write, the part where the stream belongs; the
kernel works in place on that part; `WriteJoin` gives back the whole. The whole is no variable of
the graph before it is complete, so what the ops declare is all there is to know:

- the parts are fresh and disjoint, each the root of its own memory for PyTensor's destroy handler;
- what passes from the one op to the other beside them is a view of no elements, which keeps the
  memory and shares none of it;
- `WriteJoin` destroys that and every written stream, by one output for each, since its result takes
  over their memory. So all that reads a stream comes before the join, whatever passes run later,
  and no part outlives the memory.

`WriteJoin` computes the concatenation of the values that it is given, wherever these are. When it
runs it finds out whether each is where it belongs in the memory that it was handed, which nothing
else can be while that is kept, and copies what is not: a stream that nobody could write, or one
that a pass or a debugger has moved. (DebugMode copies every input of every node.) So no pass can
make the result wrong, only slower.

An op that handed out the whole beside its parts would need no such test, but variables that share
memory and are both used are a wrong view map, as DebugMode says rightly. Declared as views, the
parts would be one root with several destroyers, which the destroy handler refuses. Without the
outputs for the streams, a later pass could let another node read one after the join.

Wherever there is such an op, also an unpickled one, this package has been imported: so this is
where Numba's implementations are registered, once Numba's dispatch is there, which may be never.
"""

from contextlib import suppress
from importlib import import_module

from pytensor_fuse._imports import after_import


def _register_numba() -> None:
    # Importing PyTensor's dispatch must not fail because of us. The pass finds out for itself, and
    # makes no such ops for Numba then.
    with suppress(Exception):
        import_module("pytensor_fuse._joins.ops.numba")


after_import("pytensor.link.numba.dispatch", _register_numba)
