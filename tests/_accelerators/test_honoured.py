"""What people make of PyTensor's classes is honoured: subclasses, own methods, replaced methods."""

from __future__ import annotations

import copy
import pickle
import threading
from abc import ABCMeta
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.graph.traversal import toposort
from pytensor.graph.utils import Scratchpad
from pytensor.scalar.basic import Add, ScalarOp, add, upcast_out
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from pytensor_fuse._accelerators.instance_checks.virtual_bases import has_virtual_subclasses
from support.accelerated import assert_same_compiles, both
from support.programs.processes import run_python
from support.switching import switched

pytestmark = pytest.mark.usefixtures("switch_accelerators")


# Random graphs ----------------------------------------------------------------------------

UNARY = [pt.exp, pt.neg, pt.abs, pt.sqr, pt.reciprocal, pt.log1p, lambda x: x[::-1], lambda x: x.T]
BINARY = [pt.add, pt.mul, pt.sub, pt.true_div, pt.maximum, pt.pow]


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    numbers = st.integers(0, 40)
    return draw(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=14))


def built(program: list[tuple[int, int, int]]) -> Any:
    x, y, s = pt.vector("x"), pt.vector("y"), pt.scalar("s")
    made = [x, y, s, pt.constant(2.0), pt.constant(np.array([1.0, 1.0])), pt.constant(0)]
    for op, a, b in program:
        left, right = made[-1 - a % len(made)], made[-1 - b % len(made)]
        if op % 3 == 0:
            function: Any = UNARY[op % len(UNARY)]
            made.append(function(left) if left.type.ndim else pt.exp(left))
        else:
            made.append(BINARY[op % len(BINARY)](left, right))
    outputs = made[-3:]
    total = pt.add(*(pt.sum(out) for out in outputs))
    gradients = pt.grad(total, [x, y], disconnected_inputs="ignore")
    return [x, y, s], [*outputs, *gradients], {}


@given(program=programs())
def test_random_graphs(program: list[tuple[int, int, int]]) -> None:
    assert_same_compiles(lambda: built(program), True)


# Elemwise and types -----------------------------------------------------------------------


class OwnInfo(Elemwise):
    """Says that whatever it gives is a float32."""

    def get_output_info(self, *inputs: Any) -> Any:
        dtypes, shapes, inputs = super().get_output_info(*inputs)
        return ["float32" for _ in dtypes], shapes, inputs


class OwnScalar(ScalarOp):
    """Gives what its attribute says."""

    nin = 1
    dtype = "float64"

    def output_types(self, types: Any) -> Any:
        return [pytensor.scalar.basic.get_scalar_type(self.dtype)]

    def impl(self, x: Any) -> Any:
        return x


@both
def test_ops_with_methods_of_their_own_make_their_nodes(on: bool) -> None:
    x = pt.vector("x")
    op = OwnInfo(add)
    assert [op(x, x).type.dtype for _ in range(3)] == ["float32"] * 3

    plain: Any = Elemwise(Add(upcast_out))
    assert plain(x, x).type.dtype == "float64"
    plain.get_output_info = lambda *inputs: (["int8"], [(None,)], list(inputs))
    assert plain(x, x).type.dtype == "int8"

    scalar = OwnScalar()
    op = Elemwise(scalar)
    assert op(x).type.dtype == op(x).type.dtype == "float64"
    scalar.dtype = "float32"
    assert op(x).type.dtype == "float32"


@both
def test_casts_follow_the_configuration(on: bool) -> None:
    f, i = pt.fvector("f"), pt.ivector("i")
    seen = []
    for _ in range(2):
        for floatx in ("float32", "float64"):
            for policy in ("custom", "numpy+floatX"):
                with pytensor.config.change_flags(floatX=floatx, cast_policy=policy):
                    seen.append([(f + i).type.dtype, (i / i).type.dtype, (f * 1.5).type.dtype])
    assert seen[:4] == seen[4:]
    with switched(accelerators=False), pytensor.config.change_flags(floatX="float32"):
        assert (i / i).type.dtype == seen[0][1]


@both
def test_bad_inputs_of_elemwise(on: bool) -> None:
    a, b = pt.tensor("a", shape=(2,)), pt.tensor("b", shape=(3,))
    for _ in range(2):
        with pytest.raises(ValueError, match="Incompatible Elemwise input shapes"):
            a + b
        with pytest.raises(TypeError, match="Wrong number of inputs"):
            pt.exp(a, b)
    inplace = Elemwise(add, {0: 0})
    assert inplace(a, a).type.shape == (2,)
    with pytest.raises(TypeError, match="incompatible data types"):
        inplace(pt.tensor("c", shape=(2,), dtype="int8"), a)


