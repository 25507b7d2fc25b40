"""Random variables against NumPy: the same numbers, to the bit, and the same state afterwards.

PyTensor's Numba mode draws the same numbers as NumPy's methods, with `numba__fastmath=False`; where
it has formulas of its own, they are repeated here, and `test_numba_draws_the_same` compares them
with Numba itself.
"""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.io import In
from pytensor.tensor.random.type import random_generator_type

from pytensor_fuse import explain
from pytensor_fuse._native.linking.parts import ThunkOfParts
from pytensor_fuse._pytensor.compat.versions import scales_cauchy
from pytensor_fuse.exceptions import NativeLinkError
from support.native.functions import stock_function

random = pt.random


def elementwise(draw):
    """Return a function that draws for each element in turn, with broadcast parameters."""

    def drawn(generator, *params, size):
        shape = np.broadcast_shapes(*[np.shape(one) for one in params]) if size is None else size
        spread = [np.broadcast_to(one, shape) for one in params]
        out = [draw(generator, *[one[index] for one in spread]) for index in np.ndindex(shape)]
        return np.array(out).reshape(shape)

    return drawn


def method(name):
    return lambda generator, *params, size: getattr(generator, name)(*params, size=size)


def wald(generator, mean, scale):
    ratio = mean / (2 * scale)
    normal = generator.standard_normal()
    y = mean * normal * normal
    x = mean + ratio * (y - np.sqrt(4 * scale * y + y * y))
    return x if generator.random() <= mean / (mean + x) else mean * mean / x


LOC, SCALE = np.array([[0.0], [-1.5], [3.0]]), np.array([1.0, 0.25, 3.0, 7.5])
SHAPE, PROBABILITY = np.array([[0.3], [1.0], [11.0]]), np.array([0.1, 0.35, 0.5, 0.95])
COUNT = np.array([[0], [7], [120]])
ONE_NUMBER = {
    "uniform": (random.uniform, method("uniform"), (LOC, LOC + SCALE)),
    "normal": (random.normal, method("normal"), (LOC, SCALE)),
    "lognormal": (random.lognormal, method("lognormal"), (LOC, SCALE)),
    "exponential": (random.exponential, method("exponential"), (SCALE,)),
    "beta": (random.beta, method("beta"), (SHAPE, SCALE)),
    "laplace": (random.laplace, method("laplace"), (LOC, SCALE)),
    "logistic": (random.logistic, method("logistic"), (LOC, SCALE)),
    "gumbel": (random.gumbel, method("gumbel"), (LOC, SCALE)),
    "weibull": (random.weibull, method("weibull"), (SHAPE,)),
    "vonmises": (random.vonmises, method("vonmises"), (LOC, SCALE)),
    "triangular": (random.triangular, method("triangular"), (LOC, LOC + 0.5, LOC + 1 + SCALE)),
    "poisson": (random.poisson, method("poisson"), (SHAPE * 9,)),
    "binomial": (random.binomial, method("binomial"), (COUNT, PROBABILITY)),
    "negative_binomial": (
        random.negative_binomial,
        method("negative_binomial"),
        (SHAPE, PROBABILITY),
    ),
    "geometric": (random.geometric, method("geometric"), (PROBABILITY,)),
    "hypergeometric": (random.hypergeometric, method("hypergeometric"), (COUNT, COUNT + 2, COUNT)),
    "integers": (random.integers, method("integers"), (COUNT, COUNT + np.array([1, 9, 2**40]))),
    "gamma": (
        lambda shape, scale, **more: random.gamma(shape=shape, scale=scale, **more),
        method("gamma"),
        (SHAPE, SCALE),
    ),
    "halfnormal": (
        random.halfnormal,
        elementwise(lambda g, loc, scale: loc + scale * abs(g.standard_normal())),
        (LOC, SCALE),
    ),
    "t": (
        random.t,
        elementwise(lambda g, df, loc, scale: loc + scale * g.standard_t(df)),
        (SHAPE, LOC, SCALE),
    ),
    "cauchy": (
        random.cauchy,
        elementwise(lambda g, loc, scale: loc + scale * g.standard_cauchy()),
        (LOC, SCALE),
    ),
    "pareto": (
        random.pareto,
        elementwise(lambda g, shape, scale: (1 - g.random()) ** (-1 / shape) * scale),
        (SHAPE, SCALE),
    ),
    "invgamma": (
        random.invgamma,
        elementwise(lambda g, shape, scale: 1 / g.gamma(shape, 1 / scale)),
        (SHAPE, SCALE),
    ),
    "wald": (random.wald, elementwise(wald), (SHAPE, SCALE)),
    "bernoulli": (
        random.bernoulli,
        elementwise(lambda g, p: int(not p < g.random())),
        (PROBABILITY,),
    ),
}
# Formulas that contain functions for which machine code has its own implementation.
ROUNDED = ("pareto",)


