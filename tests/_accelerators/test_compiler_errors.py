"""PyTensor's errors of compilers are the same ones, whenever the rest of their module is run."""

from __future__ import annotations

import pytest

from support.processes import run_python

START = """
    import pickle, sys
    import pytensor, pytensor_fuse
    NAME = "pytensor.link.c.exceptions"
    assert "setuptools" not in sys.modules
    assert pytensor_fuse.is_enabled("accelerators:compiler_errors")
"""


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Have what linking needs of C code compiled: where it is not, compiling asks for the class."""
    run_python("import pytensor.link.c.cvm")


@pytest.mark.parametrize(
    "program",
    [
        # What linking asks for.
        """
        from pytensor.link.c.exceptions import MissingGXX
        import pytensor.link.c.cvm
        assert "setuptools" not in sys.modules
        assert MissingGXX.__mro__[1:] == (Exception, BaseException, object)
        assert pickle.loads(pickle.dumps(MissingGXX)) is MissingGXX
        assert pytensor.link.c.exceptions is sys.modules[NAME]
        """,
        # What compiling asks for.
        """
        from pytensor.link.c.exceptions import MissingGXX
        from pytensor.link.c.exceptions import CompileError
        import setuptools.errors
        assert CompileError.__mro__[1] is setuptools.errors.CompileError
        assert str(CompileError("a\\nb", 2)) == "a\\nb"
        assert pickle.loads(pickle.dumps(CompileError)) is CompileError
        import pytensor.link.c.exceptions as module
        assert module.MissingGXX is MissingGXX
        assert module.CompileError is CompileError
        try:
            raise module.MissingGXX("none")
        except MissingGXX:
            pass
        """,
        # As a module, it is PyTensor's.
        """
        ours = __import__(NAME, fromlist=["x"])
        ours.CompileError
        pytensor_fuse.disable()
        assert sys.modules[NAME] is ours
        names = vars(ours).keys()
        parts = ours.__file__, ours.__doc__, ours.__spec__.origin, ours.MissingGXX.__doc__
        del sys.modules[NAME]
        stock = __import__(NAME, fromlist=["x"])
        assert stock is not ours
        assert names == vars(stock).keys()
        assert parts == (
            stock.__file__, stock.__doc__, stock.__spec__.origin, stock.MissingGXX.__doc__
        )
        """,
        # Nothing is left behind.
        """
        pytensor_fuse.disable()
        assert NAME not in sys.modules
        assert not hasattr(pytensor.link.c, "exceptions")
        from pytensor.link.c.exceptions import CompileError
        assert "setuptools" in sys.modules
        module = sys.modules[NAME]
        pytensor_fuse.enable()
        assert sys.modules[NAME] is module
        assert pytensor_fuse.is_enabled("accelerators:compiler_errors")
        """,
        # Who has asked for the class catches what is raised later.
        """
        import pytensor.tensor as pt
        from pytensor.compile.mode import Mode
        from pytensor.link.c.exceptions import MissingGXX
        pytensor_fuse.disable()
        assert "setuptools" not in sys.modules
        x = pt.vector("x")
        try:
            with pytensor.config.change_flags(cxx=""):
                pytensor.function([x], pt.exp(x), mode=Mode("c"))
        except MissingGXX:
            pass
        else:
            raise AssertionError
        """,
        # What is not there.
        """
        import inspect
        import pytensor.link.c.exceptions as module
        assert not hasattr(module, "__wrapped__")
        assert inspect.getmodule(module.MissingGXX) is module
        assert "setuptools" not in sys.modules
        for _ in range(2):
            try:
                module.nothing
            except AttributeError as error:
                assert str(error) == f"module {NAME!r} has no attribute 'nothing'"
            else:
                raise AssertionError
        """,
        # A compilation that fails.
        """
        import pytensor.tensor as pt
        from pytensor.link.c.op import COp
        stock = pt.extra_ops.CumOp.c_code
        pt.extra_ops.CumOp.c_code = lambda *args: "this is no code;"
        pt.extra_ops.CumOp.c_code_cache_version = lambda self: (999,)
        x = pt.vector("x")
        try:
            pytensor.function([x], pt.cumsum(x), mode="CVM")
        except Exception as error:
            from pytensor.link.c.exceptions import CompileError
            assert type(error) is CompileError, error
        else:
            raise AssertionError
        """,
        # Threads that ask at once.
        """
        from concurrent.futures import ThreadPoolExecutor
        import pytensor.link.c.exceptions as module
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _: module.CompileError, range(64)))
        assert len(found) == 1
        """,
    ],
    ids=["linking", "compiling", "module", "undone", "caught", "missing", "failing", "threads"],
)
def test_errors(program):
    run_python(START, program)
