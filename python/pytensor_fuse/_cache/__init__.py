"""The cache of rewritten graphs.

A *request* is the cache key: it contains everything that rewriting depends on, namely the graph,
the roles of its inputs and outputs, and the environment (`request`, `surroundings`). An *entry* is
the rewritten graph (`rewritten`), cached in memory (`memory`) and on disk (`disk`). `lookup`
controls a compilation: it makes the request, uses the entry or PyTensor's rewriting, and passes the
graph on to linking. `linked` shares Numba's code for a graph among all functions of the graph, and
`loaded` the C code of its nodes. Other processes find both on disk (`stored_functions`,
`stored_code`).

Wrong reuse is the most serious failure: if anything in a key is unknown, the graph is not cached,
and the reason is recorded (`counts`). ``PYTENSOR_FUSE_CACHE=verify`` rewrites every graph, and
compares.
"""
