"""Fast path for calls of PyTensor's functions whose arguments need no conversion."""

from __future__ import annotations

from typing import Any

from pytensor.compile.executor import Function

from pytensor_fuse._native.linking.thunks import NativeThunk
from pytensor_fuse._pytensor.linking.function_calls import n_plain_arguments, updated
from pytensor_fuse._pytensor.patching.patches import ReplacedAttributes

_stock_call: Any = Function.__call__


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    vm = self.vm
    if type(vm) is not NativeThunk or kwargs or self.profile or not vm.allow_gc:
        return _stock_call(self, *args, **kwargs)
    n_arguments = vm.n_arguments
    if n_arguments is None:
        n_arguments = vm.n_arguments = n_plain_arguments(self)
    if len(args) != n_arguments:
        return _stock_call(self, *args)
    try:
        outputs = vm.call_checked(args)
    except Exception:
        vm.raise_with_op()
        raise
    if outputs is None:
        return _stock_call(self, *args)
    if self._has_updates:
        outputs = updated(self, outputs)
    return outputs[0] if self.unpack_single else None if self.return_none else outputs


def quick_calls() -> ReplacedAttributes:
    """Return the patch of `Function.__call__`."""
    return ReplacedAttributes([Function], "__call__", _call)
