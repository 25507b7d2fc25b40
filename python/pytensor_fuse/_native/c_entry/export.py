"""Export of compiled functions as shared libraries that run without Python."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytensor_fuse._core import __version__
from pytensor_fuse._errors import NativeLinkError
from pytensor_fuse._native.c_entry.example import example, makefile
from pytensor_fuse._native.c_entry.function import native_graph
from pytensor_fuse._native.c_entry.header import header
from pytensor_fuse._native.c_entry.messages import messages
from pytensor_fuse._native.c_entry.names import check_name
from pytensor_fuse._native.emission.c.library import library_modules, linked_name
from pytensor_fuse._native.runtime.c_compiler import (
    c_compiler,
    library_name,
    link_library,
    program_directory,
)
from pytensor_fuse._native.runtime.constants import bytes_of
from pytensor_fuse._native.runtime.llvm import host, library_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.compile.executor import Function

    from pytensor_fuse._native.c_entry.function import NativeGraph, SharedVariables


class CExport(NamedTuple):
    """The files of an exported function.

    Attributes
    ----------
    library
        The shared library.
    header
        The header, which documents the function's arguments and results.
    example
        A C program that calls the function.
    makefile
        The makefile that builds the example.
    """

    library: Path
    header: Path
    example: Path
    makefile: Path


def export_c(
    compiled: Function,
    folder: str | os.PathLike[str],
    *,
    name: str = "model",
    shared: SharedVariables = "values",
    compiler: str | None = None,
    libraries: Sequence[str] = (),
) -> CExport:
    """Write a compiled function as a shared library, with a header and an example in C.

    The library contains the machine code and all data that it reads, and needs no Python. It is
    specific to the processor and operating system that it was written on: another processor may
    lack some of its instructions. The function has the signature of `CEntry`.

    Parameters
    ----------
    compiled : Function
        A compiled function, as for `compile_c`.
    folder : str or os.PathLike
        The destination, which is created if it does not exist. Existing files of these names are
        replaced, including ``example.c`` and ``Makefile``.
    name : str
        The function's name in C, from which the names of the files are derived.
    shared : {"values", "inputs"}
        The treatment of shared variables, as for `compile_c`.
    compiler : str, optional
        The command of the C compiler, which links the library. By default it is that of the
        environment's ``CC``, or ``cc``.
    libraries : sequence of str
        Further arguments of the linker, for linear algebra: ``["-llapack", "-lblas"]``, say, or the
        paths of libraries and C sources.

    Returns
    -------
    CExport
        The files.

    Raises
    ------
    TypeError
        If the argument is not a compiled function.
    ValueError
        If the function updates shared variables, ``shared`` has another value, or ``name`` is not a
        C identifier or already taken: a keyword of C or C++, a name of the C library, a function
        that this one calls, a library that is linked.
    NativeLinkError
        If the function is not machine code as a whole, or calls functions of SciPy that exist in
        Python only; the message lists them.
    NotImplementedError
        On Windows.
    FileNotFoundError
        If there is no C compiler.
    RuntimeError
        If the C compiler fails; the message has its output and the missing functions of BLAS and
        LAPACK.

    Examples
    --------
    >>> import tempfile
    >>> import pytensor
    >>> import pytensor.tensor as pt
    >>> from pytensor_fuse.native import export_c
    >>> x = pt.vector("x")
    >>> f = pytensor.function([x], pt.exp(x).sum(), mode="NATIVE")
    >>> files = export_c(f, tempfile.mkdtemp(), name="total")  # doctest: +SKIP
    >>> files.header.name, files.example.name  # doctest: +SKIP
    ('total.h', 'example.c')
    """
    check_name(name, libraries)
    graph = native_graph("export_c", compiled, shared)
    fortran = {one: linked_name(one) for one in graph.compiled.module.externals}
    unserved = [symbol for symbol, linked in fortran.items() if linked is None]
    if unserved:
        told = ", ".join([one.removeprefix("scipy.") for one in unserved])
        raise NativeLinkError(
            f"export_c takes a function that needs no Python, and this one calls SciPy for: {told}"
        )
    called = [linked for linked in fortran.values() if linked is not None]
    if name in called:
        raise ValueError(f"name must not be one of a function that this one calls: {name!r}")
    command = c_compiler(compiler)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = CExport(
        folder / library_name(name), folder / f"{name}.h", folder / "example.c", folder / "Makefile"
    )
    triple, processor, _ = host()
    machine = f"{triple} and the processor {processor}"
    with tempfile.TemporaryDirectory(dir=folder, prefix="pytensor-fuse-") as scratch:
        work = Path(scratch)
        parts = _parts(name, graph, work)
        (work / files.header.name).write_text(
            header(name, graph.inputs, graph.outputs, machine, __version__), encoding="utf-8"
        )
        parts.append(work / f"{name}_messages.c")
        parts[-1].write_text(messages(name, graph.compiled.program.failures), encoding="utf-8")
        link_library(command, parts, work / files.library.name, libraries, called)
        # A failure leaves the folder unchanged, and running programs keep the library that they
        # loaded.
        for one in (files.header, files.library):
            (work / one.name).replace(one)
    files.example.write_text(example(name, graph.inputs, graph.outputs), encoding="utf-8")
    files.makefile.write_text(makefile(name, program_directory()), encoding="utf-8")
    return files


def _parts(name: str, graph: NativeGraph, folder: Path) -> list[Path]:
    """Write the object files of a library."""
    modules = library_modules(
        name,
        graph.interface,
        graph.compiled.module,
        [bytes_of(one) for one in graph.compiled.constants],
        [bytes_of(one) for one in graph.bound],
    )
    written = []
    for part, text in modules.items():
        path = folder / f"{name}_{part}.o"
        path.write_bytes(library_object(text))
        written.append(path)
    return written
