"""Thunks of C code: what PyTensor loads for a node, and how another thunk is made of it.

PyTensor compiles the graph of a single node for each thunk, finds out the key of its module, and
looks that up. A module holds code alone: each thunk is a struct that the module makes, with storage
of its own. So an equal node, linked under equal settings, can have its thunk from the same module.
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

# What decides about a module beside the settings that PyTensor has in the digest of its keys: it
# finds the others there again, as arguments of the compiler or as versions of ops.
_OF_COMPILERS: Final = (
    "cmodule__remove_gxx_opt",
    "compiledir",
    "cxx",
    "gcc__cxxflags",
    "gcc_version_str",
    "lib__amdlibm",
    "openmp",
    "openmp_elemwise_minsize",
)

# Of functions that read the data of constants for keys and comments, for storage, or for numbers
# that stand in the code, which tensors have none of.
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
    """The tensor constants, by identity, at whose data code was made by looking."""

    def __init__(self) -> None:
        self.looked_at: set[int] = set()

    def read(self, constant: TensorConstant[Any], reader: CodeType) -> None:
        """Note that the code of a function reads the data of a constant."""
        if reader not in _LINKING_READERS:
            self.looked_at.add(id(constant))


def constants_in_code(node: Apply[Any]) -> list[int]:
    """Return the places of the constants that a node reads on whose data its C code may depend.

    Of arrays of more than one element it is found out, by making the code again: whoever found the
    module by its key has not made it.
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
    except Exception:  # An op may refuse in any way: then nothing is known of its code.
        return constants
    looked_at = readings.looked_at
    return [at for at in constants if at not in arrays or id(node.inputs[at]) in looked_at]


class LoadedCode(NamedTuple):
    """The module of a node, and how it is asked for a thunk.

    Attributes
    ----------
    module
        The module.
    places
        Which of the inputs and outputs of a node the struct is given: each variable once.
    init_tasks, tasks
        What the failures that the code may report belong to: numbers as in ``places``, of the
        parameters of the op and of the node itself -1 and -2; and what PyTensor says of them.
    has_parameters
        Whether the struct is given the parameters of the op.
    """

    module: Any
    places: tuple[int, ...]
    init_tasks: tuple[tuple[int, str, int], ...]
    tasks: tuple[tuple[int, str, int], ...]
    has_parameters: bool

    def thunk(self, node: Apply[Any], storage_map: Any, compute_map: Any) -> Any:
        """Return a thunk as `COp.make_c_thunk` makes it, with an error storage of its own.

        Parameters
        ----------
        node
            A node that is equal to the one that the code was loaded for.
        storage_map, compute_map
            As there.
        """
        variables = [*node.inputs, *node.outputs]
        storage = [storage_map[one] for one in variables]
        given = [storage[place] for place in self.places]
        # As -1 and -2 say.
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
    """Return a thunk that notes that its results are there."""

    def run() -> None:
        thunk()
        for entry in entries:
            entry[0] = True

    return run


def loaded_code(node: Apply[Any], thunk: Any) -> LoadedCode | None:
    """Return what a thunk of PyTensor's was made of; None if another one may need other code.

    Parameters
    ----------
    node
        The node that PyTensor made the thunk for.
    thunk
        What `COp.make_c_thunk` returned.
    """
    made = thunk.thunk
    compiled: list[Any] = getattr(made, "nodes", None) or []
    if type(made) is not _CThunk or len(compiled) != 1 or not _is_versioned(node):
        return None
    # PyTensor compiles a copy of the node; a variable that is read twice is one there as well.
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
    """Load a compiled module as PyTensor does, or return it if this process has loaded it.

    PyTensor has Python search the whole directory for it, whose listing it forgets each time.

    Raises
    ------
    ImportError
        If it cannot be loaded.
    """
    # PyTensor's names: a folder for each module.
    name = f"{path.parent.name}.{path.name.partition('.')[0]}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module", name=name, path=str(path))
    module = module_from_spec(spec)
    # As PyTensor: a module that was compiled for another NumPy of the same layout is no harm.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="numpy.ndarray size changed")
        spec.loader.exec_module(module)
    return sys.modules.setdefault(name, module)


def _is_versioned(node: Apply[Any]) -> bool:
    """Whether PyTensor takes the code of equal nodes for equal, as its own keys do."""
    op: Any = node.op
    types = (one.type for one in (*node.inputs, *node.outputs))
    return bool(op.c_code_cache_version_apply(node)) and all(
        isinstance(type_, CLinkerType) and type_.c_code_cache_version() for type_ in types
    )


def settings_of_code() -> tuple[Any, ...]:
    """Return what decides which module PyTensor loads for a node, beside the node; some 0.1 ms."""
    told = [getattr(config, name) for name in _OF_COMPILERS]
    # Where nobody has asked for a BLAS, no code of this graph does.
    return config.get_config_hash(), setting_now("blas__ldflags"), *told
