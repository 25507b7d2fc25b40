"""Features are switched individually, by calls, blocks and the environment, as `status` shows."""

import re
import sys

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.executor import Function
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode, optdb, predefined_linkers
from pytensor.graph import basic
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.variable import TensorConstant

import pytensor_fuse
from pytensor_fuse._activation import withdrawal
from pytensor_fuse._activation.changes import CHANGES
from pytensor_fuse._activation.units import UNITS
from pytensor_fuse._pytensor.linking.nutpie_models import MODULE
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes, SwitchedClass
from pytensor_fuse._startup.features import FEATURES
from support.programs.processes import run_python
from support.switching import switch_off, switch_on, switched

ALL = set(FEATURES)


@pytest.fixture(autouse=True)
def _restore():
    on = features_on()
    yield
    switch_on(**{name: name in on for name in ALL})


def features_on():
    return {name for name, feature in pytensor_fuse.status().items() if feature.is_on}


def others_off(name):
    return {other: other == name for other in ALL}


def what_is_replaced():
    """Return which features have changed PyTensor, according to PyTensor's own objects."""
    found = set()
    if "pytensor_fuse" in type(optdb["elemwise_fusion"]["composite_elemwise_fusion"]).__module__:
        found.add("fusion")
    if "pytensor_fuse" in type(optdb["merge1"]).__module__:
        found.add("merging")
    if "join_buffer_elimination" in optdb:
        found.add("joins")
    if "linalg_cholesky_gradient" in optdb:
        found.add("linalg")
    if "pytensor_fuse" in FunctionMaker.prepare_fgraph.__code__.co_filename:
        found.add("cache")
    if "data" in vars(TensorConstant):
        found.add("other_data")
    if "native" in predefined_linkers and "_native" in Function.__call__.__code__.co_filename:
        found.add("native")
    if Variable.eval.__globals__ is not vars(basic):
        found.add("single_runs")
    if is_nutpie_replaced():
        found.add("nutpie")
    if FunctionGraph.import_node.__globals__["__name__"].startswith("pytensor_fuse"):
        found.add("accelerators")
    if pt.constant(0.0).signature() != pt.constant(-0.0).signature():
        found.add("exact_constants")
    return found


def is_nutpie_replaced():
    """Whether nutpie is patched, or will be once it is imported."""
    nutpie = sys.modules.get(MODULE)
    if nutpie is None:
        return any(getattr(finder, "_name", "") == MODULE for finder in sys.meta_path)
    return "pytensor_fuse" in nutpie._compile_pymc_model_numba.__code__.co_filename


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_one_feature_alone(name):
    switch_on(**others_off(name))
    assert features_on() == what_is_replaced() == {name}
    assert pytensor_fuse.status()[name].is_on
    pytensor_fuse.enable()
    assert features_on() == what_is_replaced() == ALL
    switch_off(**others_off(name))
    assert features_on() == what_is_replaced() == ALL - {name}
    pytensor_fuse.disable()
    assert features_on() == what_is_replaced() == set()


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_every_feature_alone_compiles_what_pytensor_does(name):
    x, y = pt.vectors("x", "y")
    mean = pt.exp(x) / (1 + pt.exp(x))
    joined = pt.concatenate([pt.sin(x) * 2 + 1, pt.exp(y) - 1, pt.cumsum(x)])
    mode = Mode(linker="py", optimizer="fast_run")
    values = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0])
    results = []
    for features in (others_off(name), dict.fromkeys(ALL, False)):
        with switched(**features):
            results.append(pytensor.function([x, y], [mean, joined], mode=mode)(*values))
    for ours, stock in zip(*results, strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-13)


def parts_on():
    return {
        name for name, part in pytensor_fuse.status()["accelerators"].parts.items() if part.is_on
    }


def test_parts_are_switched_alone():
    pytensor_fuse.enable()
    all_parts = parts_on()
    assert len(all_parts) > 5
    switch_on(accelerators=["clones", "queries"])
    assert parts_on() == {"queries", "clones"}
    assert pytensor_fuse.status()["accelerators"].is_on
    assert pytensor_fuse.status()["accelerators"].parts["queries"].is_on
    assert not pytensor_fuse.status()["accelerators"].parts["validation"].is_on
    with switched(accelerators={"validation"}):
        assert parts_on() == {"validation"}
        with switched(False, accelerators={"validation"}):
            assert parts_on() == set()
            assert not pytensor_fuse.status()["accelerators"].is_on
    assert parts_on() == {"queries", "clones"}
    others = dict.fromkeys(ALL - {"accelerators"}, False)
    switch_off(accelerators=("clones",), **others)
    assert parts_on() == {"queries"}
    switch_on(accelerators=())
    assert parts_on() == set()
    pytensor_fuse.enable()
    assert parts_on() == all_parts


