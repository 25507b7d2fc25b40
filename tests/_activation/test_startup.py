"""The import of the package switches the pass on, in this process and in its workers."""

import multiprocessing
import os

import pytest

from support.programs.processes import run_process, run_python

SAY_STATE = """
from pytensor.compile.mode import optdb
import pytensor_fuse
entry = optdb["elemwise_fusion"]["composite_elemwise_fusion"]
assert pytensor_fuse.status()["fusion"].is_on is ("FusionRewriter" in repr(entry))
print(pytensor_fuse.status()["fusion"].is_on)
"""
NO_WARNINGS = ["-Werror::RuntimeWarning"]


@pytest.mark.parametrize(
    "imports",
    [
        "import pytensor_fuse",
        "import pytensor_fuse, pytensor",
        "import pytensor, pytensor_fuse",
        "import pytensor_fuse; from pytensor.graph.basic import Variable",
        "from pytensor_fuse import plan_fusion",
        "from pytensor_fuse import *",
        "import pytensor_fuse._activation.switch",
        "import pytensor_fuse._activation.passes.fusion",
        "import pytensor_fuse._fusion.fuse",
        "import pytensor_fuse.graph",
        "import pytensor_fuse.cache",
        "import pytensor_fuse.linalg",
        "from pytensor_fuse import reports",
        "from pytensor_fuse import explain, info",
    ],
)
def test_import_enables_whatever_the_order(imports):
    # Only the entry, before other code loads the package's functions.
    entry = 'print(optdb["elemwise_fusion"]["composite_elemwise_fusion"])'
    done = run_python(
        imports, f"from pytensor.compile.mode import optdb; {entry}", SAY_STATE, flags=NO_WARNINGS
    )
    assert done.stdout.splitlines()[0].startswith(
        "<pytensor_fuse._activation.passes.fusion.FusionRewriter"
    )
    assert done.stdout.splitlines()[1] == "True"


@pytest.mark.parametrize("first", ["pymc", "pytensor_fuse"])
def test_pymc_models_follow_whatever_the_order(first):
    pytest.importorskip("pymc", reason="not installed; it has no release for Python 3.11")
    run_python(
        f"import {first}",
        """
        import pymc as pm, pytensor_fuse
        from pytensor_fuse._activation.passes import fusion as rewriter

        runs, fuse = [], rewriter.fuse
        rewriter.fuse = lambda *arguments: (runs.append(1), fuse(*arguments))[1]

        def runs_for(model):
            runs.clear()
            model.compile_logp()
            return bool(runs)

        models = []
        for on in (True, False):
            (pytensor_fuse.enable if on else pytensor_fuse.disable)()
            with pm.Model() as model:
                x = pm.Normal("x", shape=3)
                pm.Normal("y", pm.math.exp(x) * x, 1, observed=[1.0, 2.0, 3.0])
            models.append(model)
        for on in (True, False, True):
            (pytensor_fuse.enable if on else pytensor_fuse.disable)()
            assert [runs_for(model) for model in models] == [on, on]
        """,
    )


def test_import_leaves_pytensor_and_its_configuration_to_the_program():
    run_python(
        """
        import os, sys, pytensor_fuse
        assert not {"pytensor", "numpy", "multiprocessing"} & set(sys.modules)
        assert "plan_fusion" in dir(pytensor_fuse)
        os.environ["PYTENSOR_FLAGS"] = "exception_verbosity=high"
        import pytensor
        assert pytensor.config.exception_verbosity == "high"
        """
    )


def test_import_hooks_leave_nothing_behind():
    run_python(
        """
        import importlib.util, inspect, sys, pytensor_fuse
        assert importlib.util.find_spec("pytensor").loader.get_source("pytensor")
        import pytensor, multiprocessing.process
        for module in (pytensor, multiprocessing.process):
            for loader in (module.__loader__, module.__spec__.loader):
                assert "pytensor_fuse" not in type(loader).__module__
            assert inspect.getsource(module)
        # Nobody has imported nutpie: one waits for that until the feature is switched off.
        with pytensor_fuse.enabled(False):
            assert not any("pytensor_fuse" in type(one).__module__ for one in sys.meta_path)
        """,
        SAY_STATE,
    )


def test_several_may_wait_for_one_module():
    run_python(
        """
        import sys
        from pytensor_fuse._imports import after_import
        called = []
        for name in "abc":
            after_import("colorsys", lambda name=name: called.append(name))
        import colorsys
        assert called == ["a", "b", "c"]
        for loader in (colorsys.__loader__, colorsys.__spec__.loader):
            assert "pytensor_fuse" not in type(loader).__module__
        """
    )


