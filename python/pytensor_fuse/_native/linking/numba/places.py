"""What finds machine code in a function that Numba compiles, once it knows the table."""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

POINTER: Final = ir.IntType(8).as_pointer()

_FREED: Final = (
    "the machine code of a PyTensor function has been freed: keep the function, or its jit_fn, as "
    "long as something calls it"
)


def code_and_constants(context: Any, builder: Any, table: Any) -> tuple[Any, Any]:
    """Write what loads where the machine code and the table of its constants are, or raises.

    Parameters
    ----------
    context, builder
        Numba's context, and what writes the function.
    table
        Points to the addresses, see `addresses`.
    """
    code, constants = (builder.load(cgutils.gep_inbounds(builder, table, k)) for k in range(2))
    with builder.if_then(cgutils.is_null(builder, code), likely=False):
        context.call_conv.return_user_exc(builder, RuntimeError, (_FREED,))
    return code, constants
