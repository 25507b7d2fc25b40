"""The C compiler of the machine: it links object code and sources into a shared library."""

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
    """Return what the file of a shared library is called here."""
    return f"lib{name}.dylib" if sys.platform == "darwin" else f"lib{name}.so"


def program_directory() -> str:
    """Return how the linker calls the directory of a program."""
    return "@loader_path" if sys.platform == "darwin" else "$ORIGIN"


def in_c_library(name: str) -> bool:
    """Whether the C library, or another one that this process shares with all, has a name."""
    if sys.platform == "win32":
        return False
    try:
        # No attribute: an object of this class has some of its own.
        ctypes.CDLL(None)[name]
    except AttributeError:
        return False
    return True


def c_compiler(asked: str | None) -> list[str]:
    """Return the command that runs the C compiler.

    Parameters
    ----------
    asked
        The command, if the user gives one; else it is that of the environment's ``CC``, or ``cc``.

    Raises
    ------
    NotImplementedError
        On Windows, whose compilers link in other ways.
    FileNotFoundError
        If there is no such program.
    """
    if sys.platform == "win32":
        raise NotImplementedError("libraries are linked on Linux and macOS, and not on Windows")
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
    """Link a shared library that has all it needs.

    Parameters
    ----------
    compiler
        The command that runs the compiler.
    parts
        Object code, and sources in C, whose headers are next to them.
    library
        The file to be written.
    libraries
        What the linker is told besides, as ``-llapack``.
    fortran
        The functions of BLAS and LAPACK, as linkers name them, that the libraries have to have.

    Raises
    ------
    RuntimeError
        If the compiler fails; the message has what it says, and what to do where it has not found
        linear algebra.
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
        # Some linkers put a character before each name.
        missing = [one for one in fortran if re.search(rf"(?<![^\W_])_?{one}(?!\w)", said)]
        if any(one.startswith("-l") and _names(said, one) for one in libraries):
            missing = list(fortran)
        raise RuntimeError(
            f"{_how_to_find(missing)}the C compiler has failed: {shlex.join(command)}\n{said}"
        )


def _names(said: str, library: str) -> bool:
    """Whether a linker says something of a library, as ``-llapack``: that it is not there."""
    return library in said or f"'{library.removeprefix('-l')}'" in said


def _how_to_find(missing: Sequence[str]) -> str:
    """Say what to do about functions of linear algebra that the linker has not found."""
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