def categorical(generator, p):
    return np.searchsorted(np.cumsum(p), generator.random())


def dirichlet(generator, alpha):
    gammas = [generator.gamma(one, 1.0) for one in alpha]
    total = 0.0
    for one in gammas:
        total += one
    return np.array(gammas) / total


def mv_normal(generator, mean, covariance):
    factor = np.linalg.cholesky(covariance)
    return factor @ generator.normal(size=len(mean)) + mean


def batched(draw, n_axes):
    """Return a function that draws for each member of a batch, with parameters of so many axes."""

    def drawn(generator, *params, size):
        shapes = [one.shape[: one.ndim - n] for one, n in zip(params, n_axes, strict=True)]
        batch = np.broadcast_shapes(*shapes) if size is None else size
        spread = [
            np.broadcast_to(one, batch + one.shape[one.ndim - n :])
            for one, n in zip(params, n_axes, strict=True)
        ]
        out = [draw(generator, *[one[index] for one in spread]) for index in np.ndindex(*batch)]
        return np.array(out).reshape(batch + np.shape(out[0]))

    return drawn


SHARES = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.2, 0.0]])
COVARIANCE = np.array([[[2.0, 0.3], [0.3, 1.0]]])
LARGE = np.eye(6) + 0.25
VECTORS = {
    "categorical": (random.categorical, batched(categorical, (1,)), (SHARES,)),
    "dirichlet": (random.dirichlet, batched(dirichlet, (1,)), (SHARES + 0.3,)),
    "multinomial": (
        random.multinomial,
        batched(lambda g, n, p: g.multinomial(n, p), (0, 1)),
        (np.array([3, 0]), SHARES),
    ),
    "mv_normal": (
        random.multivariate_normal,
        batched(mv_normal, (1, 2)),
        (np.array([[1.0, -2.0], [0.0, 5.0]]), COVARIANCE),
    ),
    "mv_normal_of_one": (
        random.multivariate_normal,
        batched(mv_normal, (1, 2)),
        (np.arange(6.0), LARGE),
    ),
    "mv_normal_of_several": (
        random.multivariate_normal,
        batched(mv_normal, (1, 2)),
        (np.arange(6.0)[None], np.stack([LARGE, LARGE * 2])),
    ),
}
ROUNDED_VECTORS = ("dirichlet", "mv_normal", "mv_normal_of_one", "mv_normal_of_several")


def variables(params):
    """Return variables with static lengths only where these are 1."""
    return [
        pt.tensor(dtype=one.dtype, shape=[length if length == 1 else None for length in one.shape])
        for one in map(np.asarray, params)
    ]


def native(inputs, outputs, **kwargs):
    made = pytensor.function(inputs, outputs, mode="NUMBA", **kwargs)
    assert type(made.vm) is ThunkOfParts, explain(made, "native")
    return made


def require_same_state(one, other):
    np.testing.assert_equal(one.bit_generator.state, other.bit_generator.state)


