"""The command ``pytensor-fuse cache``: the rewritten graphs on disk."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytensor_fuse._cli.arguments import Parser, exit_codes
from pytensor_fuse._cli.failures import (
    ExitCode,
    ReportError,
    failures_end_process,
    import_pytensor,
)
from pytensor_fuse._cli.output import print_report, take_output

if TYPE_CHECKING:
    from pytensor_fuse._cache.store.disk import Disk


def run(arguments: list[str]) -> None:
    """Print the size of the cache on disk, clear it, or print its path; exit if that fails."""
    with failures_end_process():
        command = _parser().parse_args(arguments).command
        if command == "clear":
            _clear(_disk())
            return
        output = take_output()
        disk = _disk()
        print_report(output, str(disk.path) if command == "path" else _size(disk))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="pytensor-fuse cache",
        description="Print the size and path of the cache on disk, clear it, or print its path.",
        epilog=exit_codes(of_targets=False),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=("info", "clear", "path"),
        default="info",
        help="default: info",
    )
    return parser


def _disk() -> Disk:
    import_pytensor()
    from pytensor_fuse._cache.store.disk import default_disk

    try:
        return default_disk()
    except OSError as error:
        raise ReportError(
            ExitCode.CANNOT_WRITE, f"there is no place for graphs: {error.strerror}"
        ) from error


def _clear(disk: Disk) -> None:
    try:
        disk.clear()
    except OSError as error:
        raise ReportError(
            ExitCode.CANNOT_WRITE, f"can't remove {str(disk.path)!r}: {error.strerror}"
        ) from error


def _size(disk: Disk) -> str:
    n_entries, n_bytes = disk.size()
    graphs = "graph" if n_entries == 1 else "graphs"
    return f"{n_entries} {graphs}, {n_bytes / 1e6:.1f} MB, {disk.path}"
