"""What the Rust core does where a program is not as it should be: cycles, strangers, interrupts."""

import ctypes
import gc
import weakref

import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.tensor.elemwise import Elemwise

from pytensor_fuse import _core
from pytensor_fuse._core import in_order
from pytensor_fuse._merging.feature import LazyMergeFeature
from support.programs.processes import run_python


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


def two_sines():
    """Return a graph with two equal nodes, and its feature for merging."""
    x = pt.dvector("x")
    fgraph = FunctionGraph([x], [pt.sin(x), pt.sin(x)], clone=False)
    feature = LazyMergeFeature()
    fgraph.attach_feature(feature)
    return fgraph, feature


class Reentrant(Op):
    """Equal to all of its class; comparing two runs what a test wants."""

    __props__ = ()

    def __init__(self, meanwhile):
        self.meanwhile = meanwhile

    def __eq__(self, other):
        self.meanwhile()
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        raise NotImplementedError


@pytest.mark.parametrize("is_swallowed", [False, True])
@pytest.mark.parametrize(
    "reenter",
    [
        lambda merger, _: merger.merge(),
        lambda merger, fgraph: merger._table.look_up(merger._rules, fgraph, {}, False),
        lambda merger, _: merger.tidy(),
        lambda merger, _: len(merger._table),
    ],
)
def test_a_comparison_that_merges_the_graph_being_merged_is_told(reenter, is_swallowed):
    calls = []

    def meanwhile():
        if len(calls) < 5:
            calls.append(None)
            try:
                reenter(fgraph.merge_feature.merger, fgraph)
            except RuntimeError as error:
                errors.append(error)
                if not is_swallowed:
                    raise

    errors = []
    x = pt.dvector("x")
    outputs = [Reentrant(meanwhile)(x) for _ in range(2)]
    fgraph = FunctionGraph([x], [*outputs, pt.exp(outputs[0]), pt.exp(outputs[1])], clone=False)
    feature = LazyMergeFeature()
    fgraph.attach_feature(feature)
    if is_swallowed:
        feature.merge()
    else:
        with pytest.raises(RuntimeError, match="is being merged already"):
            feature.merge()
        assert len(fgraph.apply_nodes) == 4
        calls += [None] * 5
        feature.merge()
    assert all("is being merged already" in str(error) for error in errors)
    assert errors
    fgraph.check_integrity()
    assert len(fgraph.apply_nodes) == 2


class Named:
    """What a test waits for to go."""


def is_collected(make):
    """Whether what ``make`` returns goes, with a cycle through it."""
    gc.collect()
    named = Named()
    make(named)
    reference = weakref.ref(named)
    del named
    gc.collect()
    return reference() is None


def test_an_extraction_is_collected():
    def make(named):
        y = pt.exp(pt.dvector("x"))
        named.extraction = _core.extract([y], Elemwise, "scalar_op", Constant)
        y.tag.named = named

    assert is_collected(make)


def test_a_merge_plan_is_collected():
    def make(named):
        _, feature = two_sines()
        named.plan = feature.merger.plan(one_at_a_time=False)
        named.plan.dying.append(named)

    assert is_collected(make)


def test_a_merge_table_is_collected():
    def make(named):
        class Result(Op):
            pass

        plain = {Result: ("name",)}
        named.table = _core.MergeTable(plain, Result)
        plain[Named] = named
        Result.named = named

    assert is_collected(make)


# What each program does takes several seconds if nothing ends it.
PLAN = """
n_nodes, n_inputs = 2_000_000, 5
rng = np.random.default_rng(0)
before = np.arange(n_nodes)[:, None] + n_inputs - rng.integers(1, 50, size=(n_nodes, 2))
inputs = np.where(before < 0, 0, before).astype("uint32").ravel()
n_variables = n_nodes + n_inputs
is_result = np.arange(n_variables) >= n_inputs
is_result[inputs] = False
def work():
    _core.plan_arrays(
        n_variables=n_variables,
        input_offsets=np.arange(n_nodes + 1, dtype="uint32") * 2,
        inputs=inputs,
        output_offsets=np.arange(n_nodes + 1, dtype="uint32"),
        outputs=np.arange(n_inputs, n_variables, dtype="uint32"),
        groups=rng.integers(-1, 3, size=n_nodes).astype("int32"),
        links=np.full(n_variables, -1, dtype="int32"),
        constants=np.zeros(n_variables, bool),
        results=is_result,
        max_operands=1000,
    )
"""

# Few nodes that read very much, and may not all be one kernel.
WIDE = """
rng = np.random.default_rng(0)
n_nodes, n_inputs = 40, 400_000
n_variables = n_nodes + n_inputs
inputs = np.concatenate([rng.permutation(n_inputs) for _ in range(n_nodes)]).astype("uint32")
def work():
    while True:
        _core.plan_arrays(
            n_variables=n_variables,
            input_offsets=np.arange(n_nodes + 1, dtype="uint32") * n_inputs,
            inputs=inputs,
            output_offsets=np.arange(n_nodes + 1, dtype="uint32"),
            outputs=np.arange(n_inputs, n_variables, dtype="uint32"),
            groups=np.zeros(n_nodes, "int32"),
            links=np.zeros(n_variables, "int32"),
            constants=np.zeros(n_variables, bool),
            results=np.ones(n_variables, bool),
            max_operands=1024,
        )
"""

# A graph is written out as lists of numbers.
PARTS = """
n_nodes = 1_000_000
flat = _core.FlatGraph([0], 0, [(0, [node], [0]) for node in range(n_nodes)], [n_nodes])
def work():
    flat.parts()
"""

