"""Load of machine code through its table in functions that Numba compiles."""

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
    """Emit loads of the addresses of the machine code and of its constants, or an exception.

    Parameters
    ----------
    context, builder
        Numba's context, and the builder of the function.
    table
        A pointer to the table of addresses, see `addresses`.
    """
    code, constants = (builder.load(cgutils.gep_inbounds(builder, table, k)) for k in range(2))
    with builder.if_then(cgutils.is_null(builder, code), likely=False):
        context.call_conv.return_user_exc(builder, RuntimeError, (_FREED,))
    return code, constants
