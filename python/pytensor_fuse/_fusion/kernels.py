"""Cache of kernels: one Composite per structure, shared by all graphs of the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from pytensor_fuse._forks import hold_in_forks

if TYPE_CHECKING:
    from pytensor.tensor.elemwise import Elemwise

    from pytensor_fuse._core import Term

# Kernels are cached for later graphs; the least recently used are evicted when the total of scalar
# nodes exceeds this limit, some 100 MB.
_MAX_SCALAR_NODES = 100_000


class KernelCache:
    """Elemwise ops of fused kernels by their terms in the hash-cons table.

    The least recently used are evicted, together with their terms.
    """

    def __init__(self, max_scalar_nodes: int = _MAX_SCALAR_NODES) -> None:
        self._max_scalar_nodes = max_scalar_nodes
        self._n_scalar_nodes = 0
        self._ops: OrderedDict[Term, Elemwise] = OrderedDict()
        self.lock = threading.Lock()

    def get(self, structure: Term) -> Elemwise | None:
        """Return the op of the kernel with this structure, or None if it is not cached."""
        with self.lock:
            op = self._ops.get(structure)
            if op is not None:
                self._ops.move_to_end(structure)
            return op

    def add(self, structure: Term, op: Elemwise) -> Elemwise:
        """Cache ``op``, unless another thread was faster; return the op to use."""
        with self.lock:
            known = self._ops.setdefault(structure, op)
            if known is op:
                self._n_scalar_nodes += len(op.scalar_op.fgraph.apply_nodes)
            while self._n_scalar_nodes > self._max_scalar_nodes and len(self._ops) > 1:
                _, oldest = self._ops.popitem(last=False)
                self._n_scalar_nodes -= len(oldest.scalar_op.fgraph.apply_nodes)
            return known


kernel_cache = KernelCache()

hold_in_forks(kernel_cache.lock)
