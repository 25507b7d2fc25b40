"""Array privatization: scattered additions go to several copies, which are then added up.

Consecutive rows of one group add to the same element, so each addition depends on the previous one
through memory: a load that waits for a store, which takes a processor longer than all other work of
a row. With privatization, consecutive rows add to different copies of the array (Tu and Padua,
"Automatic array privatization", 1993). Row ``i`` always adds to copy ``i`` modulo the number of
copies, and the copies are added up in order, so the result is the same on every machine. The order
of the sum differs, however, which only integers and `numba__fastmath` allow.

The pass applies where the gain exceeds the cost of filling and adding up the copies. If lengths are
known only in the call, the loop is emitted twice and a branch selects one version, except inside
other loops, each iteration of which would fill copies of an array that may be large.

::

    for i < n                         for c < 8, j < groups
      store add x[group[i]] = v         store y[c, j] = -0.0
                                      for i < n
                             ->         store add y[i and 7, group[i]] = v
                                      for c < 8, j < groups
                                        store add x[j] = y[c, j]
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from pytensor_fuse._native.passes.rewrite import rewritten
from pytensor_fuse._native.program import model
from pytensor_fuse._native.program.operations import identity
from pytensor_fuse._native.program.walking import defined_by, with_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytensor_fuse._native.program.model import BufferId, Program, Statement, Value

# A power of two. The latency of an addition equals the time of four or five independent ones.
_COPIES: Final = 8
# The number of iterations per element from which the copies pay.
_LEAST_SHARE: Final = 16
# Shorter loops take only microseconds either way.
_LEAST_EXTENT: Final = 2048
# Copies of more elements exceed the processor's caches, and rows of one group are seldom near.
_MOST_ELEMENTS: Final = 4096


def privatized(program: Program) -> Program:
    """Return a program in which long loops with scattered additions add to copies.

    Parameters
    ----------
    program
        The program, which is not changed.

    Returns
    -------
    Program
        The new program; the same program if it has no such loop.
    """
    pass_ = _Privatization(program)
    body = pass_.block(program.body)
    if not pass_.has_copies:
        return program
    after = pass_.program.with_body([*pass_.at_start, *body])
    # Both sides of a branch define the values of one loop until they are renamed.
    return rewritten(after) if pass_.has_branches else after


class _Privatization:
    """The state of the pass over one program.

    Attributes
    ----------
    program
        The old program, extended by the values and buffers of the new one.
    at_start
        Statements that compute whether copies pay, for the start of the program.
    has_copies, has_branches
        Whether there is a loop that adds to copies, and one that does so only if copies pay.
    """

    def __init__(self, program: Program) -> None:
        self.program = program.extended()
        self.at_start: list[Statement] = []
        self.has_copies = self.has_branches = False
        self._literals: dict[tuple[str, int | float], Value] = {}
        self._pays: dict[tuple[Value, ...], Value] = {}

    def block(
        self, statements: Sequence[Statement], *, is_in_loop: bool = False
    ) -> list[Statement]:
        """Return the transformed statements of a block."""
        after: list[Statement] = []
        for statement in statements:
            if isinstance(statement, model.If):
                inside = partial(self.block, is_in_loop=is_in_loop)
                after.append(with_blocks(statement, inside))
            elif isinstance(statement, model.For):
                after += self._loop(statement, is_in_loop=is_in_loop)
            else:
                after.append(statement)
        return after

    def _loop(self, loop: model.For, *, is_in_loop: bool) -> list[Statement]:
        if any(isinstance(one, model.For | model.If) for one in loop.body):
            return [with_blocks(loop, partial(self.block, is_in_loop=True))]
        known: list[model.Store] = []
        unknown: list[model.Store] = []
        for store in _lone_additions(self.program, loop):
            is_worth_it = self._known_to_pay(loop.extent, store.buffer)
            if is_worth_it:
                known.append(store)
            elif is_worth_it is None and not is_in_loop:
                unknown.append(store)
        if not unknown:
            return self._with_copies(loop, known) if known else [loop]
        pays, *more = dict.fromkeys(self._pay(loop.extent, store.buffer) for store in unknown)
        for one in more:
            pays = self._early("and", pays, one, dtype="bool")
        self.has_branches = True
        choices = [model.Choice(out, out, out) for out in defined_by(loop)]
        return [model.If(pays, self._with_copies(loop, [*known, *unknown], pays), [loop], choices)]

    def _with_copies(
        self, loop: model.For, stores: Sequence[model.Store], pays: Value | None = None
    ) -> list[Statement]:
        """Return a loop that adds to copies, between loops that fill them and add them up.

        Parameters
        ----------
        loop, stores
            The loop, and its additions.
        pays
            The condition of the branch around the loop, if any. Where it is false, the copies have
            length zero, so that they take no memory.
        """
        self.has_copies = True
        before: list[Statement] = []
        behind: list[Statement] = []
        body = list(loop.body)
        for store in stores:
            about = self.program.buffers[store.buffer]
            first, *rest = about.lengths
            if pays is not None:
                first = self._early("select", pays, first, self._literal(0))
            lengths = (self._literal(_COPIES), first, *rest)
            copies = len(self.program.buffers)
            self.program.buffers.append(
                model.Buffer("temporary", 0, about.dtype, lengths, is_once=False)
            )
            place = self._value("i64")
            own = replace(store, buffer=copies, index=(place, *store.index))
            at = body.index(store)
            mask = self._literal(_COPIES - 1)
            body[at : at + 1] = [model.Op(place, "and", (loop.index, mask)), own]
            before.append(self._filled(copies, store.combiner))
            behind.append(self._added_up(copies, store))
        return [*before, replace(loop, body=body), *behind]

    def _known_to_pay(self, extent: Value, buffer: BufferId) -> bool | None:
        """Whether copies pay; None if that depends on lengths that are known only in the call."""
        program = self.program
        lengths = program.buffers[buffer].lengths
        needed = (extent, *lengths)
        if any(one not in program.constants and one not in program.lengths for one in needed):
            return False
        n = program.constants.get(extent)
        least = math.prod(int(program.constants.get(length, 1)) for length in lengths)
        if least > _MOST_ELEMENTS:
            return False
        if n is not None and int(n) < max(_LEAST_EXTENT, _LEAST_SHARE * least):
            return False
        return True if all(one in program.constants for one in needed) else None

    def _pay(self, extent: Value, buffer: BufferId) -> Value:
        """Return a value of the program that says whether copies pay."""
        lengths = self.program.buffers[buffer].lengths
        key = (extent, *lengths)
        if key not in self._pays:
            size, *more = lengths
            for length in more:
                size = self._early("mul", size, length)
            least = self._early("mul", self._literal(_LEAST_SHARE), size)
            least = self._early("maximum", least, self._literal(_LEAST_EXTENT))
            self._pays[key] = self._early(
                "and",
                self._early("le", size, self._literal(_MOST_ELEMENTS), dtype="bool"),
                self._early("le", least, extent, dtype="bool"),
                dtype="bool",
            )
        return self._pays[key]

    def _filled(self, copies: BufferId, combiner: str) -> Statement:
        """Return the loops that fill the copies with the identity element of a combiner."""
        dtype = self.program.buffers[copies].dtype
        nothing = self._literal(identity(combiner, dtype), dtype)
        return self._nest(copies, lambda index: [model.Store(copies, index, nothing)])

    def _added_up(self, copies: BufferId, store: model.Store) -> Statement:
        """Return the loops that add the copies to the buffer of a store."""

        def add(index: tuple[Value, ...]) -> list[Statement]:
            total = self._value(self.program.buffers[copies].dtype)
            return [
                model.Load(total, copies, index),
                model.Store(store.buffer, index[1:], total, store.combiner),
            ]

        return self._nest(copies, add)

    def _nest(
        self, buffer: BufferId, inside: Callable[[tuple[Value, ...]], list[Statement]]
    ) -> Statement:
        """Return a loop nest over all elements of a buffer."""
        lengths = self.program.buffers[buffer].lengths
        index = tuple([self._value("i64") for _ in lengths])
        body = inside(index)
        for at, length in zip(reversed(index), reversed(lengths), strict=True):
            body = [model.For(at, length, body, [], [])]
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
        self.at_start.append(model.Op(out, name, args))
        return out


def _lone_additions(program: Program, loop: model.For) -> list[model.Store]:
    """Return the scattered additions to buffers that the loop accesses in no other way.

    Only additions that may be reordered are returned.
    """
    loaded: set[Value] = set()
    reached: dict[BufferId, list[model.Load | model.Store]] = {}
    for statement in loop.body:
        if isinstance(statement, model.Op):
            if not loaded.isdisjoint(statement.args):
                loaded.add(statement.out)
        elif isinstance(statement, model.Load | model.Store):
            reached.setdefault(statement.buffer, []).append(statement)
            if isinstance(statement, model.Load):
                loaded.add(statement.out)
        elif isinstance(statement, model.Call | model.Draw):
            return []
    return [
        accesses[0]
        for buffer, accesses in reached.items()
        if len(accesses) == 1
        and isinstance(accesses[0], model.Store)
        and accesses[0].combiner == "add"
        and not loaded.isdisjoint(accesses[0].index)
        and (program.reassociates or program.buffers[buffer].dtype[0] != "f")
    ]
