"""The C functions that the ops share are part of what PyTensor's cache goes by."""

import pytest

from pytensor_fuse._joins.ops import c_helpers
from pytensor_fuse._joins.ops.join import WriteJoin
from pytensor_fuse._joins.ops.layout import JoinLayout, static_length
from pytensor_fuse._joins.ops.split import WriteSplit

OPS = [
    WriteSplit(JoinLayout(0, 1, "float64", ((static_length(3),),), (True,))),
    WriteJoin(0, "float64", (3,), (True,)),
]


@pytest.mark.parametrize("op", OPS, ids=str)
def test_other_functions_are_another_version_of_the_ops(op, monkeypatch):
    before = op.c_code_cache_version()
    assert before == op.c_code_cache_version()
    assert op.c_support_code() == c_helpers.c_helpers()
    monkeypatch.setattr(
        c_helpers, "_MESSAGES", {**c_helpers._MESSAGES, "JOINS_SHAPE_MISMATCH": "they differ"}
    )
    for function in (c_helpers.c_helpers, c_helpers.c_helpers_version):
        function.cache_clear()
    try:
        assert op.c_code_cache_version() != before
    finally:
        monkeypatch.undo()
        for function in (c_helpers.c_helpers, c_helpers.c_helpers_version):
            function.cache_clear()
    assert op.c_code_cache_version() == before
