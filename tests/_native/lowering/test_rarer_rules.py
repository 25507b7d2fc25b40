"""Rules that are registered with the first op without a rule."""

from __future__ import annotations

import pytest

from pytensor_fuse._native.lowering.registry import Lowering, lower
from pytensor_fuse._native.lowering.rules import COMMON, RARER
from support.programs.processes import run_python


class Common:
    pass


class Rare:
    pass


def own(number):
    """Return a rule that looks like one of the package's own."""

    def rule(op, node, context, inputs):
        return [number]

    rule.__module__ = "pytensor_fuse._native.lowering.somewhere"
    return rule


def lowering_with_rest():
    """Return a rule for a common class, a delayed one for a rare class, and a log of its delay."""
    made, calls = Lowering(), []

    def register():
        calls.append("rest")
        made.register(Rare)(own(2))

    made.register(Common)(own(1))
    made.register_rest(register)
    return made, calls


def test_the_rest_waits_for_an_op_without_a_rule():
    made, calls = lowering_with_rest()
    assert made(Common(), None, None, []) == [1]
    assert made.is_own(Common())
    assert calls == []
    assert made(Rare(), None, None, []) == [2]
    assert not made.has_rule(object())
    assert calls == ["rest"]


def test_third_party_rules_replace_those_of_the_rest():
    made, calls = lowering_with_rest()

    @made.register(Rare)
    def rule(op, node, context, inputs):
        return [3]

    assert calls == ["rest"]
    assert made(Rare(), None, None, []) == [3]
    assert not made.is_own(Rare())


def test_only_third_party_registrations_count():
    """Registering third-party rules prevents reuse of code of equal graphs; own rules do not."""
    made, _ = lowering_with_rest()
    made.has_rule(Rare())
    assert made.n_registered == 0
    made.register(Rare)(lambda op, node, context, inputs: [3])
    assert made.n_registered == 1
    made.register_named("a.B")(lambda op, node, context, inputs: [3])
    assert made.n_registered == 2


def test_a_failure_of_the_rest_is_told_once():
    made, calls = Lowering(), []

    def register():
        calls.append("rest")
        raise ImportError("no such op")

    made.register(Common)(own(1))
    made.register_rest(register)
    with pytest.warns(RuntimeWarning, match="leaves more ops to Numba .* ImportError: no such op"):
        assert not made.has_rule(Rare())
    assert not made.has_rule(Rare())
    assert made.has_rule(Common())
    assert calls == ["rest"]


def test_no_class_of_the_rest_derives_from_one_with_a_rule():
    """The rule of the base class would be found, and the others never registered."""
    assert not lower.has_rule(object())
    found = lower._rules.registry
    places = {kind: rule.__module__.split("lowering.")[-1] for kind, rule in found.items()}
    waiting = {kind for kind, place in places.items() if place in RARER}
    assert len(waiting) > 30
    at_once = {kind for kind, place in places.items() if place in COMMON}
    assert not [(kind, base) for kind in waiting for base in kind.__mro__ if base in at_once]


def test_common_graphs_do_without_the_rest():
    run_python(
        """
        import sys
        import numpy as np, pytensor, pytensor.tensor as pt
        import pytensor_fuse

        x, y = pt.vectors("xy")
        joined = pt.concatenate([pt.exp(x[1:]), x * y])
        f = pytensor.function([x, y], [joined, pytensor.grad(joined.sum(), x)], mode="NUMBA")
        f(np.ones(3), np.ones(3))
        assert type(f.vm).__name__ == "NativeThunk"
        assert "pytensor_fuse._native.lowering.sorting.rules" not in sys.modules
        f = pytensor.function([x], pt.sort(x), mode="NUMBA")
        assert f(np.array([2.0, 1.0])).tolist() == [1.0, 2.0]
        assert type(f.vm).__name__ == "NativeThunk"
        assert "numba" not in sys.modules
        """
    )
