"""C functions that nutpie's sampler calls, as LLVM text.

Each takes the point, buffers for its results, and the record of the data of shared variables. It
calls the function that `emit_c_module` writes into the same module, and returns the codes of
nutpie's own functions: after a code above zero, the sampler continues with another step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._pytensor.linking.nutpie_models import DataPlace

# The name of the function that each of them calls.
CALLED: Final = "call"
# The names of the functions.
LOGP: Final = "logp"
EXPAND: Final = "expand"

_WRONG_SIZE: Final = -1
_FAILED: Final = 1
_GRADIENT_NOT_FINITE: Final = 3
_VALUE_NOT_FINITE: Final = 4
_NOT_EXPANDED: Final = -2


def logp_text(n_dim: int, places: Sequence[DataPlace]) -> str:
    """Return the function that computes the log density and its gradient.

    It is ``i64 logp(i64 n_dim, ptr point, ptr gradient, ptr value, ptr record)``.

    Parameters
    ----------
    n_dim
        The number of elements of a point.
    places
        The places in the record of the data of each input after the point.
    """
    lines = _Lines()
    lines.require(f"icmp eq i64 %n_dim, {n_dim}", _WRONG_SIZE)
    lines.call(n_dim, places, [("%value", 1), ("%gradient", n_dim)], ndims=[0, 1], failed=_FAILED)
    lines.do(
        "br label %head",
        "head:",
        "%k = phi i64 [0, %computed], [%next, %finite]",
        f"%is_more = icmp ult i64 %k, {n_dim}",
        "br i1 %is_more, label %body, label %end",
        "body:",
        "%place = getelementptr double, ptr %gradient, i64 %k",
        "%element = load double, ptr %place",
        "%zero = fsub double %element, %element",
        "%is_finite = fcmp ord double %zero, 0.0",
        "%next = add i64 %k, 1",
        "br i1 %is_finite, label %finite, label %infinite",
        "finite:",
        "br label %head",
        "infinite:",
        f"ret i64 {_GRADIENT_NOT_FINITE}",
        "end:",
        "%logp = load double, ptr %value",
        "%difference = fsub double %logp, %logp",
        "%is_number = fcmp ord double %difference, 0.0",
        f"%code = select i1 %is_number, i64 0, i64 {_VALUE_NOT_FINITE}",
        "ret i64 %code",
    )
    head = f"define i64 @{LOGP}(i64 %n_dim, ptr %point, ptr %gradient, ptr %value, ptr %record)"
    return lines.function(head)


def expand_text(n_dim: int, n_expanded: int, places: Sequence[DataPlace]) -> str:
    """Return the function that computes all variables of a draw.

    It is ``i64 expand(i64 n_dim, i64 n_expanded, ptr point, ptr values, ptr record)``.

    Parameters
    ----------
    n_dim
        The number of elements of a point.
    n_expanded
        The number of elements of all variables.
    places
        The places in the record of the data of each input after the point.
    """
    lines = _Lines()
    lines.require(f"icmp eq i64 %n_dim, {n_dim}", _WRONG_SIZE)
    lines.require(f"icmp eq i64 %n_expanded, {n_expanded}", _WRONG_SIZE)
    lines.call(n_dim, places, [("%values", n_expanded)], ndims=[1], failed=_NOT_EXPANDED)
    lines.do("ret i64 0")
    head = (
        f"define i64 @{EXPAND}(i64 %n_dim, i64 %n_expanded, ptr %point, ptr %values, ptr %record)"
    )
    return lines.function(head)


class _Lines:
    """Writes one of the functions."""

    def __init__(self) -> None:
        self._lines: list[str] = ["entry:"]
        self._n_names = 0

    def do(self, *lines: str) -> None:
        self._lines += lines

    def _let(self, operation: str) -> str:
        self._n_names += 1
        name = f"%v{self._n_names}"
        self.do(f"{name} = {operation}")
        return name

    def require(self, condition: str, code: int, then: str = "") -> None:
        """Return a code unless a condition holds; otherwise continue in the block ``then``."""
        is_met = self._let(condition)
        then, other = then or f"then{self._n_names}", f"else{self._n_names}"
        self.do(f"br i1 {is_met}, label %{then}, label %{other}")
        self.do(f"{other}:", f"ret i64 {code}", f"{then}:")

    def call(
        self,
        n_dim: int,
        places: Sequence[DataPlace],
        outputs: Sequence[tuple[str, int]],
        *,
        ndims: Sequence[int],
        failed: int,
    ) -> None:
        """Call the machine code, and continue in the block ``computed``.

        Each output is the address of its buffer and its number of elements; it has one axis or
        none.
        """
        n_lengths = 1 + sum(one.data.ndim for one in places)
        tables = {
            "inputs": f"[{1 + len(places)} x ptr]",
            "lengths": f"[{n_lengths} x i64]",
            "outputs": f"[{len(outputs)} x ptr]",
            "capacities": f"[{len(outputs)} x i64]",
            "found": f"[{len(outputs)} x i64]",
        }
        self.do(*[f"%{name} = alloca {kind}" for name, kind in tables.items()])
        self._store("ptr %point", "inputs", 0)
        self._store(f"i64 {n_dim}", "lengths", 0)
        axis = 1
        for position, place in enumerate(places, 1):
            self._store(f"ptr {self._load('ptr', place.address)}", "inputs", position)
            for k in range(place.data.ndim):
                length = self._load("i64", place.lengths + 8 * k)
                self._store(f"i64 {length}", "lengths", axis)
                axis += 1
        for position, (memory, size) in enumerate(outputs):
            self._store(f"ptr {memory}", "outputs", position)
            self._store(f"i64 {size}", "capacities", position)
        code = self._let(
            f"call i64 @{CALLED}(ptr %inputs, ptr %lengths, ptr %outputs, ptr %capacities, "
            "ptr %found, ptr null)"
        )
        self.require(f"icmp eq i64 {code}, 0", failed)
        # The machine code does not fail if an output has fewer elements than expected.
        vectors = [size for (_, size), ndim in zip(outputs, ndims, strict=True) if ndim]
        for axis, size in enumerate(vectors):
            address = self._let(f"getelementptr i64, ptr %found, i64 {axis}")
            length = self._let(f"load i64, ptr {address}")
            self.require(f"icmp eq i64 {length}, {size}", failed)
        self.do("br label %computed", "computed:")

    def _load(self, kind: str, offset: int) -> str:
        place = self._let(f"getelementptr i8, ptr %record, i64 {offset}")
        # The record is packed, and its alignment is unknown.
        return self._let(f"load {kind}, ptr {place}, align 1")

    def _store(self, value: str, table: str, position: int) -> None:
        place = self._let(f"getelementptr i64, ptr %{table}, i64 {position}")
        self.do(f"store {value}, ptr {place}")

    def function(self, head: str) -> str:
        indented = [one if one.endswith(":") else f"  {one}" for one in self._lines]
        return "\n".join([f"{head} nounwind {{", *indented, "}"])