@pytest.mark.parametrize("switch", [pytensor_fuse.enable, pytensor_fuse.disable])
def test_parts_that_there_are_not(switch):
    before = parts_on()
    with pytest.raises(ValueError, match="no feature is called 'accelerators:querys'; there are "):
        switch(accelerators=["queries", "querys"])
    for wrong in ("queries", 3, None):
        with pytest.raises(TypeError, match="must be True or False, or a list of names"):
            switch(accelerators=wrong)
    with pytest.raises(TypeError, match="fusion must be True or False"):
        switch(fusion=["queries"])
    assert parts_on() == before


def test_blocks_switch_features_and_restore_them():
    switch_on(joins=False)
    outside = ALL - {"joins"}
    with switched(fusion=False):
        assert features_on() == ALL - {"fusion"}
        with switched(False, **others_off("merging")):
            assert features_on() == ALL - {"fusion", "merging"}
        assert features_on() == ALL - {"fusion"}
    assert features_on() == outside
    with pytensor_fuse.enabled(False):
        assert features_on() == set()
    assert features_on() == outside


def test_features_are_named_by_strings():
    pytensor_fuse.disable()
    pytensor_fuse.enable("joins", "accelerators:clones")
    assert features_on() == {"joins", "accelerators"}
    assert parts_on() == {"clones"}
    pytensor_fuse.enable("fusion")
    pytensor_fuse.disable("joins")
    with pytensor_fuse.enabled("merging"), pytensor_fuse.enabled(False, "fusion"):
        assert features_on() == {"merging", "accelerators"}
        pytensor_fuse.enable("joins")
        assert "joins" in features_on()
    assert features_on() == {"fusion", "accelerators"}
    with pytest.raises(TypeError, match="a feature is named by a string, such as 'joins'"):
        pytensor_fuse.enable(True)
    with pytest.raises(TypeError, match=r"argument 'fuson'; features are named by strings"):
        pytensor_fuse.enable(fuson=True)


@pytest.mark.parametrize("call", ["enable", "disable", "enabled"])
@pytest.mark.parametrize("value", [None, "no", 1])
def test_a_feature_that_is_neither_on_nor_off(call, value):
    before = features_on()
    with pytest.raises(TypeError, match=r"joins must be True or False, not"):
        getattr(pytensor_fuse, call)(joins=value).__enter__()
    assert features_on() == before


def test_a_block_that_is_neither_on_nor_off():
    before = features_on()
    with pytest.raises(TypeError, match="flag must be True or False, or the name of a feature"):
        pytensor_fuse.enabled(None).__enter__()
    with pytest.raises(ValueError, match=r"no feature is called 'no'; there are .*fusion"):
        pytensor_fuse.enabled("no").__enter__()
    assert features_on() == before


def test_a_feature_that_there_is_not():
    with pytest.raises(ValueError, match=r"no feature is called 'speed'; there are .*fusion"):
        pytensor_fuse.enable("speed")


@pytest.mark.parametrize(
    ("variable", "on"),
    [
        ("fusion", {"fusion"}),
        ("fusion,merging", {"fusion", "merging"}),
        (" Joins  fusion ", {"fusion", "joins"}),
        ("exact_constants,", {"exact_constants"}),
    ],
)
def test_environment_names_features(variable, on):
    done = run_python(
        "import pytensor_fuse, pytensor",
        "print(*sorted(n for n, of in pytensor_fuse.status().items() if of.is_on))",
        variable=variable,
        flags=["-Werror::RuntimeWarning"],
    )
    assert set(done.stdout.split()) == on


def test_environment_names_what_there_is_not():
    done = run_python(
        "import pytensor_fuse, pytensor",
        "print(*sorted(n for n, of in pytensor_fuse.status().items() if of.is_on))",
        variable="fusion,fission",
    )
    assert done.stdout.split() == ["fusion"]
    assert "names no feature of pytensor_fuse by fission; there are" in done.stderr


