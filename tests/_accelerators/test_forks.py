"""Compiles after a fork are those of the process that was forked."""

from __future__ import annotations

import os

import pytest

from support.programs.processes import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


def test_compiles_after_a_fork() -> None:
    run_python(
        """
        import os, sys, warnings
        import numpy as np
        import pytensor, pytensor_fuse
        import pytensor.tensor as pt
        from pytensor.compile.mode import Mode

        # Threads of libraries that wait; nothing here takes their locks.
        warnings.simplefilter("ignore", DeprecationWarning)

        def digest(n):
            x = pt.vector("x")
            cost = sum(pt.exp(x[k] * k) / (1 + x[k]) for k in range(n))
            mode = Mode(linker="py", optimizer="fast_run")
            f = pytensor.function([x], [cost, pt.grad(cost, x)], mode=mode)
            return pytensor_fuse.freeze(f.maker.fgraph).digest + str(f(np.ones(n)))

        def in_a_fork(function):
            read, write = os.pipe()
            child = os.fork()
            if not child:
                os.close(read)
                try:
                    with os.fdopen(write, "w") as pipe:
                        pipe.write(function())
                    os._exit(0)
                finally:
                    os._exit(1)
            os.close(write)
            with os.fdopen(read) as pipe:
                text = pipe.read()
            assert os.waitpid(child, 0)[1] == 0
            return text

        with pytensor_fuse.enabled(False, "accelerators", "cache"):
            stock = {n: digest(n) for n in (3, 5)}

        pytensor_fuse.disable("cache")
        assert digest(3) == stock[3]
        # Known sizes, and one that this process has not seen.
        assert in_a_fork(lambda: digest(3)) == stock[3]
        assert in_a_fork(lambda: digest(5)) == stock[5]

        def switched():
            first = digest(5)
            with pytensor_fuse.enabled(False, "accelerators", "cache"):
                second = digest(5)
            some = ("accelerators:cycles", "accelerators:graph_edits")
            off = pytensor_fuse.enabled(False, "accelerators", "cache")
            with off, pytensor_fuse.enabled(*some):
                third = digest(5)
            assert first == second == third == digest(5)
            return first

        assert in_a_fork(switched) == stock[5]
        assert pytensor_fuse.status()["accelerators"].parts["clones"].is_on
        assert digest(5) == stock[5]
        """
    )
