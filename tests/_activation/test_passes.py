"""The pass inside PyTensor's rewriting: profiles, summaries, and failures that stop nothing."""

import logging
import re
from io import StringIO

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.debug import profiling
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.features import Feature
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import SequentialGraphRewriter
from pytensor.graph.utils import InconsistencyError
from pytensor.scalar import Composite
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
from pytensor_fuse._activation.passes import fusion
from pytensor_fuse._activation.passes.fusion import FusionRewriter
from support.switching import switched


def small_graph():
    """Return a graph of three nodes that can be one kernel."""
    x = pt.vector("x")
    return FunctionGraph([x], [pt.exp(x) + pt.sin(x)])


def compile_python(*outputs, **options):
    x = pt.vector("x")
    mode = Mode(linker="py", optimizer="fast_run")
    return pytensor.function([x], [output(x) for output in outputs], mode=mode, **options)


def summary():
    stream = StringIO()
    optdb["elemwise_fusion"].query("+fusion").print_summary(stream)
    optdb["elemwise_fusion"]["composite_elemwise_fusion"].print_summary(stream, level=3)
    return stream.getvalue().splitlines()


def test_summary_is_the_same():
    def lines():
        # Addresses of functions are irrelevant.
        return [re.sub(r" at 0x\w+", "", line.split(" id=")[0]) for line in summary()]

    with pytensor_fuse.enabled(False):
        stock = lines()
    with pytensor_fuse.enabled():
        assert lines() == stock
    assert "   FusionOptimizer composite_elemwise_fusion" in stock


def rewriting_profile():
    with pytensor.config.change_flags(profile=True, profile_optimizer=True):
        function = compile_python(lambda x: pt.exp(x) + pt.sin(x), lambda x: pt.cos(x[:2] * 2))
    # PyTensor would print it when the process ends.
    profiling._atexit_print_list.remove(function.profile)
    function(np.zeros(3))
    stream = StringIO()
    function.profile.summary(file=stream)
    return stream.getvalue()


def test_profile_is_the_same_but_for_times():
    profiles = {}
    for on in (False, True):
        with pytensor_fuse.enabled(on):
            profiles[on] = rewriting_profile()
    for text in profiles.values():
        # The pass is in the table of the sequence, and has counts of its own.
        assert "('composite_elemwise_fusion', 'FusionOptimizer', " in text
    stock, ours = (
        text[text.index(" FusionOptimizer\n") :].splitlines()[:7] for text in profiles.values()
    )
    assert ours[:4] == stock[:4]
    assert ours[1].split() == ["nb_fused", "2"]
    assert [line.split()[0] for line in ours] == [line.split()[0] for line in stock]


def test_rules_of_linear_algebra_print_their_profiles():
    a, b = pt.dmatrix("a"), pt.dvector("b")
    flags = pytensor.config.change_flags(profile=True, profile_optimizer=True)
    with switched(cache=False), flags:
        solution = pt.linalg.solve(pt.tril(a), b)
        function = pytensor.function([a, b], solution, mode=Mode(linker="py", optimizer="fast_run"))
    profiling._atexit_print_list.remove(function.profile)
    function(np.eye(2), np.ones(2))
    for on in (True, False):
        stream = StringIO()
        with pytensor_fuse.enabled(on):
            function.profile.summary(file=stream)
        _, _, profile = stream.getvalue().partition("WalkingGraphRewriter  linalg_triangular_solve")
        assert profile.splitlines()[1].split()[-1] == "1)"


@pytest.mark.parametrize("profiled", [True, False])
def test_returned_profile(profiled):
    profiles = []
    for rewriter in (FusionOptimizer(), FusionRewriter()):
        fgraph = small_graph()
        rewriter.add_requirements(fgraph)
        fgraph.profile = profiling.ProfileStats(atexit_print=False) if profiled else None
        profile = rewriter.apply(fgraph)
        assert profile[0] is rewriter
        profiles.append(profile)
    stock, ours = profiles
    assert ours[1:4] == stock[1:4] == (1, 3, 0)
    assert [type(entry) for entry in ours[1:]] == [type(entry) for entry in stock[1:]]
    assert [type(feature) for feature in ours[6]] == [type(feature) for feature in stock[6]]
    assert ours[7] == stock[7]
    if profiled:
        assert all(seconds >= 0 for seconds in (ours[4], ours[5], *ours[6].values()))


