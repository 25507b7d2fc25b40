"""The feature `native` is switched like the others, and has no cost until it is needed."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import predefined_linkers, predefined_modes
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pytensor_fuse
from pytensor_fuse import explain
from pytensor_fuse.native import lower
from pytensor_fuse.reports import NativeState
from support.programs.processes import run_python
from support.switching import switched

ON = {name: name == "native" for name in pytensor_fuse.status()}


def compiled() -> Any:
    x = pt.vector("x")
    return pytensor.function([x], pt.exp(x) + 1, mode="NUMBA")


def test_it_is_on_by_itself() -> None:
    assert pytensor_fuse.status()["native"].is_on
    assert explain(compiled(), "native").is_native


def test_functions_stay_what_they_are() -> None:
    ours = compiled()
    with switched(False, **ON):
        assert not pytensor_fuse.status()["native"].is_on
        assert "NATIVE" not in predefined_modes
        assert "native" not in predefined_linkers
        theirs = compiled()
        assert explain(theirs, "native").state is NativeState.NUMBA
        assert explain(ours, "native").is_native
        values = np.linspace(-1.0, 1.0, 7)
        np.testing.assert_allclose(ours(values), theirs(values), rtol=1e-15)
    assert predefined_linkers["native"] is predefined_modes["NATIVE"].linker
    np.testing.assert_allclose(ours(values), theirs(values), rtol=1e-15)


PROGRAM = """
    import sys, warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import pytensor, pytensor_fuse
        import pytensor.tensor as pt
        x = pt.vector("x")
        f = pytensor.function([x], pt.exp(x).sum(), mode="NUMBA")
        f([0.0, 0.0])
    said = [one for one in caught if "PYTENSOR_FUSE_NATIVE" in str(one.message)]
    print(pytensor_fuse.explain(f, "native").state.name, "numba" in sys.modules, len(said))
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", "WHOLE False 0"),
        ("on", "WHOLE False 0"),
        ("1", "WHOLE False 0"),
        ("off", "NUMBA True 0"),
        ("0", "NUMBA True 0"),
        ("perhaps", "WHOLE False 1"),
    ],
)
def test_the_environment_switches_it(value: str, expected: str) -> None:
    environment = {**os.environ, "PYTENSOR_FUSE_NATIVE": value, "PYTENSOR_FUSE_CACHE": "off"}
    assert run_python(PROGRAM, env=environment).stdout == f"{expected}\n"


def test_importing_the_package_loads_neither_llvm_nor_rules() -> None:
    done = run_python(
        """
        import sys, pytensor, pytensor_fuse
        print([name for name in sys.modules if "llvmlite" in name or "lowering" in name])
        """
    )
    assert done.stdout == "[]\n"


def test_info_shows_what_the_environment_says() -> None:
    environment = {**os.environ, "PYTENSOR_FUSE_NATIVE": "on"}
    done = run_python(
        """
        import pytensor_fuse
        found = pytensor_fuse.info()
        print(found.environment["PYTENSOR_FUSE_NATIVE"], found.features["native"].is_on)
        """,
        env=environment,
    )
    assert done.stdout == "on True\n"


class Failing(Op):
    """An op whose rule has a fault."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply[Any]:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] + 1


@lower.register(Failing)
def _fails(op: Any, node: Any, context: Any, inputs: Any) -> Any:
    raise KeyError("a fault of a test")


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_a_rule_that_raises_leaves_the_graph_to_numba_with_one_warning() -> None:
    x = pt.vector("x")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f = pytensor.function([x], Failing()(pt.exp(x)), mode="NUMBA")
    said = [str(one.message) for one in caught if "pytensor_fuse" in str(one.message)]
    assert len(said) == 1
    assert "a fault of a test" in said[0]
    np.testing.assert_allclose(f(np.zeros(3)), np.full(3, 2.0))
    assert explain(f, "native").state is NativeState.NUMBA
