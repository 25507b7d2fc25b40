"""The computation of Elemwise nodes per element, and which targets can compile it in a kernel.

PyTensor asks each scalar op for C code, whatever the linker. Here the question is asked once for
each scalar op with given operand dtypes, and the answer is cached for the life of the process.
Numba can also compile scalar ops that have no C code; ops for which it falls back to Python are not
fused.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytensor.configdefaults import config
from pytensor.scalar.basic import get_scalar_type

from pytensor_fuse._pytensor.ops.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.graph.basic import Apply, Variable
    from pytensor.scalar.basic import ScalarOp

    from pytensor_fuse._core import Extraction


@dataclass(frozen=True, eq=False)
class ScalarKind:
    """A scalar op applied to operands of given dtypes.

    Attributes
    ----------
    node
        The scalar apply node, on variables of its own.
    has_c_code
        Whether PyTensor would fuse it into a kernel.
    """

    node: Apply[Any]
    has_c_code: bool

    def compiles(self, target: Target) -> bool:
        """Whether ``target`` can compile it inside a kernel."""
        return self.has_c_code or (target is Target.NUMBA and self.numba_compiles)

    @cached_property
    def numba_compiles(self) -> bool:
        """Whether Numba has its own implementation, other than a call back to Python."""
        try:
            from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
        except ImportError:  # An op that does not state its C code is not queried further.
            return False
        with warnings.catch_warnings(record=True) as fallbacks:
            warnings.simplefilter("always")
            try:
                numba_funcify_and_cache_key(self.node.op, node=self.node)
            except Exception:  # Numba may raise any exception for an op that it does not know.
                return False
        # The dispatcher warns when it falls back; no other sign exists in all versions.
        return not fallbacks


_KindKey = tuple["ScalarOp", tuple[str, ...], tuple[int, ...], str]
_Entry = tuple["ScalarOp | None", ScalarKind | None]

# Scalar ops with inner graphs are as many as the graphs that a process compiles, so the tables are
# emptied at this size; the answers are then computed again, without any effect on results.
_MAX_KINDS = 20_000
# The scalar op of each key, which is one of several that may be equal, and the answer.
_kinds: dict[_KindKey, _Entry] = {}
# Entries of `_kinds` by `Extraction.signature_keys`, which identify a scalar op by its address, so
# no op is hashed or compared. The entry keeps the op alive, so that no other op gets its address.
_by_address: dict[bytes, _Entry] = {}

_NO_KIND: _Entry = (None, None)


def scalar_kinds(nodes: Sequence[Apply[Any]]) -> list[ScalarKind | None]:
    """Return the per-element computation of each Elemwise node.

    None marks a node that cannot be in a kernel: it has several outputs, its output has another
    dtype than the result of the scalar op, or its scalar op cannot be hashed or queried.
    """
    return [kind for _, kind in _entries(nodes)]


def signature_kinds(arrays: Extraction) -> list[ScalarKind | None]:
    """Return the `scalar_kinds` of the nodes that have each signature."""
    keys = arrays.signature_keys()
    try:
        return [_by_address[key][1] for key in keys]
    except KeyError:
        examples = arrays.examples()
    kinds = [_by_address.get(key, _NO_KIND)[1] for key in keys]
    unknown = [position for position, key in enumerate(keys) if key not in _by_address]
    entries = _entries([examples[position] for position in unknown])
    for position, entry in zip(unknown, entries, strict=True):
        kinds[position] = entry[1]
        # An equal op is left out: there may be one for each graph.
        if entry[0] is examples[position].op.scalar_op:
            _by_address[keys[position]] = entry
    return kinds


def _entries(nodes: Sequence[Apply[Any]]) -> list[_Entry]:
    entries: list[_Entry] = []
    unknown: list[tuple[int, _KindKey]] = []
    for position, node in enumerate(nodes):
        entry: _Entry | None = _NO_KIND
        if len(node.outputs) == 1:
            key = _key(node)
            try:
                entry = _kinds.get(key)
            except TypeError:
                # An op that cannot be hashed cannot be compared with others, nor be in a Composite.
                entry = _NO_KIND
            if entry is None:
                unknown.append((position, key))
        entries.append(entry or _NO_KIND)
    if unknown:
        # Nobody sees these scalar variables, so their provenance is not recorded.
        with config.change_flags(traceback__limit=0):
            for position, key in unknown:
                entries[position] = _remember(key, _ask(nodes[position]))
    return entries


def _key(node: Apply[Any]) -> _KindKey:
    inputs = node.inputs
    dtypes = tuple([variable.type.dtype for variable in inputs])
    if len(inputs) == 1:
        repeats: tuple[int, ...] = (0,)
    elif len(inputs) == 2:
        repeats = (0, 0 if inputs[0] is inputs[1] else 1)
    else:
        first: dict[Variable[Any, Any], int] = {}
        repeats = tuple([first.setdefault(variable, i) for i, variable in enumerate(inputs)])
    return node.op.scalar_op, dtypes, repeats, node.outputs[0].type.dtype


def _remember(key: _KindKey, kind: ScalarKind | None) -> _Entry:
    if len(_kinds) >= _MAX_KINDS:
        _kinds.clear()
        _by_address.clear()
    return _kinds.setdefault(key, (key[0], kind))


def _ask(node: Apply[Any]) -> ScalarKind | None:
    scalar_op = node.op.scalar_op
    scalars = [get_scalar_type(variable.type.dtype).make_variable() for variable in node.inputs]
    try:
        scalar_node = scalar_op.make_node(*scalars)
        has_c_code = bool(scalar_op.supports_c_code(node.inputs, node.outputs))
    except Exception:  # A faulty op of another package must not prevent the fusion of the rest.
        return None
    if [out.type.dtype for out in scalar_node.outputs] != [node.outputs[0].type.dtype]:
        return None
    return ScalarKind(scalar_node, has_c_code)
