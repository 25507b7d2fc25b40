"""Faulty third-party rules: the message names the rule and the node."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op

from pytensor_fuse import explain
from pytensor_fuse.native import RuleError, lower, stored, view
from pytensor_fuse.reports import NativeState

if TYPE_CHECKING:
    from collections.abc import Callable

X, Y = pt.vector("x"), pt.vector("y", dtype="float32")
V = np.linspace(-1.0, 2.0, 4)


class Own(Op):
    """A third-party op, whose rule the test provides."""

    __props__ = ("rule",)

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.rule = rule

    def make_node(self, *inputs: Any) -> Apply[Any]:
        return Apply(self, list(inputs), [pt.vector()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0] * 3


def _refuses(op: Any, node: Any) -> Any:
    return op.refuses(node) if hasattr(op, "refuses") else None


@lower.register(Own, refuses=_refuses)
def own_rule(op: Any, node: Any, context: Any, inputs: Any) -> Any:
    return op.rule(context, context.builder, *inputs)


def element_by_element(at: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that computes a new array from the builder, the tensors and an index."""

    def rule(context: Any, builder: Any, *inputs: Any) -> Any:
        [x, *_] = inputs
        return [context.materialized(x.dtype, x.lengths, lambda i: at(builder, *inputs, i))]

    return rule


