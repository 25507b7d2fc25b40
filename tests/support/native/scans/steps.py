"""Steps of random Scans, which both PyTensor and NumPy can run.

A step is a tape of operations on arrays of three shapes: scalars, rows of one width, and matrices
of two columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph

from support.native.graphs.steps import ifelse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.native.scans.recipes import Recipe


class Item(NamedTuple):
    """A value in a step: for PyTensor, or None while the NumPy loop runs, and for NumPy.

    A value that is the same in all steps is not a result: if PyTensor moves it out of the Scan, it
    drops the rows before the first step.
    """

    symbolic: Any
    numeric: np.ndarray
    varies: bool = True

    @property
    def dtype(self) -> str:
        return str(self.numeric.dtype)


class Step:
    """One step, built for PyTensor or run by NumPy.

    While it is built, NumPy has arrays of the right dtypes and shapes.
    """

    def __init__(
        self, recipe: Recipe, given: Sequence[Item], others: Sequence[Item], matrix: Item
    ) -> None:
        self.recipe = recipe
        self.matrix = matrix
        self.given = given
        self.pool = [*others, *given]
        for operation in recipe.tape:
            self.operate(*operation)

    def one_of(self, number: int, ndim: int | None = None) -> Item:
        """Return a value of the recipe's dtype, with a given number of axes if there is one."""
        found = [one for one in self.pool if one.dtype == self.recipe.dtype]
        found = [one for one in found if one.numeric.ndim == ndim] or found
        return found[-1 - number % len(found)]

    def operate(self, what: int, first: int, second: int) -> None:
        """Apply one operation of the tape."""
        a, b = self.one_of(first), self.one_of(second)
        if a.numeric.ndim < b.numeric.ndim:
            a, b = b, a
        names = ["mixed", "tanh", "switch", "maximum"]
        if a.numeric.ndim:
            names += ["reverse", "sum", "cumsum", "product", "roll"]
            if self.recipe.width:
                names += ["first", "put", "increment", "take", "inner_scan"]
        if a.numeric.ndim == b.numeric.ndim:
            names += ["either", "inner_graph"]
        self.pool.append(getattr(self, f"_{names[what % len(names)]}")(a, b))

    def _made(self, function: Any, *items: Item, symbolic: Any = None) -> Item:
        """Return a function of items, which takes the module first; PyTensor may have its own."""
        numeric = np.asarray(function(np, *[one.numeric for one in items]))
        varies = any(one.varies for one in items)
        if items[0].symbolic is None:
            return Item(None, numeric, varies)
        given = [one.symbolic for one in items]
        return Item(symbolic(*given) if symbolic else function(pt, *given), numeric, varies)

    def _fitted(self, a: Item, b: Item) -> Item:
        """Return the second item with as many axes as the first."""
        if (b.numeric.ndim, a.numeric.ndim) != (1, 2):
            return b
        return self._made(lambda xp, y: y[:, None], b)

    def _number(self, number: float) -> Any:
        return np.dtype(self.recipe.dtype).type(number)

    # Operations

    def _mixed(self, a: Item, b: Item) -> Item:
        half, more = self._number(0.5), self._number(0.375)
        return self._made(lambda xp, x, y: x * half - y * more, a, self._fitted(a, b))

    def _tanh(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x, y: xp.tanh(x + y), a, self._fitted(a, b))

    def _switch(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x, y: xp.where(x > y, x, -y), a, self._fitted(a, b))

    def _maximum(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x, y: xp.maximum(x, y), a, self._fitted(a, b))

    def _reverse(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x: x[::-1], a)

    def _sum(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x: x.sum(axis=-1) * self._number(0.3), a)

    def _cumsum(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x: xp.cumsum(x, axis=0) * self._number(0.3), a)

    def _product(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, m, x: xp.dot(m, x), self.matrix, a)

    def _roll(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x: xp.concatenate([x[1:], x[:1]], axis=0), a)

    def _first(self, a: Item, b: Item) -> Item:
        return self._made(lambda xp, x: x[0] if x.ndim == 1 else x[:, 0], a)

    def _take(self, a: Item, b: Item) -> Item:
        order = np.arange(self.recipe.width) // 2
        return self._made(lambda xp, x: x[order], a)

    def _put(self, a: Item, b: Item) -> Item:
        half = self._number(0.5)

        def put(xp: Any, x: Any) -> Any:
            x = x.copy()
            x[-1] = x[0] * half
            return x

        return self._made(put, a, symbolic=lambda x: pt.set_subtensor(x[-1], x[0] * half))

    def _increment(self, a: Item, b: Item) -> Item:
        part = self._number(0.25)

        def increment(xp: Any, x: Any) -> Any:
            more = x[:-1] * part
            x = x.copy()
            x[1:] += more
            return x

        return self._made(increment, a, symbolic=lambda x: pt.inc_subtensor(x[1:], x[:-1] * part))

    def _inner_scan(self, a: Item, b: Item) -> Item:
        half = self._number(0.5)

        def loop(xp: Any, x: Any) -> Any:
            state, rows = np.zeros_like(x[0]), []
            for row in x:
                state = np.tanh(state * half + row)
                rows.append(state)
            return np.array(rows)

        return self._made(
            loop,
            a,
            symbolic=lambda x: pytensor.scan(
                lambda row, state: pt.tanh(state * half + row),
                sequences=[x],
                outputs_info=[pt.zeros_like(x[0])],
                return_updates=False,
            ),
        )

    def _either(self, a: Item, b: Item) -> Item:
        least = self._number(0.1)
        return self._made(
            lambda xp, x, y: x if x.sum() > least else y,
            a,
            b,
            symbolic=lambda x, y: ifelse(x.sum() > least, x, y),
        )

    def _inner_graph(self, a: Item, b: Item) -> Item:
        def function(xp: Any, x: Any, y: Any) -> Any:
            return xp.tanh(x - y) * self._number(0.7)

        def graph(x: Any, y: Any) -> Any:
            inner = x.type(), y.type()
            return OpFromGraph(list(inner), [function(pt, *inner)])(x, y)

        return self._made(function, a, b, symbolic=graph)

    # Results of a step

    def out(self, kind: tuple[str, int], number: int) -> Item:
        """Return a value of a given kind, preferably an existing one."""
        dtype, ndim = kind
        if dtype == "bool" or dtype.startswith("int"):
            return self._discrete(dtype, ndim, number)
        found = self.one_of(number, ndim)
        if not found.varies:
            found = self._varying(found)
        while found.numeric.ndim > ndim:
            found = self._sum(found, found)
        if found.numeric.ndim < ndim:
            filled = np.ones((self.recipe.width, 2)[:ndim], self.recipe.dtype)
            if ndim == 2 and found.numeric.ndim:
                found = self._made(lambda xp, x: x[:, None], found)
            found = self._made(lambda xp, x: x * filled, found)
        return found if found.dtype == dtype else self._cast(found, dtype)

    def _varying(self, item: Item) -> Item:
        """Return a value that differs from step to step."""
        own = self.given[0]
        if own.dtype != self.recipe.dtype:
            own = self._cast(own, self.recipe.dtype)
        return self._tanh(*sorted([own, item], key=lambda one: -one.numeric.ndim))

    def _cast(self, item: Item, dtype: str) -> Item:
        return self._made(lambda xp, x: x.astype(dtype), item)

    def end(self, number: int) -> Item:
        """Return whether this is the last step."""
        found, most = self.one_of(number), self._number(0.3)
        if not found.varies:
            found = self._varying(found)
        while found.numeric.ndim:
            found = self._sum(found, found)
        return self._made(lambda xp, x: x > most, found)

    def _discrete(self, dtype: str, ndim: int, number: int) -> Item:
        same = [one for one in self.pool if one.dtype == dtype and one.numeric.ndim == ndim]
        if same and number % 3 == 0:
            return same[-1]
        least, base = self._number(0.05), self.out((self.recipe.dtype, ndim), number)
        found = self._made(lambda xp, x: x > least, base)
        if dtype == "bool":
            return self._made(lambda xp, x, y: x ^ y, found, same[0]) if same else found
        found = self._cast(found, dtype)
        for one in same:
            found = self._made(lambda xp, x, y: (x + 3 * y) % 17, found, one)
        return self._cast(found, dtype)
