"""What is measured in a process of its own, each function in a new one."""

from __future__ import annotations

from typing import Any


def import_time() -> dict[str, Any]:
    """The time of importing the package once PyTensor is there."""
    import time

    import pytensor  # noqa: F401 - its import is not ours to answer for

    start = time.perf_counter()
    import pytensor_fuse  # noqa: F401 - the import is what is timed

    return {"seconds": time.perf_counter() - start}


def function_time(name: str, linker: str, side: str) -> dict[str, Any]:
    """The processor time of one compile, without the start of the just-in-time compiler.

    That of compilers that it starts counts as well; the garbage of what was imported does not.
    """
    import gc

    import pytensor

    import pytensor_fuse
    from benchmarks.graphs.named import reference
    from benchmarks.measuring.processes import assert_honored, lists, processor_seconds

    assert_honored(ours=side == "ours")
    if linker == "NUMBA":
        import numba

        numba.njit(lambda x: x + 1)(1.0)
    graph = reference(name)
    inputs, outputs = graph.build()
    gc.collect()
    gc.freeze()
    start = processor_seconds()
    function = pytensor.function(inputs, outputs, mode=linker)
    elapsed = processor_seconds() - start
    return {
        "seconds": elapsed,
        "hits": pytensor_fuse.cache.info().hits_on_disk,
        "results": lists(function(*graph.values(10))),
    }


def script(name: str, side: str) -> dict[str, Any]:
    """What a script does: import PyMC, build a model, compile value and gradient, call.

    The caller times all of the process.
    """
    import pymc  # noqa: F401 - the import is part of what is timed

    from benchmarks.measuring.processes import assert_honored, lists

    if side == "ours":
        assert_honored(ours=True)
    import pytensor

    from benchmarks.graphs.named import reference

    graph = reference(name)
    function = pytensor.function(*graph.build())
    return {"results": lists(function(*graph.values(10)))}
