"""Other callbacks for nutpie, which turns a PyMC model into callbacks that its sampler calls.

nutpie (0.16.9 to 0.16.11) compiles two PyTensor functions, and lets Numba compile a C function
around each. The sampler receives their addresses, and the address of a record of the data of shared
variables, which both C functions read in each call: a copy of a model with other data has another
record, and the same functions.
"""

from __future__ import annotations

import sys
import warnings
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from uuid import uuid4

import numpy as np

from pytensor_fuse._pytensor.compat.checks import Does, Fact, Takes
from pytensor_fuse._pytensor.patching.patches import PatchOnceImported, ReplacedAttributes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

MODULE: Final = "nutpie.compile_pymc"
# The versions whose functions have been reviewed.
KNOWN: Final = "0.16.9 to 0.16.11"
# The replaced function.
COMPILE: Final = "_compile_pymc_model_numba"

# Checked when the program imports nutpie, which this package never does.
GROUND: Final[tuple[Fact, ...]] = (
    # Reimplemented here word by word.
    Does(f"{MODULE}:{COMPILE}"),
    # The work of the C functions, and the arguments that their caller passes.
    Does(f"{MODULE}:_make_c_logp_func"),
    Does(f"{MODULE}:_make_c_expand_func"),
    Does(f"{MODULE}:make_extraction_fn"),
    Does(f"{MODULE}:CompiledPyMCModel._make_model"),
    # The positions of data in the record, and their order, which copies of a model preserve.
    Does(f"{MODULE}:make_user_data"),
    Does(f"{MODULE}:update_user_data"),
    Does(f"{MODULE}:CompiledPyMCModel.with_data"),
    # The list of functions, and the other calls.
    Does(f"{MODULE}:_make_functions"),
    Takes(
        f"{MODULE}:_make_functions",
        ("model, *, mode, compute_grad, join_expanded, pymc_initial_point_fn, var_names",),
    ),
    Takes(f"{MODULE}:_prepare_dims_and_coords", ("model, shape_info, reparameterized_names",)),
)


class DataPlace(NamedTuple):
    """The position in the record where a C function finds the data of a shared variable.

    Attributes
    ----------
    address, lengths
        The offsets, in bytes, of the address of the data and of the length of the first axis; the
        lengths of further axes follow. All are 64-bit numbers.
    data
        The data in the first record; later data have the same dtype and number of dimensions.
    """

    address: int
    lengths: int
    data: np.ndarray[Any, Any]


class Callbacks(Protocol):
    """Makes C functions: each result has an ``address``, and keeps its function alive.

    A method returns None if it cannot make the function; Numba makes it then.
    """

    def logp(self, function: Any, n_dim: int, places: Sequence[DataPlace]) -> Any:
        """Make the function that computes the log density and its gradient."""

    def expand(
        self, function: Any, n_dim: int, n_expanded: int, places: Sequence[DataPlace]
    ) -> Any:
        """Make the function that computes all variables of a draw."""


