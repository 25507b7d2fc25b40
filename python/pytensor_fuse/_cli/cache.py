"""The command ``pytensor-fuse cache``: the rewritten graphs on disk."""

from __future__ import annotations

import sys

from pytensor_fuse._cli.messages import fail

_COMMANDS = ("info", "clear", "path")


def run(arguments: list[str]) -> None:
    """Print the size of the cache on disk, clear it, or print its path; exit if that fails."""
    command, *rest = arguments or ["info"]
    if rest or command not in _COMMANDS:
        given = " ".join(arguments)
        fail(f"cache takes one of {', '.join(_COMMANDS)}, not {given!r}", code=2)
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
