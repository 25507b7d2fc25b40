"""What makes two ops, types or constants the same: their terms in the hash-cons table.

A thing that PyTensor compares by value gets a term with a digest, from the name of its class and an
encoding of the attributes that its class compares. Equal attributes are encoded equally, but for
numbers whose bits differ although Python calls them equal: 0.0 and -0.0. A thing that is only equal
to itself gets a term of its own, without a digest.

No reference to a Python object is kept here but weak ones: who holds a term whose identity is that
of an object must hold the object.
"""

from __future__ import annotations

import dataclasses
import struct
import sys
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.type import Type
from pytensor.graph.utils import MetaObject, MetaType
from pytensor.link.c.type import EnumType
from pytensor.misc.frozendict import frozendict
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.type import TensorType

from pytensor_fuse import _core
from pytensor_fuse._errors import FreezeError
from pytensor_fuse._forks import hold_in_forks
from pytensor_fuse._identity.contents import content as constant_content
from pytensor_fuse._pytensor import comparison

if TYPE_CHECKING:
    from pytensor_fuse._core import Term

table = _core.HashConsTable()

_lock = threading.RLock()
hold_in_forks(_lock, before=table.before_fork, after=table.after_fork)


class _NotByValueError(Exception):
    """The value has no encoding that equal values share."""


class _Reference(weakref.ref[Any]):
    """A weak reference that knows the id of its object."""

    __slots__ = ("destroys", "number", "term")

    number: int
    term: Term
    destroys: bool


# By id of the object; an entry goes when its object does.
_terms: dict[int, _Reference] = {}
_opaque: dict[int, _Reference] = {}


def term(value: Op | Type[Any]) -> Term:
    """Return the term of an op or a type; some 0.1 microseconds if it is known."""
    return _know(value).term


def constant_term(constant: Constant[Any]) -> Term:
    """Return the term of a constant: its type, and its data bit for bit."""
    return _constant_term(constant, term(constant.type))


def _constant_term(constant: Constant[Any], kind: Term) -> Term:
    data = constant_content(constant)
    if data is not None:
        return table.compound(b"constant " + data, (kind,))
    content = _Content()
    try:
        # What is imported under a name is its name; of other data only the identity is sure.
        if isinstance(constant.data, _NAMED):
            _named(constant.data, content)
        else:
            _object(constant.data, content)
    except _NotByValueError:
        _object(constant, content)
    return table.compound(b"opaque constant " + content.data, (kind, *content.children))


# Graphs hold many equal ops of these, each an object of its own: the walk makes them one by the
# attributes that they compare. The maps of an Elemwise follow from its `inplace_pattern`, and back.
PLAIN_OPS: dict[type[Op], tuple[str, ...]] = {
    Elemwise: ("scalar_op", "destroy_map"),
    DimShuffle: ("input_ndim", "new_order"),
    Sum: ("scalar_op", "axis", "dtype", "acc_dtype", "upcast_discrete_output"),
}


class InternedGraph(NamedTuple):
    """A graph in the table, with the objects that its rows are about.

    Attributes
    ----------
    root
        The term that stands for the graph.
    rows
        The graph with each variable and node that is there once.
    ops, types, constants
        What the numbers in the rows mean.
    destroys
        Whether an op overwrites an input.
    """

    root: Term
    rows: _core.FlatGraph
    ops: tuple[Op, ...]
    types: tuple[Type[Any], ...]
    constants: tuple[Constant[Any], ...]
    destroys: bool


def intern_graph(
    inputs: Sequence[Variable[Any, Any]], outputs: Sequence[Variable[Any, Any]]
) -> InternedGraph:
    """Intern the graph that computes ``outputs`` from ``inputs``; O(nodes + edges).

    Raises
    ------
    FreezeError
        If an input is given twice, if a variable is neither computed nor an input nor a constant,
        or if a variable depends on itself.
    """
    try:
        rows, ops, kinds, constants, orphans = _core.walk(
            inputs, outputs, Constant, TensorType, PLAIN_OPS
        )
    except ValueError as error:
        raise FreezeError(str(error)) from error
    if orphans:
        _refuse(inputs, orphans)
    return intern_rows(rows, ops, kinds, constants)


def intern_rows(
    rows: _core.FlatGraph,
    ops: Sequence[Op],
    kinds: Sequence[Type[Any]],
    constants: Sequence[Constant[Any]],
) -> InternedGraph:
    """Intern a graph whose variables and nodes are rows of numbers."""
    known = [_know(op) for op in ops]
    # Equal nodes hold the same value, but where one buffer is overwritten, the other may be needed
    # as it was.
    in_place = any(op.destroys for op in known)
    root, folded = rows.intern(
        table,
        [op.term for op in known],
        [term(kind) for kind in kinds],
        _constant_terms(constants),
        not in_place,
    )
    return InternedGraph(root, folded, tuple(ops), tuple(kinds), tuple(constants), in_place)


