"""Which joins are worth writing straight into their results, and how: the decision alone.

A stream is *written* if a kernel can work in place on the part of the result where it belongs;
otherwise it is *copied* there, as Join would. Nothing here changes a graph.
"""
