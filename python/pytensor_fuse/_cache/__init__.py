"""The cache of rewritten graphs.

A *request* is the cache key: it contains everything that rewriting depends on, namely the graph,
the roles of its inputs and outputs, and the environment (`key`). An *entry* is the rewritten graph,
cached in memory and on disk (`store`); `data` substitutes other data for its large constants.
`lookup` controls a compilation: it makes the request, uses the entry or PyTensor's rewriting, and
passes the graph on to linking. `link` shares Numba's code for a graph, and the C code of its nodes,
among all functions of the graph, those of other processes included.

Wrong reuse is the most serious failure: if anything in a key is unknown, the graph is not cached,
and the reason is recorded (`store.counts`). ``PYTENSOR_FUSE_CACHE=verify`` rewrites every graph,
and compares.
"""