def test_an_import_of_pytensor_that_fails_can_be_tried_again(tmp_path):
    (tmp_path / "pytensor").mkdir()
    (tmp_path / "pytensor" / "__init__.py").write_text("raise ImportError('broken')")
    done = run_python(
        f"import pytensor_fuse, sys; sys.path.insert(0, {str(tmp_path)!r})",
        """
        try:
            import pytensor
        except ImportError as error:
            assert str(error) == "broken"
        del sys.path[0]
        """,
        SAY_STATE,
    )
    assert done.stdout == "True\n"


def test_a_missing_pytensor_is_said_by_python_itself(tmp_path):
    done = run_python(
        "import pytensor_fuse, sys",
        f"sys.path[:] = [{str(tmp_path)!r}]; import pytensor",
        check=False,
    )
    assert "ModuleNotFoundError: No module named 'pytensor'" in done.stderr


@pytest.mark.parametrize(
    ("variable", "on"),
    [
        ("", True),
        ("1", True),
        ("true", True),
        ("On", True),
        ("yes", True),
        ("0", False),
        ("false", False),
        ("OFF", False),
        (" no ", False),
    ],
)
@pytest.mark.parametrize("imports", ["import pytensor, pytensor_fuse", "import pytensor_fuse"])
def test_environment_variable(variable, on, imports):
    done = run_python(imports, SAY_STATE, variable=variable, flags=NO_WARNINGS)
    assert done.stdout == f"{on}\n"


def test_an_environment_variable_that_says_neither():
    done = run_python("import pytensor_fuse", SAY_STATE, variable="maybe")
    assert done.stdout == "True\n"
    assert done.stderr.count("RuntimeWarning: PYTENSOR_FUSE='maybe' is neither on (1, true,") == 1


@pytest.mark.parametrize("call", ["enable()", "load_ipython_extension(None)"])
def test_calls_win_over_the_environment_variable(call):
    done = run_python(f"import pytensor_fuse; pytensor_fuse.{call}", SAY_STATE, variable="0")
    assert done.stdout == "True\n"


def test_the_same_is_on_without_assertions():
    """The known sources of PyTensor's functions include the names in their assertions."""
    code = """
    import pytensor, pytensor_fuse

    for feature in pytensor_fuse.status().values():
        for each in (feature, *feature.parts.values()):
            print(each.name, each.is_on, each.reason)
    """
    expected = run_python(code, flags=NO_WARNINGS).stdout
    assert "cache True None" in expected
    for flag in ("-O", "-OO"):
        assert run_python(code, flags=[flag, *NO_WARNINGS]).stdout == expected


def test_disable_before_the_program_imports_pytensor():
    done = run_python("import pytensor_fuse; pytensor_fuse.disable(); import pytensor", SAY_STATE)
    assert done.stdout == "False\n"


def test_importing_the_package_anew_keeps_the_switch_working():
    done = run_python(
        """
        import importlib, pytensor_fuse
        pytensor_fuse.disable()
        importlib.reload(pytensor_fuse)
        pytensor_fuse.enable()
        """,
        SAY_STATE,
    )
    assert done.stdout == "True\n"


def test_import_is_quick():
    code = """
        import gc, time
        # Processor time: other processes may use the machine.
        start = time.process_time()
        import pytensor
        of_pytensor = time.process_time() - start
        # A full collection of PyTensor's objects may start at any time, and takes as long.
        gc.collect()
        start = time.process_time()
        import pytensor_fuse
        print((time.process_time() - start) / of_pytensor)
        """
    environment = {one: os.environ[one] for one in os.environ if one != "PYTHONDONTWRITEBYTECODE"}
    # Writes the bytecode: the ratio is small if PyTensor alone has none yet.
    run_python("import pytensor, pytensor_fuse", env=environment)
    # A busy neighbor on the same core slows either part down: one quiet moment suffices.
    ratios: list[float] = []
    while len(ratios) < 8 and min(ratios, default=1.0) >= 0.25:
        ratios.append(float(run_python(code, env=environment).stdout))
    assert min(ratios) < 0.25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("on", [True, False])
