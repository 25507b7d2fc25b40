"""Planning of joins: which of their streams kernels should write straight into the results.

A stream is *written* if a kernel can work in place on its part of the result; otherwise it is
*copied* there, as Join does. Nothing here changes a graph.
"""
