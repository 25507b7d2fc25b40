"""LAPACK and BLAS in Numba, called as PyTensor calls them: by their addresses in SciPy.

The address is looked up when a function first runs, not when it is compiled, so that Numba can
store the compiled code. Import this module only after Numba's dispatch. The import fails if
functions of PyTensor are not the known ones; otherwise the error would appear when Numba compiles
calls of them.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import get_cython_function_address
from numba.np.linalg import ensure_lapack, get_blas_kind
from pytensor.link.numba import cache
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.dispatch.linalg import _LAPACK

from pytensor_fuse._pytensor.compat.checks import mismatches
from pytensor_fuse._pytensor.compat.requirements import NUMBA_LAPACK

if wrong := mismatches(NUMBA_LAPACK):
    raise ImportError(", ".join(wrong))

# Numba passes its typing context to intrinsics, while their callers omit it. Stored code finds
# `_address_of` here by this name.
_cached_function: Any = cache._call_cached_ptr
_pointer_to: Any = _LAPACK.val_to_int_ptr
_value_at: Any = _LAPACK.int_ptr_to_val
_address_of: Any = _LAPACK.get_lapack_ptr

_INT = types.CPointer(types.int32)


def potri(dtype: Any) -> Any:
    """Return the compiled ``potri(uplo, a)`` for matrices of a Numba dtype.

    It works in place on a column-major array of at least one element; ``uplo`` is the character
    code of the letter. It returns LAPACK's ``info``: 0, or the position of a zero on the diagonal.
    """
    return _on_triangle("potri", dtype)


def potrf(dtype: Any) -> Any:
    """Return the compiled ``potrf(uplo, a)`` for matrices of a Numba dtype, as `potri` is called.

    It returns LAPACK's ``info``: 0, or the order of the leading minor that is not positive
    definite.
    """
    return _on_triangle("potrf", dtype)


def _on_triangle(function_name: str, dtype: Any) -> Any:
    real = types.CPointer(dtype)
    address, kind, name = _function(function_name, dtype, _INT, _INT, real, _INT, _INT)

    @numba_njit
    def call(uplo: Any, a: Any) -> Any:
        function = _cached_function(address, kind, name)
        n = _pointer_to(np.int32(a.shape[0]))
        info = _pointer_to(0)
        function(_pointer_to(uplo), n, a.ctypes, n, info)
        return _value_at(info)

    return call


def getri(dtype: Any) -> Any:
    """Return the compiled ``getri(a, pivots)`` for matrices of a Numba dtype.

    It works in place on a column-major array of at least one element; the pivots are 32-bit
    integers from 1. It returns LAPACK's ``info``: 0, or the position of a zero on the diagonal.
    """
    real = types.CPointer(dtype)
    address, kind, name = _function("getri", dtype, _INT, real, _INT, _INT, real, _INT, _INT)

    @numba_njit
    def call(a: Any, pivots: Any) -> Any:
        function = _cached_function(address, kind, name)
        n = _pointer_to(np.int32(a.shape[0]))
        info = _pointer_to(0)
        # A length of -1 queries the size of the workspace.
        asked = np.empty(1, a.dtype)
        ask = _pointer_to(-1)
        function(n, a.ctypes, n, pivots.ctypes, asked.ctypes, ask, info)
        work = np.empty(int(asked[0]), a.dtype)
        size = _pointer_to(np.int32(work.size))
        function(n, a.ctypes, n, pivots.ctypes, work.ctypes, size, info)
        return _value_at(info)

    return call


def gbtrf(dtype: Any) -> Any:
    """Return the compiled ``gbtrf(below, above, band, pivots)`` for matrices of a Numba dtype.

    It works in place on band storage, a column-major array with as many rows as LAPACK requires and
    at least one column; the pivots are 32-bit integers from 1, one for each column. It returns
    LAPACK's ``info``: 0, or the position of a zero on the diagonal.
    """
    real = types.CPointer(dtype)
    address, kind, name = _function("gbtrf", dtype, *(4 * (_INT,)), real, _INT, _INT, _INT)

    @numba_njit
    def call(below: Any, above: Any, band: Any, pivots: Any) -> Any:
        function = _cached_function(address, kind, name)
        n = _pointer_to(np.int32(band.shape[1]))
        info = _pointer_to(0)
        function(
            n,
            n,
            _pointer_to(np.int32(below)),
            _pointer_to(np.int32(above)),
            band.ctypes,
            _pointer_to(np.int32(band.shape[0])),
            pivots.ctypes,
            info,
        )
        return _value_at(info)

    return call


def gbtrs(dtype: Any) -> Any:
    """Return the compiled ``gbtrs(trans, below, above, band, pivots, b)`` for a Numba dtype.

    It solves in place with the factors from `gbtrf`, for the right-hand sides in ``b``, a
    column-major array of at least one element; ``trans`` is the character code of the letter.
    """
    real = types.CPointer(dtype)
    address, kind, name = _function(
        "gbtrs", dtype, *(5 * (_INT,)), real, _INT, _INT, real, _INT, _INT
    )

    @numba_njit
    def call(trans: Any, below: Any, above: Any, band: Any, pivots: Any, b: Any) -> None:
        function = _cached_function(address, kind, name)
        n = _pointer_to(np.int32(band.shape[1]))
        function(
            _pointer_to(trans),
            n,
            _pointer_to(np.int32(below)),
            _pointer_to(np.int32(above)),
            _pointer_to(np.int32(b.shape[1])),
            band.ctypes,
            _pointer_to(np.int32(band.shape[0])),
            pivots.ctypes,
            b.ctypes,
            n,
            _pointer_to(0),
        )

    return call


def trtri(dtype: Any) -> Any:
    """Return the compiled ``trtri(uplo, a)`` for matrices of a Numba dtype, as `potri` is called.

    The other triangle is neither read nor written.
    """
    real = types.CPointer(dtype)
    address, kind, name = _function("trtri", dtype, _INT, _INT, _INT, real, _INT, _INT)

    @numba_njit
    def call(uplo: Any, a: Any) -> Any:
        function = _cached_function(address, kind, name)
        n = _pointer_to(np.int32(a.shape[0]))
        info = _pointer_to(0)
        not_unit = _pointer_to(np.int32(ord("N")))
        function(_pointer_to(uplo), not_unit, n, a.ctypes, n, info)
        return _value_at(info)

    return call


def gemm(dtype: Any) -> Any:
    """Return the compiled ``gemm(alpha, a, b, c)`` for matrices of a Numba dtype.

    It adds ``alpha a b`` to ``c``. They are blocks, of at least one element, of column-major
    arrays; ``alpha`` is an array of one element.
    """
    real = types.CPointer(dtype)
    address, kind, name = _function(
        "gemm",
        dtype,
        *(_INT, _INT, _INT, _INT, _INT, real, real, _INT, real, _INT, real, real, _INT),
        address_of=_address_in_blas,
    )

    @numba_njit
    def call(alpha: Any, a: Any, b: Any, c: Any) -> None:
        function = _cached_function(address, kind, name)
        as_it_is = _pointer_to(np.int32(ord("N")))
        rows, columns = _pointer_to(np.int32(c.shape[0])), _pointer_to(np.int32(c.shape[1]))
        inner = _pointer_to(np.int32(a.shape[1]))
        function(
            as_it_is,
            as_it_is,
            rows,
            columns,
            inner,
            alpha.ctypes,
            a.ctypes,
            _pointer_to(np.int32(a.strides[1] // a.itemsize)),
            b.ctypes,
            _pointer_to(np.int32(b.strides[1] // b.itemsize)),
            np.ones(1, c.dtype).ctypes,
            c.ctypes,
            _pointer_to(np.int32(c.strides[1] // c.itemsize)),
        )

    return call


def trsm(dtype: Any) -> Any:
    """Return the compiled ``trsm(triangle, b)`` for matrices of a Numba dtype.

    It solves ``x l = b`` for ``x``, which overwrites ``b``; ``l`` is the lower triangle of
    ``triangle``, with ones on its diagonal. Both are blocks as for `gemm`.
    """
    real = types.CPointer(dtype)
    address, kind, name = _function(
        "trsm",
        dtype,
        *(_INT, _INT, _INT, _INT, _INT, _INT, real, real, _INT, real, _INT),
        address_of=_address_in_blas,
    )

    @numba_njit
    def call(triangle: Any, b: Any) -> None:
        function = _cached_function(address, kind, name)
        function(
            _pointer_to(np.int32(ord("R"))),
            _pointer_to(np.int32(ord("L"))),
            _pointer_to(np.int32(ord("N"))),
            _pointer_to(np.int32(ord("U"))),
            _pointer_to(np.int32(b.shape[0])),
            _pointer_to(np.int32(b.shape[1])),
            np.ones(1, b.dtype).ctypes,
            triangle.ctypes,
            _pointer_to(np.int32(triangle.strides[1] // triangle.itemsize)),
            b.ctypes,
            _pointer_to(np.int32(b.strides[1] // b.itemsize)),
        )

    return call


def _address_in_blas(dtype: Any, name: str) -> int:
    address: int = get_cython_function_address(
        "scipy.linalg.cython_blas", f"{get_blas_kind(dtype)}{name}"
    )
    return address


def _function(
    name: str, dtype: Any, *arguments: Any, address_of: Any = _address_of
) -> tuple[Any, Any, str]:
    """Return the function that looks up an address, its Numba type, and a name that only it has."""
    ensure_lapack()

    @numba_njit
    def address() -> Any:
        with numba.objmode(ptr=types.intp):
            ptr = address_of(dtype, name)
        return ptr  # noqa: RET504 - nothing can be returned from within the block

    kind = types.FunctionType(types.void(*arguments))
    return address, kind, f"scipy.lapack.{get_blas_kind(dtype)}{name}"
