"""Accelerators: faster drop-ins for functions of PyTensor, with the same results and effects.

Each module is one accelerator, whose function ``patch`` constructs its patch. A drop-in does the
same as PyTensor's function in the releases whose fingerprints `pytensor_fuse._pytensor.facts`
lists: the same values in the same order, the same events, the same errors.
"""
