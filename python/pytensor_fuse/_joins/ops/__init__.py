"""Ops by which the kernels of a join write into its result.

A join of computed streams copies each of them once. Here, `WriteSplit` allocates the array of the
result and returns, for each stream that a kernel can write, the part where the stream belongs; the
kernel works in place on that part; `WriteJoin` returns the whole. The whole is not a variable of
the graph before it is complete, so the declarations of the ops describe all aliasing:

- the parts are fresh and disjoint, each the root of its own memory for PyTensor's destroy handler;
- `WriteSplit` also passes `WriteJoin` a view of no elements, which keeps the memory alive and
  aliases none of it;
- `WriteJoin` destroys that view and every written stream, with one output for each, since its
  result takes over their memory. So all readers of a stream come before the join, whatever passes
  run later, and no part outlives the memory.

`WriteJoin` computes the concatenation of its arguments, wherever they lie in memory. At run time,
it checks whether each lies at its place in the memory of the view; no other array can lie there
while that memory is kept alive. It copies those that do not: streams that no kernel could write,
and streams that a pass or a debugger has moved. (DebugMode copies every input of every node.) So no
pass can make the result wrong, only slower.

An op that returned the whole in addition to its parts would need no such check, but two used
variables that alias without a view map are an error, which DebugMode reports rightly. Declared as
views, the parts would have one root with several destroyers, which the destroy handler refuses.
Without the outputs for the streams, a later pass could let another node read a stream after the
join.

Every process with such an op, even an unpickled one, has imported this package. So Numba's
implementations are registered here, once Numba's dispatch is imported, if ever.
"""

from contextlib import suppress
from importlib import import_module

from pytensor_fuse._imports import after_import


def _register_numba() -> None:
    # The import of PyTensor's dispatch must not fail because of this package. The pass itself
    # notices a failure, and then makes no such ops for Numba.
    with suppress(Exception):
        import_module("pytensor_fuse._joins.ops.numba")


after_import("pytensor.link.numba.dispatch", _register_numba)
