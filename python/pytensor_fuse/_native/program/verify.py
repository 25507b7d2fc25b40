"""Verifier of programs: checks the invariants that passes and emission rely on.

The rules are those of `pytensor_fuse._native.program.model`. Errors name the broken rule, and each
rule has a file of programs that break it in ``tests/_native/program/files``.
"""

from __future__ import annotations

import operator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.declarations import verify_declarations
from pytensor_fuse._native.program.errors import ProgramError
from pytensor_fuse._native.program.external.draws import DRAWS
from pytensor_fuse._native.program.external.routines import ROUTINES
from pytensor_fuse._native.program.model import COMBINERS
from pytensor_fuse._native.program.operations import FLOATS, OPERATIONS, result_dtype
from pytensor_fuse._native.program.walking import handlers, statements_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytensor_fuse._native.program.external.routines import Role
    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

__all__ = ["ProgramError", "verify"]

_MOST_DETAILS = 8


def verify(program: Program) -> None:
    """Check a program.

    Raises
    ------
    ProgramError
        A rule is broken; the message names the value or buffer, and the rule.
    """
    verify_declarations(program)
    _Verifier(program).run()


class _Scope:
    """The state of an open block, discarded when the block ends."""

    __slots__ = ("allocated", "loaded", "name", "stored", "values")

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: list[Value] = []
        self.allocated: list[BufferId] = []
        # Elements of buffers, by canonical index.
        self.stored: set[tuple[BufferId, tuple[Any, ...]]] = set()
        self.loaded: set[tuple[BufferId, tuple[Any, ...]]] = set()


