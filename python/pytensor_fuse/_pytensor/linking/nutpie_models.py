"""nutpie's way from a PyMC model to the callbacks that its sampler calls, for callbacks of others.

nutpie (0.16.9 to 0.16.11) makes two functions of PyTensor's, and has Numba compile a function of C
round each. The sampler gets their addresses, and that of a record of the data of shared variables,
which both functions of C read in each call: a model that is copied with other data has another
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
# Those whose functions have been read.
KNOWN: Final = "0.16.9 to 0.16.11"
# What is replaced.
COMPILE: Final = "_compile_pymc_model_numba"

# Asked when nutpie is imported, which nobody does for us.
GROUND: Final[tuple[Fact, ...]] = (
    # What is done here anew, word by word.
    Does(f"{MODULE}:{COMPILE}"),
    # What the functions of C do, and what their caller gives them.
    Does(f"{MODULE}:_make_c_logp_func"),
    Does(f"{MODULE}:_make_c_expand_func"),
    Does(f"{MODULE}:make_extraction_fn"),
    Does(f"{MODULE}:CompiledPyMCModel._make_model"),
    # The places of data in the record, and their order, which copies of a model keep.
    Does(f"{MODULE}:make_user_data"),
    Does(f"{MODULE}:update_user_data"),
    Does(f"{MODULE}:CompiledPyMCModel.with_data"),
    # Which functions there are, and what is called besides.
    Does(f"{MODULE}:_make_functions"),
    Takes(
        f"{MODULE}:_make_functions",
        ("model, *, mode, compute_grad, join_expanded, pymc_initial_point_fn, var_names",),
    ),
    Takes(f"{MODULE}:_prepare_dims_and_coords", ("model, shape_info, reparameterized_names",)),
)


class DataPlace(NamedTuple):
    """Where a function of C finds the data of a shared variable in the record.

    Attributes
    ----------
    address, lengths
        The offsets, in bytes, of the address of the data and of the length of the first axis; those
        of other axes follow. All are numbers of 64 bits.
    data
        The data that the record begins with: those that come later have its dtype and dimensions.
    """

    address: int
    lengths: int
    data: np.ndarray[Any, Any]


class Callbacks(Protocol):
    """Makes functions of C: what it returns has their ``address`` and keeps them.

    It returns None where it cannot, and Numba makes the function.
    """

    def logp(self, function: Any, n_dim: int, places: Sequence[DataPlace]) -> Any:
        """Make the one that computes the log density and its gradient."""

    def expand(
        self, function: Any, n_dim: int, n_expanded: int, places: Sequence[DataPlace]
    ) -> Any:
        """Make the one that computes all variables of a draw."""


def compiled_model(
    nutpie: ModuleType,
    callbacks: Callbacks,
    model: Any,
    pymc_initial_point_fn: Any,
    var_names: Any = None,
    **options: Any,
) -> Any:
    """Do as nutpie does, with other callbacks where there are some.

    Parameters
    ----------
    nutpie
        The module of nutpie that does it.
    callbacks
        Makes the callbacks.
    model, pymc_initial_point_fn, var_names
        As nutpie's own function takes them.
    **options
        Those of Numba, which then makes all callbacks.
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
    """Return the patch that has nutpie take other callbacks.

    Parameters
    ----------
    load
        Returns what makes them, or None if nutpie is to do all. A program that compiles no model
        does not wait for it.
    on_failure
        Is told why nutpie stays as it is, if that shows when it is imported.
    """

    def make() -> ReplacedAttributes:
        nutpie = sys.modules[MODULE]
        stock = getattr(nutpie, COMPILE)

        @wraps(stock)
        def compile_model(*args: Any, **kwargs: Any) -> Any:
            # Others may call this after the feature was switched off: they hold it, or wrap it.
            callbacks = load() if patch.is_applied else None
            if callbacks is None:
                return stock(*args, **kwargs)
            return compiled_model(nutpie, callbacks, *args, **kwargs)

        return ReplacedAttributes([nutpie], COMPILE, compile_model)

    patch = PatchOnceImported(MODULE, GROUND, make, on_failure, KNOWN)
    return patch
