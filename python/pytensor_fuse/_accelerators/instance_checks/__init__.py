"""Instance checks: ``isinstance`` with PyTensor's classes looks at the object's class only.

The metaclass of ops, types, variables and nodes is an `abc.ABCMeta`, so that each ``isinstance``
runs Python code, which looks the class of the object up in two weak sets, unless the object is a
direct instance. Compiling a regression of 40 coefficients does so 460,000 times. None of these
classes is a virtual base of another: without ``register`` and ``__subclasshook__``, an object is
an instance if its class derives from the given class, as `type` checks in C.

Once a class is registered with one of these, or one is defined with a ``__subclasshook__``, the
checks are `abc.ABCMeta`'s again for the rest of the process.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does

ACCELERATOR: Final = Accelerator(
    title="isinstance on ops, types, nodes and variables without a table look-up",
    replaces="MetaType.__instancecheck__, register and __new__",
    skips=(
        "two look-ups in weak sets for each `isinstance` with a class of PyTensor's: the "
        "check looks at the object's class, in C"
    ),
    ground=(Does("pytensor.graph.utils:MetaType.__new__"),),
    gain=Gain(1.06, "large(100)"),
)
