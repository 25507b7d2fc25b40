"""Future versions of PyTensor: affected features stay off with one warning, and nothing breaks.

For every fact that a feature requires, a process runs in which it does not hold.
"""

import sys
from pathlib import Path

import pytensor
import pytest

import pytensor_fuse
from pytensor_fuse._activation.changes import CHANGES
from pytensor_fuse._activation.units import Unit
from pytensor_fuse._pytensor.compat import requirements as facts
from pytensor_fuse._pytensor.compat.checks import (
    DoesIfThere,
    Has,
    Keeps,
    Takes,
    TakesIfThere,
    find,
    mismatches,
    release,
)
from support.programs.forked import run_forked
from support.programs.future import Change
from support.programs.grounds import forget
from support.programs.processes import run_python

FACTS = sorted({fact for change in CHANGES for fact in change.ground}, key=repr)
# Without the facts of separately switched parts, which are checked in one process.
OF_FEATURES = sorted({f for change in CHANGES if not change.part for f in change.ground}, key=repr)


def is_absent(place):
    try:
        find(place)
    except (ImportError, AttributeError):
        return True
    return False


def described(fact):
    name = getattr(fact, "name", None)
    return f"{type(fact).__name__}-{fact.place.split(':')[-1]}{'-' + name if name else ''}"


# Words that other code uses, too.
COMMON = {"axis", "axis1", "axis2", "lower", "mode", "offset"}


def change_of(fact):
    if isinstance(fact, Keeps) and fact.name in COMMON:
        return Change(place=fact.place, name=fact.name)
    if isinstance(fact, Has | Keeps):
        return Change(name=fact.name)
    return Change(place=fact.place, takes_more=isinstance(fact, Takes))


COMPILE = """
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pytensor_fuse, pytensor
    status = pytensor_fuse.status()
said = [str(w.message) for w in caught if "pytensor_fuse" in str(w.message)]

import numpy as np
import pytensor.tensor as pt

def results():
    x, y = pt.vectors("x", "y")
    mean = pt.exp(x) / (1 + pt.exp(x))
    joined = pt.concatenate([pt.sin(x) * 2 + 1, pt.exp(y) - 1, pt.cumsum(x)])
    gradient = pt.grad((mean * pt.exp(x)).sum(), x)
    trace = pt.trace(pt.outer(x, x) @ pt.outer(x, y[:1].repeat(3)))
    f = pytensor.function([x, y], [mean, joined, gradient, trace], mode="FAST_RUN_PYTHON")
    return f(np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0]))

from pytensor.compile.mode import Mode, register_mode
register_mode("FAST_RUN_PYTHON", Mode(linker="py", optimizer="fast_run"))

with warnings.catch_warnings():
    warnings.simplefilter("error", RuntimeWarning)
    ours = results()
with pytensor_fuse.enabled(False):
    stock = results()
for a, b in zip(ours, stock, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-13)
pytensor_fuse.disable()
"""


def test_facts_hold_today():
    # Facts about functions that the package replaces refer to PyTensor's own.
    older = {f for change in CHANGES if change.since > release() for f in change.ground}
    with pytensor_fuse.enabled(False):
        assert mismatches(fact for fact in FACTS if fact not in older) == []


def test_facts_are_many_enough_to_be_taken_seriously():
    assert {change.feature for change in CHANGES if change.ground} == set(pytensor_fuse.status())


@pytest.mark.every(6)
@pytest.mark.parametrize("fact", OF_FEATURES, ids=described)
def test_what_does_not_fit_stays_off(fact):
    if isinstance(fact, TakesIfThere | DoesIfThere) and is_absent(fact.place):
        pytest.skip("this PyTensor does without it")
    features = {c.feature for c in CHANGES if fact in c.ground and not c.part}
    run_forked(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from support.programs.future import Change, come
        come({change_of(fact)!r})
        features = {sorted(features)!r}
        """,
        COMPILE,
        """
        off = [name for name, feature in status.items() if not feature.is_on]
        for name in features:
            assert not status[name].is_on, status
            assert status[name].reason, status
            assert sum(name in text for text in said) == 1, said
        # An attribute of this name may be what others stand on, too.
        assert set(off) >= set(features)
        assert all(pytensor.__version__ in text for text in said), said
        # Asked again, it says nothing again.
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            pytensor_fuse.enable()
        """,
    )


NEEDED = [change for change in CHANGES if change.ground and change.since <= release()]


@pytest.mark.parametrize("change", NEEDED, ids=lambda change: change.part or change.feature)
def test_a_change_stays_off_if_any_of_its_facts_does_not_hold(change, monkeypatch):
    # PyTensor's original functions, as before the first switch.
    with pytensor_fuse.enabled(False):
        for fact in change.ground:
            if isinstance(fact, TakesIfThere | DoesIfThere) and is_absent(fact.place):
                continue
            part = Unit([change])
            with monkeypatch.context() as patch:
                forget(patch, fact)
                part.prepare()
            assert part.reason is not None
            assert fact.place in part.reason
            part.switch(True)
            assert not part.is_on
            part.prepare()
            assert part.reason is None


def test_other_parts_work():
    run_forked(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from support.programs.future import Change, come
        come(Change(place="pytensor.compile.aliasing:Supervisor.on_validate"))
        """,
        COMPILE,
        """
        assert all(feature.is_on for feature in status.values())
        parts = status["accelerators"].parts
        assert "on_validate" in parts["validation"].reason
        assert [name for name, part in parts.items() if not part.is_on and part.reason][:1] == [
            "validation"
        ]
        (text,) = said
        assert "accelerators:validation to" in text
        """,
    )


