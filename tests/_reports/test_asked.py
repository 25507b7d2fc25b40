"""What is no function or graph is refused in the same way by all who ask about one."""

import pytensor
import pytensor.tensor as pt
import pytest

from pytensor_fuse import (
    audit,
    explain_joins,
    explain_linalg,
    freeze,
    plan_fusion,
    why_missed,
)

ASKED = [audit, explain_joins, explain_linalg, plan_fusion, why_missed]


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
    yield PointFunction(pytensor.function([x], x)), "give its attribute f, which is the compiled"


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_what_is_no_graph_is_named_and_by_whom(ask):
    for value, said in examples():
        with pytest.raises(TypeError, match=rf"(?s)^{ask.__name__} takes a compiled .*{said}"):
            ask(value)


@pytest.mark.parametrize("ask", ASKED, ids=lambda ask: ask.__name__)
def test_models_of_pymc_are_told_what_to_give(ask):
    pm = pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(TypeError, match=r"type Model; .* give model.compile_logp\(\)\.f"):
        ask(model)
    with pytest.raises(TypeError, match="give its attribute f"):
        ask(model.compile_logp())
    ask(model.compile_logp().f)