def test_fork(on):
    run_python(
        f"on = {on}",
        """
        import os, threading, pytensor, pytensor_fuse

        def switch(on):
            (pytensor_fuse.enable if on else pytensor_fuse.disable)()

        def keep_the_lock_busy():
            while not stop.is_set():
                with pytensor_fuse.enabled(on):
                    pass

        switch(on)
        stop = threading.Event()
        thread = threading.Thread(target=keep_the_lock_busy)
        thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                inherited = pytensor_fuse.status()["fusion"].is_on
                switch(not inherited)
                switched = pytensor_fuse.status()["fusion"].is_on
                os._exit(0 if inherited is on and switched is not on else 1)
            if os.waitpid(child, 0)[1] != 0:
                os._exit(1)
        stop.set()
        thread.join()
        assert pytensor_fuse.status()["fusion"].is_on is on
        """,
        flags=["-Wignore::DeprecationWarning"],
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("on", [True, False])
def test_fork_while_another_thread_is_in_a_block(on):
    """The child has the state of its parent, and can change it: it lacks the other thread."""
    run_python(
        f"on = {on}",
        """
        import os, threading, pytensor, pytensor_fuse

        def is_on():
            return pytensor_fuse.status()["fusion"].is_on

        def wait_in_a_block():
            with pytensor_fuse.enabled(on):
                entered.set()
                leave.wait()

        entered, leave = threading.Event(), threading.Event()
        thread = threading.Thread(target=wait_in_a_block)
        (pytensor_fuse.disable if on else pytensor_fuse.enable)()
        thread.start()
        entered.wait()
        child = os.fork()
        if child == 0:
            states = [is_on()]
            (pytensor_fuse.disable if on else pytensor_fuse.enable)()
            states.append(is_on())
            with pytensor_fuse.enabled(on):
                states.append(is_on())
            states.append(is_on())
            os._exit(states != [on, not on, on, not on])
        status = os.waitpid(child, 0)[1]
        leave.set()
        thread.join()
        assert status == 0
        assert is_on() is not on
        """,
        flags=["-Wignore::DeprecationWarning"],
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("on", [True, False])
def test_fork_within_a_block_while_another_thread_is_in_a_later_one(on):
    """In the child, a switch within the block has an effect, which ends with the block."""
    run_python(
        f"on = {on}",
        """
        import os, sys, threading, pytensor, pytensor_fuse
        from pytensor_fuse._startup.features import native_math_now

        def note_state():
            states.append((pytensor_fuse.status()["fusion"].is_on, native_math_now()))

        def switch():
            (pytensor_fuse.enable if on else pytensor_fuse.disable)()
            pytensor_fuse.enable("joins", native_math="vector")

        def wait_in_a_block():
            with pytensor_fuse.enabled(not on, native_math="libm"):
                entered.set()
                leave.wait()

        def fork():
            child = os.fork()
            if child != 0:
                status = os.waitpid(child, 0)[1]
                leave.set()
                thread.join()
                os._exit(status != 0)

        entered, leave = threading.Event(), threading.Event()
        thread = threading.Thread(target=wait_in_a_block)
        states = []
        switch()
        with pytensor_fuse.enabled(on):
            thread.start()
            entered.wait()
            with pytensor_fuse.enabled("joins"):
                fork()
                note_state()
                switch()
                note_state()
            note_state()
            switch()
            note_state()
            with pytensor_fuse.enabled(not on):
                note_state()
            note_state()
        note_state()
        switch()
        note_state()
        others, own = (not on, "libm"), (on, "vector")
        expected = [others, own, others, own, (not on, "vector"), own, others, own]
        if states != expected:
            print(states, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
        """,
        flags=["-Wignore::DeprecationWarning"],
    )


WORKERS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
IMPORTS

def state(_=None):
    from pytensor.compile.mode import optdb
    return "FusionRewriter" in repr(optdb["elemwise_fusion"]["composite_elemwise_fusion"])

def state_of_a_grandchild(context):
    with context.Pool(1) as pool:
        return pool.map(state, [None])

def is_the_registered_one(rewriter):
    from pytensor.compile.mode import optdb
    return rewriter is optdb["elemwise_fusion"]["composite_elemwise_fusion"]

if __name__ == "__main__":
    import pytensor_fuse

    context = multiprocessing.get_context("METHOD")
    for on in (False, True):
        (pytensor_fuse.enable if on else pytensor_fuse.disable)()
        with context.Pool(1) as pool:
            assert pool.map(state, [None]) == [on]
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            assert executor.submit(state_of_a_grandchild, context).result() == [on]
        with pytensor_fuse.enabled(not on), context.Pool(1) as pool:
            assert pool.map(state, [None]) == [not on]
    from pytensor.compile.mode import optdb
    with context.Pool(1) as pool:
        entry = optdb["elemwise_fusion"]["composite_elemwise_fusion"]
        assert pool.map(is_the_registered_one, [entry]) == [True]
    print("done")
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.parametrize("imports", ["", "import pytensor", "import pytensor_fuse"])
def test_workers_are_as_their_parent(method, imports, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS.replace("IMPORTS", imports).replace("METHOD", method))
    done = run_process("-Wignore::DeprecationWarning", str(script))
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_workers_without_pytensor_do_not_import_it(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(
        """
import multiprocessing, sys

def has_pytensor(_):
    return "pytensor" in sys.modules

if __name__ == "__main__":
    import pytensor_fuse, pytensor
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(has_pytensor, [None]))
"""
    )
    assert run_process(str(script)).stdout == "[False]\n"


def test_the_environment_variable_holds_in_workers(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(
        """
import multiprocessing, pytensor_fuse

def state(_):
    return pytensor_fuse.status()["fusion"].is_on

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(state, [None]))
"""
    )
    assert run_process(str(script), variable="0").stdout == "[False]\n"
