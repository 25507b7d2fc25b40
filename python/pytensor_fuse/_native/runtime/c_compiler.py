"""The machine's C compiler, which links object code and sources into a shared library."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def library_name(name: str) -> str:
    """Return the file name of a shared library on this platform."""
    return f"lib{name}.dylib" if sys.platform == "darwin" else f"lib{name}.so"


def program_directory() -> str:
    """Return the linker's notation for the directory of a program."""
    return "@loader_path" if sys.platform == "darwin" else "$ORIGIN"


def in_c_library(name: str) -> bool:
    """Whether a name exists in the C library, or in another library loaded for global use."""
    if sys.platform == "win32":
        return False
    try:
        # Indexing instead of attribute access: the object has attributes of its own.
        ctypes.CDLL(None)[name]
    except AttributeError:
        return False
    return True


def c_compiler(asked: str | None) -> list[str]:
    """Return the command that runs the C compiler.

    Parameters
    ----------
    asked
        The user's command; None for that of the environment's ``CC``, or ``cc``.

    Raises
    ------
    NotImplementedError
        On Windows, where compilers link differently.
    FileNotFoundError
        If there is no such program.
    """
    if sys.platform == "win32":
        raise NotImplementedError("libraries can be linked on Linux and macOS, but not on Windows")
    command = shlex.split(asked or os.environ.get("CC") or "cc")
    if not command or shutil.which(command[0]) is None:
        raise FileNotFoundError(
            f"there is no C compiler {shlex.join(command)!r}, which links libraries: install "
            "one, or name it by compiler= or by CC in the environment"
        )
    return command


def link_library(
    compiler: Sequence[str],
    parts: Sequence[Path],
    library: Path,
    libraries: Sequence[str],
    fortran: Sequence[str] = (),
) -> None:
    """Link a self-contained shared library.

    Parameters
    ----------
    compiler
        The command that runs the compiler.
    parts
        Object files, and C sources with their headers next to them.
    library
        The output file.
    libraries
        Further arguments of the linker, such as ``-llapack``.
    fortran
        The functions of BLAS and LAPACK, by linker name, that the libraries must provide.

    Raises
    ------
    RuntimeError
        If the compiler fails; the message has its output, and advice if linear algebra is missing.
    """
    named = (
        ["-Wl,-install_name,@rpath/" + library.name]
        if sys.platform == "darwin"
        else ["-Wl,--no-undefined", "-Wl,-soname," + library.name]
    )
    command = [*compiler, "-shared", "-fPIC", "-O2", "-o", str(library), *map(str, parts)]
    command += [*named, *libraries, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr or done.stdout
        # Some linkers prefix each name with a character.
        missing = [one for one in fortran if re.search(rf"(?<![^\W_])_?{one}(?!\w)", said)]
        if any(one.startswith("-l") and _names(said, one) for one in libraries):
            missing = list(fortran)
        raise RuntimeError(
            f"{_how_to_find(missing)}the C compiler has failed: {shlex.join(command)}\n{said}"
        )


def _names(said: str, library: str) -> bool:
    """Whether a linker's output mentions a library, such as ``-llapack``, as missing."""
    return library in said or f"'{library.removeprefix('-l')}'" in said


def _how_to_find(missing: Sequence[str]) -> str:
    """Return advice on functions of linear algebra that the linker has not found."""
    if not missing:
        return ""
    return (
        f"the function calls {', '.join(missing)} of BLAS and LAPACK, which the linker has not "
        "found: name libraries that have them by libraries=, as libraries=['-lopenblas'] or "
        "libraries=['-llapack', '-lblas'] (Debian's and Ubuntu's packages are libopenblas-dev and "
        "liblapack-dev), for a library in a folder of its own with '-L/the/folder' and "
        "'-Wl,-rpath,/the/folder'. The libraries in SciPy's wheels have other names for them, as "
        f"scipy_{missing[0]}.\n"
    )