JOINS_IN_C = """
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", RuntimeWarning)
    import pytensor, pytensor_fuse

import numpy as np
import pytensor.tensor as pt

x = pt.vector("x", shape=(2000,))
f = pytensor.function([x], pt.concatenate([x * 2 + 1, pt.exp(x), pt.tanh(x)]), mode="CVM")
value = np.linspace(-1, 1, 2000)
expected = np.concatenate([value * 2 + 1, np.exp(value), np.tanh(value)])
np.testing.assert_allclose(f(value), expected, rtol=1e-12)
print(any(type(node.op).__name__ == "WriteJoin" for node in f.maker.fgraph.apply_nodes))
"""


@pytest.mark.skipif(not pytensor.config.cxx, reason="there is no C compiler")
@pytest.mark.every(4)
@pytest.mark.parametrize("fact", [None, *dict.fromkeys(facts.JOINS)], ids=repr)
def test_joins_in_c_do_not_fail_to_compile(fact):
    future = ""
    if fact is not None:
        future = f"""
            import sys
            sys.path.insert(0, {str(Path(__file__).parents[1])!r})
            from support.programs.future import Change, come
            come({change_of(fact)!r})
            """
    # Today the join is eliminated; in each of these futures, PyTensor's own runs.
    assert run_forked(future, JOINS_IN_C).stdout == f"{fact is None}\n"


NATIVE_IN_NUMBA = """
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pytensor, pytensor_fuse
said = [str(w.message) for w in caught if "pytensor_fuse leaves" in str(w.message)]

import numpy as np
import pytensor.tensor as pt

x = pt.vector("x")
f = pytensor.function([x], pt.exp(x) + 1, mode="NUMBA")
np.testing.assert_allclose(f(np.array([0.0, 1.0])), [2.0, 1.0 + np.e], rtol=1e-14)
print(type(f.vm).__name__ == "NativeThunk", sum("native" in text for text in said))
"""


@pytest.mark.every(3)
@pytest.mark.parametrize("fact", [None, *facts.NATIVE], ids=repr)
def test_graphs_in_numba_mode_do_not_fail_to_compile(fact):
    """Today the graphs become machine code; in each of these futures, Numba compiles them."""
    future = ""
    if fact is not None:
        future = f"""
            import sys
            sys.path.insert(0, {str(Path(__file__).parents[1])!r})
            from support.programs.future import Change, come
            come({change_of(fact)!r})
            """
    expected = "True 0" if fact is None else "False 1"
    assert run_forked(future, NATIVE_IN_NUMBA).stdout == f"{expected}\n"


def test_rules_that_cannot_be_loaded_leave_graphs_to_numba():
    done = run_python(
        """
        import sys
        sys.modules["pytensor_fuse._native.lowering.rules"] = None
        """,
        NATIVE_IN_NUMBA,
        """
        status = pytensor_fuse.status()
        assert [name for name, of in status.items() if not of.is_on] == ["native"]
        assert "lowering.rules" in status["native"].reason
        """,
    )
    assert done.stdout == "False 0\n"
    assert done.stderr.count("leaves native to PyTensor") == 1


LINALG_IN_NUMBA = """
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pytensor, pytensor_fuse
    assert "numba" not in sys.modules
    import pytensor.tensor as pt
    from pytensor.compile.mode import NUMBA
    from pytensor.graph.fg import FunctionGraph
    a = pt.matrix("a")
    graph = FunctionGraph([a], [pt.linalg.inv(a), pt.linalg.det(a)], clone=True)
    # Machine code of ours needs none of what has changed.
    with pytensor_fuse.enabled(False, "native"):
        NUMBA.optimizer.rewrite(graph)
said = [str(w.message) for w in caught if "pytensor_fuse" in str(w.message)]
made = any("LUInverse" in str(node.op) for node in graph.apply_nodes)
print(made, pytensor_fuse.status()["linalg"].is_on, len(said))
"""


