"""Mathematical functions of scalars, each an operation of the program.

Most ops declare their function of NumPy or SciPy, which has the name of the operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytensor.scalar.basic as ps
import pytensor.scalar.math as psm

from pytensor_fuse._native.lowering.registry import NoRuleError
from pytensor_fuse._native.lowering.scalars.registry import out_dtype, scalar_refusal, scalar_rule
from pytensor_fuse._native.program.operations import MATHEMATICS, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._native.lowering.types import Builder, Node, Value

# Functions whose classes do not name a function of NumPy or SciPy.
_OWN: Final = {psm.TriGamma: "trigamma", psm.Softplus: "softplus", psm.Log1mexp: "log1mexp"}
# Functions of integers that Numba computes in double precision, whatever the width; except for the
# logistic function of unsigned integers.
_IN_DOUBLE: Final = ("erf", "erfc", "gammaln", "sigmoid")


def _function(name: str) -> Callable[[Any, Node, Builder, list[Value]], Value]:
    def rule(op: Any, node: Node, b: Builder, args: list[Value]) -> Value:
        dtype = out_dtype(node)
        if dtype[0] != "f" or (b.program.calls_libm and _is_in_double(name, b.dtype(args[0]))):
            dtype = "f64"
        return b.op(name, *[b.cast(arg, dtype) for arg in args])

    return rule


def _is_in_double(name: str, given: str) -> bool:
    return name in _IN_DOUBLE and given[0] != "f" and (name != "sigmoid" or given[0] != "u")


for _class, _name in _OWN.items():
    scalar_rule.register(_class)(_function(_name))


# Operations that SciPy knows by another name.
_OF_SCIPY: Final = {"psi": "digamma", "expit": "sigmoid"}


def _declared_function(op: Any) -> str | None:
    """Return the operation that a scalar op declares as its function of NumPy or SciPy, or None.

    Numba mode relies on the same declaration, ``nfunc_spec``.
    """
    about = getattr(op, "nfunc_spec", None)
    if about is None:
        return None
    module, _, function = str(about[0]).rpartition(".")
    name = _OF_SCIPY.get(function, function)
    known = OPERATIONS["sqrt"] if name == "sqrt" else MATHEMATICS.get(name)
    is_known = module in ("", "scipy.special") and known is not None and known.arity == about[1]
    return name if is_known else None


@scalar_refusal.register(ps.ScalarOp)
def _refusal(op: ps.ScalarOp, node: Node) -> str | None:
    has_own = scalar_rule.dispatch(type(op)) is not _by_declaration
    return None if has_own or _declared_function(op) else f"no rule for the scalar op {op}"


@scalar_rule.register(ps.ScalarOp)
def _by_declaration(op: ps.ScalarOp, node: Node, b: Builder, args: list[Value]) -> Value:
    name = _declared_function(op)
    if name is None:
        raise NoRuleError(f"no rule for the scalar op {op}")
    return _function(name)(op, node, b, args)
