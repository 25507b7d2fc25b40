"""The mode NATIVE and its linker, registered by name, for programs without Numba."""

from __future__ import annotations

from typing import Any

from pytensor.compile import mode as modes

from pytensor_fuse._native.linking.linker import NativeLinker


class NamedMode:
    """The patch that registers the linker and the mode, and removes them again."""

    def __init__(self) -> None:
        numba: Any = modes.predefined_modes["NUMBA"]
        self._linkers: dict[str, Any] = modes.predefined_linkers
        self._modes: dict[str, Any] = modes.predefined_modes
        self._linker = NativeLinker()
        self._mode = modes.Mode(self._linker, numba.provided_optimizer)

    def prepare(self) -> None:
        """Check that the names are free."""
        for names, name, ours in (
            (self._linkers, "native", self._linker),
            (self._modes, "NATIVE", self._mode),
        ):
            if names.get(name, ours) is not ours:
                raise ValueError(f"there is another {name} already")

    def apply(self) -> None:
        """Register the linker and the mode."""
        self._linkers["native"] = self._linker
        self._modes["NATIVE"] = self._mode

    def undo(self) -> None:
        """Remove the linker and the mode."""
        for names, name, ours in (
            (self._linkers, "native", self._linker),
            (self._modes, "NATIVE", self._mode),
        ):
            if names.get(name) is ours:
                del names[name]

    def holds(self) -> bool:
        """Whether the linker and the mode are registered."""
        return (
            self._linkers.get("native") is self._linker and self._modes.get("NATIVE") is self._mode
        )


def native_mode() -> NamedMode:
    """Return the patch."""
    return NamedMode()