@both
def test_types_of_tensors(on: bool) -> None:
    made = TensorType("float64", (None, 1, 3))
    assert list(vars(made)) == ["dtype", "shape", "broadcastable", "ndim", "name", "numpy_dtype"]
    assert made.broadcastable == (False, True, False)
    assert made.numpy_dtype == np.dtype("float64")
    assert TensorType(np.float32, shape=[np.int64(3), None], name="t").name == "t"
    assert TensorType("float64", shape=(True, False)).shape == (1, None)
    assert type(TensorType("float64", shape=(np.int64(3),)).shape[0]) is int
    assert TensorType("floatX", ()).dtype == pytensor.config.floatX
    assert TensorType("f8", 3).shape == (3,)
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(ValueError, match="maximum supported dimension"):
        TensorType("float64", (None,) * 65)
    with pytest.raises(ValueError, match="must be a boolean, integer or None"):
        TensorType("float64", ("x",))
    with pytest.raises(TypeError):
        TensorType("nothing", ())
    with pytest.raises(TypeError, match="Unsupported dtype"):
        TensorType("datetime64", ())


@both
def test_the_line_of_the_user_is_noted(on: bool) -> None:
    x = pt.vector("x")
    for _ in range(2):
        out = x + 2
        (trace,) = out.tag.trace
        assert trace[-1][0] == __file__
        assert trace[-1][3] == "out = x + 2"


# Instance checks --------------------------------------------------------------------------


def test_instance_checks_see_what_is_registered_later() -> None:
    run_python(
        """
        import pytensor, pytensor_fuse
        import pytensor.tensor as pt
        from pytensor.graph.op import Op
        from pytensor.graph.utils import MetaType

        pytensor_fuse.enable()
        assert MetaType.__instancecheck__ is type.__instancecheck__

        class Virtual:
            pass

        assert not isinstance(Virtual(), Op)
        Op.register(Virtual)
        assert isinstance(Virtual(), Op)
        assert isinstance(pt.exp, Op) and not isinstance(pt.vector(), Op)
        assert pytensor_fuse.status()["accelerators"].parts["instance_checks"].is_on
        pytensor_fuse.disable()
        pytensor_fuse.enable()
        assert isinstance(Virtual(), Op)
        """
    )


def test_instance_checks_ask_hooks() -> None:
    run_python(
        """
        import pytensor, pytensor_fuse
        from pytensor.graph.op import Op

        pytensor_fuse.enable()

        class Duck(Op):
            @classmethod
            def __subclasshook__(cls, other):
                return hasattr(other, "quack") or NotImplemented

        class Quacks:
            quack = True

        assert isinstance(Quacks(), Duck)
        """
    )


def test_what_was_registered_before_is_seen() -> None:
    run_python(
        """
        import pytensor
        from pytensor.graph.op import Op

        class Virtual:
            pass

        Op.register(Virtual)
        import pytensor_fuse
        pytensor_fuse.enable()
        assert isinstance(Virtual(), Op)
        """
    )


def test_virtual_bases_are_found() -> None:
    class Base(metaclass=ABCMeta):  # noqa: B024 - what it is a base of, it is told later
        pass

    class Derived(Base):
        pass

    assert not has_virtual_subclasses(Base)
    Derived.register(int)
    assert has_virtual_subclasses(Base)


# The rest ---------------------------------------------------------------------------------


@both
def test_tags_are_copied(on: bool) -> None:
    tag = Scratchpad()
    tag.trace = [1]
    tag.name = "n"
    made = copy.copy(tag)
    assert type(made) is Scratchpad
    assert vars(made) == vars(tag)
    assert made.trace is tag.trace
    made.name = "other"
    assert tag.name == "n"
    assert vars(pickle.loads(pickle.dumps(tag))) == vars(tag)
    assert vars(copy.deepcopy(tag)) == vars(tag)

    class Slotted(Scratchpad):
        def __getstate__(self) -> Any:
            return {"state": 3}

    assert vars(copy.copy(Slotted())) == {"state": 3}
    out = pt.exp(pt.vector("x"))
    assert type(copy.copy(out.tag)) is type(out.tag)
    with pytest.raises(AttributeError):
        _ = tag.nothing


@both
def test_order_is_that_of_a_walk_from_the_right(on: bool) -> None:
    x, y = pt.vectors("x", "y")
    a, b = pt.exp(x), pt.sin(y)
    out = a * b
    assert [node.op for node in toposort([out])] == [pt.sin, pt.exp, pt.mul]
    assert list(toposort([out], blockers=[a, b])) == [out.owner]
    lazily = toposort([out])
    assert isinstance(next(lazily), Apply)
    assert isinstance(pt.exp, Op)


def test_threads() -> None:
    """Compiles in threads, while the switches go on and off, give what they always give."""
    errors: list[Any] = []
    stop = threading.Event()

    def compiles() -> None:
        try:
            for n in range(4):
                x = pt.vector("x")
                out = pt.grad((pt.exp(x * n) / (1 + pt.exp(x))).sum(), x)
                f = pytensor.function([x], out, mode=Mode(linker="py", optimizer="fast_run"))
                e = np.exp(0.5)
                expected = (n * np.exp(n * 0.5) * (1 + e) - np.exp(n * 0.5) * e) / (1 + e) ** 2
                np.testing.assert_allclose(f(np.array([0.5])), [expected], rtol=1e-10)
        except Exception as error:
            errors.append(error)

    def toggles() -> None:
        on = False
        while not stop.wait(0.002):
            with switched(accelerators=on):
                on = not on

    threads = [threading.Thread(target=compiles) for _ in range(3)]
    toggler = threading.Thread(target=toggles)
    for thread in (*threads, toggler):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    toggler.join()
    assert errors == []
