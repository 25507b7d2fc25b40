"""Constants that differ in a bit stay different constants, everywhere in a compile."""

import struct

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.scalar.basic import ScalarConstantSignature, float64
from pytensor.tensor.variable import TensorConstantSignature

import pytensor_fuse

ZERO, NEGATIVE_ZERO = np.float64(0.0), np.float64(-0.0)
NAN, OTHER_NAN = (
    np.frombuffer(struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000000, 0x7FF8000000000001)
)


@pytest.mark.parametrize("pair", [(ZERO, NEGATIVE_ZERO), (NAN, OTHER_NAN)])
@pytest.mark.parametrize("make", [pt.constant, float64.make_constant])
def test_signatures_are_equal_bit_for_bit(make, pair):
    one, other = (make(number) for number in pair)
    with pytensor_fuse.enabled():
        # Dictionaries ask for equality; ScalarConstantSignature has no `!=` of its own.
        assert (one.signature() == other.signature()) is False
        assert one.signature() == make(pair[0]).signature()
        assert hash(one.signature()) == hash(make(pair[0]).signature())
    with pytensor_fuse.enabled(False):
        assert one.signature() == other.signature()


def test_switching_off_restores_the_classes():
    with pytensor_fuse.enabled(False):
        stock = [
            vars(kind)["__eq__"] for kind in (ScalarConstantSignature, TensorConstantSignature)
        ]
        assert all(method.__module__.startswith("pytensor.") for method in stock)
        with pytensor_fuse.enabled():
            assert TensorConstantSignature.__eq__ not in stock
        assert [
            vars(kind)["__eq__"] for kind in (ScalarConstantSignature, TensorConstantSignature)
        ] == stock


MODES = {
    "python": Mode("py", "fast_run"),
    "c": Mode("cvm", "fast_run"),
    "numba": Mode("numba", "fast_run").including("numba"),
}


@pytest.mark.parametrize("mode", MODES)
def test_the_sign_of_a_zero_is_kept(mode):
    x = pt.vector("x")
    with pytensor_fuse.enabled():
        f = pytensor.function([x], [x / 0.0, x / -0.0], mode=MODES[mode])
        with np.errstate(divide="ignore"):
            up, down = f([1.0])
    np.testing.assert_array_equal(up, [np.inf])
    np.testing.assert_array_equal(down, [-np.inf])


@pytest.mark.parametrize("mode", MODES)
def test_the_sign_of_a_zero_is_kept_in_kernels(mode):
    x = pt.vector("x")
    with pytensor_fuse.enabled():
        # Kept alive together: PyTensor would take the kernel of the one for the other's.
        f, g = (
            pytensor.function([x], pt.arctan2(pt.sin(x), zero), mode=MODES[mode])
            for zero in (0.0, -0.0)
        )
        both = pytensor.function(
            [x], [pt.arctan2(pt.sin(x), 0.0), pt.arctan2(pt.sin(x), -0.0)], mode=MODES[mode]
        )
        np.testing.assert_array_equal(f([0.0]), [0.0])
        np.testing.assert_array_equal(g([0.0]), [np.pi])
        np.testing.assert_array_equal(both([0.0]), [[0.0], [np.pi]])


@pytest.mark.parametrize("mode", MODES)
def test_the_payload_of_a_nan_is_kept(mode):
    x = pt.vector("x", shape=(2,))
    with pytensor_fuse.enabled():
        # Not a constant of one value, which PyTensor writes into C code as just some NaN.
        outputs = [pt.switch(x > 0, pt.constant([nan, 1.0]), x) for nan in (NAN, OTHER_NAN)]
        f = pytensor.function([x], outputs, mode=MODES[mode])
        bits = [np.asarray(result).view("uint64")[0] for result in f([1.0, 1.0])]
    assert bits == np.array([NAN, OTHER_NAN]).view("uint64").tolist()
