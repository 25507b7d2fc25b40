"""Terms of ops, types, constants and graphs in the hash-cons table, which define their identity.

An object that PyTensor compares by value gets a term with a digest, from the name of its class and
an encoding of the attributes that its class compares. Equal attributes have equal encodings, except
for 0.0 and -0.0, whose bits differ although Python considers them equal. An object that is equal
only to itself gets a term of its own, without a digest.

The terms of the four kinds are defined recursively: an op may hold a graph, and a graph holds ops.
The encoders of all other values that an op can hold are in lower modules, and reach those of ops,
types, constants and graphs through the encoding that they write to.

Only weak references to Python objects are kept here: the holder of a term that stands for an
object's identity must also hold the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Constant
from pytensor.graph.fg import FrozenFunctionGraph, FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.type import Type
from pytensor.graph.utils import MetaObject

from pytensor_fuse._errors import FreezeError
from pytensor_fuse._identity.attributes import encode_attributes, encode_helper
from pytensor_fuse._identity.contents import content
from pytensor_fuse._identity.encoding import Encoding, NotByValueError
from pytensor_fuse._identity.equality import term_by_equality
from pytensor_fuse._identity.interning import Interner
from pytensor_fuse._identity.names import NAMED, encode_identity, encode_named
from pytensor_fuse._identity.references import RememberedTerms
from pytensor_fuse._identity.registry import Registry
from pytensor_fuse._identity.table import table
from pytensor_fuse._identity.values import VALUE_ENCODERS, choose_value_encoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor_fuse._core import Term
    from pytensor_fuse._identity.encoding import Encoder
    from pytensor_fuse._identity.interning import InternedGraph

# The cached terms of ops and types.
remembered = RememberedTerms()


def term(value: Op | Type[Any]) -> Term:
    """Return the term of an op or a type; about 0.1 microseconds if it is cached."""
    known = remembered.find(value)
    return remembered.remember(value, _new_term(value)) if known is None else known


def _new_term(value: Op | Type[Any]) -> Term:
    if type(value).__eq__ is object.__eq__:
        return table.opaque()
    encoding = Encoding(ENCODERS, b"object ")
    is_complete = encode_attributes(value, encoding)
    made = table.compound(bytes(encoding.data), encoding.children)
    return made if is_complete else term_by_equality(value, made)


def constant_term(constant: Constant[Any]) -> Term:
    """Return the term of a constant, made of its type and the exact bits of its data."""
    return _constant_term(constant, term(constant.type))


def _constant_term(constant: Constant[Any], type_: Term) -> Term:
    data = content(constant)
    if data is not None:
        return table.compound(b"constant " + data, (type_,))
    encoding = Encoding(ENCODERS)
    try:
        # Importable data are encoded by name; of other data, only the identity is certain.
        if isinstance(constant.data, NAMED):
            encode_named(constant.data, encoding)
        else:
            encode_identity(constant.data, encoding)
    except NotByValueError:
        encode_identity(constant, encoding)
    return table.compound(b"opaque constant " + encoding.data, (type_, *encoding.children))


_interner = Interner(table, term, _constant_term)
intern_graph = _interner.intern_graph
intern_walked = _interner.intern_walked
intern_rows = _interner.intern_rows


def intern_outline(graph: InternedGraph, number_of: Mapping[int, int]) -> InternedGraph:
    """Intern a graph again, with some of its constants identified by numbers instead of data.

    Parameters
    ----------
    graph
        The graph.
    number_of
        The numbers of these constants, by the `id` of the constant.
    """

    def of_constant(constant: Constant[Any], type_: Term) -> Term:
        number = number_of.get(id(constant))
        if number is None:
            return _constant_term(constant, type_)
        return table.compound(b"any constant %d" % number, (type_,))

    outlines = Interner(table, term, of_constant)
    return outlines.intern_rows(graph.rows, graph.ops, graph.types, graph.constants, fold=False)


def _op_or_type(value: Any, encoding: Encoding) -> None:
    encoding.add_term(term(value))


def _constant(value: Constant[Any], encoding: Encoding) -> None:
    encoding.add_term(constant_term(value))


def _graph(value: FunctionGraph | FrozenFunctionGraph, encoding: Encoding) -> None:
    try:
        encoding.add_term(intern_graph(value.inputs, value.outputs).root)
    except FreezeError:
        raise NotByValueError from None


_BASES: dict[type, Encoder] = {
    Op: _op_or_type,
    Type: _op_or_type,
    Constant: _constant,
    FunctionGraph: _graph,
    FrozenFunctionGraph: _graph,
}


def _choose_encoder(class_: type) -> Encoder:
    # `issubclass` of an abstract class searches all of its subclasses before it says no, anew for
    # each class: in a new process, this took half of the time for the terms of a graph.
    bases = class_.__mro__
    for base in bases:
        if (encoder := _BASES.get(base)) is not None:
            return encoder
    equality: Any = class_.__eq__
    if MetaObject in bases and equality is not object.__eq__:
        return encode_helper
    return choose_value_encoder(class_)


ENCODERS: Registry[Encoder] = Registry(VALUE_ENCODERS, _choose_encoder)
