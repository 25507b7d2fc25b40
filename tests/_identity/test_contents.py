"""The content of a constant is its data, bit for bit, in every process."""

import datetime as dt

import numpy as np
import pytensor.sparse as ps
import pytensor.tensor as pt
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pytensor.graph.basic import Constant
from pytensor.link.c.type import CDataType, generic
from pytensor.scalar.basic import constant as scalar_constant
from pytensor.tensor.type_other import NoneConst, SliceConstant, slicetype
from pytensor.typed_list import TypedListType
from pytensor.xtensor.type import xtensor_constant

from pytensor_fuse._identity.contents import content
from support.programs.processes import run_python

LONG = 100
OTHER_NAN = np.array(0x7FF8000000000001, "uint64").view("float64")[()]

unequal = [
    (0.0, -0.0),
    (np.nan, OTHER_NAN),
    (np.inf, -np.inf),
    (1.0, np.float32(1.0)),
    (np.int64(1), np.int32(1)),
    (np.uint8(1), np.bool_(True)),
    (0.0, [0.0]),
    (np.zeros(LONG), -np.zeros(LONG)),
    (np.zeros((2, LONG)), np.zeros((LONG, 2))),
    (np.zeros((2, 0)), np.zeros((0, 2))),
    (0j, complex(0.0, -0.0)),
    (0j, complex(-0.0, 0.0)),
]


def _xtensor(value):
    value = np.asarray(value)
    return xtensor_constant(value, dims=("a", "b")[: value.ndim])


@pytest.mark.parametrize(("first", "second"), unequal)
@pytest.mark.parametrize("make", [pt.constant, _xtensor])
def test_arrays_that_differ_in_a_bit_or_in_type(first, second, make):
    # Numbers of Python's would get the smallest dtype that holds them.
    a, b, again = (make(np.array(value)) for value in (first, second, first))
    assert content(a) == content(again)
    assert (a.type, content(a)) != (b.type, content(b))


def test_scalars():
    a, b, again = (scalar_constant(np.float64(v)) for v in (0.0, -0.0, 0.0))
    assert content(a) == content(again) != content(b)
    assert content(scalar_constant(np.nan)) != content(scalar_constant(OTHER_NAN))


@given(data=st.data(), dtype=st.sampled_from(["float64", "float32", "complex128", "int8", "bool"]))
def test_arrays_have_the_same_content_exactly_if_they_have_the_same_bits(data, dtype):
    strategy = hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=12))
    first = data.draw(strategy)
    second = data.draw(st.one_of(strategy, st.just(first.copy())))
    same = first.shape == second.shape and first.tobytes() == second.tobytes()
    assert (content(pt.constant(first)) == content(pt.constant(second))) is same


def test_layout_is_not_content():
    array = np.arange(float(LONG)).reshape(4, -1)
    expected = content(pt.constant(array))
    assert content(pt.constant(np.asfortranarray(array))) == expected
    wide = np.zeros((4, 2 * array.shape[1]))
    wide[:, ::2] = array
    strided = pt.constant(array)
    strided.data = wide[:, ::2]
    assert not strided.data.flags.c_contiguous
    assert content(strided) == expected


def test_byte_order_is_content():
    native, swapped = pt.constant(np.arange(3.0)), pt.constant(np.arange(3.0))
    swapped.data = native.data.astype(native.data.dtype.newbyteorder())
    assert content(native) != content(swapped)
    same_bytes = pt.constant(np.arange(3.0))
    same_bytes.data = native.data.view(native.data.dtype.newbyteorder())
    assert content(native) != content(same_bytes)


def test_arrays_without_content():
    objects = Constant(generic, np.array([1, "a"], dtype=object))
    assert content(objects) is None
    assert content(Constant(generic, np.zeros(2, dtype=np.longdouble))) is None
    assert content(Constant(generic, np.zeros(2, dtype=[("a", "i4")]))) is None
    assert content(Constant(generic, np.ma.masked_array([1.0, 2.0], [True, False]))) is None


def test_slices():
    def of(*args):
        return content(SliceConstant(slicetype, slice(*args)))

    assert of(1, 2) == of(1, 2)
    assert len({of(1, 2), of(1, 3), of(2), of(None, 1), of(1, None), of(1, 2, -1), of(12)}) == 7
    assert content(NoneConst) == content(NoneConst.type.make_constant(None)) is not None


def test_python_values():
    values = [
        *(0, False, 0.0, -0.0, 0j, None, ..., "", b"", (), [], slice(None), np.float64(0.0)),
        *("0", b"0", (0,), [0], ((),), ((0, 0),), (0, (0,)), ((0,), 0), (0, 0), 10**30, "\ud800"),
        *(("a", "b"), ("ab", ""), ("a 1:b",), np.float32(0.0), np.zeros(()), np.array(-0.0)),
    ]
    contents = [content(Constant(generic, value)) for value in values]
    assert None not in contents
    assert len(set(contents)) == len(values)


@pytest.mark.parametrize(
    "value", [object(), {}, {1}, (1, object()), [object()], np.random.default_rng(0)]
)
def test_objects_without_content(value):
    assert content(Constant(generic, value)) is None


def test_a_subclass_of_a_number_has_no_content():
    class Two(int):
        pass

    assert content(Constant(generic, Two(2))) is None


def test_c_data():
    kind = CDataType("void *")
    assert content(kind.make_constant(dt.datetime_CAPI)) is None


def test_lists():
    kind = TypedListType(pt.dvector)
    a, again, b, other = (
        kind.make_constant([np.asarray(v) for v in vs])
        for vs in ([[0.0], [1.0]], [[0.0], [1.0]], [[-0.0], [1.0]], [[0.0, 1.0]])
    )
    assert content(a) == content(again)
    assert len({content(a), content(b), content(other)}) == 3


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_sparse(layout):
    def of(array):
        return content(ps.as_sparse_variable(getattr(scipy.sparse, f"{layout}_matrix")(array)))

    first = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert of(first) == of(first.copy())
    assert len({of(first), of(first.T), of(-first), of(first[:, :1]), of(first[:1])}) == 5


def test_content_is_the_same_in_every_process():
    program = """
        import numpy as np, pytensor.tensor as pt
        from pytensor_fuse._identity.contents import content
        from pytensor.tensor.type_other import SliceConstant, slicetype
        for value in (1.5, np.arange(3), np.arange(100.0), np.zeros((2, 2), bool)):
            print(content(pt.constant(value)).hex())
        print(content(SliceConstant(slicetype, slice(1, None))))
        """
    assert run_python(program).stdout == run_python(program).stdout
