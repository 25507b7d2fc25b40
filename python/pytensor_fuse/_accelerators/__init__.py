"""Accelerators: what PyTensor does, with the same result and the same effects, in less time.

Each module here is one of them, and has a function ``patch`` that makes its patch. What a drop-in
does is what PyTensor's function does in the releases that `pytensor_fuse._pytensor.facts` knows it
of: the same values in the same order, the same events, the same errors.
"""
