"""The pass takes the place of PyTensor's own wherever that is held, and gives it back exactly."""

import copy
import pickle
import threading

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.aliasing import add_supervisor_to_fgraph
from pytensor.compile.io import In
from pytensor.compile.mode import Mode, get_mode, optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.rewriting.db import RewriteDatabase, RewriteDatabaseQuery
from pytensor.tensor.rewriting.elemwise import FusionOptimizer

import pytensor_fuse
from pytensor_fuse._activation.passes import fusion
from pytensor_fuse._activation.passes.fusion import FusionRewriter
from pytensor_fuse._activation.passes.merging import MergeRewriter, find_merging_passes
from pytensor_fuse._activation.settings import layers
from pytensor_fuse._merging.feature import LazyMergeFeature
from support.effort import IS_DEEP
from support.programs.processes import run_python


@pytest.fixture(autouse=True)
def _restore():
    on = pytensor_fuse.status()["fusion"].is_on
    yield
    switch(on)


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


def switch(on):
    (pytensor_fuse.enable if on else pytensor_fuse.disable)()


def registered():
    return optdb["elemwise_fusion"]["composite_elemwise_fusion"]


def rewrite(rewriter):
    """Rewrite a graph of three nodes that can be one kernel; return how many are left."""
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x) + pt.sin(x)])
    add_supervisor_to_fgraph(fgraph, [In(x)])
    rewriter.rewrite(fgraph)
    return len(fgraph.apply_nodes)


def contents(database):
    """Describe a rewrite database to the last detail, in order."""
    state = {key: value for key, value in vars(database).items() if key != "__db__"}
    described = [type(database), sorted(state.pop("_names")), sorted(state)]
    described += [
        list(value.items()) if isinstance(value, dict) else value for value in state.values()
    ]
    for tag, rewriters in vars(database)["__db__"].items():
        for rewriter in rewriters:
            described.append((tag, id(rewriter), type(rewriter)))
            if isinstance(rewriter, RewriteDatabase):
                described.append(contents(rewriter))
            else:
                described.append(sorted(vars(rewriter)))
    return described


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
    # A query adds the tags that it asks for to the database, and a first compile rewrites.
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
        # A mode holds a query, or the rewriter that a query has given.
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


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_enabled_restores(outside, inside):
    switch(outside)
    with pytensor_fuse.enabled(inside):
        assert pytensor_fuse.status()["fusion"].is_on is inside
        with pytensor_fuse.enabled(not inside):
            assert pytensor_fuse.status()["fusion"].is_on is not inside
        assert pytensor_fuse.status()["fusion"].is_on is inside
    assert pytensor_fuse.status()["fusion"].is_on is outside


@pytest.mark.parametrize("outside", [True, False])
def test_enabled_restores_when_raised_through(outside):
    switch(outside)
    with pytest.raises(KeyboardInterrupt), pytensor_fuse.enabled(not outside):
        raise KeyboardInterrupt
    assert pytensor_fuse.status()["fusion"].is_on is outside


def test_enabled_is_on_by_default_and_decorates():
    pytensor_fuse.disable()

    @pytensor_fuse.enabled()
    def inside():
        return pytensor_fuse.status()["fusion"].is_on

    assert inside()
    assert inside()
    assert not pytensor_fuse.status()["fusion"].is_on


def test_calls_within_a_block_end_with_it():
    pytensor_fuse.enable()
    with pytensor_fuse.enabled(False):
        pytensor_fuse.enable()
        assert pytensor_fuse.status()["fusion"].is_on
        pytensor_fuse.disable()
        assert not pytensor_fuse.status()["fusion"].is_on
    assert pytensor_fuse.status()["fusion"].is_on


def test_blocks_that_overlap_restore_the_state_before_both():
    pytensor_fuse.enable()
    first, second = pytensor_fuse.enabled(False), pytensor_fuse.enabled(False)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not pytensor_fuse.status()["fusion"].is_on
    second.__exit__(None, None, None)
    assert pytensor_fuse.status()["fusion"].is_on