def _constant_terms(constants: Sequence[Constant[Any]]) -> list[Term]:
    # Most have a type of their own, although few types are different.
    plain: dict[tuple[str, tuple[int | None, ...]], Term] = {}
    terms = []
    for constant in constants:
        kind = constant.type
        if type(kind) is TensorType:
            key = (kind.dtype, kind.shape)
            kind_term = plain.get(key)
            if kind_term is None:
                kind_term = plain[key] = term(kind)
        else:
            kind_term = term(kind)
        terms.append(_constant_term(constant, kind_term))
    return terms


def _refuse(inputs: Sequence[Variable[Any, Any]], orphans: Sequence[Variable[Any, Any]]) -> None:
    given = set(inputs)
    twice = list(dict.fromkeys(variable for variable in orphans if variable in given))
    if twice:
        raise FreezeError(f"given twice among the inputs: {', '.join(map(repr, twice))}")
    raise FreezeError(
        f"neither computed nor inputs nor constants: {', '.join(map(repr, orphans))}; "
        "give them as inputs"
    )


def why_without_digest(value: Op | Type[Any] | Constant[Any]) -> str | None:
    """Say what keeps an op, a type or a constant from having a digest; None if it has one."""
    if isinstance(value, Constant):
        if constant_term(value).digest is not None:
            return None
        return why_without_digest(value.type) or "only its identity tells its data from others"
    if term(value).digest is not None:
        return None
    names = compared(type(value))
    if _name(type(value)) is None:
        return f"its class {type(value).__qualname__} cannot be imported under its name"
    if names is None:
        if type(value).__eq__ is object.__eq__:
            return "its class does not define equality, so that it is equal only to itself"
        return f"how {type(value).__qualname__} compares is not known"
    for name in (*names, *comparison.also_compared(value), *comparison.COMPARED_BY_CALLING):
        part = getattr(value, name, None)
        content = _Content()
        try:
            _encode(part, content)
        except _NotByValueError:
            return f"its {name} has no value that could be encoded: {_short(part)}"
        if any(child.digest is None for child in content.children):
            return f"its {name} has none: {_why_part(part)}"
    return "it is equal only to itself"


def _why_part(part: object) -> str:
    why: str | None = None
    if isinstance(part, Op | Type):
        why = why_without_digest(part)
    elif isinstance(part, FunctionGraph | FrozenFunctionGraph):
        for node in part.toposort():
            why = why_without_digest(node.op)
            if why:
                part = node.op
                break
    return f"{_short(part)}: {why}" if why else _short(part)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."


# Objects


def _know(value: Op | Type[Any]) -> _Reference:
    known = _terms.get(id(value))
    if known is None or known() is not value:
        known = _remember(_terms, value, _make(value), _forget_term)
        known.destroys = bool(getattr(value, "destroy_map", None))
    return known


def _forget_term(reference: _Reference) -> None:
    if _terms.get(reference.number) is reference:
        del _terms[reference.number]


def _forget_opaque(reference: _Reference) -> None:
    if _opaque.get(reference.number) is reference:
        del _opaque[reference.number]


def _remember(
    terms: dict[int, _Reference],
    value: Any,
    made: Term,
    forget: Callable[[_Reference], None],
) -> _Reference:
    number = id(value)
    known = _Reference(value, forget)
    known.number = number
    known.term = made
    known.destroys = False
    # Another thread may have been faster, and two must agree on a term that is not by value.
    there = terms.setdefault(number, known)
    if there is not known and there() is not value:
        terms[number] = there = known
    return there


class _Class(NamedTuple):
    """How the objects of a class are told apart.

    Attributes
    ----------
    reference
        The class.
    name
        What stands for it in their encoding.
    child
        Its term, if it has no name.
    compared
        The attributes that it compares, with what stands for them; None if not known.
    is_op, is_enum, has_graph
        Whether they are ops, enumerations, ops with inner graphs.
    """

    reference: weakref.ref[type]
    name: bytes
    child: Term | None
    compared: tuple[tuple[str, bytes], ...] | None
    is_op: bool
    is_enum: bool
    has_graph: bool


_classes: dict[int, _Class] = {}