def compiled_model(
    nutpie: ModuleType,
    callbacks: Callbacks,
    model: Any,
    pymc_initial_point_fn: Any,
    var_names: Any = None,
    **options: Any,
) -> Any:
    """Compile as nutpie does, with other callbacks where there are any.

    Parameters
    ----------
    nutpie
        The module of nutpie that has the function.
    callbacks
        Makes the callbacks.
    model, pymc_initial_point_fn, var_names
        As for nutpie's own function.
    **options
        Options of Numba; with any, Numba makes all callbacks.
    """
    if find_spec("numba") is None:
        raise ImportError(
            "Numba is not installed in the current environment. "
            "Please install it with something like "
            "'mamba install -c conda-forge numba' "
            "and restart your kernel in case you are in an interactive session."
        )
    n_dim, n_expanded, logp_fn, expand_fn, initial_point_fn, shape_info, names = (
        nutpie._make_functions(
            model,
            mode="NUMBA",
            compute_grad=True,
            join_expanded=True,
            pymc_initial_point_fn=pymc_initial_point_fn,
            var_names=var_names,
        )
    )
    shared_var_keys: dict[Any, str] = {}
    shared_data: dict[str, Any] = {}
    for variable in dict.fromkeys([*logp_fn.get_shared(), *expand_fn.get_shared()]):
        key = shared_var_keys[variable] = uuid4().hex
        shared_data[key] = np.array(variable.get_value(), order="C", copy=True)
        shared_data[key].flags.writeable = False
    user_data = nutpie.make_user_data(shared_var_keys, shared_data)

    def keys_of(function: Any) -> list[str]:
        return [shared_var_keys[one] for one in function.get_shared()]

    def places_of(function: Any) -> list[DataPlace]:
        return [_place(user_data.dtype, key, shared_data[key]) for key in keys_of(function)]

    logp = expand = None
    if not options:
        logp = callbacks.logp(logp_fn, n_dim, places_of(logp_fn))
        expand = callbacks.expand(expand_fn, n_dim, n_expanded, places_of(expand_fn))
    if logp is None:
        function, signature = nutpie._make_c_logp_func(
            n_dim, logp_fn.vm.jit_fn, user_data, keys_of(logp_fn), shared_data
        )
        logp = _by_numba(function, signature, options)
    if expand is None:
        function, signature = nutpie._make_c_expand_func(
            n_dim, n_expanded, expand_fn.vm.jit_fn, user_data, keys_of(expand_fn), shared_data
        )
        expand = _by_numba(function, signature, options)
    dims, coords = nutpie._prepare_dims_and_coords(model, shape_info, names)
    return nutpie.CompiledPyMCModel(
        _n_dim=n_dim,
        dims=dims,
        _coords=coords,
        _shapes={name: tuple(shape) for name, _, shape in zip(*shape_info, strict=True)},
        compiled_logp_func=logp,
        compiled_expand_func=expand,
        initial_point_func=initial_point_fn,
        shared_data=shared_data,
        shared_var_keys=shared_var_keys,
        user_data=user_data,
        n_expanded=n_expanded,
        shape_info=shape_info,
        logp_func=logp_fn,
        expand_func=expand_fn,
        reparameterized_names=names,
    )


def _place(record: np.dtype[Any], key: str, data: np.ndarray[Any, Any]) -> DataPlace:
    def offset(*path: str) -> int:
        found, kind = 0, record
        for name in path:
            kind, own = kind.fields[name][:2]  # type: ignore[index] # it has fields
            found += own
        return found

    return DataPlace(offset("shared", "data", key), offset("shared", "shape", key), data)


def _by_numba(function: Callable[..., int], signature: Any, options: dict[str, Any]) -> Any:
    import numba

    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore",
            message="Cannot cache compiled function .* as it uses dynamic globals",
            category=numba.NumbaWarning,
        )
        return numba.cfunc(signature, **options)(function)


def callbacks_once_imported(
    load: Callable[[], Callbacks | None], on_failure: Callable[[str], object]
) -> PatchOnceImported:
    """Return the patch that gives nutpie other callbacks.

    Parameters
    ----------
    load
        Returns the object that makes them, or None to leave all to nutpie. It is called late, so
        that a program that compiles no model does not wait for it.
    on_failure
        Called with the reason if nutpie cannot be patched when it is imported.
    """

    def make() -> ReplacedAttributes:
        nutpie = sys.modules[MODULE]
        stock = getattr(nutpie, COMPILE)

        @wraps(stock)
        def compile_model(*args: Any, **kwargs: Any) -> Any:
            # Callers may have kept or wrapped the replacement after the feature was switched off.
            callbacks = load() if patch.is_applied else None
            if callbacks is None:
                return stock(*args, **kwargs)
            return compiled_model(nutpie, callbacks, *args, **kwargs)

        return ReplacedAttributes([nutpie], COMPILE, compile_model)

    patch = PatchOnceImported(MODULE, GROUND, make, on_failure, KNOWN)
    return patch
