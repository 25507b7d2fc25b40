"""Copies of nodes, as PyTensor makes one of each node of a graph before it compiles it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.utils import Scratchpad
from pytensor.tensor.variable import TensorVariable

from pytensor_fuse._pytensor.patching.drop_ins import DropIn, in_file_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._pytensor.patching.patches import Patch

_stock: Any = Apply.clone_with_new_inputs

# None, or False in releases whose ops can be cloned.
_DEFAULT: Final = _stock.__defaults__[-1]

# Those whose copies are made of what `Variable` keeps, and of nothing else.
_PLAIN: Final = (Variable, TensorVariable)
_numbers: Any = vars(Variable)["__count__"]
_new: Any = object.__new__

# If it is set, making a variable may warn, or fail.
_warn_float64: Any = config._config_var_dict["warn_float64"]


def clone_with_new_inputs(
    self: Any,
    inputs: Sequence[Variable[Any, Any]],
    strict: Any = True,
    clone_inner_graph: Any = _DEFAULT,
) -> Any:
    """Do as `Apply.clone_with_new_inputs`, without a call for each part of the copy.

    Nodes that have to be made anew, since an input is of another type, are left to it.
    """
    olds = self.inputs
    if (
        type(self) is not Apply
        or clone_inner_graph is not _DEFAULT
        or type(inputs) not in (list, tuple)
        or len(inputs) != len(olds)
        or self.op._output_type_depends_on_input_value
        or getattr(_warn_float64, "val", None) != "ignore"
    ):
        return _stock(self, inputs, strict, clone_inner_graph)
    for old, new in zip(olds, inputs, strict=True):
        if old.type is not new.type and old.type != new.type:
            return _stock(self, inputs, strict, clone_inner_graph)
    for old in self.outputs:
        name = old.name
        if type(old) not in _PLAIN or not (name is None or isinstance(name, str)):
            return _stock(self, inputs, strict, clone_inner_graph)
    made = _new(Apply)
    made.op = self.op
    made.inputs = list(inputs)
    made.tag = _copied(self.tag)
    outputs = made.outputs = []
    for index, old in enumerate(self.outputs):
        new = _new(type(old))
        new.tag = _copied(old.tag)
        new.type = old.type
        new.owner = made
        new.index = index
        new.name = old.name
        new.auto_name = f"auto_{next(_numbers)}"
        outputs.append(new)
    return made


@in_file_of(Apply.clone)
def _copied(tag: Any) -> Any:
    if type(tag) is not Scratchpad:
        return copy(tag)
    made = _new(Scratchpad)
    parts = tag.__dict__
    if parts:
        made.__dict__.update(parts)
    return made


def patch() -> Patch:
    """Return the patch."""
    return DropIn(Apply, "clone_with_new_inputs", clone_with_new_inputs)