def check(op, oracle, params, size, *, rtol=0.0, seed=1):
    """Require that two calls draw what NumPy draws, and leave the same state."""
    shared = pytensor.shared(np.random.default_rng(seed))
    given = variables(params)
    after, out = op(*given, size=size, rng=shared, return_next_rng=True)
    function = native(given, out, updates={shared: after})
    generator = np.random.default_rng(seed)
    for _ in range(2):
        drawn, expected = function(*params), np.asarray(oracle(generator, *params, size=size))
        assert drawn.dtype == out.type.dtype
        assert drawn.shape == expected.shape
        if rtol:
            np.testing.assert_allclose(drawn, expected, rtol=rtol, atol=rtol)
        else:
            assert np.array_equal(drawn, expected)
        require_same_state(shared.get_value(borrow=True), generator)


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_one_number(name):
    op, oracle, params = ONE_NUMBER[name]
    if name == "cauchy" and not scales_cauchy():
        pytest.skip("Numba mode has another formula, and draws")
    rtol = 1e-14 if name in ROUNDED else 0.0
    shape = np.broadcast_shapes(*[one.shape for one in params])
    check(op, oracle, params, None, rtol=rtol)
    check(op, oracle, params, (2, *shape), rtol=rtol)


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name):
    op, oracle, params = VECTORS[name]
    rtol = 1e-13 if name in ROUNDED_VECTORS else 0.0
    check(op, oracle, params, None, rtol=rtol)
    check(op, oracle, params, (3, 2), rtol=rtol)


def test_numba_draws_the_same():
    shared = pytensor.shared(np.random.default_rng(3))
    after, outs = shared, []
    for name in ("gumbel", "wald", "bernoulli", "t", "halfnormal", "invgamma"):
        op, _, params = ONE_NUMBER[name]
        after, out = op(*params, rng=after, return_next_rng=True)
        outs.append(out)
    after, out = random.categorical(SHARES, size=(9, 2), rng=after, return_next_rng=True)
    outs.append(out)
    with pytensor.config.change_flags(numba__fastmath=False):
        function = native([], outs, updates={shared: after})
        drawn, state = function(), shared.get_value()
        shared.set_value(np.random.default_rng(3))
        expected = stock_function([], outs, updates={shared: after})()
    for one, other in zip(drawn, expected, strict=True):
        assert np.array_equal(one, other)
    require_same_state(state, shared.get_value())


@st.composite
def shapes_and_sizes(draw):
    """Draw two shapes that broadcast, and a size or None."""
    full = draw(st.lists(st.sampled_from([0, 1, 2, 5]), max_size=3))
    shapes = []
    for _ in range(2):
        own = full[draw(st.integers(0, len(full))) :]
        shapes.append(tuple([1 if draw(st.booleans()) else length for length in own]))
    size = tuple(draw(st.lists(st.integers(0, 3), max_size=1))) + tuple(full)
    return shapes, draw(st.sampled_from([None, size]))


@given(
    shapes_and_sizes(),
    st.sampled_from(["float64", "float32", "int8", "int64"]),
    st.sampled_from(["float64", "float32"]),
)
def test_shapes_sizes_and_dtypes(drawn, of_parameter, of_result):
    shapes, size = drawn
    params = [
        (np.arange(np.prod(shape, dtype=int)).reshape(shape) + place + 1).astype(of_parameter)
        for place, shape in enumerate(shapes)
    ]

    def by_doubles(generator, *given, size):
        doubles = [np.asarray(one, np.float64) for one in given]
        return np.asarray(generator.normal(*doubles, size=size), of_result)

    check(partial(random.normal, dtype=of_result), by_doubles, params, size)


def test_small_integers_are_drawn_in_their_dtype():
    _, oracle, params = ONE_NUMBER["bernoulli"]
    check(partial(random.bernoulli, dtype="int8"), oracle, params, None)


def test_draws_keep_their_order():
    shared = pytensor.shared(np.random.default_rng(5))
    after, x = random.normal(size=(40,), rng=shared, return_next_rng=True)
    after, y = random.gamma(pt.exp(x), scale=1.0, rng=after, return_next_rng=True)
    after, z = random.poisson(y, size=(2, 40), rng=after, return_next_rng=True)
    function = native([], [z, x, y, (x + y) * 2], updates={shared: after})
    generator = np.random.default_rng(5)
    for _ in range(2):
        counts, normals, gammas, _ = function()
        assert np.array_equal(normals, generator.normal(size=40))
        expected = generator.gamma(np.exp(normals), 1.0)
        np.testing.assert_allclose(gammas, expected, rtol=1e-12)
        assert np.array_equal(counts, generator.poisson(gammas, size=(2, 40)))
    require_same_state(shared.get_value(borrow=True), generator)