def _class(kind: type) -> _Class:
    known = _classes.get(id(kind))
    if known is None or known.reference() is not kind:
        content = _Content()
        _named(kind, content)
        names = compared(kind)
        has_graph = issubclass(kind, HasInnerGraph)
        if names is not None and has_graph and "fgraph" not in names:
            # Not all compare it, but ops that compute something else are not the same.
            names = (*names, "fgraph")
        number = id(kind)
        known = _Class(
            weakref.ref(kind, lambda _: _classes.pop(number, None)),
            bytes(content.data),
            content.children[0] if content.children else None,
            None if names is None else tuple((name, _label(name)) for name in names),
            issubclass(kind, Op),
            issubclass(kind, EnumType),
            has_graph,
        )
        _classes[number] = known
    return known


def _label(name: str) -> bytes:
    return b"%b=" % name.encode()


def _make(value: Op | Type[Any]) -> Term:
    if type(value).__eq__ is object.__eq__:
        return table.opaque()
    content = _Content(b"object ")
    encoded = _by_attributes(value, content)
    made = table.compound(bytes(content.data), content.children)
    return made if encoded else _by_equality(value, made)


class _Equals:
    """Living objects that are equal, and their term."""

    def __init__(self, rest: Term) -> None:
        # Held so that the key of the list that this is in stays the term's own.
        self.rest = rest
        self.term = table.compound(b"equal", (rest, table.opaque()))
        self.members: dict[int, weakref.ref[Any]] = {}


# By the term of what could be encoded, and the hash.
_equals: dict[tuple[int, int], list[_Equals]] = {}


def _by_equality(value: Any, rest: Term) -> Term:
    """Return the term of the objects that are equal to ``value`` as it compares itself.

    ``rest`` is what must be the same besides. An object that cannot be hashed is on its own.
    """
    try:
        key = (rest.id, hash(value))
    except Exception:
        return table.opaque()
    with _lock:
        several = _equals.setdefault(key, [])
        equals = next((known for known in several if _any_is_equal(known, value)), None)
        if equals is None:
            equals = _Equals(rest)
            several.append(equals)
        _join(equals, value, key)
        return equals.term


def _any_is_equal(equals: _Equals, value: Any) -> bool:
    for reference in list(equals.members.values()):
        member = reference()
        if member is not None:
            try:
                return member is value or bool(member == value)
            except Exception:  # Somebody's equality that fails is not equality.
                return False
    return False


def _join(equals: _Equals, value: Any, key: tuple[int, int]) -> None:
    number = id(value)

    def leave(reference: weakref.ref[Any]) -> None:
        with _lock:
            if equals.members.get(number) is reference:
                del equals.members[number]
            if not equals.members and key in _equals:
                _equals[key] = [known for known in _equals[key] if known is not equals]
                if not _equals[key]:
                    del _equals[key]

    equals.members[number] = weakref.ref(value, leave)


# Content


class _Content:
    """What has been encoded so far: bytes, and the terms that they refer to in order."""

    __slots__ = ("children", "data")

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.children: list[Term] = []

    def child(self, term: Term) -> None:
        self.data += b"T"
        self.children.append(term)


def compared(kind: type) -> tuple[str, ...] | None:
    """Return the attributes that the class compares besides the class, None if not known."""
    equality: Any = kind.__eq__
    if not isinstance(equality, types.FunctionType):
        return None
    if equality.__module__ == MetaType.__module__ and equality.__qualname__.startswith("MetaType."):
        owner = next(base for base in kind.__mro__ if "__eq__" in base.__dict__)
        return tuple(owner.__dict__["__props__"])
    return comparison.COMPARED.get(f"{equality.__module__}.{equality.__qualname__}")


def _by_attributes(value: Any, content: _Content) -> bool:
    """Encode the class and what it compares; whether that is all of what it compares."""
    kind = _class(type(value))
    content.data += kind.name
    if kind.child is not None:
        content.children.append(kind.child)
    if kind.compared is None:
        return False
    complete = True
    for name, label in kind.compared:
        content.data += label
        complete &= _try(getattr(value, name, None), content)
    if kind.is_enum:
        complete &= _try(dict(value), content)
    if kind.is_op:
        # Not all compare these, but an op that overwrites an input is not like one that does not.
        # Those of the class are like the class.
        own = value.__dict__
        for name in ("destroy_map", "view_map"):
            if part := own.get(name):
                content.data += _label(name)
                complete &= _try({key: tuple(items) for key, items in part.items()}, content)
    if kind.has_graph:
        for name in comparison.also_compared(value):
            content.data += _label(name)
            complete &= _try(getattr(value, name), content)
        for name in comparison.COMPARED_BY_CALLING:
            if part := getattr(value, name, None):
                content.data += _label(name)
                complete &= _try(part, content, stable=True)
    return complete