def lazy(at: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule that computes its elements where they are read."""

    def rule(context: Any, builder: Any, *inputs: Any) -> Any:
        [x, *_] = inputs
        return [view(x, x.lengths, lambda i: (at(builder, *inputs, i),))]

    return rule


def native(rule: Callable[..., Any], *inputs: Any) -> Any:
    given = inputs or (X,)
    return pytensor.function(list(given), pt.exp(Own(rule)(*given)), mode="NATIVE")


def _summed(context: Any, builder: Any, x: Any) -> Any:
    with builder.loop(x.lengths[0]) as loop:
        return [builder.reduce(loop, "add", 0.0, x.at((loop.index,)))]


def _three(b: Any) -> Any:
    return b.constant("f64", 3.0)


ARITHMETIC = "a value of the program is not a number: use "
FAULTS = {
    # Python's arithmetic on values.
    "minus": (lambda b, x, i: x.at(i) - 1, ARITHMETIC + r'builder.op\("sub", ...\)'),
    "times": (lambda b, x, i: 3 * x.at(i), ARITHMETIC + r'builder.op\("mul", ...\)'),
    "negated": (lambda b, x, i: -x.at(i), ARITHMETIC + r'builder.op\("neg", ...\)'),
    "less": (lambda b, x, i: x.at(i) if i[0] > 0 else None, ARITHMETIC + r'.*"gt"'),
    "true": (lambda b, x, i: x.at(i) if i[0] else None, ARITHMETIC + "builder.number"),
    "place": (lambda b, x, i: x.at((x.lengths[0] - 1,)), ARITHMETIC + ".*sub"),
    # Python's numbers in place of values.
    "number": (lambda b, x, i: b.op("mul", 3, x.at(i)), "an argument of mul is 3, and no value"),
    "float": (lambda b, x, i: 2.0 * x.at(i), r"an element is .*, and no value of the program"),
    "index": (lambda b, x, i: x.at((0,)), r"an index is 0, .* builder.index\(number\)"),
    "no tuple": (lambda b, x, i: x.at(i[0]), "an index of 1 axes is a tuple of as many values"),
    "two axes": (lambda b, x, i: x.at((*i, *i)), "an index of 1 axes"),
    "literal": (lambda b, x, i: b.constant("f64", x.at(i)), "a literal is a number of Python's"),
    # Operations and dtypes that do not exist.
    "operation": (lambda b, x, i: b.op("multiply", x.at(i), x.at(i)), "'multiply'; near are .*mul"),
    "arity": (lambda b, x, i: b.op("mul", x.at(i)), "mul has 1 arguments, and takes 2"),
    "dtype": (lambda b, x, i: b.constant("float64", 1), "'float64' is no dtype.*near are.*f64"),
    "nothing": (lambda b, x, i: None, "an element is None"),
    "division": (lambda b, x, i: 1 // 0, "ZeroDivisionError"),
    # Mismatched dtypes.
    "mixed": (lambda b, x, i: b.op("add", x.at(i), i[0]), "add of f64, i64: it takes one dtype"),
    "element": (lambda b, x, i: b.cast(x.at(i), "f32"), "an element is f32, and has to be f64"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_elements_name_the_rule_and_the_node(name):
    at, message = FAULTS[name]
    with pytest.raises(RuleError, match=message) as caught:
        native(element_by_element(at))
    said = str(caught.value)
    assert "test_rules_of_others.own_rule for Own, of the node Own{" in said
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda context, builder, x: None, "returns None instead of a list of tensors"),
        (lambda context, builder, x: x, "instead of a list of tensors"),
        (lambda context, builder, x: [3], r"returns \[3\] instead of a list of tensors"),
        (lambda context, builder, x: [x, x], r"tensors of \(dtype, axes\) .* for outputs of"),
        (lambda context, builder, x: [view(x, (5,), x.at)], "a length is 5, and no value"),
        (lazy(lambda b, x, i: i[0] + 1), ARITHMETIC),
        (lazy(lambda b, x, i: 0), "an index is 0"),
        (_summed, "the initial value of a reduction is 0.0"),
        (lambda context, b, x: b.call("gemm", (), ()), "'gemm'; "),
        (lambda context, b, x: b.call("potrf_l", (), ()), "has 0 sizes, and takes 1"),
        (lambda context, b, x: b.call("potrf_l", (_three(b),), (0,)), "a size of potrf_l is f64"),
    ],
)
def test_faults_of_other_kinds_name_the_rule_and_the_node(rule, message):
    with pytest.raises(RuleError, match=message) as caught:
        native(rule)
    assert "test_rules_of_others.own_rule for Own, of the node Own{" in str(caught.value)


def test_arrays_of_two_dtypes_are_not_mixed():
    rule = element_by_element(lambda b, x, y, i: b.op("add", x.at(i), y.at(i)))
    with pytest.raises(
        RuleError, match=r"own_rule for Own, .* add of f64, f32: it takes one dtype"
    ):
        native(rule, X, Y)


def test_what_only_the_program_shows_is_found_too():
    def rule(context, builder, x):
        kept = []
        with builder.loop(x.lengths[0]) as loop:
            kept.append(x.at((loop.index,)))
        return [context.materialized(x.dtype, x.lengths, lambda i: kept[0])]

    with pytest.raises(RuleError, match=r"rule: dominance.*\n.*own_rule for Own"):
        native(rule)


def test_a_fault_is_a_warning_where_numba_can_compile():
    inner = OpFromGraph([X], [pt.exp(Own(element_by_element(lambda b, x, i: x.at(i) - 1))(X))])
    for out in (Own(element_by_element(FAULTS["operation"][0]))(X), inner(X)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function = pytensor.function([X], out, mode="NUMBA")
        said = [str(one.message) for one in caught if "pytensor_fuse" in str(one.message)]
        assert len(said) == 1
        assert "own_rule for Own, of the node Own{" in said[0]
        assert explain(function, "native").state is NativeState.NUMBA


@pytest.mark.parametrize(
    ("refuses", "message"),
    [(lambda node: 1 / 0, "ZeroDivisionError: division by zero"), (lambda node: False, "False")],
)
def test_what_refuses_may_have_a_fault(refuses, message):
    op = Own(element_by_element(lambda b, x, i: x.at(i)))
    op.refuses = refuses
    with pytest.raises(RuleError, match=message) as caught:
        pytensor.function([X], op(X), mode="NATIVE")
    assert "_refuses, the predicate of the rule" in str(caught.value)
    assert "own_rule for Own" in str(caught.value)
    [refused] = explain(FunctionGraph([X], [op(X)], clone=True), "native").not_native
    assert message in refused.why


def test_values_of_another_program_are_refused():
    kept = []

    def rule(context, builder, x):
        kept.append(_three(builder))
        return [context.materialized(x.dtype, x.lengths, lambda i: kept[0])]

    np.testing.assert_allclose(native(rule)(V), np.exp(3 * np.ones(4)))
    for again in (rule, element_by_element(lambda b, x, i: b.op("mul", kept[0], x.at(i)))):
        with pytest.raises(RuleError, match=r"own_rule .* is a value of another program"):
            native(again)


@pytest.mark.parametrize(
    ("dtype", "number", "message"),
    [
        ("i64", 1.5, "a literal of i64 is an integer, not 1.5"),
        ("i64", 2.0, "an integer, not 2.0"),
        ("i64", "2", "an integer, not '2'"),
        ("i64", np.float32(1), "an integer"),
        ("i64", 2**63, "a literal of i64 is from -9223372036854775808 to 9223372036854775807"),
        ("i8", -129, "from -128 to 127, and -129 is not"),
        ("u8", -1, "from 0 to 255"),
        ("u64", np.int64(-1), "from 0 to 18446744073709551615"),
        ("bool", 2, "a literal of bool is True or False, not 2"),
        ("bool", 1, "True or False, not 1"),
        ("f64", "1", "a literal of f64 is a real number, not '1'"),
        ("f32", 1j, "a real number, not 1j"),
        ("f64", None, "a real number, not None"),
        ("f64", np.ones(1), "a real number"),
    ],
)
def test_literals_that_a_dtype_does_not_have_are_refused(dtype, number, message):
    rule = element_by_element(lambda b, x, i: b.cast(b.constant(dtype, number), "f64"))
    with pytest.raises(RuleError, match=f"own_rule for Own, .* TypeError: .*{message}"):
        native(rule)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("i64", -(2**63)),
        ("u64", 2**64 - 1),
        ("i8", np.int64(-128)),
        ("u8", np.uint8(255)),
        ("bool", np.True_),
        ("bool", False),
        ("f64", 3),
        ("f64", np.float32(0.1)),
        ("f32", np.int16(5)),
        ("f64", True),
        ("f64", -np.inf),
    ],
)
def test_literals_may_be_numbers_of_numpy(dtype, number):
    rule = element_by_element(
        lambda b, x, i: b.op("add", x.at(i), b.cast(b.constant(dtype, number), "f64"))
    )
    function = pytensor.function([X], Own(rule)(X), mode="NATIVE")
    np.testing.assert_array_equal(function(V), V + float(number))


class NeedsTwoError(Exception):
    """An exception that cannot be constructed from one text."""

    def __init__(self, one: object, other: object) -> None:
        super().__init__(one, other)


@pytest.mark.parametrize(
    ("exception", "text", "n_details", "message"),
    [
        ("abc", "x", 0, "a check raises a class of exceptions, and 'abc' is none"),
        (int, "x", 0, "a class of exceptions, and <class 'int'> is none"),
        (ValueError("x"), "x", 0, r"a class of exceptions, and ValueError\('x'\) is none"),
        (ValueError, None, 0, "the message of a check is a text, not None"),
        (ValueError, b"x", 1, "a text, not b'x'"),
        (UnicodeDecodeError, "x {0}", 1, "UnicodeDecodeError cannot be made from a text"),
        (NeedsTwoError, "x", 0, "NeedsTwoError cannot be made from a text: .*other"),
        (ValueError, "{0} of {1}", 1, r"has \{1\}, and the check has 1 details"),
        (ValueError, "{0}", 0, r"has \{0\}, and the check has 0 details"),
    ],
)
def test_what_a_check_cannot_raise_is_refused(exception, text, n_details, message):
    def rule(context, builder, x):
        [n] = x.lengths
        is_long = builder.op("gt", n, builder.index(5))
        builder.check(is_long, exception, text, *[n] * n_details)
        return [context.materialized(x.dtype, x.lengths, x.at)]

    with pytest.raises(RuleError, match=f"own_rule for Own, .* has a fault: .*{message}"):
        native(rule)


@pytest.mark.parametrize(
    ("is_inside", "message"),
    [(False, "after the loop has ended"), (True, "inside of another block of the loop")],
)
@pytest.mark.parametrize("method", ["reduce", "carry"])
def test_loops_are_told_what_they_do_while_they_are_the_innermost_block(method, is_inside, message):
    def rule(context, builder, x):
        zero = builder.constant("f64", 0)

        def tell(loop, before, element):
            if method == "reduce":
                return builder.reduce(loop, "add", zero, element)
            return builder.carry(loop, before, zero, builder.op("add", before, element))

        with builder.loop(x.lengths[0]) as loop:
            before, element = builder.carried("f64"), x.at((loop.index,))
            if is_inside:
                with builder.block():
                    tell(loop, before, element)
        return [context.materialized("f64", x.lengths, lambda i: tell(loop, before, element))]

    with pytest.raises(RuleError, match=f"own_rule .* builder.{method} {message}"):
        native(rule)


def test_a_rule_without_faults_may_use_all_that_there_is():
    def rule(context, builder, x):
        three, zero = _three(builder), builder.constant("f64", 0)
        with builder.loop(x.lengths[0]) as loop:
            before = builder.carried("f64")
            now = builder.op("maximum", before, x.at((loop.index,)))
            largest = builder.carry(loop, before, zero, now)
            total = builder.reduce(loop, "add", zero, x.at((loop.index,)))
        is_large = builder.op("gt", largest, zero)
        builder.check(is_large, ValueError, "nothing of {0} is positive", x.lengths[0])
        with builder.block() as then:
            one = builder.op("mul", largest, three)
        with builder.block() as otherwise:
            other = total
        [factor] = builder.branch(is_large, then, otherwise, [(one, other)])
        assert builder.number(three) == 3.0
        assert builder.dtype(factor) == "f64"
        buffer = context.temporary(x.dtype, x.lengths)
        context.nest(
            x.lengths,
            lambda i: builder.store(buffer, i, builder.op("mul", factor, x.at(i))),
        )
        made = stored(builder, buffer)
        return [context.materialized(made.dtype, made.lengths, made.at)]

    op = Own(rule)
    for function in (
        native(rule),
        pytensor.function([X], OpFromGraph([X], [pt.exp(op(X))])(X), mode="NATIVE"),
    ):
        np.testing.assert_allclose(function(V), np.exp(3 * V.max() * V))
        with pytest.raises(ValueError, match="nothing of 4 is positive"):
            function(-np.ones(4))


def test_a_refusal_with_a_fault_inside_of_another_op_is_told():
    op = Own(lazy(lambda builder, x, index: x.at(index)))
    op.refuses = lambda node: 1 / 0
    inner = OpFromGraph([X], [op(X)])
    report = explain(FunctionGraph([X], [inner(X)], clone=True), "native")
    [told] = report.not_native
    assert told.name.endswith("inside of another op")
    assert "ZeroDivisionError" in told.why
