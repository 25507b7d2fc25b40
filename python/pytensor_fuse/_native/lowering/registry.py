"""Registry of rules, one for each kind of op, in the style of PyTensor's back ends.

>>> import pytensor.tensor as pt
>>> from pytensor_fuse._native.lowering.registry import lower
>>> lower.has_rule(pt.sort(pt.vector()).owner.op)
True

A rule takes the op, its apply node, the `Context` of the lowering, and a `Tensor` for each input;
it returns a `Tensor` for each output.

Rules for ops that most graphs lack are imported with the first op that has no other rule: a process
that finds all else in the cache would spend a good part of its time on their modules.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytensor_fuse._native.lowering.tensors import DTYPES
from pytensor_fuse._startup.warning import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytensor.graph.basic import Apply, Variable

    from pytensor_fuse._native.lowering.context import Context
    from pytensor_fuse._native.lowering.tensors import Tensor

    Rule = Callable[[Any, Apply[Any], Context, list[Tensor]], Sequence[Tensor]]
    Refusal = Callable[[Any, Apply[Any]], str | None]

_Rule = TypeVar("_Rule", bound="Rule")

_OWN: Final = __name__.partition(".")[0]


class NoRuleError(Exception):
    """A node cannot be lowered; the message gives the reason.

    A rule raises it for reasons that it finds only during lowering; Numba then compiles the graph.

    Attributes
    ----------
    node
        The node, if it is known.
    """

    node: Apply[Any] | None = None


class RuleError(Exception):
    """A rule has a fault; the message names the rule, the op and the node.

    The original exception, if any, is its cause. Numba compiles the graph, with a warning; mode
    NATIVE raises the error.

    Attributes
    ----------
    node
        The node, if it is known.
    """

    node: Apply[Any] | None = None


def dtypes_refusal(variables: Iterable[Variable[Any, Any]]) -> str | None:
    """Return a message on the first dtype of variables that programs do not support, or None."""
    for variable in variables:
        dtype = getattr(variable.type, "dtype", None)
        if dtype not in DTYPES:
            return f"no dtype {dtype}" if dtype else f"a variable of type {variable.type}"
    return None


def dtype_refusal(node: Apply[Any]) -> str | None:
    """Return a message on the first dtype of a node that programs do not support, or None."""
    return dtypes_refusal((*node.inputs, *node.outputs))


def refuses_dtypes(op: Any, node: Apply[Any]) -> str | None:
    """Return a message on the first unsupported dtype; the predicate of most rules."""
    return dtype_refusal(node)


class Lowering:
    """The rules by class of op, with their predicates.

    Attributes
    ----------
    n_registered
        The number of third-party registrations, including rules that were replaced later.
    """

    def __init__(self) -> None:
        self._rules: Any = singledispatch(_no_rule)
        self._refusals: Any = singledispatch(_refuses_nothing)
        # The identities of third-party rules.
        self._others: set[int] = set()
        # The rules for classes of optional packages, by qualified name.
        self._named: dict[str, tuple[Rule, Refusal | None]] = {}
        # Registers the rules that are not registered yet.
        self._rest: Callable[[], object] | None = None
        self.n_registered = 0

    def register_rest(self, register: Callable[[], object]) -> None:
        """Delay the registration of more rules until an op has no other rule.

        Parameters
        ----------
        register
            Registers the rules. Their classes derive from no class that has a rule already, which
            would be found in their place. If it fails, their ops stay without rules, with a
            warning.
        """
        self._rest = register

    def _register_rest(self) -> None:
        register = self._rest
        if register is None:
            return
        try:
            register()
        except Exception as error:  # Without these rules, Numba compiles their ops.
            warn(
                "pytensor_fuse leaves more ops to Numba than it should, since some of its rules "
                f"do not work here: {type(error).__name__}: {error}"
            )
        # Cleared last, so that another thread that asks in the meantime waits for the imports, too.
        self._rest = None

    def register(self, *ops: type, refuses: Refusal | None = None) -> Callable[[_Rule], _Rule]:
        """Return a decorator that registers a rule for classes of ops.

        Parameters
        ----------
        *ops
            The classes; a rule applies to subclasses as well, unless these have their own.
        refuses
            A predicate without side effects: returns the reason why a node cannot be lowered, or
            None.
        """

        def registered(rule: _Rule) -> _Rule:
            if self._count(rule):
                self._others.add(id(rule))
            for op in ops:
                self._rules.register(op)(rule)
                self._refusals.register(op)(refuses or _refuses_nothing)
            return rule

        return registered

    def register_named(self, name: str, refuses: Refusal | None = None) -> Callable[[_Rule], _Rule]:
        """Return a decorator that registers a rule for a class of an optional package.

        Parameters
        ----------
        name
            The qualified name of the class: module, dot, class.
        refuses
            As for `register`.
        """

        def registered(rule: _Rule) -> _Rule:
            self._count(rule)
            self._named[name] = rule, refuses
            return rule

        return registered

    def _count(self, rule: Rule) -> bool:
        """Count a registration if it is third-party; return whether it is."""
        if _name(rule).partition(".")[0] == _OWN:
            return False
        # The latest rule for a class wins, so the package's own ones must be there before.
        self._register_rest()
        self.n_registered += 1
        return True

    def _rule(self, op: Any) -> Any:
        """Return the rule for an op; the first use of a rule by class name registers the class."""
        kind = type(op)
        found = self._rules.dispatch(kind)
        if found is _no_rule and self._rest is not None:
            self._register_rest()
            found = self._rules.dispatch(kind)
        if found is _no_rule:
            named = self._named.get(f"{kind.__module__}.{kind.__qualname__}")
            if named is not None:
                found, refuses = named
                self._rules.register(kind)(found)
                self._refusals.register(kind)(refuses or _refuses_nothing)
        return found

    def has_rule(self, op: Any) -> bool:
        """Whether there is a rule for an op."""
        return self._rule(op) is not _no_rule

    @property
    def has_others(self) -> bool:
        """Whether there are third-party rules."""
        return bool(self._others)

    def is_own(self, op: Any) -> bool:
        """Whether the rule for an op is this package's own."""
        return not self._others or id(self._rule(op)) not in self._others

    def rule_name(self, op: Any) -> str:
        """Return the name of the rule for an op, with its module."""
        return _name(self._rule(op))

    def refusal(self, node: Apply[Any]) -> str | None:
        """Return the reason why the rule for a node's op cannot lower it, or None.

        Raises
        ------
        RuleError
            If the predicate of the rule has a fault.
        """
        op = node.op
        if not self.has_rule(op):
            return f"no rule for {type(op).__name__}"
        try:
            why: object = self._refusals(op, node)
            if why is None or isinstance(why, str):
                return why
            raise TypeError(f"it returns {why!r}, and neither a reason nor None")
        except RuleError:
            raise
        except Exception as error:
            name = _name(self._refusals.dispatch(type(op)))
            fault = RuleError(
                f"{name}, the predicate of the rule {self.rule_name(op)} for {type(op).__name__}, "
                f"has a fault for the node {node}: {type(error).__name__}: {error}"
            )
            fault.node = node
            raise fault from error

    def __call__(
        self, op: Any, node: Apply[Any], context: Context, inputs: list[Tensor]
    ) -> Sequence[Tensor]:
        """Lower a node."""
        outputs: Sequence[Tensor] = self._rule(op)(op, node, context, inputs)
        return outputs


def _name(rule: Any) -> str:
    name = getattr(rule, "__qualname__", None) or repr(rule)
    return f"{getattr(rule, '__module__', None) or '?'}.{name}"


def _no_rule(op: Any, node: Apply[Any], context: Context, inputs: list[Tensor]) -> Sequence[Tensor]:
    raise NoRuleError(f"no rule for {type(op).__name__}")


def _refuses_nothing(op: Any, node: Apply[Any]) -> str | None:
    return None


lower = Lowering()
