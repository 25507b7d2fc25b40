"""A known nutpie is patched once the program imports it, which this package never does."""

import re
from importlib.util import find_spec

import pytest

import pytensor_fuse
from pytensor_fuse._pytensor.compat.checks import Does, OtherGroundError, mismatches
from pytensor_fuse._pytensor.linking import nutpie_models
from support.programs.grounds import forget
from support.programs.processes import run_python

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
        forget(monkeypatch, fact)
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
        print(said[0].partition("which")[0], reason in said[0])
        print(reason)
        """
    )
    said, reason = done.stdout.splitlines()
    assert said == "pytensor_fuse leaves nutpie to nutpie 9.9,  True"
    pattern = (
        r"nutpie\.compile_pymc:_compile_pymc_model_numba is another \(\w{12}\), "
        r"and 9 more differ; known are 0\.16\.9 to 0\.16\.11"
    )
    assert re.fullmatch(pattern, reason), reason


def another_nutpie(folder):
    """Write an empty nutpie package, as installers leave it."""
    package, about = folder / "nutpie", folder / "nutpie-9.9.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text("from nutpie import compile_pymc\n")
    (package / "compile_pymc.py").write_text("")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: nutpie\nVersion: 9.9\n")


def test_another_nutpie_that_is_imported_in_a_block_without_it(tmp_path):
    another_nutpie(tmp_path)
    done = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import pytensor_fuse, pytensor
        with pytensor_fuse.enabled(False, "nutpie"):
            import nutpie
            assert pytensor_fuse.status()["nutpie"].reason is None
        for _ in range(2):
            status = pytensor_fuse.status()["nutpie"]
            assert status.is_wanted and not status.is_on
            assert not pytensor_fuse.status()["nutpie"].is_on
            print(status.reason)
            pytensor_fuse.enable()
        """
    )
    assert done.stdout.count("nutpie.compile_pymc:_compile_pymc_model_numba is not there") == 2
    assert done.stderr.count("pytensor_fuse leaves nutpie to nutpie 9.9,") == 1


ASKED = """
import nutpie, numba, pymc as pm
import nutpie.compile_pymc as module

numba.cfunc = lambda signature: lambda function: function
with pm.Model() as model:
    pm.Normal("x")

def by_us():
    compiled = nutpie.compile_pymc_model(model)
    return type(compiled.compiled_logp_func).__name__ == "NutpieCallback"
"""


@needs_nutpie
def test_it_can_be_switched_off_under_what_others_wrap():
    run_python(
        "import pytensor_fuse",
        ASKED,
        """
        ours = module._compile_pymc_model_numba
        assert by_us()

        def theirs(*args, **options):
            return ours(*args, **options)

        module._compile_pymc_model_numba = theirs
        with pytensor_fuse.enabled(False, "nutpie"):
            assert not by_us()
            assert pytensor_fuse.status()["nutpie"].reason is None
        status = pytensor_fuse.status()["nutpie"]
        assert status.is_wanted and not status.is_on
        assert "_compile_pymc_model_numba of nutpie.compile_pymc" in status.reason, status.reason
        assert "is not there any more" in status.reason and status.reason in str(status)
        pytensor_fuse.enable()
        assert module._compile_pymc_model_numba is theirs and by_us()
        pytensor_fuse.disable("nutpie")
        assert not by_us()
        module._compile_pymc_model_numba = ours
        assert not by_us()
        pytensor_fuse.enable()
        status = pytensor_fuse.status()["nutpie"]
        assert by_us() and status.is_on and status.reason is None
        """,
    )


@needs_nutpie
def test_what_others_have_wrapped_before_stays_as_it_is():
    run_python(
        """
        import functools, warnings
        import nutpie.compile_pymc as module
        stock = module._compile_pymc_model_numba

        @functools.wraps(stock)
        def theirs(*args, **options):
            return stock(*args, **options)

        module._compile_pymc_model_numba = theirs
        warnings.simplefilter("ignore")
        import pytensor_fuse, pytensor
        assert module._compile_pymc_model_numba is theirs
        assert "is another" in pytensor_fuse.status()["nutpie"].reason
        """
    )


@needs_nutpie
def test_a_module_that_is_loaded_again():
    run_python(
        "import importlib, pytensor_fuse",
        STATE,
        ASKED,
        """
        assert is_ours() and is_on()
        importlib.reload(module)
        assert not is_ours() and not is_on()
        assert "is not there any more" in pytensor_fuse.status()["nutpie"].reason
        pytensor_fuse.enable()
        assert is_ours() and is_on()
        pytensor_fuse.disable()
        assert not is_ours() and not is_on()
        """,
    )


def test_importing_nutpie_does_not_fail_where_warnings_are_errors(tmp_path):
    another_nutpie(tmp_path)
    done = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import pytensor_fuse, pytensor, nutpie
        print(pytensor_fuse.status()["nutpie"].is_on)
        """,
        flags=["-Werror::RuntimeWarning"],
    )
    assert done.stdout == "False\n"
    assert done.stderr.count("RuntimeWarning: pytensor_fuse leaves nutpie to nutpie 9.9,") == 1


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
