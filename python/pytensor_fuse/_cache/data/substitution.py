"""Other data in place of large constants: the conditions on them, and their results."""

from __future__ import annotations

import copy
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from pytensor.graph.basic import Constant
from pytensor.graph.op import Op
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._cache.data.questions import answer
from pytensor_fuse._cache.data.rewritten import with_own_data
from pytensor_fuse._identity.contents import content
from pytensor_fuse._identity.terms import constant_term, term
from pytensor_fuse._pytensor.rewriting.constant_reads import combine, convert, fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor.graph.type import Type

    from pytensor_fuse._cache.key.places import Origins


class OtherDataError(Exception):
    """Other data do not lead to the same graph; the message gives the reason."""


class Step(NamedTuple):
    """Constants that were computed from others.

    Attributes
    ----------
    how
        ``"fold"`` by an op, ``"convert"`` to a dtype, or ``"combine"`` by a sign.
    what
        The op, the dtype, the sign.
    operands
        The numbers of the operands that may change, and the other operands themselves.
    types
        The types of the op's outputs.
    made
        The types of the constants.
    """

    how: str
    what: Any
    operands: tuple[int | Constant[Any], ...]
    types: tuple[Type[Any], ...]
    made: tuple[Type[Any], ...]

    def with_own_data(self) -> Step:
        """Return the same step, with copies of its constants."""
        operands = [one if isinstance(one, int) else with_own_data(one) for one in self.operands]
        return self._replace(operands=tuple(operands))

    def run(self, known: Sequence[Constant[Any]]) -> list[Constant[Any]]:
        """Return the constants that the step computes from other data.

        Raises
        ------
        OtherDataError
            If they have other types.
        """
        operands: list[Any] = [known[one] if isinstance(one, int) else one for one in self.operands]
        if self.how == "fold":
            made = fold(self.what, operands, self.types)
        elif self.how == "convert":
            made = [convert(operands[0], self.what)]
        else:
            made = [combine(self.what, operands)]
        if made is None or tuple([one.type for one in made]) != self.made:
            raise OtherDataError(f"{self.what} computes another type from other data")
        return list(made)


class OtherData(NamedTuple):
    """The conditions under which other data lead to the same graph, and the steps to compute it.

    Constants have numbers: the large ones of the graph first, then computed ones.

    Attributes
    ----------
    sources
        The places of the large constants.
    steps
        The computations of the other constants, in the order of their numbers.
    exact
        The constants that must be equal, with their identities and their readers.
    answers
        The questions about constants, with the number of the constant and the answer.
    results
        The numbers of constants in the rewritten graph, and here.
    equals
        For each constant, the first equal one.
    others
        The identities of other constants of the same types.
    """

    sources: tuple[int, ...]
    steps: tuple[Step, ...]
    exact: tuple[tuple[int, Any, str], ...]
    answers: tuple[tuple[str, int, Any], ...]
    results: tuple[tuple[int, int], ...]
    equals: tuple[int, ...]
    others: frozenset[Any]

    def constants_for(self, origins: Origins) -> dict[int, Constant[Any]]:
        """Compute the constants of the rewritten graph for other data, by their numbers there.

        Parameters
        ----------
        origins
            A graph that differs only in the data of large constants.

        Raises
        ------
        OtherDataError
            If the data do not lead to the same graph.
        """
        known = [origins.constants[place] for place in self.sources]
        self._expect_exact(known, range(len(known)))
        for step in self.steps:
            known += step.run(known)
        self._expect_exact(known, range(len(self.sources), len(known)))
        for name, number, was in self.answers:
            if answer(name, plain(known[number])) != was:
                raise OtherDataError(f"the answer for {_described(known[number])} differs: {name}")
        self._expect_equal_pattern(known)
        return {place: with_own_data(known[number]) for place, number in self.results}

    def _expect_exact(self, known: Sequence[Constant[Any]], numbers: range) -> None:
        for number, was, reader in self.exact:
            if number in numbers and identity(known[number]) != was:
                raise OtherDataError(f"{_described(known[number])} was read in rewriting: {reader}")

    def _expect_equal_pattern(self, known: Sequence[Constant[Any]]) -> None:
        identities = [identity(one) for one in known]
        if first_equals(identities) != self.equals:
            raise OtherDataError("a different set of constants is equal")
        exact = {number for number, _, _ in self.exact}
        for number, own in enumerate(identities):
            if number not in exact and own in self.others:
                raise OtherDataError(f"{_described(known[number])} equals another constant")

    def digest(self) -> bytes | None:
        """Return a digest that is the same in every process; None if there is none."""
        others = sorted(map(repr, self.others))
        told = (self.sources, self.exact, self.answers, self.results, self.equals, others)
        made = blake2b(repr(told).encode())
        for step in self.steps:
            objects: list[Any] = [*step.types, *step.made]
            if isinstance(step.what, Op):
                objects.append(step.what)
            terms = [term(each) for each in objects]
            terms += [constant_term(one) for one in step.operands if not isinstance(one, int)]
            numbers = [one if isinstance(one, int) else None for one in step.operands]
            made.update(repr((step.how, str(step.what), numbers)).encode())
            for each in terms:
                if each.digest is None:
                    return None
                made.update(each.digest)
        return made.digest()


def identity(constant: Constant[Any]) -> Any:
    """Return the key by which merging compares constants."""
    type_: Any = constant.type
    return type_.dtype, type_.shape, content(constant)


def first_equals(identities: Iterable[Any]) -> tuple[int, ...]:
    """Return for each identity the position of the first equal one."""
    first: dict[Any, int] = {}
    return tuple([first.setdefault(one, place) for place, one in enumerate(identities)])


def plain(constant: Constant[Any]) -> TensorConstant[Any]:
    """Return a constant with the same data, without remembered findings."""
    made = copy.copy(constant)
    assert isinstance(made, TensorConstant)
    return made


def _described(constant: Constant[Any]) -> str:
    return f"{constant.name or 'a constant'} of {constant.type}"
