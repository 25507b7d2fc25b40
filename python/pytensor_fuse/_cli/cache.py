"""The command ``pytensor-fuse cache``: the rewritten graphs on disk."""

from __future__ import annotations

import sys

from pytensor_fuse._cli.arguments import Parser
from pytensor_fuse._cli.failures import ReportError
from pytensor_fuse._cli.messages import fail


def run(arguments: list[str]) -> None:
    """Print the size of the cache on disk, clear it, or print its path; exit if that fails."""
    parser = Parser(
        prog="pytensor-fuse cache",
        description="Print the size and path of the cache on disk, clear it, or print its path.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=("info", "clear", "path"),
        default="info",
        help="default: info",
    )
    try:
        command = parser.parse_args(arguments).command
    except ReportError as error:
        fail(str(error), error.code)
    from pytensor_fuse._cache.store.disk import default_disk

    try:
        disk = default_disk()
    except OSError as error:
        fail(f"there is no place for graphs: {error.strerror}", code=7)
    try:
        if command == "clear":
            disk.clear()
        elif command == "path":
            sys.stdout.write(f"{disk.path}\n")
        else:
            n_entries, n_bytes = disk.size()
            graphs = "graph" if n_entries == 1 else "graphs"
            sys.stdout.write(f"{n_entries} {graphs}, {n_bytes / 1e6:.1f} MB, {disk.path}\n")
    except OSError as error:
        fail(f"can't remove {str(disk.path)!r}: {error.strerror}", code=7)