class OddGraphError(Exception):
    pass


class PanicException(BaseException):
    """The class that PyO3 raises when Rust panics."""


@pytest.fixture
def fail(monkeypatch):
    """Return a function that makes the pass fail with an error."""

    def fail_with(error):
        def fuse(module, fgraph, reason):
            raise error

        monkeypatch.setattr(fusion, "fuse", fuse)

    # Another test of this process may have rewritten an equal graph without the failure.
    with switched(cache=False):
        yield fail_with


@pytest.mark.parametrize(
    "error", [OddGraphError("too odd"), AssertionError("too odd"), PanicException("too odd")]
)
def test_a_failure_is_logged_and_the_compile_goes_on(error, fail, caplog):
    fail(error)
    with (
        pytensor.config.change_flags(on_opt_error="warn"),
        caplog.at_level(logging.ERROR, logger="pytensor.graph.rewriting.basic"),
    ):
        function = compile_python(lambda x: pt.exp(x) + pt.sin(x))
    nodes = function.maker.fgraph.apply_nodes
    assert sum(isinstance(node.op, Elemwise) for node in nodes) == 3
    np.testing.assert_allclose(function([0.0, 1.0])[0], [1.0, np.e + np.sin(1.0)])
    for part in (
        "FusionError: pytensor_fuse could not fuse a graph of 3 nodes, 1 inputs and 1 outputs",
        f"({type(error).__name__}: too odd)",
        "Please report this",
        "https://github.com/pytensor-fuse/pytensor-fuse/issues",
        pytensor_fuse.__version__,
        pytensor.__version__,
    ):
        assert part in caplog.text


def test_a_failure_is_raised_where_pytensor_is_told_to_raise(fail):
    cause = OddGraphError("too odd")
    fail(cause)
    with (
        pytensor.config.change_flags(on_opt_error="raise"),
        pytest.raises(pytensor_fuse.exceptions.FusionError, match="too odd") as caught,
    ):
        compile_python(lambda x: pt.exp(x) + pt.sin(x))
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_interrupts_are_no_failures(interrupt, fail):
    fail(interrupt())
    with pytest.raises(interrupt):
        FusionRewriter().rewrite(small_graph())


def test_later_rewriters_run_after_a_failure(fail, caplog):
    fail(OddGraphError("too odd"))
    later = []

    class Later(FusionOptimizer):
        def apply(self, fgraph):
            later.append(len(fgraph.apply_nodes))

    sequence = SequentialGraphRewriter(
        FusionRewriter(), Later(), failure_callback=SequentialGraphRewriter.warn
    )
    with pytensor.config.change_flags(on_opt_error="warn"), caplog.at_level(logging.ERROR):
        sequence.rewrite(small_graph())
    assert later == [3]
    assert "too odd" in caplog.text


class RefuseKernels(Feature):
    """Rejects graphs that contain a kernel."""

    def on_validate(self, fgraph):
        if any(isinstance(node.op.scalar_op, Composite) for node in fgraph.apply_nodes):
            raise InconsistencyError("refused")

    # Its name in PyTensor 3.0.
    validate = on_validate


def test_the_graph_is_untouched_when_its_validation_fails():
    def state():
        # As after any replacement that PyTensor reverts, the graph may contain an unused removed
        # variable.
        clients = {variable: list(uses) for variable, uses in fgraph.clients.items() if uses}
        return fgraph.toposort(), fgraph.apply_nodes.copy(), list(fgraph.outputs), clients

    fgraph = small_graph()
    rewriter = FusionRewriter()
    rewriter.add_requirements(fgraph)
    before = state()
    fgraph.attach_feature(RefuseKernels())
    with pytest.raises(pytensor_fuse.exceptions.FusionError, match="InconsistencyError: refused"):
        rewriter.apply(fgraph)
    assert state() == before
    fgraph.check_integrity()