def _try(part: Any, content: _Content, *, stable: bool = False) -> bool:
    n_bytes, n_children = len(content.data), len(content.children)
    try:
        _encode(part, content)
        if not stable or all(t.digest is not None for t in content.children[n_children:]):
            return True
    except _NotByValueError:
        pass
    del content.data[n_bytes:]
    del content.children[n_children:]
    content.data += b"?"
    return False


def _encode(value: Any, content: _Content) -> None:
    kind = type(value)
    encoder = _ENCODERS.get(kind)
    (_encoder_of(kind) if encoder is None else encoder)(value, content)


def _none(value: object, content: _Content) -> None:
    content.data += b"N"


def _ellipsis(value: object, content: _Content) -> None:
    content.data += b"E"


def _integer(value: Any, content: _Content) -> None:
    content.data += b"i%x;" % int(value)


def _float(value: Any, content: _Content) -> None:
    number = float(value)
    if number.is_integer() and (number or struct.pack("<d", number) == bytes(8)):
        _integer(number, content)
    else:
        content.data += b"f" + struct.pack("<d", number)


def _complex(value: Any, content: _Content) -> None:
    number = complex(value)
    imaginary = struct.pack("<d", number.imag)
    if imaginary == bytes(8):
        _float(number.real, content)
    else:
        content.data += b"c" + struct.pack("<d", number.real) + imaginary


def _string(value: str, content: _Content) -> None:
    encoded = value.encode("utf-8", "surrogatepass")
    content.data += b"s%d:%b" % (len(encoded), encoded)


def _bytes(value: bytes, content: _Content) -> None:
    content.data += b"b%d:%b" % (len(value), value)


def _tuple(value: Sequence[Any], content: _Content) -> None:
    content.data += b"(%d:" % len(value)
    for item in value:
        if type(item) is int:
            content.data += b"i%x;" % item
        else:
            _encode(item, content)


def _list(value: Sequence[Any], content: _Content) -> None:
    content.data += b"[%d:" % len(value)
    for item in value:
        _encode(item, content)


def _ordered(value: OrderedDict[Any, Any], content: _Content) -> None:
    content.data += b"o"
    _tuple(tuple(value.items()), content)


def _dict(value: Any, content: _Content) -> None:
    content.data += b"{"
    if not value:
        content.data += b"0:"
        return
    _unordered([(key, value[key]) for key in value], content)


def _set(value: Iterable[Any], content: _Content) -> None:
    content.data += b"<"
    _unordered(value, content)


def _unordered(items: Iterable[Any], content: _Content) -> None:
    """Encode items in an order that depends on nothing but what they are."""
    encoded = []
    for item in items:
        one = _Content()
        _encode(item, one)
        digests = [child.digest for child in one.children]
        encoded.append((bytes(one.data), digests, one.children))
    if len(encoded) > 1 and any(None in digests for _, digests, _ in encoded):
        raise _NotByValueError
    encoded.sort(key=lambda one: one[:2])
    content.data += b"%d:" % len(encoded)
    for data, _, children in encoded:
        content.data += data
        content.children += children


def _slice(value: slice, content: _Content) -> None:
    content.data += b":"
    for item in (value.start, value.stop, value.step):
        _encode(item, content)


def _range(value: range, content: _Content) -> None:
    # Ranges are compared as the sequences that they are.
    content.data += b"r"
    _tuple((len(value), value[:1] and value[0], value[1:] and value.step), content)


def _dtype(value: np.dtype[Any], content: _Content) -> None:
    if value.kind not in "biufcmMSUO" or value.char in "gG":
        raise _NotByValueError
    _bytes(value.newbyteorder("<").str.encode(), content)


def _array(value: np.ndarray, content: _Content) -> None:
    content.data += b"a"
    _dtype(value.dtype, content)
    _tuple(value.shape, content)
    if value.dtype.hasobject:
        _tuple(value.ravel().tolist(), content)
    else:
        _bytes(value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes(), content)


def _numpy_scalar(value: np.generic, content: _Content) -> None:
    if isinstance(value, np.bool_ | np.integer) and not isinstance(value, np.timedelta64):
        _integer(value, content)
    elif isinstance(value, np.floating | np.complexfloating):
        if value.dtype.char in "gG" and not np.isnan(value) and complex(value) != value:
            raise _NotByValueError
        (_float if isinstance(value, np.floating) else _complex)(value, content)
    elif isinstance(value, np.str_):
        _string(str(value), content)
    elif isinstance(value, np.bytes_):
        _bytes(bytes(value), content)
    else:
        _array(np.asarray(value), content)


