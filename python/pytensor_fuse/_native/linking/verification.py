"""Verification mode: functions that also run Numba's code and compare the results.

Numbers may differ by rounding: sums are taken in another order, and the mathematical functions are
different implementations. Everything else must be equal: dtypes, shapes, positions of NaN, the
states of random generators, and exceptions. The exceptions to this are an index out of bounds and a
Scan of more steps than there are rows: machine code raises, and Numba, which does not check
everywhere, is not run.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytensor_fuse._native.linking.destroyed import destroyed_inputs
from pytensor_fuse._native.linking.regions import parts_of, whole
from pytensor_fuse._native.linking.single_precision import of_single_precision
from pytensor_fuse._native.lowering.indexing.bounds import OUT_OF_BOUNDS
from pytensor_fuse._native.lowering.scans.rules import BEYOND_END
from pytensor_fuse._native.lowering.sparse.structures import UNEVEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor.graph.fg import FunctionGraph

    from pytensor_fuse._native.lowering.types import Nodes

# Tolerances: relative to each number, and to the largest number of its array, since the difference
# of terms that cancel carries their rounding errors.
RELATIVE: Final = {"float64": 1e-8, "float32": 1e-4}
ABSOLUTE: Final = {"float64": 1e-10, "float32": 1e-5}


class NativeMismatchError(AssertionError):
    """Machine code and Numba's function of a graph disagree; the message says where."""


class VerifiedThunk:
    """A thunk that runs another one, and Numba's function of the whole graph.

    Parameters
    ----------
    thunk
        The thunk that contains machine code.
    reference
        Numba's function of the graph: it takes the inputs and returns the outputs.
    fgraph
        The graph.
    nodes
        Its nodes in the order of execution.

    Attributes
    ----------
    thunk
        The thunk that contains machine code.
    inputs, outputs
        The storage of the inputs and outputs.
    lazy
        False: all inputs are read at once.
    allow_gc, storage_map
        Set by PyTensor.
    """

    lazy = False
    allow_gc: bool
    storage_map: Any

    def __init__(self, thunk: Any, reference: Any, fgraph: FunctionGraph, nodes: Nodes) -> None:
        self.thunk = thunk
        self._reference = reference
        self._overwritten = frozenset(destroyed_inputs(fgraph.inputs, nodes))
        self._names = [str(one) for one in fgraph.outputs]
        single = of_single_precision(nodes)
        self._are_single = [one in single for one in fgraph.outputs]
        self.inputs = thunk.inputs
        self.outputs = thunk.outputs

    @property
    def jit_fn(self) -> Any:
        """The thunk's function for Numba, which is not verified."""
        return self.thunk.jit_fn

    @jit_fn.setter
    def jit_fn(self, value: Any) -> None:
        if value is not None:
            self.thunk.jit_fn = value

    def __call__(self) -> Any:
        """Run both on the contents of the inputs' storage.

        Raises
        ------
        NativeMismatchError
            If they disagree.
        """
        given = [
            copy.deepcopy(cell[0]) if position in self._overwritten else cell[0]
            for position, cell in enumerate(self.inputs)
        ]
        expected: Any = ()
        error: Exception | None = None
        failure: Exception | None = None
        try:
            returned = self.thunk()
        except Exception as raised:
            error = raised
        if error is not None and _is_out_of_bounds(error):
            # Numba does not check everywhere: it would read or overwrite arbitrary memory there.
            raise error
        try:
            expected = self._reference(*given)
        except Exception as raised:
            failure = raised
        if error is not None:
            # PyTensor appends the origin of the exception to the message.
            if type(error) is type(failure) and str(error).startswith(str(failure)):
                raise error
            told = "nothing" if failure is None else _told(failure)
            raise NativeMismatchError(
                f"machine code raises {_told(error)}, and Numba {told}"
            ) from error
        if failure is not None:
            raise NativeMismatchError(f"machine code raises nothing, and Numba {_told(failure)}")
        for position, (cell, other) in enumerate(zip(self.outputs, expected, strict=True)):
            found = difference(cell[0], other, is_single=self._are_single[position])
            if found is not None:
                name = self._names[position]
                raise NativeMismatchError(f"output {position} ({name}) of machine code {found}")
        return returned


