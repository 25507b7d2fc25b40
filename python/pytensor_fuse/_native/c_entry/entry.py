"""C function pointers: compiled functions called through `ctypes` in this process."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pytensor_fuse._native.c_entry.function import CArray, native_graph
from pytensor_fuse._native.c_entry.messages import NEGATIVE_INPUT, OWN_FAILURES
from pytensor_fuse._native.emission.c.function import emit_c_module
from pytensor_fuse._native.emission.c.support import DOES_NOT_FIT, N_DETAILS, WRONG_LENGTH
from pytensor_fuse._native.linking.thunks import failing
from pytensor_fuse._native.runtime.c_functions import CCode
from pytensor_fuse._native.runtime.constants import table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.compile.executor import Function

    from pytensor_fuse._native.c_entry.function import NativeGraph, SharedVariables
    from pytensor_fuse._native.lowering.types import Array

_SYMBOL: Final = "call"
_POINTERS: Final = ctypes.POINTER(ctypes.c_void_p)
_NUMBERS: Final = ctypes.POINTER(ctypes.c_int64)
_PROTOTYPE: Final = ctypes.CFUNCTYPE(
    ctypes.c_int64, _POINTERS, _NUMBERS, _POINTERS, _NUMBERS, _NUMBERS, _NUMBERS
)


class CEntry:
    """A compiled function as a C function; the object must outlive every call.

    The signature, which later versions keep:

    .. code-block:: c

        int64_t call(const void *const *inputs, const int64_t *lengths, void *const *outputs,
                     const int64_t *capacities, int64_t *output_lengths, int64_t *details);

    ``inputs`` holds the address of each input's elements, an aligned C-contiguous array;
    ``lengths`` the lengths of all axes of all inputs, one input after the other. ``outputs`` holds
    the address of each output's buffer, which must be aligned and overlap no other array, and
    ``capacities`` the number of elements that fit in each: 1 for an output without axes. The
    lengths of all axes of all outputs are written to ``output_lengths``, unless that is null.
    Inputs are never written to.

    The function returns 0 on success and a code otherwise. Outputs may have been written to by
    then. Eight numbers that describe the failure are written to ``details``, unless that is null:

    - ``-1``: out of memory for intermediate results.
    - ``-2``: an output has more elements than its buffer holds; the number of the output, and its
      number of elements. Its lengths have been written.
    - ``-3``: a length of an input is negative, or differs from the one that the input's type
      states; the number of the input, the axis, the stated length or -1, and the actual length.
    - ``-4``: an output would have a negative length; the number of the output, the axis and the
      length.
    - a positive number: an exception of the compiled function, which `error` constructs. These
      numbers may differ between versions of this package, and between compilations.

    Any number of threads may call the function concurrently, with or without the interpreter lock.

    Attributes
    ----------
    address
        The address of the C function. Its callers must keep this object alive.
    ctypes
        The function as a `ctypes` function, which releases the interpreter lock and keeps its code
        alive.
    inputs
        The arguments, in order.
    outputs
        The results, in order.
    """

    address: int
    ctypes: Any
    inputs: tuple[CArray, ...]
    outputs: tuple[CArray, ...]

    def __init__(self, graph: NativeGraph) -> None:
        text = emit_c_module(graph.interface, _SYMBOL)
        code = CCode(text, _SYMBOL, graph.compiled, graph.bound)
        self.address = code.address
        self.ctypes = _PROTOTYPE(code.address)
        self.ctypes.code = code
        self.inputs = graph.inputs
        self.outputs = graph.outputs
        self._is_single = graph.is_single
        self._fail = failing(graph.compiled.program)
        self._n_failures = len(graph.compiled.program.failures)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, arrays)) for arrays in (self.inputs, self.outputs))
        return f"<CEntry ({inputs}) -> ({outputs})>"

    def __reduce__(self) -> Any:
        raise TypeError("a CEntry has addresses of its process: pickle its function instead")

    def __call__(self, *arrays: Any) -> Any:
        """Call the C function with newly allocated outputs.

        Parameters
        ----------
        *arrays : array_like
            One array for each input, with its dtype and number of axes. Arrays that are not
            contiguous are copied.

        Returns
        -------
        numpy.ndarray or list of numpy.ndarray
            The results of the compiled function.

        Raises
        ------
        TypeError
            If the number of arrays, or the dtype or number of axes of one, is wrong.
        Exception
            As constructed by `error`.
        """
        if len(arrays) != len(self.inputs):
            raise TypeError(f"{len(arrays)} arrays for a function of {len(self.inputs)} inputs")
        given = [self._given(position, one) for position, one in enumerate(arrays)]
        inputs = table_of(given)
        lengths = _numbers([length for one in given for length in one.shape])
        largest = max([one.size for one in given], default=1)
        memory = [self._memory(one, largest) for one in self.outputs]
        output_lengths = _numbers([0] * sum(len(one.shape) for one in self.outputs))
        details = _numbers([0] * N_DETAILS)
        while True:
            code = self.ctypes(
                inputs,
                lengths,
                table_of(memory),
                _numbers([one.size for one in memory]),
                output_lengths,
                details,
            )
            if code != DOES_NOT_FIT:
                break
            output, size = details[:2]
            memory[output] = np.empty(size, self.outputs[output].dtype)
        if code != 0:
            raise self.error(code, details)
        found, first = [], 0
        for about, one in zip(self.outputs, memory, strict=True):
            shape = tuple(output_lengths[first : first + len(about.shape)])
            first += len(shape)
            size = math.prod(shape)
            # A view would keep the whole of a buffer with spare room alive.
            found.append((one if size == one.size else one[:size].copy()).reshape(shape))
        return found[0] if self._is_single else found

    def error(self, code: int, details: Sequence[int] = ()) -> BaseException:
        """Return the exception that a code stands for.

        Parameters
        ----------
        code : int
            The nonzero return value of the C function.
        details : sequence of int
            The numbers that it has written to ``details``.

        Returns
        -------
        BaseException
            The exception, which is not raised.

        Raises
        ------
        ValueError
            If no code of this function has that number.
        """
        told = [*details, *[0] * N_DETAILS][:N_DETAILS]
        if code == WRONG_LENGTH and told[2] < 0:
            return ValueError(NEGATIVE_INPUT.format(*told))
        if code in OWN_FAILURES:
            _, exception, message = OWN_FAILURES[code]
            return exception(message.format(*told))
        if not 0 < code <= self._n_failures:
            raise ValueError(f"{code} is no code of this function's")
        return self._fail(code, tuple(told))

    def _given(self, position: int, value: Any) -> Array:
        about, array = self.inputs[position], np.asarray(value)
        if array.dtype != about.dtype or array.ndim != len(about.shape):
            raise TypeError(
                f"input {position}: expected {about.dtype} with {len(about.shape)} axes, found "
                f"{array.dtype} with {array.ndim}"
            )
        return np.require(array, requirements=["C", "A"])

    @staticmethod
    def _memory(about: CArray, largest: int) -> Array:
        """Return a buffer for an output, which may be too small if its lengths are unknown."""
        # PyTensor states a length of -1 where it knows that the call will fail.
        known = [max(one, 0) for one in about.shape if one is not None]
        size = math.prod(known) if len(known) == len(about.shape) else largest
        return np.empty(size, about.dtype)


def _numbers(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * max(len(numbers), 1))(*numbers)


def compile_c(compiled: Function, *, shared: SharedVariables = "values") -> CEntry:
    """Return a compiled function as a C function, for callers without Python.

    Parameters
    ----------
    compiled : Function
        A compiled function that is machine code as a whole (`explain` says whether it is),
        or a function of PyMC that holds one, as made by `compile_logp` and others, and by
        `logp_dlogp_function`. It must have no updates.
    shared : {"values", "inputs"}
        The treatment of shared variables: ``values`` copies their present values, which each call
        reads; ``inputs`` turns them into inputs after the other ones, in the order of the result's
        ``inputs``.

    Returns
    -------
    CEntry
        The function's address, a `ctypes` function, and descriptions of its inputs and outputs.

    Raises
    ------
    TypeError
        If the argument is not a compiled function.
    ValueError
        If the function updates shared variables, or ``shared`` has another value.
    NativeLinkError
        If the function is not machine code as a whole; the message lists the other parts.

    Examples
    --------
    >>> import ctypes
    >>> import numpy as np
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> from pytensor_fuse.native import compile_c
    >>> x = pt.vector("x")
    >>> f = pytensor.function([x], [x.sum(), x * 2], mode="NATIVE")
    >>> entry = compile_c(f)
    >>> entry
    <CEntry (x: float64[?]) -> (float64[], float64[?])>

    The call from C, here through `ctypes`:

    >>> x, total, twice = np.array([1.0, 2.0, 4.0]), np.empty(()), np.empty(3)
    >>> entry.ctypes(
    ...     (ctypes.c_void_p * 1)(x.ctypes.data),
    ...     (ctypes.c_int64 * 1)(3),
    ...     (ctypes.c_void_p * 2)(total.ctypes.data, twice.ctypes.data),
    ...     (ctypes.c_int64 * 2)(1, 3),
    ...     None,
    ...     None,
    ... )
    0
    >>> total, twice
    (array(7.), array([2., 4., 8.]))

    The same call with buffers allocated for the outputs:

    >>> entry(x)
    [array(7.), array([2., 4., 8.])]
    """
    return CEntry(native_graph("compile_c", compiled, shared))