def test_two_variables_may_have_one_generator():
    rng = np.random.default_rng(5)
    shared = [pytensor.shared(rng, borrow=True) for _ in range(2)]
    outs, updates = [], {}
    for one in shared:
        updates[one], out = random.normal(size=(9,), rng=one, return_next_rng=True)
        outs.append(out)
    function = native([], outs, updates=updates)
    first, second = function()
    expected = [*np.random.default_rng(5).normal(size=(2, 9))]
    assert np.array_equal(first, expected[0]) or np.array_equal(first, expected[1])
    assert not np.array_equal(first, second)
    assert {*first, *second} == {*expected[0], *expected[1]}


@pytest.mark.parametrize("mutable", [False, True])
def test_two_draws_from_one_state_are_the_same(mutable):
    r = random_generator_type("r")
    outs = [random.normal(size=(n,), rng=r, return_next_rng=True)[1] for n in (3, 5)]
    after = random.normal(size=(4,), rng=r, return_next_rng=True)[0]
    function = native([In(r, mutable=mutable)], [*outs, after])
    generator = np.random.default_rng(2)
    first, second, changed = function(generator)
    assert np.array_equal(first, second[:3])
    expected = np.random.default_rng(2)
    assert np.array_equal(second, expected.normal(size=5))
    oracle = np.random.default_rng(2)
    oracle.normal(size=4)
    require_same_state(changed, oracle)
    if not mutable:
        require_same_state(generator, np.random.default_rng(2))


def test_a_state_in_between_is_not_copied():
    r = random_generator_type("r")
    after, x = random.normal(size=(3,), rng=r, return_next_rng=True)
    outs = [random.normal(size=(n,), rng=after, return_next_rng=True)[1] for n in (3, 5)]
    with pytest.raises(NativeLinkError, match="a copy of a variable of type"):
        pytensor.function([r], [x, *outs], mode="NATIVE")


def test_nothing_is_drawn_into_an_empty_array():
    check(random.normal, method("normal"), (LOC, SCALE), (0, 3, 4))


def test_inner_graphs_draw():
    r, m = random_generator_type("r"), pt.vector("m")
    after, x = random.normal(m, 1.0, rng=r, return_next_rng=True)
    inner = OpFromGraph([r, m], [after, pt.tanh(x) * 2])
    shared = pytensor.shared(np.random.default_rng(5))
    after, one = inner(shared, pt.zeros(3))
    after, other = inner(after, one)
    function = native([], [one, other], updates={shared: after})
    generator = np.random.default_rng(5)
    for _ in range(2):
        first, second = function()
        np.testing.assert_allclose(first, 2 * np.tanh(generator.normal(size=3)), rtol=1e-12)
        np.testing.assert_allclose(second, 2 * np.tanh(generator.normal(first)), rtol=1e-12)
    require_same_state(shared.get_value(borrow=True), generator)


def test_an_inner_graph_leaves_a_state_that_others_need():
    r, m = random_generator_type("r"), pt.vector("m")
    inner = OpFromGraph([r, m], [random.normal(m, 1.0, rng=r, return_next_rng=True)[1]])
    shared = pytensor.shared(np.random.default_rng(5))
    one = inner(shared, pt.zeros(3))
    after, other = random.normal(size=(3,), rng=shared, return_next_rng=True)
    function = native([], [one, other], updates={shared: after})
    generator = np.random.default_rng(5)
    for _ in range(2):
        first, second = function()
        assert np.array_equal(first, second)
        assert np.array_equal(first, generator.normal(size=3))
    require_same_state(shared.get_value(borrow=True), generator)


@pytest.mark.parametrize("n_steps", [0, 1, 7])
def test_scans_carry_generators(n_steps):
    shared = pytensor.shared(np.random.default_rng(3))

    def step(x, rng):
        after, drawn = random.normal(0.9 * x, 1.0, rng=rng, return_next_rng=True)
        return drawn, after

    n = pt.lscalar("n")
    path, after = pytensor.scan(
        step, outputs_info=[pt.zeros(()), shared], n_steps=n, return_updates=False
    )
    function = native([n], path, updates={shared: after})
    generator = np.random.default_rng(3)
    for _ in range(2):
        x, expected = 0.0, []
        for _ in range(n_steps):
            x = generator.normal(0.9 * x, 1.0)
            expected.append(x)
        np.testing.assert_allclose(function(n_steps), expected, rtol=1e-12)
        require_same_state(shared.get_value(borrow=True), generator)


