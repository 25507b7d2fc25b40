"""Numba's dispatch for graphs with regions; imported together with Numba's dispatch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.core import cgutils
from pytensor.graph.fg import AbstractFunctionGraph, FunctionGraph
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    numba_njit,
    register_funcify_and_cache_key,
)

from pytensor_fuse._native.linking.addresses import Address
from pytensor_fuse._native.linking.lifetimes import keep_with
from pytensor_fuse._native.linking.numba.bodies import body_of
from pytensor_fuse._native.linking.numba.dispatchers import interface_of
from pytensor_fuse._native.linking.numba.places import POINTER, code_and_constants
from pytensor_fuse._native.linking.regions import NativeRegion, parts_of

if TYPE_CHECKING:
    from pytensor_fuse._native.lowering.types import Node

# Part of the keys of Numba's cache on disk; changes with the code below.
_VERSION = 2

_stock_graph: Any = numba_funcify_and_cache_key.dispatch(AbstractFunctionGraph)


@register_funcify_and_cache_key(FunctionGraph)  # type: ignore[untyped-decorator]
def _graph(fgraph: FunctionGraph, node: Node | None = None, **kwargs: Any) -> Any:
    parts = parts_of(fgraph)
    if parts is None:
        return _stock_graph(fgraph, node=node, **kwargs)
    # These refer to the variables of the graph instead of its copy.
    for name in ("input_storage", "output_storage", "storage_map"):
        kwargs.pop(name, None)
    return _stock_graph(parts.fgraph, node=node, **{**kwargs, "order": parts.order})


@register_funcify_and_cache_key(NativeRegion)  # type: ignore[untyped-decorator]
def _region(op: NativeRegion, node: Node | None = None, **kwargs: Any) -> Any:
    # Numba keeps every closure that emits a call: it must not hold the op.
    digest = op.digest
    interface = interface_of(
        op.compiled, op.inner_inputs, op.inner_outputs, is_single=len(op.inner_outputs) == 1
    )

    def locate(context: Any, builder: Any) -> tuple[Any, Any]:
        return _located(context, builder, digest)

    # Unsafe casts lose nothing: values have PyTensor's dtype, though Numba may infer a wider one.
    made = numba_njit(body_of(interface, locate, casting="unsafe"))
    keep_with(made, [op.place])
    return made, f"{digest}_{_VERSION}"


def _located(context: Any, builder: Any, digest: str) -> tuple[Any, Any]:
    """Emit the lookup of machine code by digest: once per process, under the interpreter lock."""
    kind = POINTER.as_pointer()
    slot = cgutils.add_global_variable(builder.module, kind, f"native.place.{digest}")
    slot.linkage, slot.initializer, slot.align = "private", kind(None), 8
    found = builder.load_atomic(slot, "acquire", 8)
    place = cgutils.alloca_once_value(builder, found)
    with builder.if_then(cgutils.is_null(builder, found), likely=False):
        pyapi = context.get_python_api(builder)
        lock = pyapi.gil_ensure()
        function = pyapi.unserialize(pyapi.serialize_object(Address(digest)))
        with builder.if_then(cgutils.is_not_null(builder, function)):
            number = pyapi.call_function_objargs(function, ())
            with builder.if_then(cgutils.is_not_null(builder, number)):
                builder.store(builder.bitcast(pyapi.long_as_voidptr(number), kind), place)
                pyapi.decref(number)
            pyapi.decref(function)
        pyapi.err_clear()
        pyapi.gil_release(lock)
        address = builder.load(place)
        with builder.if_then(cgutils.is_null(builder, address), likely=False):
            text = "the machine code of a function that Numba keeps on disk is not in this process"
            context.call_conv.return_user_exc(builder, RuntimeError, (text,))
        builder.store_atomic(address, slot, "release", 8)
    return code_and_constants(context, builder, builder.load(place))
