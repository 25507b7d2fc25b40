"""The pass replaces PyTensor's own in all objects that refer to it, and restores it exactly."""

import copy
import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode, get_mode, optdb
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
from _activation.entries import contents, registered, rewrite, switch
from pytensor_fuse._activation.passes import fusion
from pytensor_fuse._activation.passes.fusion import FusionRewriter
from pytensor_fuse._activation.passes.merging import MergeRewriter
from support.programs.processes import run_python

pytestmark = pytest.mark.usefixtures("restore_fusion")


@pytest.fixture
def runs(monkeypatch):
    """Return a list that grows by one with every run of our pass."""
    seen = []
    run = fusion.fuse

    def fuse(module, fgraph, reason):
        seen.append(reason)
        return run(module, fgraph, reason)

    monkeypatch.setattr(fusion, "fuse", fuse)
    return seen


def test_twice():
    for on in (True, True, False, False, True):
        switch(on)
        assert pytensor_fuse.status()["fusion"].is_on is on


def test_only_the_class_of_the_entry_changes_and_changes_back():
    pytensor_fuse.disable()
    database = optdb["elemwise_fusion"]
    entry, before = registered(), contents(database)
    assert type(entry) is FusionOptimizer

    pytensor_fuse.enable()
    assert registered() is entry
    assert type(entry) is FusionRewriter
    assert isinstance(entry, FusionOptimizer)
    assert vars(entry) == {"name": "composite_elemwise_fusion"}
    stock_class = {FusionRewriter: FusionOptimizer, MergeRewriter: MergeOptimizer}
    switched = {r for rs in database.__db__.values() for r in rs if type(r) in stock_class}
    for rewriter in switched:
        rewriter.__class__ = stock_class[type(rewriter)]
    assert contents(database) == before
    pytensor_fuse.enable()

    pytensor_fuse.disable()
    assert registered() is entry
    assert type(entry) is FusionOptimizer
    assert contents(database) == before


def test_compiling_leaves_the_whole_database_as_it_was():
    pytensor_fuse.disable()
    # A query adds its tags to the database, and a first compilation rewrites.
    rewrite(get_mode("FAST_RUN").optimizer)
    before = contents(optdb)
    with pytensor_fuse.enabled():
        assert contents(optdb) != before
        assert rewrite(get_mode("FAST_RUN").optimizer) == 1
    assert contents(optdb) == before


def test_database_is_the_same_as_without_the_package():
    code = """
        {}
        from pytensor.compile.mode import optdb
        database = optdb["elemwise_fusion"]
        for tag, rewriters in database.__db__.items():
            print(tag, [(type(rewriter), rewriter.name) for rewriter in rewriters])
        print(database.__position__, sorted(database._names), list(optdb.__db__))
        """
    without = run_python(code.format("import pytensor")).stdout
    after = run_python(code.format("import pytensor_fuse; pytensor_fuse.disable()")).stdout
    assert after == without


@pytest.mark.parametrize("name", ["NUMBA", "C", "CVM", "FAST_RUN"])
def test_modes_use_it(name, runs):
    pytensor_fuse.enable()
    assert rewrite(get_mode(name).optimizer) == 1
    assert len(runs) == 1
    pytensor_fuse.disable()
    assert rewrite(get_mode(name).optimizer) == 1
    assert len(runs) == 1


def test_a_mode_that_does_not_fuse_does_not_use_it(runs):
    pytensor_fuse.enable()
    assert rewrite(get_mode("FAST_COMPILE").optimizer) == 3
    assert runs == []


def test_functions(runs):
    x = pt.vector("x")
    functions = []
    for on in (True, False):
        switch(on)
        mode = Mode(linker="py", optimizer="fast_run")
        functions.append(pytensor.function([x], pt.exp(x) + pt.sin(x), mode=mode))
    assert len(runs) == 1
    fused, stock = functions
    np.testing.assert_array_equal(fused([0.0, 0.5]), stock([0.0, 0.5]))


def test_modes_and_rewriters_made_before_and_after_follow(runs):
    def holders():
        mode = get_mode("FAST_RUN").including("local_remove_all_assert")
        query = RewriteDatabaseQuery(include=["fast_run"])
        kept = [
            registered(),
            mode.optimizer,
            optdb.query(query),
            optdb["elemwise_fusion"].query("+fusion"),
        ]
        # A mode holds a query, or the rewriter that a query has returned.
        modes = [mode, Mode(linker="py", optimizer=optdb.query(query))]
        return [
            *(lambda r=r: rewrite(r) for r in kept),
            *(lambda m=m: rewrite(m.optimizer) for m in modes),
        ]

    uses = []
    for on in (False, True, False):
        switch(on)
        uses += holders()
    for on in (True, False, True, False):
        switch(on)
        for number, use in enumerate(uses):
            runs.clear()
            assert use() == 1
            assert len(runs) == on, number


def test_copies_of_the_entry_are_the_entry():
    pytensor_fuse.enable()
    query = optdb["elemwise_fusion"].query("+composite_elemwise_fusion")
    assert copy.deepcopy(query)[0] is registered()
    assert copy.copy(registered()) is registered()
    assert pickle.loads(pickle.dumps(registered())) is registered()