@pytest.mark.parametrize(
    ("op", "params", "message"),
    [
        (random.integers, ([3, 5], [4, 5]), "low is greater than high in given interval"),
        (random.hypergeometric, ([-1], [3], [1]), "ngood < 0"),
        (random.hypergeometric, ([1], [3], [9]), "ngood + nbad < nsample"),
        (random.hypergeometric, ([10**9], [3], [9]), "both ngood and nbad must be less than"),
    ],
)
def test_parameters_that_numba_mode_refuses(op, params, message):
    given = [np.array(one) for one in params]
    shared = pytensor.shared(np.random.default_rng(3))
    symbols = variables(given)
    after, out = op(*symbols, rng=shared, return_next_rng=True)
    function = native(symbols, out, updates={shared: after})
    with pytest.raises(ValueError, match="^" + message.replace("+", r"\+")):
        function(*given)


@pytest.mark.parametrize(
    ("op", "n_params"), [(random.poisson, 1), (random.triangular, 3), (random.wald, 2)]
)
def test_what_numba_draws_in_single_precision_is_left_to_it(op, n_params):
    params = [pt.scalar(dtype="float32") for _ in range(n_params)]
    r = random_generator_type("r")
    with pytest.raises(NativeLinkError, match="numbers that Numba draws in single precision"):
        pytensor.function([r, *params], op(*params, rng=r, return_next_rng=True)[1], mode="NATIVE")


def test_shapes_that_do_not_fit():
    loc, scale = pt.vector("loc"), pt.vector("scale")
    shared = pytensor.shared(np.random.default_rng(3))
    after, out = random.normal(loc, scale, rng=shared, return_next_rng=True)
    function = native([loc, scale], out, updates={shared: after})
    with pytest.raises(ValueError, match="Vectorized input 1 has an incompatible shape in axis 0"):
        function(np.zeros(3), np.ones(2))
    with pytest.raises(ValueError, match="Incompatible vectorized shapes for input 1 and axis 0"):
        function(np.zeros(3), np.ones(1))
    require_same_state(shared.get_value(borrow=True), np.random.default_rng(3))


def test_sizes_that_come_with_the_call():
    loc, size = pt.vector("loc"), pt.lvector("size")
    shared = pytensor.shared(np.random.default_rng(3))
    asked = [size[0], size[1]]
    after, out = random.normal(loc, 1.0, size=asked, rng=shared, return_next_rng=True)
    function = native([loc, size], out, updates={shared: after})
    oracle = np.random.default_rng(3)
    for shape in ((2, 3), (0, 3), (4, 1)):
        means = np.arange(float(shape[1]))
        assert np.array_equal(function(means, shape), oracle.normal(means, 1.0, size=shape))
    with pytest.raises(ValueError, match=r"^Vectorized input 0 has an incompatible shape in axis"):
        function(np.zeros(2), [5, 3])
    with pytest.raises(ValueError, match=r"^negative dimensions not allowed"):
        function(np.zeros(2), [-1, 2])
    require_same_state(shared.get_value(borrow=True), oracle)


def test_copied_and_pickled_functions_draw():
    shared = pytensor.shared(np.random.default_rng(3))
    after, out = random.normal(size=(3,), rng=shared, return_next_rng=True)
    function = native([], out, updates={shared: after})
    expected = np.random.default_rng(3).normal(size=3)
    for one in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function), function):
        assert type(one.vm) is ThunkOfParts
        assert np.array_equal(one(), expected)


def test_draws_are_explained():
    shared = pytensor.shared(np.random.default_rng(3), name="rng")
    after, out = random.gamma(pt.ones(3), scale=2.0, rng=shared, return_next_rng=True)
    report = explain(native([], out, updates={shared: after}), "native")
    [draw] = report.calls
    assert draw.is_draw
    assert (draw.name, draw.function) == ("gamma", "numpy.random_gamma")
    assert "1 draw of random numbers" in str(report)
    assert "draws gamma from @0 rng (numpy.random_gamma, in a loop)" in str(report)