@pytest.mark.parametrize("fact", [None, *facts.NUMBA_LAPACK], ids=repr)
def test_linalg_in_numba_is_withdrawn_if_lapack_is_called_in_another_way(fact):
    future = "import sys"
    if fact is not None:
        future = f"""
            import sys
            sys.path.insert(0, {str(Path(__file__).parents[1])!r})
            from support.programs.future import Change, come
            come({change_of(fact)!r})
            """
    expected = "True True 0" if fact is None else "False False 1"
    assert run_forked(future, LINALG_IN_NUMBA).stdout == f"{expected}\n"


def test_other_features_work():
    """A change that concerns one feature leaves the others on."""
    run_forked(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from support.programs.future import Change, come
        come(Change(name="_names"))
        """,
        COMPILE,
        """
        off = [name for name, feature in status.items() if not feature.is_on]
        assert off == ["joins", "linalg"]
        (text,) = said
        assert "joins and linalg" in text and "has no _names" in text
        """,
    )


@pytest.mark.parametrize(
    ("feature", "module"),
    [
        ("fusion", "pytensor_fuse._fusion.fuse"),
        ("merging", "pytensor_fuse._merging.merge"),
        ("joins", "pytensor_fuse._joins.eliminate"),
        ("linalg", "pytensor_fuse._linalg.rules.products.low_rank"),
    ],
)
def test_what_cannot_be_loaded_when_it_is_needed_is_withdrawn(feature, module):
    """Public names may move, too; that shows when a graph is first rewritten."""
    run_forked(
        f"""
        import sys
        sys.modules[{module!r}] = None
        """,
        COMPILE.replace('simplefilter("error", RuntimeWarning)', 'simplefilter("ignore")'),
        f"""
        assert said == [] and all(of.is_on for of in status.values())
        with warnings.catch_warnings(record=True):
            pytensor_fuse.enable()
            results()
        off = [name for name, of in pytensor_fuse.status().items() if not of.is_on]
        assert off == [{feature!r}], off
        assert {module!r} in pytensor_fuse.status()[{feature!r}].reason
        """,
    )


def test_a_class_that_has_moved_leaves_its_feature_off():
    run_forked(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from support.programs.future import Change, come
        come(Change(name="FusionOptimizer"))
        """,
        COMPILE,
        """
        assert [name for name, feature in status.items() if not feature.is_on] == ["fusion"]
        (text,) = said
        assert "fusion" in text and "FusionOptimizer" in text
        """,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="the path is made for POSIX")
def test_importing_pytensor_never_fails_because_of_us(tmp_path):
    done = run_python(
        """
        import sys
        import pytensor_fuse
        sys.modules["pytensor_fuse._activation.switch"] = None
        import pytensor
        """
    )
    assert "pytensor_fuse cannot work with this PyTensor" in done.stderr


def test_importing_pytensor_does_not_fail_where_warnings_are_errors():
    done = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from support.programs.future import Change, come
        come(Change(name="_names"))
        import pytensor_fuse, pytensor
        """,
        "print(*(n for n, of in pytensor_fuse.status().items() if not of.is_on))",
        flags=["-Werror::RuntimeWarning"],
    )
    assert done.stdout == "joins linalg\n"
    said = "RuntimeWarning: pytensor_fuse leaves joins and linalg to PyTensor"
    assert done.stderr.count(said) == 1


def test_a_compile_does_not_fail_where_warnings_are_errors():
    """If a change is withdrawn during a compilation, PyTensor completes it."""
    done = run_python(
        """
        import sys
        sys.modules["pytensor_fuse._merging.merge"] = None
        import pytensor_fuse, pytensor
        import pytensor.tensor as pt
        x = pt.vector("x")
        f = pytensor.function([x], pt.exp(x) + pt.exp(x), mode="FAST_COMPILE")
        print(*(n for n, of in pytensor_fuse.status().items() if not of.is_on))
        """,
        flags=["-Werror::RuntimeWarning"],
    )
    assert done.stdout == "merging\n"
    assert done.stderr.count("RuntimeWarning: pytensor_fuse leaves merging to PyTensor") == 1


def test_a_trace_is_no_future():
    """Methods wrapped by a trace still count as PyTensor's own."""
    run_python(
        """
        import pytensor_fuse
        with pytensor_fuse.trace():
            pytensor_fuse.enable()
            assert all(of.is_on for of in pytensor_fuse.status().values())
        assert all(of.is_on for of in pytensor_fuse.status().values())
        """,
        variable="0",
        flags=["-Werror::RuntimeWarning"],
    )
