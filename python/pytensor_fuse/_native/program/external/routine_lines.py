"""Declarations of the BLAS and LAPACK routines that programs call, one line each.

A routine has one line: its name, its sizes, its operands, and the call in Fortran's order::

    matmul_nn  mkn  C=mn A:mk B:kn  blas.gemm N N n m k 1.0 B n' A k' 0.0 C n'

The letters ``mkn`` are its sizes, in the order in which a program passes them. ``C=mn`` is an array
of ``m`` rows of ``n`` elements that is written as a whole, ``A:mk`` one that is read, and ``F+nn``
one that is read and written; ``P=n.i32`` has 32-bit integers, and all others have the dtype of the
routine. An argument of the call is an operand, a size, a size that is at least 1 (``n'``), an
option letter (``'N``), a real number (written with a point), an integer (without one), or ``info``,
LAPACK's error code.

Buffers are row-major and the routines expect column-major matrices, so each routine sees the
transpose of a matrix: the upper triangle as the lower one, a product with its factors in the other
order. The names describe the contents of the buffers: ``potrf_l`` computes the lower factor of a
lower triangle, although LAPACK receives the option ``U``.
"""

from __future__ import annotations

from typing import Final

_FIRST: Final = """
matmul_nn   mkn  C=mn A:mk B:kn  blas.gemm 'N 'N n m k 1.0 B n' A k' 0.0 C n'
matmul_tn   mkn  C=mn A:km B:kn  blas.gemm 'N 'T n m k 1.0 B n' A m' 0.0 C n'
matmul_nt   mkn  C=mn A:mk B:nk  blas.gemm 'T 'N n m k 1.0 B k' A k' 0.0 C n'
matmul_tt   mkn  C=mn A:km B:nk  blas.gemm 'T 'T n m k 1.0 B k' A m' 0.0 C n'
add_matvec_n  mk  y+m A:mk x:k  blas.gemv 'T k m 1.0 A k' x 1 1.0 y 1
add_matvec_t  mk  y+m A:km x:k  blas.gemv 'N m k 1.0 A m' x 1 1.0 y 1
matvec_n    mk   y=m A:mk x:k    blas.gemv 'T k m 1.0 A k' x 1 0.0 y 1
matvec_t    mk   y=m A:km x:k    blas.gemv 'N m k 1.0 A m' x 1 0.0 y 1

potrf_l     n    F+nn            lapack.potrf 'U n F n' info
potrf_u     n    F+nn            lapack.potrf 'L n F n' info
potrs_u     nk   X+kn F:nn       lapack.potrs 'L n k F n' X n' info
potri_l     n    F+nn            lapack.potri 'U n F n' info
potri_u     n    F+nn            lapack.potri 'L n F n' info

# LAPACK works on the transpose: the columns of its matrix are the rows of the buffer.
getrf       n    F+nn P=n.i32    lapack.getrf n n F n' P info
getri       nw   F+nn P:n.i32 W=w    lapack.getri n F n' P W w info
getrs       nk   X+kn F:nn P:n.i32   lapack.getrs 'N n k F n' P X n' info

# The right-hand sides are columns in LAPACK, and rows of the buffer.
sysv_l      nkw  F+nn P=n.i32 X+kn W=w  lapack.sysv 'U n k F n' P X n' W w info
sysv_u      nkw  F+nn P=n.i32 X+kn W=w  lapack.sysv 'L n k F n' P X n' W w info

# The diagonals below, on and above the main one have lengths `m`, `n` and `m`; the fill-in above
# them has length `f`.
gttrf       nmf  L+m D+n U+m S=f P=n.i32       lapack.gttrf n L D U S P info
gttrs_n     nmfk X+kn L:m D:n U:m S:f P:n.i32  lapack.gttrs 'N n k L D U S P X n' info
gttrs_t     nmfk X+kn L:m D:n U:m S:f P:n.i32  lapack.gttrs 'T n k L D U S P X n' info

# Diagonals are rows in LAPACK's band storage: `l` below the main one, `u` above it, and `r` in all,
# including fill-in. The storage is column-major; its columns are the rows of the buffer.
gbtrf       nlur  F+nr P=n.i32       lapack.gbtrf n n l u F r' P info
gbtrs_n     nlurk X+kn F:nr P:n.i32  lapack.gbtrs 'N n l u k F r' P X n' info
gbtrs_t     nlurk X+kn F:nr P:n.i32  lapack.gbtrs 'T n l u k F r' P X n' info
"""


