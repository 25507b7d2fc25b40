"""What is no function or graph is refused in the same way by all who ask about one."""

import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_fuse import audit, explain, freeze, plan_fusion

ASKED = [audit, explain, plan_fusion]


class PointFunction:
    """As PyMC's: a function by another name."""

    def __init__(self, f):
        self.f = f


def examples():
    x = pt.vector("x")
    yield 3, "3, which is of type int$"
    yield None, "None, which is of type NoneType$"
    yield "model", "model, which is of type str$"
    yield object(), "<object object>, which is of type object$"
    yield x, "x, which is of type TensorVariable; compile it with pytensor.function$"
    yield freeze([x], [x + 1]), r"FrozenGraph; call its unfreeze\(\) first$"


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_what_is_no_graph_is_named_and_by_whom(ask):
    for value, said in examples():
        with pytest.raises(TypeError, match=rf"(?s)^{ask.__name__} takes a compiled .*{said}"):
            ask(value)


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_a_point_function_stands_for_its_function(ask):
    x = pt.vector("x")
    f = pytensor.function([x], pt.exp(x) + 1)
    assert str(ask(PointFunction(f))) == str(ask(f))


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_models_of_pymc_are_told_what_to_give(ask):
    pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(TypeError, match=r"type Model; .* give model.compile_logp\(\)"):
        ask(model)
    ask(model.compile_logp())
