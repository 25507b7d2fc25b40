"""Loops that add to elements at computed places add to several copies, which are then added up.

Rows of one group, one after the other, add to one element: each addition needs the result of the
one before, which has just been stored, and loading that takes a processor longer than all other
work of a row. Here each of several rows in turn adds to a copy of its own (array privatization: Tu
and Padua, "Automatic array privatization", 1993). Row ``i`` always adds to copy ``i`` modulo their
number, and the copies are added up in order, so the result is the same on every machine; but it is
another order of the sum, which only integers and `numba__fastmath` allow.

Filling and adding up the copies must be worth it. That depends on lengths, which may come with the
call: then the number of copies, 1 or all, is computed there.

::

    for i < n                         for c < copies, j < groups
      store add x[group[i]] = v         store y[c, j] = -0.0
                                      for i < n
                             ->         store add y[i and copies - 1, group[i]] = v
                                      for c < copies, j < groups
                                        store add x[j] = y[c, j]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.program.combiners import identity
from pytensor_fuse._native.program.model import (
    Buffer,
    For,
    If,
    Load,
    Op,
    Program,
    Statement,
    Store,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.program.model import BufferId, Value

# A power of two. An addition takes as long as four or five that do not wait for it.
_COPIES: Final = 8
# So many iterations for each element pay for its copies.
_LEAST_SHARE: Final = 16
# Shorter loops take microseconds whatever is done.
_LEAST_EXTENT: Final = 2048


def privatized(program: Program) -> Program:
    """Return a program in which long loops add to copies of what they add to at computed places.

    Parameters
    ----------
    program
        The program, which stays as it is.

    Returns
    -------
    Program
        The program itself if it has no such loop.
    """
    pass_ = _Privatization(program)
    body = pass_.block(program.body)
    return pass_.program.with_body([*pass_.at_start, *body]) if pass_.n_loops else program


class _Privatization:
    """One program on its way.

    Attributes
    ----------
    program
        The old program with the values and buffers of the new one.
    at_start
        What computes the numbers of copies. They come first so that the copies are placed with
        other temporary buffers.
    n_loops
        How many loops add to copies.
    """

    def __init__(self, program: Program) -> None:
        self.program = program.with_body(program.body)
        self.program.dtypes = list(program.dtypes)
        self.program.constants = dict(program.constants)
        self.program.buffers = list(program.buffers)
        self.at_start: list[Statement] = []
        self.n_loops = 0
        self._literals: dict[tuple[str, int | float], Value] = {}

    def block(self, statements: Sequence[Statement]) -> list[Statement]:
        """Return the statements of a block as they become."""
        after: list[Statement] = []
        for statement in statements:
            if isinstance(statement, If):
                then, otherwise = self.block(statement.then), self.block(statement.otherwise)
                after.append(If(statement.condition, then, otherwise, statement.choices))
            elif isinstance(statement, For):
                after += self._loop(statement)
            else:
                after.append(statement)
        return after

    def _loop(self, loop: For) -> list[Statement]:
        if any(isinstance(one, For | If) for one in loop.body):
            body = self.block(loop.body)
            return [For(loop.index, loop.extent, body, loop.reductions, loop.carries)]
        before: list[Statement] = []
        behind: list[Statement] = []
        body = list(loop.body)
        for store in _lone_additions(self.program, loop):
            if self._may_pay(loop.extent, store.buffer):
                copies, mask = self._copies(loop.extent, store.buffer)
                place = self._value("i64")
                own = Store(
                    copies,
                    (place, *store.index),
                    store.value,
                    store.combiner,
                    is_guarded=store.is_guarded,
                )
                at = body.index(store)
                body[at : at + 1] = [Op(place, "and", (loop.index, mask)), own]
                before.append(self._filled(copies, store.combiner))
                behind.append(self._added_up(copies, store))
                self.n_loops += 1
        return [
            *before,
            For(loop.index, loop.extent, body, loop.reductions, loop.carries),
            *behind,
        ]

    def _may_pay(self, extent: Value, buffer: BufferId) -> bool:
        """Whether copies are worth it, for all that is known before the call."""
        program = self.program
        lengths = program.buffers[buffer].lengths
        if any(
            one not in program.constants and one not in program.lengths
            for one in (extent, *lengths)
        ):
            return False
        n = program.constants.get(extent)
        if n is None:
            return True
        least = 1
        for length in lengths:
            least *= int(program.constants.get(length, 1))
        return int(n) >= max(_LEAST_EXTENT, _LEAST_SHARE * least)

    def _copies(self, extent: Value, buffer: BufferId) -> tuple[BufferId, Value]:
        """Add the buffer of the copies.

        Returns
        -------
        BufferId
            The buffer.
        Value
            The number of copies less one.
        """
        program, about = self.program, self.program.buffers[buffer]
        most = self._literal(_COPIES - 1)
        if all(one in program.constants for one in (extent, *about.lengths)):
            number, mask = self._literal(_COPIES), most
        else:
            least = self._literal(_LEAST_SHARE)
            for length in about.lengths:
                least = self._early("mul", least, length)
            pays = self._early("le", least, extent, dtype="bool")
            mask = self._early("select", pays, most, self._literal(0))
            number = self._early("add", mask, self._literal(1))
        program.buffers.append(
            Buffer("temporary", 0, about.dtype, (number, *about.lengths), is_once=False)
        )
        return len(program.buffers) - 1, mask

    def _filled(self, copies: BufferId, combiner: str) -> Statement:
        """Return the loops that let all copies begin with what changes no sum."""
        dtype = self.program.buffers[copies].dtype
        nothing = self._literal(identity(combiner, dtype), dtype)
        return self._nest(copies, lambda index: [Store(copies, index, nothing)])

    def _added_up(self, copies: BufferId, store: Store) -> Statement:
        """Return the loops that add the copies to the buffer that is meant."""

        def add(index: tuple[Value, ...]) -> list[Statement]:
            total = self._value(self.program.buffers[copies].dtype)
            return [
                Load(total, copies, index),
                Store(store.buffer, index[1:], total, store.combiner),
            ]

        return self._nest(copies, add)

    def _nest(
        self, buffer: BufferId, inside: Callable[[tuple[Value, ...]], list[Statement]]
    ) -> Statement:
        """Return loops over all elements of a buffer."""
        lengths = self.program.buffers[buffer].lengths
        index = tuple([self._value("i64") for _ in lengths])
        body = inside(index)
        for at, length in zip(reversed(index), reversed(lengths), strict=True):
            body = [For(at, length, body, [], [])]
        return body[0]

    def _value(self, dtype: str) -> Value:
        self.program.dtypes.append(dtype)
        return len(self.program.dtypes) - 1

    def _literal(self, number: int | float, dtype: str = "i64") -> Value:
        key = dtype, number
        if key not in self._literals:
            value = self._literals[key] = self._value(dtype)
            self.program.constants[value] = number
        return self._literals[key]

    def _early(self, name: str, *args: Value, dtype: str = "i64") -> Value:
        """Return the value of an operation at the start of the program."""
        out = self._value(dtype)
        self.at_start.append(Op(out, name, args))
        return out


def _lone_additions(program: Program, loop: For) -> list[Store]:
    """Return the additions at computed places to what the loop reaches in no other way.

    Their order must not matter to the result.
    """
    loaded: set[Value] = set()
    reached: dict[BufferId, list[Load | Store]] = {}
    for statement in loop.body:
        if isinstance(statement, Op):
            if not loaded.isdisjoint(statement.args):
                loaded.add(statement.out)
        elif isinstance(statement, Load | Store):
            reached.setdefault(statement.buffer, []).append(statement)
            if isinstance(statement, Load):
                loaded.add(statement.out)
    return [
        accesses[0]
        for buffer, accesses in reached.items()
        if len(accesses) == 1
        and isinstance(accesses[0], Store)
        and accesses[0].combiner == "add"
        and not loaded.isdisjoint(accesses[0].index)
        and (program.reassociates or program.buffers[buffer].dtype[0] != "f")
    ]
