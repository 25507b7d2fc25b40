"""Numba's linker with machine code: it imports Numba only for graphs without machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.link.basic import JITLinker
from pytensor.link.numba.linker import NumbaLinker

from pytensor_fuse._cache.key.without_numba import links_without_numba
from pytensor_fuse._cache.store.meanwhile import catch_up
from pytensor_fuse._errors import NativeLinkError
from pytensor_fuse._native.setting import Use, use
from pytensor_fuse._pytensor.linking.known_runs import known_runs
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.fg import FunctionGraph

_stock_create: Any = JITLinker.create_jitable_thunk


class NativeLinker(NumbaLinker):
    """A linker that accepts only graphs that are machine code as a whole.

    It differs from PyTensor's Numba linker in that it raises where a node has no rule.
    """


def native_thunks(load: Callable[[], Any]) -> ReplacedAttributes:
    """Return the patch that makes Numba's linker use machine code.

    Parameters
    ----------
    load
        A function that imports `pytensor_fuse._native.linking.graphs`, or returns None if that
        fails. It delays the import of the rules and LLVM until the first compilation.
    """

    def create(
        self: JITLinker,
        compute_map: Any,
        order: Any,
        input_storage: Any,
        output_storage: Any,
        storage_map: Any,
    ) -> Any:
        is_strict = isinstance(self, NativeLinker)
        if is_strict or (type(self) is NumbaLinker and use() is not Use.OFF):
            graphs, fgraph = load(), self.fgraph
            assert fgraph is not None, "the linker has accepted a graph"
            if graphs is None and is_strict:
                raise NativeLinkError("the feature native does not work in this PyTensor")
            order = list(order)

            def by_numba() -> Any:
                stock = _stock_create(
                    self, compute_map, order, input_storage, output_storage, storage_map
                )
                if graphs is not None:
                    graphs.keep_parts(fgraph, stock[2])
                return stock

            def thunk_by_numba() -> Any:
                [thunk], _, jit_fn = by_numba()
                return thunk, jit_fn

            thunk = None
            if graphs is not None and is_strict:
                thunk = graphs.strictly_linked(fgraph, order, storage_map)
            elif graphs is not None:
                later = None if use() is Use.VERIFY else thunk_by_numba
                thunk = graphs.linked_if_possible(fgraph, order, storage_map, later)
            # The cache catches up while LLVM works, which this graph may not have needed.
            catch_up()
            made = None
            if thunk is not None:
                output_nodes = [one.owner for one in fgraph.outputs if one.owner is not None]
                made = [thunk], output_nodes[:1], None

            if use() is Use.VERIFY:
                from pytensor_fuse._native.linking.verification import verified

                return verified(fgraph, order, made, by_numba)
            return by_numba() if made is None else made
        return _stock_create(self, compute_map, order, input_storage, output_storage, storage_map)

    def is_native(fgraph: FunctionGraph) -> bool:
        if use() is not Use.ON or (graphs := load()) is None:
            return False
        # A prediction: a function that is known to run rarely does not need Numba either.
        return known_runs() is not None or graphs.has_all_rules(fgraph)

    links_without_numba(is_native)
    return ReplacedAttributes([JITLinker], "create_jitable_thunk", create)