def _eigen() -> list[str]:
    """Return the lines of eigenvalue routines for symmetric matrices, which read one triangle.

    The rows of the buffer are the eigenvectors. The last operands are the workspace arrays.
    """
    lines = []
    for name, triangle in (("u", "L"), ("l", "U")):
        about = f"'{triangle} n A n'"
        part = "0.0 0.0 0 0 0.0"  # The range and tolerance, unused: all eigenvalues are requested.
        lines += [
            f"syevr_{name} npwi A+nn S=n Z=nn M=.i32 Y=p.i32 W=w I=i.i32"
            f" lapack.syevr 'V 'A {about} {part} M S Z n' Y W w I i info",
            f"syevr_{name}_values nwi A+nn S=n M=.i32 W=w I=i.i32"
            f" lapack.syevr 'N 'A {about} {part} M S 0.0 1 0 W w I i info",
            f"syevd_{name} nwi A+nn S=n W=w I=i.i32 lapack.syevd 'V {about} S W w I i info",
            f"sygvd_{name} nwi A+nn B+nn S=n W=w I=i.i32"
            f" lapack.sygvd 1 'V {about} B n' S W w I i info",
            f"sygvd_{name}_values nwi A+nn B+nn S=n W=w I=i.i32"
            f" lapack.sygvd 1 'N {about} B n' S W w I i info",
        ]
    return lines


_MORE: Final = """
# LAPACK sees the transpose, whose left singular vectors are the right ones of the matrix and vice
# versa. The rows of V are the right singular vectors.
svd_full    mnkwi  A+mn S=k U=mm V=nn W=w I=i.i32  lapack.gesdd 'A n m A n' S V n' U m' W w I info
svd_thin    mnkwi  A+mn S=k U=mk V=kn W=w I=i.i32  lapack.gesdd 'S n m A n' S V n' U k' W w I info
svd_values  mnkwi  A+mn S=k W=w I=i.i32  lapack.gesdd 'N n m A n' S 0.0 1 0.0 1 W w I info

# LAPACK works on the transpose: the columns of its matrix are the rows of the buffer.
geqrf       mnkw  F+nm T=k W=w  lapack.geqrf m n F m' T W w info
geqp3       mnkw  F+nm P+n.i32 T=k W=w  lapack.geqp3 m n F m' P T W w info
orgqr       mqkw  Q+qm T:k W=w  lapack.orgqr m q k Q m' T W w info
"""

# Triangles and whether they are transposed: the suffix of the routine's name, and BLAS's options
# `uplo` and `trans` for right-hand sides in rows.
_TRIANGLES: Final = (("l", "U", "N"), ("lt", "L", "T"), ("u", "L", "N"), ("ut", "U", "T"))


def _solving() -> list[str]:
    """Return the lines of routines that solve triangular systems in place."""
    lines = []
    for name, triangle, order in _TRIANGLES:
        for suffix, diagonal in (("", "N"), ("_unit", "U")):
            lines.append(
                f"solve_{name}{suffix} nk X+nk A:nn"
                f" blas.trsm 'R '{triangle} '{order} '{diagonal} k n 1.0 A n' X k'"
            )
            # A single vector is a column, so the opposite transposition applies.
            other = "T" if order == "N" else "N"
            lines.append(
                f"solve_{name}{suffix}_vector n x+n A:nn"
                f" blas.trsv '{triangle} '{other} '{diagonal} n A n' x 1"
            )
    return lines


def _rows(table: str) -> list[str]:
    return [line for line in table.splitlines() if line and not line.startswith("#")]


LINES: Final = [*_rows(_FIRST), *_eigen(), *_rows(_MORE), *_solving()]