# A node with very many operands is taken out of the objects of a graph.
OPERANDS = """
class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)

kind = Plain(dtype="float64", shape=(None,))
op = Plain(scalar_op=None)
operands = [Plain(owner=None, type=kind) for _ in range(200_000)]
node = Plain(op=op, inputs=operands)
node.outputs = [Plain(owner=node, type=kind)]
def work():
    _core.extract(node.outputs, Plain, "scalar_op", type("Constant", (), {}))
"""

# Each of many edges has a long path beside it, which is searched from both ends.
SUBGRAPHS = """
from pytensor_fuse.graph import Graph
length, n_edges = 20_000, 100_000
path = np.arange(length)
first = np.arange(length, length + n_edges)
last = first + n_edges
sources = [path[:-1], first, first, np.full(n_edges, path[-1])]
targets = [path[1:], np.full(n_edges, path[0]), last, last]
graph = Graph(last[-1] + 1, np.concatenate(sources), np.concatenate(targets))
labels = np.where(np.arange(graph.n_nodes) < length, -1, 0)
def work():
    graph.convex_subgraphs(labels)
"""

INTERRUPTED = """
import os, signal, threading, time
def interrupt():
    global sent
    time.sleep(0.3)
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
# The shell may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt).start()
try:
    work()
except KeyboardInterrupt:
    print(time.monotonic() - sent)
"""


@pytest.mark.parametrize(
    "work",
    [PLAN, WIDE, SUBGRAPHS],
    ids=["plan", "wide", "subgraphs"],
)
def test_long_work_can_be_interrupted(work):
    start = "import numpy as np\nfrom pytensor_fuse import _core"
    assert float(run_python(start, work, INTERRUPTED).stdout) < 2


COUNTED = """
import signal
n_handled = 0
def count(*_):
    global n_handled
    n_handled += 1
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
work()
# One could have waited for the end.
print(n_handled)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.mark.parametrize("work", [PARTS, OPERANDS], ids=["parts", "operands"])
def test_handlers_run_while_objects_are_read_and_written(work):
    assert int(run_python("from pytensor_fuse import _core", work, COUNTED).stdout) >= 3


def test_what_a_node_reads_again_is_part_of_what_it_is():
    class Plain:
        def __init__(self, **attributes):
            self.__dict__.update(attributes)

    def node(reads, *dtypes):
        made = Plain(op=op, inputs=reads)
        kinds = [Plain(dtype=dtype, shape=(None,)) for dtype in dtypes]
        made.outputs = [Plain(owner=made, type=kind) for kind in kinds]
        return made

    op = Plain(scalar_op=None)
    roots = [Plain(owner=None, type=Plain(dtype=d, shape=())) for d in ("f4", "f4", "f8")]
    a, b, c = roots
    rows = [[a, b], [b, a], [a, a], [b, b], [a, c], [a, b, a], [b, a, b], [a, b, b], [a, a, b], []]
    nodes = [node(reads, "f8") for reads in rows]
    outputs = [made.outputs[0] for made in nodes]
    extraction = _core.extract(outputs, Plain, "scalar_op", type("Constant", (), {}), nodes)

    def described(made):
        firsts = [next(i for i, v in enumerate(made.inputs) if v is read) for read in made.inputs]
        return [(read.type.dtype, first) for read, first in zip(made.inputs, firsts, strict=True)]

    numbers = extraction.signatures
    for i, first in enumerate(nodes):
        for j, second in enumerate(nodes):
            assert (numbers[i] == numbers[j]) == (described(first) == described(second)), (i, j)


def test_a_handler_that_does_not_raise_runs_and_the_work_goes_on():
    go_on = """
    import signal
    import numpy as np
    from pytensor_fuse.graph import Graph

    def count(*_):
        global n_handled
        n_handled += 1

    graph = Graph(1_000_000, [], [])
    key = np.random.default_rng(0).permutation(1_000_000)
    n_handled = 0
    signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    order = graph.toposort(key)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert (order == np.argsort(key)).all()
    # One could have waited for the end.
    assert n_handled >= 2, n_handled
    """
    run_python(go_on)


def test_an_interrupted_hash_cons_table_is_as_it_was():
    intern = """
    import signal
    import numpy as np
    from pytensor_fuse.graph import HashConsTable

    def fail(*_):
        raise TimeoutError

    table = HashConsTable()
    op, kind = table.compound(b"op"), table.compound(b"type")
    x = table.input(0, kind)
    n_nodes = 1_500_000
    # Each applies the op to the one before it.
    rows = {
        "node_ops": np.zeros(n_nodes, "uint32"),
        "input_offsets": np.arange(n_nodes + 1, dtype="uint32"),
        "inputs": np.arange(n_nodes, dtype="uint32"),
        "type_offsets": np.arange(n_nodes + 1, dtype="uint32"),
        "output_types": np.zeros(n_nodes, "uint32"),
    }
    # The first array of a process must not be interrupted.
    table.symbols([b"op"]).ids
    signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        terms = table.intern(leaves=[x], ops=[op], types=[kind], **rows)
    except TimeoutError:
        assert len(table) == 3
        table.check()
        terms = table.intern(leaves=[x], ops=[op], types=[kind], **rows)
        assert len(table) == 3 + n_nodes
        last = table.intern(
            leaves=[terms[n_nodes - 2]],
            ops=[op],
            types=[kind],
            **{name: values[: 1 + name.endswith("offsets")] for name, values in rows.items()},
        )
        assert last[0] == terms[n_nodes - 1]
        assert last[0].digest is not None
    else:
        raise AssertionError("not interrupted")
    """
    run_python(intern)