def test_workers_have_the_features_of_their_parent(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(
        """
import multiprocessing, pytensor_fuse, pytensor

def state(_):
    status = pytensor_fuse.status()
    parts = [name for name, part in status["accelerators"].parts.items() if part.is_on]
    return sorted(name for name, feature in status.items() if feature.is_on), parts

if __name__ == "__main__":
    pytensor_fuse.enable(
        joins=False,
        linalg=False,
        cache=False,
        other_data=False,
        native=False,
        single_runs=False,
        nutpie=False,
        exact_constants=False,
        accelerators=["clones", "queries"]
    )
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(state, [None]))
"""
    )
    done = run_python(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')")
    assert done.stdout == "[(['accelerators', 'fusion', 'merging'], ['queries', 'clones'])]\n"


def test_status_prints():
    with switched(joins=False):
        lines = str(pytensor_fuse.status()).splitlines()
    assert [line.split()[:2] for line in lines if not line.startswith(" ")] == [
        [name, "off" if name == "joins" else "on"] for name in FEATURES
    ]
    entries = (re.match(r"(?: {4})?(\w+ +(?:on|off) +)", line) for line in lines)
    columns = {len(entry[1]) for entry in entries if entry}
    assert len(columns) == 1


def test_every_change_says_what_it_replaces():
    assert {change.feature for change in CHANGES} == ALL
    assert all(change.replaces for change in CHANGES)
    assert len({change.replaces for change in CHANGES}) == len(CHANGES)
    for name, feature in pytensor_fuse.status().items():
        assert feature.replaces == tuple(c.replaces for c in CHANGES if c.feature == name)


def registered():
    return {tag: list(rewriters) for tag, rewriters in vars(optdb)["__db__"].items()}


@pytest.mark.parametrize(
    ("feature", "number"), [("joins", 0), ("joins", 1), ("joins", 2), ("linalg", 0), ("linalg", 1)]
)
def test_a_feature_is_applied_wholly_or_not_at_all(feature, number, monkeypatch):
    def fail():
        raise LookupError("a patch of a test")

    pytensor_fuse.disable()
    before = registered()
    switch_on(**{feature: False})
    without = registered()
    pytensor_fuse.disable()
    assert registered() == before
    patch = UNITS[feature]._patches[number]
    monkeypatch.setattr(withdrawal, "_said", set())
    monkeypatch.setattr(patch, "apply", fail)
    with pytest.warns(
        RuntimeWarning, match=rf"leaves {feature} to PyTensor .*a patch of a test"
    ) as said:
        pytensor_fuse.enable()
    assert len(said) == 1
    assert features_on() == what_is_replaced() == ALL - {feature}
    assert registered() == without
    monkeypatch.undo()
    pytensor_fuse.enable()
    assert features_on() == ALL


def test_a_block_that_cannot_be_entered_leaves_nothing_behind(monkeypatch):
    def fail():
        raise LookupError("a patch of a test")

    pytensor_fuse.enable()
    patch = UNITS["joins"]._patches[0]
    with monkeypatch.context() as changed:
        changed.setattr(patch, "undo", fail)
        with pytest.raises(LookupError, match="a patch of a test"):
            pytensor_fuse.enabled(False).__enter__()
    assert features_on() == ALL


class Stock:
    value = 1


class Ours(Stock):
    value = 2


def test_a_switched_class_remembers_what_it_changed():
    first, second, stranger = Stock(), Stock(), object()
    found = [first, stranger]
    patch = SwitchedClass(lambda: found, {Stock: Ours})
    patch.apply()
    assert type(first) is Stock
    patch.prepare()
    found[:] = [second]
    patch.prepare()
    for _ in range(2):
        patch.apply()
        assert [type(x) for x in (first, second, stranger)] == [Ours, Ours, object]
        assert patch.holds()
    found.append(Stock())
    assert not patch.holds()
    for _ in range(2):
        patch.undo()
        assert [type(x) for x in (first, second, stranger)] == [Stock, Stock, object]
    assert not patch.holds()


def test_a_replaced_attribute_comes_back():
    class Own:
        value = 3

    patch = ReplacedAttributes((Stock, Own), "value", 7)
    patch.prepare()
    for _ in range(2):
        patch.apply()
        assert (Stock.value, Own.value) == (7, 7)
        assert patch.holds()
    for _ in range(2):
        patch.undo()
        assert (Stock.value, Own.value) == (1, 3)
    assert not patch.holds()
    with pytest.raises(AttributeError, match="has no value of its own"):
        ReplacedAttributes((type("Heir", (Stock,), {}),), "value", 7).prepare()