# Shared by the objects of a name that was met first; a later one of that name is on its own.
_first_of_name: dict[str, weakref.ref[Any]] = {}


def _name(value: Any) -> str | None:
    """Return the name under which ``value`` is imported in every process, if there is one."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    # The main module of another process is another one.
    if not module or not name or module in ("__main__", "__mp_main__"):
        return None
    found: Any = sys.modules.get(module)
    for attribute in name.split("."):
        found = getattr(found, attribute, None)
    if found is not value:
        return None
    full_name = f"{module}:{name}"
    try:
        first = _first_of_name.setdefault(full_name, weakref.ref(value))
    except TypeError:
        return None
    return full_name if first() is value else None


_NAMED = (type, types.FunctionType)


def _named(value: Any, content: _Content) -> None:
    name = _name(value)
    if name is None:
        _object(value, content)
    else:
        content.data += b"n"
        _string(name, content)


def _builtin(value: types.BuiltinFunctionType, content: _Content) -> None:
    # A method of an object is a new one each time that it is asked for.
    if not isinstance(value.__self__, types.ModuleType):
        raise _NotByValueError
    _named(value, content)


def _method(value: types.MethodType, content: _Content) -> None:
    # Methods are equal if they are bound to the same object.
    content.data += b"m"
    _named(value.__func__, content)
    _object(value.__self__, content)


def _object(value: Any, content: _Content) -> None:
    """Encode something that is equal to nothing but itself."""
    known = _opaque.get(id(value))
    if known is None or known() is not value:
        try:
            known = _remember(_opaque, value, table.opaque(), _forget_opaque)
        except TypeError:
            # It cannot be referred to weakly, so that its end would go unnoticed.
            raise _NotByValueError from None
    content.child(known.term)


def _value_object(value: Any, content: _Content) -> None:
    content.child(term(value))


def _helper(value: Any, content: _Content) -> None:
    """Encode a thing that has ``__props__`` but is neither an op nor a type."""
    content.data += b"p"
    if not _by_attributes(value, content):
        raise _NotByValueError


def _constant(value: Constant[Any], content: _Content) -> None:
    content.child(constant_term(value))


def _graph(value: FunctionGraph | FrozenFunctionGraph, content: _Content) -> None:
    try:
        content.child(intern_graph(value.inputs, value.outputs).root)
    except FreezeError:
        raise _NotByValueError from None


def _enum(value: Enum, content: _Content) -> None:
    content.data += b"e"
    _named(type(value), content)
    _encode(value.value, content)


def _dataclass(value: Any, content: _Content) -> None:
    content.data += b"d"
    _named(type(value), content)
    for field in dataclasses.fields(value):
        if field.compare:
            content.data += b"%b=" % field.name.encode()
            _encode(getattr(value, field.name), content)


_Encoder = Callable[[Any, _Content], None]

_ENCODERS: dict[type, _Encoder] = {
    type(None): _none,
    type(...): _ellipsis,
    bool: _integer,
    int: _integer,
    float: _float,
    complex: _complex,
    str: _string,
    bytes: _bytes,
    tuple: _tuple,
    list: _list,
    dict: _dict,
    frozendict: _dict,
    types.MappingProxyType: _dict,
    OrderedDict: _ordered,
    set: _set,
    frozenset: _set,
    slice: _slice,
    range: _range,
    np.ndarray: _array,
    types.FunctionType: _named,
    types.BuiltinFunctionType: _builtin,
    types.MethodType: _method,
}

_BASES: tuple[tuple[type, _Encoder], ...] = (
    (type, _named),
    (Op, _value_object),
    (Type, _value_object),
    (Constant, _constant),
    (FunctionGraph, _graph),
    (FrozenFunctionGraph, _graph),
    (np.generic, _numpy_scalar),
    (np.dtype, _dtype),
)


def _encoder_of(kind: type) -> _Encoder:
    for base, encoder in _BASES:
        if issubclass(kind, base):
            return encoder
    equality: Any = kind.__eq__
    if issubclass(kind, MetaObject) and equality is not object.__eq__:
        return _helper
    if equality is object.__eq__:
        return _enum if issubclass(kind, Enum) else _named
    for base, encoder in _ENCODERS.items():
        # It adds something to what its base is, but not to what its base compares.
        if issubclass(kind, base) and equality is base.__eq__:
            return encoder
    if dataclasses.is_dataclass(kind) and _is_generated(equality):
        return _dataclass
    return _no_encoder


def _is_generated(equality: Any) -> bool:
    code = getattr(equality, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _no_encoder(value: object, content: _Content) -> None:
    raise _NotByValueError