def test_of_blocks_that_overlap_the_latest_that_names_a_feature_decides():
    pytensor_fuse.enable()
    first, second = pytensor_fuse.enabled(False, "joins"), pytensor_fuse.enabled(False, "cache")
    first.__enter__()
    second.__enter__()
    assert not pytensor_fuse.status()["joins"].is_on
    first.__exit__(None, None, None)
    assert pytensor_fuse.status()["joins"].is_on
    assert not pytensor_fuse.status()["cache"].is_on
    second.__exit__(None, None, None)
    assert pytensor_fuse.status()["cache"].is_on


def test_switches_within_a_block_last_as_long_as_the_block_of_their_own_thread():
    pytensor_fuse.enable()
    entered, leave = threading.Event(), threading.Event()

    def open_a_block():
        with pytensor_fuse.enabled(False, "linalg"):
            entered.set()
            leave.wait()

    other = threading.Thread(target=open_a_block)
    with pytensor_fuse.enabled(False, "joins"):
        other.start()
        entered.wait()
        pytensor_fuse.disable("fusion")
        leave.set()
        other.join()
        assert not pytensor_fuse.status()["fusion"].is_on
    assert pytensor_fuse.status()["fusion"].is_on


def test_a_switch_in_a_thread_without_a_block_outlasts_those_of_others():
    pytensor_fuse.enable()
    with pytensor_fuse.enabled(False, "joins"):
        other = threading.Thread(target=pytensor_fuse.disable, args=["fusion"])
        other.start()
        other.join()
    assert not pytensor_fuse.status()["fusion"].is_on
    pytensor_fuse.enable()


def in_threads(work, number):
    errors = []

    def guarded():
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads, errors


def test_switching_from_several_threads():
    pytensor_fuse.disable()
    before = contents(optdb["elemwise_fusion"])

    def work():
        for _ in range(200 if IS_DEEP else 40):
            pytensor_fuse.enable()
            with pytensor_fuse.enabled(False), pytensor_fuse.enabled():
                assert type(registered()) in (FusionOptimizer, FusionRewriter)
            pytensor_fuse.disable()

    threads, errors = in_threads(work, 8)
    for thread in threads:
        thread.join()
    assert errors == []
    assert not pytensor_fuse.status()["fusion"].is_on
    assert len(layers) == 1
    assert contents(optdb["elemwise_fusion"]) == before


def test_rewriting_while_another_thread_switches():
    query = optdb["elemwise_fusion"].query("+composite_elemwise_fusion")
    done = threading.Event()
    sizes = []

    def work():
        while not done.is_set():
            sizes.append(rewrite(query))

    threads, errors = in_threads(work, 2)
    while len(sizes) < 40 and not errors:
        switch(on=True)
        switch(on=False)
    done.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(sizes) == {1}


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


MERGES = ["merge1", "merge1.1", "canonicalize/merge", "merge1.2", "merge2", "merge3"]
if hasattr(pytensor.graph.features, "NoOutputInplaceOnInput"):  # PyTensor 3.3
    MERGES.append("elemwise_fusion/merge_inlined_symbolic")


def merging_passes():
    """Return the registered merging passes, by path; other kinds of them would not be found."""
    found = {}
    for path in MERGES:
        database = optdb
        *outer, name = path.split("/")
        for part in outer:
            database = database[part]
        found[path] = database[name]
    return found


def test_all_merging_passes_are_switched():
    kinds = {True: MergeRewriter, False: MergeOptimizer}
    for on in (True, False, True):
        switch(on)
        assert {type(rewriter) for rewriter in merging_passes().values()} == {kinds[on]}
        found = {id(rewriter) for rewriter in find_merging_passes()}
        assert found == {id(rewriter) for rewriter in merging_passes().values()}