def test_copies_of_another_rewriter_are_other_rewriters():
    pytensor_fuse.enable()
    own = FusionRewriter()
    for other in (copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        assert type(other) is FusionRewriter
        assert other is not own
        assert other is not registered()


@pytest.mark.parametrize(
    "tag", ["fusion", "FusionOptimizer", "composite_elemwise_fusion", "elemwise_fusion"]
)
@pytest.mark.parametrize("made_while_on", [True, False])
def test_excluding(tag, made_while_on, runs):
    switch(made_while_on)
    mode = get_mode("FAST_RUN").excluding(tag)
    for on in (True, False):
        switch(on)
        assert rewrite(mode.optimizer) == 3
    assert runs == []


@pytest.mark.parametrize("tag", ["fusion", "FusionOptimizer", "composite_elemwise_fusion"])
def test_querying_by_tag(tag, runs):
    pytensor_fuse.enable()
    assert rewrite(optdb["elemwise_fusion"].query(f"+{tag}")) == 1
    assert len(runs) == 1


def test_including(runs):
    pytensor_fuse.enable()
    assert rewrite(get_mode("FAST_COMPILE").including("fusion").optimizer) == 1
    assert len(runs) == 1


def test_rewriters_that_users_made_are_untouched(runs):
    class Mine(FusionOptimizer):
        pass

    before = [FusionOptimizer(), Mine()]
    pytensor_fuse.enable()
    assert [type(rewriter) for rewriter in before] == [FusionOptimizer, Mine]
    for rewriter in [*before, FusionOptimizer(), Mine()]:
        assert rewrite(rewriter) == 1
    assert runs == []


def test_public_names():
    assert pytensor_fuse.__all__ == sorted(pytensor_fuse.__all__)
    for name in pytensor_fuse.__all__:
        assert name in dir(pytensor_fuse)
        assert getattr(pytensor_fuse, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'fusion_plan'"):
        _ = pytensor_fuse.fusion_plan


def test_ipython_extension():
    pytensor_fuse.disable()
    pytensor_fuse.load_ipython_extension(object())
    assert pytensor_fuse.status()["fusion"].is_on
    pytensor_fuse.unload_ipython_extension(object())
    assert not pytensor_fuse.status()["fusion"].is_on


REPLACING = """
from pytensor.compile.mode import optdb
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

class Other(FusionOptimizer):
    pass

database = optdb["elemwise_fusion"]

def replace(rewriter):
    database.register(
        "composite_elemwise_fusion",
        rewriter,
        "fast_run",
        "fusion",
        position=1,
        overwrite_existing=True,
    )

def entries():
    return [(tag, [(id(r), type(r)) for r in rs]) for tag, rs in database.__db__.items()]

def fusion():
    return [(tag, [r for r in rs if r[1].__name__ == "Other"]) for tag, rs in entries()]
"""


def test_an_entry_of_another_package_is_left_alone():
    done = run_python(
        REPLACING,
        """
        replace(Other())
        before, own = entries(), fusion()
        import pytensor_fuse
        assert not pytensor_fuse.status()["fusion"].is_on
        assert fusion() == own
        # All else is on.
        assert [name for name, of in pytensor_fuse.status().items() if not of.is_on] == ["fusion"]
        for call in (pytensor_fuse.enable, pytensor_fuse.enabled().__enter__):
            try:
                call()
            except pytensor_fuse.exceptions.RegistrationError as error:
                assert "is a __main__.Other, not its own" in str(error)
            else:
                raise AssertionError
        with pytensor_fuse.enabled(False):
            assert entries() == before
            pytensor_fuse.disable()
        assert not pytensor_fuse.status()["fusion"].is_on
        assert pytensor_fuse.status()["merging"].is_on
        pytensor_fuse.disable()
        pytensor_fuse.enable(*(name for name in pytensor_fuse.status() if name != "fusion"))
        pytensor_fuse.disable()
        assert entries() == before
        """,
    )
    assert done.stderr.count("RuntimeWarning: PyTensor's fusion pass") == 1


def test_an_entry_that_is_replaced_while_the_pass_is_on():
    run_python(
        REPLACING,
        """
        import pytensor_fuse
        stock = database["composite_elemwise_fusion"]
        assert pytensor_fuse.status()["fusion"].is_on
        replace(Other())
        assert not any(id(stock) == known for _, rs in entries() for known, _ in rs)
        before = entries()
        assert not pytensor_fuse.status()["fusion"].is_on
        pytensor_fuse.disable()
        assert type(stock) is FusionOptimizer
        # Merging was still ours.
        fusion = [(tag, [r for r in rs if r[1] is Other]) for tag, rs in before]
        assert [(tag, [r for r in rs if r[1] is Other]) for tag, rs in entries()] == fusion

        # Another one of PyTensor's own class is as good as the first.
        replace(FusionOptimizer())
        pytensor_fuse.enable()
        assert pytensor_fuse.status()["fusion"].is_on
        pytensor_fuse.disable()
        assert {type(stock), type(database["composite_elemwise_fusion"])} == {FusionOptimizer}
        """,
    )


def test_a_missing_entry():
    done = run_python(
        REPLACING,
        """
        entry = database["composite_elemwise_fusion"]
        for rewriters in database.__db__.values():
            rewriters.discard(entry)
        del database.__db__["composite_elemwise_fusion"]
        before = entries()
        import pytensor_fuse
        assert not pytensor_fuse.status()["fusion"].is_on
        try:
            pytensor_fuse.enable()
        except pytensor_fuse.exceptions.RegistrationError as error:
            assert "no fusion pass 'composite_elemwise_fusion'" in str(error)
        else:
            raise AssertionError
        pytensor_fuse.disable()
        assert entries() == before
        """,
    )
    assert done.stderr.count("RuntimeWarning: PyTensor has no fusion pass") == 1
