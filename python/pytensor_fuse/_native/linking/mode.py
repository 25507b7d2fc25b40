"""The mode NATIVE and its linker, registered by name, for programs without Numba."""

from __future__ import annotations

from typing import Any

from pytensor.compile import mode as modes

from pytensor_fuse._native.linking.linker import NativeLinker


class NamedMode:
    """The patch that registers the linker and the mode, and removes them again."""

    def __init__(self) -> None:
        linker, numba = NativeLinker(), modes.predefined_modes["NUMBA"]
        mode = modes.Mode(linker, numba.provided_optimizer)
        self._entries: tuple[tuple[dict[str, Any], str, Any], ...] = (
            (modes.predefined_linkers, "native", linker),
            (modes.predefined_modes, "NATIVE", mode),
        )

    def prepare(self) -> None:
        """Check that the names are free."""
        for names, name, ours in self._entries:
            if names.get(name, ours) is not ours:
                raise ValueError(f"there is another {name} already")

    def apply(self) -> None:
        """Register the linker and the mode."""
        for names, name, ours in self._entries:
            names[name] = ours

    def undo(self) -> None:
        """Remove the linker and the mode."""
        for names, name, ours in self._entries:
            if names.get(name) is ours:
                del names[name]

    def holds(self) -> bool:
        """Whether the linker and the mode are registered."""
        return all(names.get(name) is ours for names, name, ours in self._entries)


def native_mode() -> NamedMode:
    """Return the patch."""
    return NamedMode()
