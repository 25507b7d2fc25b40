"""PyMC's `draw` is patched once the program imports PyMC, which this package never does."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from pytensor_fuse._pytensor.compat.checks import OtherGroundError
from pytensor_fuse._pytensor.linking import known_runs
from support.programs.processes import run_python
from support.switching import switched

needs_pymc = pytest.mark.skipif(find_spec("pymc") is None, reason="PyMC is not installed")


def test_nobody_imports_pymc():
    run_python(
        "import sys, pytensor_fuse, pytensor",
        "assert pytensor_fuse.status()['single_runs'].is_on and 'pymc' not in sys.modules",
    )


@needs_pymc
@pytest.mark.parametrize("imports", ["pytensor_fuse, pymc", "pymc, pytensor_fuse"])
def test_it_does_not_matter_who_is_imported_first(imports):
    run_python(
        f"import {imports}",
        "import pymc.sampling.forward as forward",
        "assert pytensor_fuse.status()['single_runs'].is_on",
        "assert 'pytensor_fuse' in pymc.draw.__code__.co_filename",
        "assert pymc.draw is pymc.sampling.draw is forward.draw",
        "pytensor_fuse.disable()",
        "assert 'pytensor_fuse' not in pymc.draw.__code__.co_filename",
        "assert pymc.draw is pymc.sampling.draw is forward.draw",
        flags=["-Werror::RuntimeWarning"],
    )


@needs_pymc
@pytest.mark.parametrize("draws", [1, 3])
def test_draws_run_in_python(draws, monkeypatch):
    import pymc as pm

    known = []

    def noted(*args, **kwargs):
        known.append(known_runs.known_runs())
        return stock(*args, **kwargs)

    stock = pm.sampling.forward.compile
    monkeypatch.setattr(pm.sampling.forward, "compile", noted)
    # Hypergeometric numbers are so rare that they will have no rule for a while.
    drawn = pm.HyperGeometric.dist(50, 20, 10, shape=4)
    ours = pm.draw(drawn, draws, random_seed=1)
    assert known == [draws]
    with switched(single_runs=False):
        assert pm.draw is pm.sampling.draw is pm.sampling.forward.draw
        theirs = pm.draw(drawn, draws, random_seed=1, mode="FAST_COMPILE")
    assert known == [draws, None]
    np.testing.assert_array_equal(ours, theirs)


@needs_pymc
def test_another_draw_stays_as_it_is(monkeypatch):
    import pymc as pm

    with switched(single_runs=False):
        [fact] = known_runs.DRAW_GROUND
        monkeypatch.setattr(fact, "known", ("vars, times",))
        patch = known_runs.known_draws(print)
        stock = pm.draw
        with pytest.raises(OtherGroundError, match="forward:draw takes"):
            patch.prepare()
        assert pm.draw is stock
