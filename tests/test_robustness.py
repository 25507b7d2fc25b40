"""What the Rust core does where a program is not as it should be: cycles, strangers, interrupts."""

import ctypes

import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph

from pytensor_fuse import _core
from pytensor_fuse._core import in_order


class Slot(ctypes.Structure):
    """Python's `PyModuleDef_Slot`."""

    _fields_ = (("number", ctypes.c_int), ("value", ctypes.c_void_p))


def test_the_module_needs_the_lock_of_the_interpreter():
    # A build for the stable ABI, which no free-threaded Python loads, has no such slot.
    py_mod_gil, gil_used = 4, None
    init = ctypes.PyDLL(_core.__file__).PyInit__core
    init.restype = ctypes.c_void_p
    # In `PyModuleDef`, the slots come after the head of an object and seven words.
    place = init() + object.__basicsize__ + 7 * ctypes.sizeof(ctypes.c_void_p)
    slots = ctypes.cast(ctypes.c_void_p.from_address(place).value, ctypes.POINTER(Slot))
    values = {}
    while slots[len(values)].number:
        slot = slots[len(values)]
        values[slot.number] = slot.value
    assert values
    assert values.get(py_mod_gil) == gil_used


def cyclic_graph():
    """Return the sine of an exponential that reads the sine."""
    x = pt.dvector("x")
    inner = pt.exp(x)
    outer = pt.sin(inner)
    inner.owner.inputs[0] = outer
    return [inner.owner, outer.owner]


@pytest.mark.parametrize("start", [0, 1])
def test_the_order_of_a_cyclic_graph_is_refused(start):
    nodes = cyclic_graph()
    with pytest.raises(ValueError, match="the graph has a cycle"):
        in_order([nodes[start]], set(nodes))


def test_a_cycle_outside_does_not_matter():
    inner, outer = cyclic_graph()
    reader = pt.cos(outer.outputs[0]).owner
    assert in_order([reader, reader], {reader}) == [reader]
    assert in_order([reader], {reader, outer}) == [outer, reader]
    assert in_order([inner, outer], {inner, reader}) == [inner]


def test_a_shared_input_is_no_cycle():
    x = pt.dvector("x")
    shared = pt.exp(x)
    total = pt.sin(shared) + shared * shared
    fgraph = FunctionGraph([x], [total], clone=False)
    order = in_order([total.owner], fgraph.apply_nodes)
    assert len(order) == 4
    assert order[0] is shared.owner
    assert order[-1] is total.owner