def verified(
    fgraph: FunctionGraph,
    nodes: Nodes,
    made: tuple[list[Any], list[Any], Any] | None,
    by_numba: Callable[[], tuple[list[Any], list[Any], Any]],
) -> tuple[list[Any], list[Any], Any]:
    """Return a linker's result for a graph, verified if it contains machine code.

    Parameters
    ----------
    fgraph
        The graph.
    nodes
        Its nodes in the order of execution.
    made
        The result without Numba, if there is one.
    by_numba
        A function that makes the result of Numba's linker.
    """
    if made is None:
        made = by_numba()
        if parts_of(fgraph) is None:
            return made
    with whole(fgraph):
        _, _, reference = by_numba()
    [thunk], output_nodes, jit_fn = made
    return [VerifiedThunk(thunk, reference, fgraph, nodes)], output_nodes, jit_fn


def _is_out_of_bounds(error: Exception) -> bool:
    return isinstance(error, IndexError | ValueError) and str(error).startswith(
        (OUT_OF_BOUNDS, UNEVEN, *BEYOND_END)
    )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _are_alike(one: Any, other: Any) -> bool:
    """Whether states of generators are equal."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_alike(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


def _difference_of_matrices(ours: Any, theirs: Any, *, is_single: bool) -> str | None:
    """Return the difference of a sparse matrix from Numba's, or None."""
    if ours.shape != theirs.shape:
        return f"has shape {ours.shape}, and Numba's {theirs.shape}"
    for name in ("indptr", "indices", "data"):
        found = difference(getattr(ours, name), getattr(theirs, name), is_single=is_single)
        if found is not None:
            return f"has {name} that {found}"
    return None


def difference(ours: Any, theirs: Any, *, is_single: bool = False) -> str | None:
    """Return the difference of an output of machine code from Numba's beyond rounding, or None.

    Parameters
    ----------
    ours, theirs
        The outputs. Values other than numeric arrays, sparse matrices and generators are not
        compared.
    is_single
        Whether floats have rounding errors of single precision, whatever their dtype.
    """
    if hasattr(ours, "indptr"):
        return _difference_of_matrices(ours, theirs, is_single=is_single)
    if isinstance(ours, np.random.Generator):
        states = ours.bit_generator.state, theirs.bit_generator.state
        return None if _are_alike(*states) else "has another state than after Numba's function"
    if not isinstance(ours, np.ndarray | np.number | np.bool_ | bool | int | float):
        return None
    these, those = np.asarray(ours), np.asarray(theirs)
    if these.shape != those.shape:
        return f"has shape {these.shape}, and Numba's {those.shape}"
    if isinstance(ours, np.ndarray) and these.dtype != those.dtype:
        return f"has dtype {these.dtype}, and Numba's {those.dtype}"
    if these.dtype.kind != "f":
        n_others = int((these != those).sum())
        return f"differs from Numba's in {n_others} of {these.size} elements" if n_others else None
    is_nan = np.isnan(those)
    n_others = int((np.isnan(these) != is_nan).sum())
    if n_others:
        return f"has NaN where Numba's result has a number, or the reverse, {n_others} times"
    is_finite = np.isfinite(those)
    if not np.array_equal(these[~is_finite & ~is_nan], those[~is_finite & ~is_nan]):
        return "has other infinities than Numba's"
    mine, yours = these[is_finite], those[is_finite]
    if not mine.size:
        return None
    with np.errstate(all="ignore"):
        apart, size = np.abs(mine - yours), np.abs(yours)
        precision = "float32" if is_single else str(these.dtype)
        relative, absolute = RELATIVE[precision], ABSOLUTE[precision]
        is_far = ~(apart <= relative * size + absolute * size.max())
    if not is_far.any():
        return None
    worst = int(np.nanargmax(np.where(is_far, apart, -1.0)))
    return (
        f"differs from Numba's in {int(is_far.sum())} of {these.size} elements, by at most "
        f"{float(apart[worst]):.3g}: {float(mine[worst])!r} is not {float(yours[worst])!r}"
    )
