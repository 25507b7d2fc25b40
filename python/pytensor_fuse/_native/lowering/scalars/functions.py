"""Mathematical functions of scalars, each a named operation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytensor.scalar.basic as ps
import pytensor.scalar.math as psm

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.scalars.registry import (
    out_dtype,
    scalar_refusal,
    scalar_rule,
)
from pytensor_fuse._native.program.operations import MATHEMATICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.annotations import Builder, Node, Value
    from pytensor_fuse._native.lowering.scalars.registry import ScalarRule

# By class name, since some classes exist in one version of PyTensor only.
_FUNCTIONS: Final = {
    "Log": "log",
    "Log2": "log2",
    "Log10": "log10",
    "Log1p": "log1p",
    "Exp": "exp",
    "Exp2": "exp2",
    "Expm1": "expm1",
    "Sqrt": "sqrt",
    "Cos": "cos",
    "ArcCos": "arccos",
    "Sin": "sin",
    "ArcSin": "arcsin",
    "Tan": "tan",
    "ArcTan": "arctan",
    "ArcTan2": "arctan2",
    "Cosh": "cosh",
    "ArcCosh": "arccosh",
    "Sinh": "sinh",
    "ArcSinh": "arcsinh",
    "Tanh": "tanh",
    "ArcTanh": "arctanh",
    "Erf": "erf",
    "Erfc": "erfc",
    "Erfcx": "erfcx",
    "Erfinv": "erfinv",
    "Erfcinv": "erfcinv",
    "NdtriExp": "ndtri_exp",
    "Owens_t": "owens_t",
    "Gamma": "gamma",
    "GammaLn": "gammaln",
    "Psi": "digamma",
    "TriGamma": "trigamma",
    "Sigmoid": "sigmoid",
    "Softplus": "softplus",
    "Log1mexp": "log1mexp",
    "J0": "j0",
    "J1": "j1",
    "Jv": "jv",
    "I0": "i0",
    "I1": "i1",
    "Ive": "ive",
    "Kve": "kve",
    "GammaInc": "gammainc",
    "GammaIncC": "gammaincc",
    "GammaIncInv": "gammaincinv",
    "GammaIncCInv": "gammainccinv",
    "BetaInc": "betainc",
    "BetaIncInv": "betaincinv",
    "Hyp2F1": "hyp2f1",
}
# Functions of integers that Numba computes in double precision, whatever the width; except for the
# logistic function of unsigned integers.
_IN_DOUBLE: Final = ("erf", "erfc", "gammaln", "sigmoid")
# Conversions of angles in PyTensor 3.0.
_FACTORS: Final = {"Deg2Rad": math.pi / 180, "Rad2Deg": 180 / math.pi}


def _function(name: str) -> Callable[[Any, Node, Builder, list[Value]], Value]:
    def rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
        dtype = out_dtype(node)
        if dtype[0] != "f" or (b.program.calls_libm and _is_in_double(name, b.dtype(args[0]))):
            dtype = "f64"
        return b.op(name, *[b.cast(arg, dtype) for arg in args])

    return rule


def _is_in_double(name: str, given: str) -> bool:
    return name in _IN_DOUBLE and given[0] != "f" and (name != "sigmoid" or given[0] != "u")


def _product(factor: float) -> ScalarRule:
    def rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
        dtype = out_dtype(node)
        number = float(np.float32(factor)) if dtype == "f32" else factor
        return b.op("mul", b.cast(args[0], dtype), b.constant(dtype, number))

    return rule


def _register(class_name: str, rule: ScalarRule) -> None:
    for module in (ps, psm):
        found: Any = vars(module).get(class_name)
        if found is not None:
            register: Any = scalar_rule.register
            register(found)(rule)
            return


for _class, _name in _FUNCTIONS.items():
    _register(_class, _function(_name))
for _class, _factor in _FACTORS.items():
    _register(_class, _product(_factor))

# Operations that SciPy knows by another name.
_OF_SCIPY: Final = {"psi": "digamma", "expit": "sigmoid"}


def _special_function(op: Any) -> str | None:
    """Return the operation that a scalar op declares as its SciPy function, or None.

    Numba mode relies on the same declaration, ``nfunc_spec``.
    """
    about = getattr(op, "nfunc_spec", None)
    if about is None:
        return None
    module, _, function = str(about[0]).rpartition(".")
    name = _OF_SCIPY.get(function, function)
    known = MATHEMATICS.get(name)
    is_known = module == "scipy.special" and known is not None and known.arity == about[1]
    return name if is_known else None


@scalar_refusal.register(ps.ScalarOp)
def _special_refusal(op: ps.ScalarOp, node: Node) -> str | None:
    has_own = scalar_rule.dispatch(type(op)) is not _special
    return None if has_own or _special_function(op) else f"no rule for the scalar op {op}"


@scalar_rule.register(ps.ScalarOp)
def _special(op: ps.ScalarOp, node: Node, b: Builder, args: list[Value]) -> Value:
    name = _special_function(op)
    if name is None:
        raise NoRuleError(f"no rule for the scalar op {op}")
    return _function(name)(op, node, b, args)
