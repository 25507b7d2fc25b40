"""The mode NATIVE and its linker, by name, for those who want no Numba at all."""

from __future__ import annotations

from typing import Any

from pytensor.compile import mode as modes

from pytensor_fuse._native.linking.linker import NativeLinker


class NamedMode:
    """The patch that adds the linker and the mode, and takes them out again."""

    def __init__(self) -> None:
        numba: Any = modes.predefined_modes["NUMBA"]
        self._linkers: dict[str, Any] = modes.predefined_linkers
        self._modes: dict[str, Any] = modes.predefined_modes
        self._linker = NativeLinker()
        self._mode = modes.Mode(self._linker, numba.provided_optimizer)

    def prepare(self) -> None:
        """Look whether the names are free."""
        for names, name, ours in (
            (self._linkers, "native", self._linker),
            (self._modes, "NATIVE", self._mode),
        ):
            if names.get(name, ours) is not ours:
                raise ValueError(f"there is another {name} already")

    def apply(self) -> None:
        """Add them."""
        self._linkers["native"] = self._linker
        self._modes["NATIVE"] = self._mode

    def undo(self) -> None:
        """Take them out."""
        for names, name, ours in (
            (self._linkers, "native", self._linker),
            (self._modes, "NATIVE", self._mode),
        ):
            if names.get(name) is ours:
                del names[name]

    def holds(self) -> bool:
        """Whether they are there."""
        return (
            self._linkers.get("native") is self._linker and self._modes.get("NATIVE") is self._mode
        )


def native_mode() -> NamedMode:
    """Return the patch."""
    return NamedMode()
