"""Thunks of C code: the module that PyTensor loads for a node, and more thunks from that module.

For each thunk, PyTensor compiles the graph of a single node, computes the key of its module, and
looks that up. A module contains code alone: each thunk is a struct that the module creates, with
its own storage. An equal node, linked under equal settings, can therefore have its thunk from the
same module.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.link.c.basic import CLinker, _CThunk
from pytensor.link.c.interface import CLinkerType
from pytensor.link.utils import map_storage
from pytensor.tensor.variable import TensorConstant

from pytensor_fuse._pytensor.rewriting.constant_reads import (
    HARMLESS_READERS,
    Watcher,
    are_reads_told,
    codes_of,
    watching,
)
from pytensor_fuse._pytensor.rewriting.environment import setting_now

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType

    from pytensor.graph.basic import Apply

# Settings that affect a module besides those that PyTensor hashes into its keys: PyTensor includes
# these as compiler arguments or as versions of ops.
_OF_COMPILERS: Final = (
    *("cmodule__remove_gxx_opt", "compiledir", "cxx", "gcc__cxxflags", "gcc_version_str"),
    *("lib__amdlibm", "openmp", "openmp_elemwise_minsize"),
)

# Functions that read the data of constants for keys and comments, for storage, or for numbers in
# the code, which tensors do not have.
_LINKING_READERS: Final = HARMLESS_READERS | frozenset(
    code
    for function in (
        TensorConstant.signature,
        map_storage,
        CLinker.fetch_variables,
        CLinker.code_gen,
    )
    for code in codes_of(function)
)


class _CodeReadings(Watcher):
    """The tensor constants, by identity, whose data was read while code was generated."""

    def __init__(self) -> None:
        self.looked_at: set[int] = set()

    def read(self, constant: TensorConstant[Any], reader: CodeType) -> None:
        """Note that the code of a function reads the data of a constant."""
        if reader not in _LINKING_READERS:
            self.looked_at.add(id(constant))


def constants_in_code(node: Apply[Any]) -> list[int]:
    """Return the positions of a node's constant inputs whose data its C code may depend on.

    The code is generated again to find out about arrays of more than one element: a module that was
    found by its key has generated none.
    """
    constants = [at for at, one in enumerate(node.inputs) if isinstance(one, Constant)]
    arrays = {
        at
        for at in constants
        if type(node.inputs[at]) is TensorConstant
        and any(length != 1 for length in node.inputs[at].type.shape)
    }
    if not arrays or not are_reads_told():
        return constants
    readings = _CodeReadings()
    try:
        with watching(readings):
            CLinker().accept(FunctionGraph(node.inputs, node.outputs)).code_gen()
    except Exception:  # An op may fail with any exception; then nothing is known about its code.
        return constants
    looked_at = readings.looked_at
    return [at for at in constants if at not in arrays or id(node.inputs[at]) in looked_at]


class LoadedCode(NamedTuple):
    """The module of a node, and how to create a thunk with it.

    Attributes
    ----------
    module
        The module.
    places
        The inputs and outputs of a node that are passed to the struct: each variable once.
    init_tasks, tasks
        The sources of the errors that the code may report: positions as in ``places``, -1 for the
        parameters of the op and -2 for the node itself; and PyTensor's description of each.
    has_parameters
        Whether the parameters of the op are passed to the struct.
    """

    module: Any
    places: tuple[int, ...]
    init_tasks: tuple[tuple[int, str, int], ...]
    tasks: tuple[tuple[int, str, int], ...]
    has_parameters: bool

    def thunk(self, node: Apply[Any], storage_map: Any, compute_map: Any) -> Any:
        """Return a thunk as `COp.make_c_thunk` does, with its own error storage.

        Parameters
        ----------
        node
            A node that is equal to the one whose code was loaded.
        storage_map, compute_map
            As for `COp.make_c_thunk`.
        """
        variables = [*node.inputs, *node.outputs]
        storage = [storage_map[one] for one in variables]
        given = [storage[place] for place in self.places]
        # The last two are found by -1 and -2.
        known: list[Any] = [*variables, node, None]
        if self.has_parameters:
            op: Any = node.op
            parameters = known[-1] = Constant(node.params_type, op.get_params(node))
            given.append([parameters.data])
        error: list[Any] = [None, None, None]
        made = _CThunk(
            self.module.instantiate(error, *given),
            [(known[number], *rest) for number, *rest in self.init_tasks],
            [(known[number], *rest) for number, *rest in self.tasks],
            error,
            self.module,
        )
        made.nodes = [node]
        run: Any = made
        if compute_map is not None:
            run = _noting(made, [compute_map[one] for one in node.outputs])
        run.thunk = made
        run.cthunk = made.cthunk
        run.inputs = storage[: len(node.inputs)]
        run.outputs = storage[len(node.inputs) :]
        run.lazy = False
        return run


def _noting(thunk: Any, entries: list[Any]) -> Any:
    """Return a thunk that also marks its results as computed."""

    def run() -> None:
        thunk()
        for entry in entries:
            entry[0] = True

    return run


def loaded_code(node: Apply[Any], thunk: Any) -> LoadedCode | None:
    """Return the module behind one of PyTensor's thunks; None if an equal node may need other code.

    Parameters
    ----------
    node
        The node that PyTensor made the thunk for.
    thunk
        The result of `COp.make_c_thunk`.
    """
    made = thunk.thunk
    compiled: list[Any] = getattr(made, "nodes", None) or []
    if type(made) is not _CThunk or len(compiled) != 1 or not _is_versioned(node):
        return None
    # PyTensor compiles a copy of the node, which also has each variable once.
    (copied,) = compiled
    variables = [*copied.inputs, *copied.outputs]
    numbers: dict[Any, int] = {copied: -2}
    for number, one in enumerate(variables):
        numbers.setdefault(one, number)
    places = tuple(sorted(number for number in numbers.values() if number >= 0))
    others = dict.fromkeys(
        one for one, _, _ in (*made.init_tasks, *made.tasks) if one not in numbers
    )
    if len(others) > 1:
        return None
    numbers.update((one, -1) for one in others)
    return LoadedCode(
        made.module,
        places,
        tuple([(numbers[one], name, number) for one, name, number in made.init_tasks]),
        tuple([(numbers[one], name, number) for one, name, number in made.tasks]),
        bool(others),
    )


def loaded_module(path: Path) -> Any:
    """Load a compiled module as PyTensor does, or return it if this process has loaded it already.

    PyTensor lets Python search the whole directory, whose listing is invalidated each time.

    Raises
    ------
    ImportError
        If it cannot be loaded.
    """
    # PyTensor's naming: a folder for each module.
    name = f"{path.parent.name}.{path.name.partition('.')[0]}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module", name=name, path=str(path))
    module = module_from_spec(spec)
    # PyTensor does this, too: a module compiled for another NumPy of the same layout is harmless.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="numpy.ndarray size changed")
        spec.loader.exec_module(module)
    return sys.modules.setdefault(name, module)


def _is_versioned(node: Apply[Any]) -> bool:
    """Whether PyTensor considers the code of equal nodes equal, as in its own keys."""
    op: Any = node.op
    types = (one.type for one in (*node.inputs, *node.outputs))
    return bool(op.c_code_cache_version_apply(node)) and all(
        isinstance(type_, CLinkerType) and type_.c_code_cache_version() for type_ in types
    )


def settings_of_code() -> tuple[Any, ...]:
    """Return the settings that decide which module PyTensor loads for a node; about 0.1 ms."""
    told = [getattr(config, name) for name in _OF_COMPILERS]
    # If the BLAS flags have not been requested, no code of this graph uses BLAS.
    return config.get_config_hash(), setting_now("blas__ldflags"), *told
