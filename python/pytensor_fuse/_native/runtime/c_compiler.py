"""The C compiler of the machine: it links object code and sources into a shared library."""

from __future__ import annotations

import ctypes
import os
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
    return sys.platform != "win32" and hasattr(ctypes.CDLL(None), name)


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
    compiler: Sequence[str], parts: Sequence[Path], library: Path, libraries: Sequence[str]
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

    Raises
    ------
    RuntimeError
        If the compiler fails; the message has what it says.
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
        raise RuntimeError(
            f"the C compiler has failed: {shlex.join(command)}\n{done.stderr or done.stdout}"
        )