class _Verifier:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._dtypes = program.dtypes
        self._is_defined = [False] * len(program.dtypes)
        self._is_visible = [False] * len(program.dtypes)
        self._scopes = [_Scope("the body")]
        self._has_allocate: set[BufferId] = set()
        self._is_allocated = [False] * len(program.buffers)
        self._rules = handlers(self)

    def run(self) -> None:
        program = self._program
        for value in (*program.constants, *program.lengths):
            self._define(value)
        self._find_allocations()
        self._block(program.body)
        for buffer, about in enumerate(program.buffers):
            if about.kind == "output" and buffer not in self._has_allocate:
                raise ProgramError(f"@{buffer} is never allocated (rule: allocation)")
            if buffer not in self._has_allocate:
                self._require_lengths(buffer)
        for value, is_defined in enumerate(self._is_defined):
            if not is_defined:
                raise ProgramError(f"%{value} is defined nowhere (rule: dense ids)")

    def _find_allocations(self) -> None:
        for statement in statements_in(self._program.body):
            if isinstance(statement, model.Allocate):
                if statement.buffer in self._has_allocate:
                    raise ProgramError(f"@{statement.buffer} is allocated twice (rule: allocation)")
                self._has_allocate.add(statement.buffer)

    # Values

    def _define(self, value: Value) -> None:
        if not 0 <= operator.index(value) < len(self._dtypes):
            raise ProgramError(f"%{value} is beyond the last value (rule: dense ids)")
        if self._is_defined[value]:
            raise ProgramError(f"%{value} is defined twice (rule: single assignment)")
        self._is_defined[value] = self._is_visible[value] = True
        self._scopes[-1].values.append(value)

    def _use(self, value: Value) -> str:
        """Require that a value is visible here, and return its dtype."""
        if not (0 <= operator.index(value) < len(self._dtypes) and self._is_visible[value]):
            raise ProgramError(
                f"%{value} is used in {self._scopes[-1].name}, where it is not defined"
                " (rule: dominance)"
            )
        return self._dtypes[value]

    def _require(self, value: Value, dtype: str, what: str, rule: str) -> None:
        """Require that a value is visible here and of a dtype."""
        found = self._use(value)
        if found != dtype:
            raise ProgramError(f"%{value} is {found}, as {what} of {dtype} (rule: {rule})")

    # Blocks

    @contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        self._scopes.append(_Scope(name))
        yield
        scope = self._scopes.pop()
        for value in scope.values:
            self._is_visible[value] = False
        for buffer in scope.allocated:
            self._is_allocated[buffer] = False

    def _block(self, block: list[Statement]) -> None:
        for statement in block:
            self._rules[type(statement)](statement)

    def _op(self, op: model.Op) -> None:
        operation = OPERATIONS.get(op.name)
        if operation is None:
            raise ProgramError(f"%{op.out} is {op.name!r}, which does not exist (rule: operations)")
        if len(op.args) != operation.arity:
            raise ProgramError(
                f"%{op.out} has {len(op.args)} arguments of {op.name}, which takes"
                f" {operation.arity} (rule: operations)"
            )
        dtypes = [self._use(arg) for arg in op.args]
        same = dtypes
        if op.name == "select":
            self._require(op.args[0], "bool", "a condition", "operations")
            same = dtypes[1:]
        for dtype in same:
            if dtype != same[0] or dtype not in operation.takes:
                raise ProgramError(
                    f"%{op.out} is {op.name} of {', '.join(dtypes)} (rule: operations)"
                )
        self._define(op.out)
        dtype = self._dtypes[op.out]
        if op.name != "cast" and dtype != (gives := result_dtype(op.name, tuple(dtypes))):
            raise ProgramError(f"%{op.out} is {dtype}, not {gives} (rule: operations)")

    def _for(self, loop: model.For) -> None:
        self._require(loop.extent, "i64", "an extent", "extents")
        for reduction in loop.reductions:
            self._use(reduction.initial)
        for carry in loop.carries:
            self._use(carry.initial)
        with self._scope(f"the loop over %{loop.index}"):
            self._define(loop.index)
            self._require(loop.index, "i64", "an index", "extents")
            for carry in loop.carries:
                self._define(carry.inner)
            self._block(loop.body)
            for reduction in loop.reductions:
                self._use(reduction.term)
            for carry in loop.carries:
                self._use(carry.following)
            if loop.until is not None:
                self._require(loop.until, "bool", "the end of a loop", "extents")
        for out, combiner, initial, term in loop.reductions:
            self._define(out)
            self._combiner(f"%{out}", combiner, self._dtypes[out])
            self._same_dtype(out, (initial, term), "reductions")
        for out, inner, initial, following in loop.carries:
            self._define(out)
            self._same_dtype(out, (inner, initial, following), "carries")

    def _if(self, branch: model.If) -> None:
        self._require(branch.condition, "bool", "a condition", "branches")
        with self._scope(f"the branch on %{branch.condition}"):
            self._block(branch.then)
            for choice in branch.choices:
                self._use(choice.then)
        with self._scope(f"the other branch on %{branch.condition}"):
            self._block(branch.otherwise)
            for choice in branch.choices:
                self._use(choice.otherwise)
        for out, then, otherwise in branch.choices:
            self._define(out)
            self._same_dtype(out, (then, otherwise), "branches")

    def _same_dtype(self, out: Value, values: Sequence[Value], rule: str) -> None:
        dtype = self._dtypes[out]
        for value in values:
            if self._dtypes[value] != dtype:
                raise ProgramError(
                    f"%{out} is {dtype} and comes from %{value}, which is {self._dtypes[value]}"
                    f" (rule: {rule})"
                )

    def _combiner(self, name: str, combiner: str, dtype: str) -> None:
        if combiner not in COMBINERS or dtype not in OPERATIONS[combiner].takes:
            raise ProgramError(f"{name} combines {dtype} by {combiner!r} (rule: combiners)")

    def _check(self, check: model.Check) -> None:
        self._require(check.condition, "bool", "a condition", "checks")
        name = f"the check of %{check.condition}"
        if not 0 <= check.failure < len(self._program.failures):
            raise ProgramError(
                f"{name} has failure {check.failure}, which does not exist (rule: checks)"
            )
        if len(check.details) > _MOST_DETAILS:
            raise ProgramError(f"{name} has more than {_MOST_DETAILS} details (rule: checks)")
        for detail in check.details:
            self._require(detail, "i64", "a detail", "checks")

    # Buffers

    def _require_lengths(self, buffer: BufferId) -> None:
        for length in self._program.buffers[buffer].lengths:
            if not self._is_visible[length]:
                raise ProgramError(
                    f"@{buffer} has length %{length}, which is not defined in"
                    f" {self._scopes[-1].name} (rule: allocation)"
                )

    def _allocate(self, allocate: model.Allocate) -> None:
        buffer = allocate.buffer
        self._require_buffer(buffer)
        kind = self._program.buffers[buffer].kind
        if kind not in ("output", "temporary"):
            raise ProgramError(f"@{buffer} is {kind} and allocated (rule: allocation)")
        if kind == "output" and len(self._scopes) > 1:
            raise ProgramError(
                f"@{buffer} is allocated in {self._scopes[-1].name}, not in the body"
                " (rule: allocation)"
            )
        self._require_lengths(buffer)
        self._is_allocated[buffer] = True
        self._scopes[-1].allocated.append(buffer)

    def _require_buffer(self, buffer: BufferId) -> None:
        if not 0 <= buffer < len(self._program.buffers):
            raise ProgramError(f"@{buffer} is no buffer (rule: buffers)")

    def _access(self, buffer: BufferId, index: tuple[Value, ...]) -> None:
        """Require that an element of a buffer may be accessed here."""
        self._reach(buffer)
        about = self._program.buffers[buffer]
        if len(index) != len(about.lengths):
            raise ProgramError(
                f"@{buffer} has {len(about.lengths)} axes and an index of {len(index)}"
                " (rule: indices)"
            )
        for at in index:
            self._require(at, "i64", f"an index into @{buffer}", "indices")

    def _reach(self, buffer: BufferId) -> None:
        """Require that a buffer exists and is allocated here."""
        self._require_buffer(buffer)
        about = self._program.buffers[buffer]
        if about.kind in ("output", "temporary"):
            if buffer in self._has_allocate or about.kind == "output":
                if not self._is_allocated[buffer]:
                    raise ProgramError(
                        f"@{buffer} is accessed in {self._scopes[-1].name}, where it is not"
                        " allocated (rule: allocation)"
                    )
            else:
                self._require_lengths(buffer)

    def _place(
        self, buffer: BufferId, index: tuple[Value, ...]
    ) -> tuple[BufferId, tuple[Any, ...]]:
        constants = self._program.constants
        return buffer, tuple([("#", constants[at]) if at in constants else at for at in index])

    def _load(self, load: model.Load) -> None:
        self._access(load.buffer, load.index)
        self._define(load.out)
        dtype, stored = self._dtypes[load.out], self._program.buffers[load.buffer].dtype
        if dtype != stored:
            raise ProgramError(
                f"%{load.out} is {dtype} and comes from @{load.buffer}, which is {stored}"
                " (rule: loads)"
            )
        self._scopes[-1].loaded.add(self._place(load.buffer, load.index))

    def _store(self, store: model.Store) -> None:
        buffer = store.buffer
        self._access(buffer, store.index)
        about = self._program.buffers[buffer]
        self._require(store.value, about.dtype, f"an element of @{buffer}", "stores")
        if about.kind == "constant":
            raise ProgramError(f"@{buffer} is a constant and written (rule: constants)")
        if store.combiner:
            self._combiner(f"@{buffer}", store.combiner, about.dtype)
        if not about.is_once:
            return
        shown = ", ".join(f"%{at}" for at in store.index)
        if store.combiner:
            raise ProgramError(f"@{buffer} is once and combined at [{shown}] (rule: once)")
        if about.kind == "input":
            raise ProgramError(f"@{buffer} is once, an input, and written (rule: once)")
        place = self._place(buffer, store.index)
        # A routine stores the whole subarray at a prefix.
        places = [(buffer, place[1][:n_axes]) for n_axes in range(len(store.index) + 1)]
        for scope in self._scopes:
            if not scope.stored.isdisjoint(places):
                raise ProgramError(f"@{buffer} is once and stored twice at [{shown}] (rule: once)")
            if place in scope.loaded:
                raise ProgramError(
                    f"@{buffer} is once and read at [{shown}] before it is written (rule: once)"
                )
        self._scopes[-1].stored.add(place)

    # Calls

    def _call(self, call: model.Call) -> None:
        routine = ROUTINES.get(call.name)
        if routine is None:
            raise ProgramError(f"there is no routine {call.name!r} (rule: calls)")
        for what, n_given, n_taken in (
            ("sizes", len(call.sizes), len(routine.sizes)),
            ("operands", len(call.operands), len(routine.operands)),
        ):
            if n_given != n_taken:
                raise ProgramError(
                    f"{call.name} is called with {n_given} {what} and takes {n_taken} (rule: calls)"
                )
        for size in call.sizes:
            self._require(size, "i64", f"a size of {call.name}", "calls")
        real = self._program.buffers[routine.real_operand(call).buffer].dtype
        if real not in FLOATS:
            raise ProgramError(f"{call.name} is called on {real} (rule: calls)")
        for operand, role in zip(call.operands, routine.operands, strict=True):
            self._operand(call, operand, role, role.dtype or real)
        if (call.out is None) == routine.reports:
            raise ProgramError(
                f"{call.name} {'defines a value' if routine.reports else 'defines no value'}"
                " (rule: calls)"
            )
        if call.out is not None:
            self._define(call.out)
            if self._dtypes[call.out] != "i64":
                raise ProgramError(f"%{call.out} is what {call.name} reports, i64 (rule: calls)")

    def _operand(self, call: model.Call, operand: model.Operand, role: Role, dtype: str) -> None:
        buffer, prefix = operand
        self._reach(buffer)
        about = self._program.buffers[buffer]
        for at in prefix:
            self._require(at, "i64", f"an index into @{buffer}", "calls")
        if about.dtype != dtype:
            raise ProgramError(
                f"@{buffer} is {about.dtype} and {role.name} of {call.name} is {dtype}"
                " (rule: calls)"
            )
        own = [one for one in about.lengths[len(prefix) :] if self._program.constants.get(one) != 1]
        if len(prefix) > len(about.lengths) or len(own) > len(role.sizes):
            raise ProgramError(
                f"@{buffer} has {len(own)} axes for {role.name} of {call.name}, which has"
                f" {len(role.sizes)} (rule: calls)"
            )
        if role.is_written and (
            about.kind == "constant" or (about.kind, about.is_once) == ("input", True)
        ):
            raise ProgramError(f"@{buffer} is given and {call.name} writes it (rule: calls)")
        if not (role.is_written and about.is_once):
            return
        if role.is_read:
            raise ProgramError(f"@{buffer} is once and {call.name} updates it (rule: once)")
        place = self._place(buffer, prefix)
        for scope in self._scopes:
            if any(_overlap(place, other) for other in (*scope.stored, *scope.loaded)):
                raise ProgramError(f"@{buffer} is once and {call.name} overwrites it (rule: once)")
        self._scopes[-1].stored.add(place)

    def _draw(self, draw: model.Draw) -> None:
        distribution = DRAWS.get(draw.name)
        if distribution is None:
            raise ProgramError(f"there is no distribution {draw.name!r} (rule: draws)")
        if len(draw.args) != len(distribution.takes):
            raise ProgramError(
                f"{draw.name} is drawn with {len(draw.args)} parameters and takes"
                f" {len(distribution.takes)} (rule: draws)"
            )
        for arg, dtype in zip(draw.args, distribution.takes, strict=True):
            self._require(arg, dtype, f"a parameter of {draw.name}", "draws")
        self._require_buffer(draw.generator)
        about = self._program.buffers[draw.generator]
        lengths = [self._program.constants.get(length) for length in about.lengths]
        if (about.kind, about.dtype, lengths) != ("input", "u64", [1]) or about.is_once:
            raise ProgramError(
                f"@{draw.generator} is no input of one u64 that is written, and drawn from"
                " (rule: draws)"
            )
        self._define(draw.out)
        if self._dtypes[draw.out] != distribution.gives:
            raise ProgramError(
                f"%{draw.out} is {self._dtypes[draw.out]} and {draw.name} gives"
                f" {distribution.gives} (rule: draws)"
            )


def _overlap(
    one: tuple[BufferId, tuple[Any, ...]], other: tuple[BufferId, tuple[Any, ...]]
) -> bool:
    """Whether two subarrays, each at an index of leading axes, overlap."""
    n_axes = min(len(one[1]), len(other[1]))
    return one[0] == other[0] and one[1][:n_axes] == other[1][:n_axes]
