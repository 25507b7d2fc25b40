"""nutpie is changed once the program imports it, if it is as it is known, and never imported."""

from importlib.util import find_spec

import pytest

import pytensor_fuse
from pytensor_fuse._pytensor import nutpie_models
from pytensor_fuse._pytensor.ground import Does, OtherGroundError, mismatches
from support.processes import run_python

needs_nutpie = pytest.mark.skipif(find_spec("nutpie") is None, reason="nutpie is not installed")

STATE = """
def is_ours():
    import nutpie.compile_pymc
    return "pytensor_fuse" in nutpie.compile_pymc._compile_pymc_model_numba.__code__.co_filename

def is_on():
    return pytensor_fuse.status()["nutpie"].is_on
"""


@needs_nutpie
@pytest.mark.parametrize(
    "imports", ["import nutpie, pytensor_fuse, pytensor", "import pytensor_fuse, pytensor, nutpie"]
)
def test_whatever_the_order_of_imports(imports):
    run_python(
        imports,
        STATE,
        """
        assert is_ours() and is_on()
        with pytensor_fuse.enabled(False):
            assert not is_ours() and not is_on()
        assert is_ours() and is_on()
        """,
    )


@needs_nutpie
def test_nobody_imports_nutpie():
    run_python(
        """
        import sys, pytensor_fuse, pytensor
        import pytensor.tensor as pt
        x = pt.vector("x")
        pytensor.function([x], x + 1, mode="NUMBA")
        """,
        STATE,
        """
        assert is_on() and "nutpie" not in sys.modules
        pytensor_fuse.disable()
        assert not is_on() and not is_ours()
        """,
    )


@needs_nutpie
def test_nutpie_is_as_it_is_known():
    import nutpie.compile_pymc  # noqa: F401 - facts are asked of what is imported

    with pytensor_fuse.enabled(False):
        assert mismatches(nutpie_models.GROUND) == []


@needs_nutpie
@pytest.mark.parametrize("number", range(len(nutpie_models.GROUND)))
def test_each_fact_keeps_nutpie_as_it_is(number, monkeypatch):
    import nutpie.compile_pymc

    fact = nutpie_models.GROUND[number]
    failures = []
    with pytensor_fuse.enabled(False):
        stock = nutpie.compile_pymc._compile_pymc_model_numba
        monkeypatch.setattr(fact, "known", ("another",))
        patch = nutpie_models.callbacks_once_imported(lambda: None, failures.append)
        with pytest.raises(OtherGroundError) as raised:
            patch.prepare()
        assert fact.place in str(raised.value)
        assert nutpie.compile_pymc._compile_pymc_model_numba is stock
    assert isinstance(fact, Does) or "takes" in str(raised.value)


@pytest.mark.parametrize("first", ["nutpie", "pytensor_fuse"])
def test_another_nutpie_stays_as_it_is(tmp_path, first):
    package = tmp_path / "nutpie"
    package.mkdir()
    (package / "__init__.py").write_text(
        "__version__ = '9.9'\nfrom nutpie.compile_pymc import compile_pymc_model\n"
    )
    (package / "compile_pymc.py").write_text(
        "def compile_pymc_model(model):\n    return _compile_pymc_model_numba(model)\n"
        "def _compile_pymc_model_numba(model):\n    return model\n"
    )
    second = {"nutpie": "pytensor_fuse", "pytensor_fuse": "nutpie"}[first]
    done = run_python(
        f"""
        import sys, warnings
        sys.path.insert(0, {str(tmp_path)!r})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import {first}, pytensor
            import {second}
            pytensor_fuse.enable()
        said = [str(one.message) for one in caught if "pytensor_fuse" in str(one.message)]
        assert len(said) == 1, said
        assert nutpie.compile_pymc_model(3) == 3
        off = [name for name, feature in pytensor_fuse.status().items() if not feature.is_on]
        assert off == ["nutpie"], off
        reason = pytensor_fuse.status()["nutpie"].reason
        assert reason.startswith("nutpie.compile_pymc:_compile_pymc_model_numba is another"), reason
        assert "nutpie.compile_pymc:make_user_data is not there" in reason, reason
        print(said[0].partition("which")[0], reason in said[0])
        """
    )
    assert done.stdout == "pytensor_fuse leaves nutpie to nutpie 9.9,  True\n"


def test_importing_nutpie_does_not_fail_where_warnings_are_errors(tmp_path):
    package = tmp_path / "nutpie"
    package.mkdir()
    (package / "__init__.py").write_text("from nutpie import compile_pymc\n")
    (package / "compile_pymc.py").write_text("")
    done = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import pytensor_fuse, pytensor, nutpie
        print(pytensor_fuse.is_enabled("nutpie"))
        """,
        flags=["-Werror::RuntimeWarning"],
    )
    assert done.stdout == "False\n"
    assert done.stderr.count("RuntimeWarning: pytensor_fuse leaves nutpie to nutpie,") == 1


@needs_nutpie
def test_callbacks_that_cannot_be_loaded_leave_all_to_nutpie():
    done = run_python(
        """
        import sys
        sys.modules["pytensor_fuse._native.c_entry.nutpie"] = None
        import pytensor_fuse, nutpie, numba, pymc as pm
        names = []
        # Numba itself would take seconds.
        numba.cfunc = lambda signature: lambda function: names.append(function.__name__)
        with pm.Model() as model:
            pm.Normal("x")
        nutpie.compile_pymc_model(model)
        print(*names, *[name for name, of in pytensor_fuse.status().items() if not of.is_on])
        assert "c_entry.nutpie cannot be loaded" in pytensor_fuse.status()["nutpie"].reason
        """
    )
    assert done.stdout == "logp_numba expand_numba nutpie\n"
    assert done.stderr.count("pytensor_fuse leaves nutpie to PyTensor") == 1
