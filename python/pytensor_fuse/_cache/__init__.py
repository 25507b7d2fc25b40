"""Rewritten graphs, kept for the next time that an equal graph is compiled in the same way.

A *request* says all that rewriting depends on, and so is the key: the graph, the roles of its
inputs and outputs, and the surroundings (`request`, `surroundings`). An *entry* is what came of it
(`rewritten`), kept in memory (`memory`) and on disk (`disk`). `lookup` is the way of a compilation:
request, entry or PyTensor's rewriting, and the graph that is linked; `linked` shares what Numba
made of a graph among all functions that have it, and `loaded` the C code of its nodes. Other
processes find these again (`stored_functions`, `stored_code`).

Wrong reuse is the failure that matters: what cannot be told is not kept, and why can be asked
(`counts`). ``PYTENSOR_FUSE_CACHE=verify`` does all twice, and compares.
"""