def merged(rewriter):
    """Whether a rewriter merges, and whether with our feature."""
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.sin(x), pt.sin(x)])
    rewriter.rewrite(fgraph)
    ours = isinstance(getattr(fgraph, "merge_feature", None), LazyMergeFeature)
    return len(fgraph.apply_nodes) == 1, ours


@pytest.mark.parametrize("name", ["FAST_RUN", "FAST_COMPILE", "NUMBA"])
def test_modes_merge_with_it(name):
    for on in (True, False):
        switch(on)
        assert merged(get_mode(name).optimizer) == (True, on)


@pytest.mark.parametrize("made_while_on", [True, False])
def test_excluding_merging(made_while_on):
    switch(made_while_on)
    mode = get_mode("FAST_RUN").excluding("merge", "canonicalize", "specialize", "fusion")
    for on in (True, False):
        switch(on)
        assert merged(mode.optimizer) == (False, False)


def test_queries_of_merging_made_before_and_after_follow():
    queries = []
    for on in (False, True):
        switch(on)
        queries += [optdb.query("+merge"), optdb["canonicalize"].query("+merge")]
        queries.append(optdb.query("+merge2"))
    for on in (True, False, True):
        switch(on)
        for query in queries:
            assert merged(query) == (True, on)


def test_copies_of_merging_passes_are_these():
    for on in (True, False):
        switch(on)
        for rewriter in merging_passes().values():
            if on:
                assert copy.deepcopy(rewriter) is rewriter
                assert pickle.loads(pickle.dumps(rewriter)) is rewriter
            else:
                assert type(pickle.loads(pickle.dumps(rewriter))) is MergeOptimizer
    pytensor_fuse.enable()
    own = MergeRewriter()
    assert type(copy.deepcopy(own)) is MergeRewriter
    assert copy.deepcopy(own) is not own


def test_merging_passes_that_users_made_are_untouched():
    class Mine(MergeOptimizer):
        pass

    before = [MergeOptimizer(), Mine()]
    pytensor_fuse.enable()
    for rewriter in [*before, MergeOptimizer(), Mine()]:
        assert merged(rewriter) == (True, False)


def test_merging_passes_of_others_are_left_alone_and_missing_ones_not_missed():
    run_python(
        """
        from pytensor.compile.mode import optdb
        from pytensor.graph.rewriting.basic import MergeOptimizer

        class Other(MergeOptimizer):
            pass

        Other.__name__ = "MergeOptimizer"
        optdb.register(
            "merge1", Other(), "fast_run", "merge", position=0, overwrite_existing=True
        )
        optdb.remove_tags("merge2", "fast_run", "merge")
        (gone,) = optdb.__db__.pop("merge2")
        optdb.__db__["MergeOptimizer"].remove(gone)
        import pytensor_fuse
        assert pytensor_fuse.status()["fusion"].is_on
        assert type(optdb["merge1"]) is Other
        assert type(gone) is MergeOptimizer
        assert type(optdb["merge3"]) is not MergeOptimizer
        pytensor_fuse.disable()
        assert type(optdb["merge1"]) is Other
        assert type(optdb["merge3"]) is MergeOptimizer
        """
    )


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


@pytest.mark.parametrize("flag", [0, 1, None, []])
def test_a_flag_that_is_none_is_refused_at_once(flag):
    with pytest.raises(TypeError, match=r"flag must be True or False"):
        pytensor_fuse.enabled(flag)


def test_wrong_features_are_refused_at_once():
    with pytest.raises(TypeError, match="joins must be True or False, not 'no'"):
        pytensor_fuse.enabled(joins="no")
    with pytest.raises(ValueError, match="nonesuch"):
        pytensor_fuse.enabled(accelerators=["nonesuch"])


def test_a_block_is_a_decorator_that_can_be_called_again():
    @pytensor_fuse.enabled(False)
    def look():
        return pytensor_fuse.status()["fusion"].is_on

    assert [look(), look()] == [False, False]
    assert pytensor_fuse.status()["fusion"].is_on
