"""Vector width of loops, read from LLVM's assembly.

LLVM may change the vectors that the emitter wrote: it splits those that are too wide for the
processor, and scalarizes operations that the processor lacks. Comments in LLVM's assembly give the
name of each block in the LLVM text, and the loop that contains it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytensor_fuse._native.emission.functions import LoopNote

_BLOCK: Final = re.compile(r"(?:\.L(BB\d+_\d+):|# %bb\.\d+:)")
_NAME: Final = re.compile(r"# %(\S+)")
_IS_HEADER: Final = re.compile(r"=>This (?:Inner )?Loop Header")
_HEADER: Final = re.compile(r"Header=(BB\d+_\d+)")
# x86: packed arithmetic. Instructions that zero a register or change a sign do not count.
_PACKED: Final = re.compile(
    r"\tv?(?:p(?:add|sub|mul|cmp|max|min|s[lr]l|abs)\w*"
    r"|(?:fn?m(?:add|sub)\d*|add|sub|mul|div|max|min|sqrt|cmp\w*)p[sd])\t"
)
_REGISTERS: Final = (("%zmm", 512), ("%ymm", 256), ("%xmm", 128))


@dataclass
class _Block:
    label: str
    name: str = ""
    header: str = ""
    lines: list[str] = field(default_factory=list)


def _blocks(assembly: str) -> list[_Block]:
    blocks: list[_Block] = []
    for line in assembly.splitlines():
        found = _BLOCK.match(line)
        if found is not None:
            blocks.append(_Block(found[1] or ""))
            if (name := _NAME.search(line, found.end())) is not None:
                blocks[-1].name = name[1]
        if not blocks:
            continue
        block = blocks[-1]
        if "#" in line and not block.lines:
            if _IS_HEADER.search(line):
                block.header = block.label
            elif not block.header and (header := _HEADER.search(line)) is not None:
                block.header = header[1]
        if line.startswith("\t"):
            block.lines.append(line)
    return blocks


def register_bits(assembly: str, notes: Sequence[LoopNote]) -> list[int | None]:
    """Return the width of the registers in which each loop computes.

    Parameters
    ----------
    assembly
        LLVM's assembly of a module, with comments.
    notes
        The emitter's notes on the module's loops.

    Returns
    -------
    list of (int or None)
        For each loop 512, 256 or 128, 0 if it computes on single elements, and None if the width is
        unknown: LLVM has dissolved the loop, or the processor is of another family.
    """
    if "%r" not in assembly:
        return [None] * len(notes)
    blocks = _blocks(assembly)
    by_name = {block.name: block for block in blocks if block.name}
    found: list[int | None] = []
    for note in notes:
        own = [by_name[name] for name in note.blocks if name in by_name]
        headers = {block.header for block in own if block.header}
        if not headers:
            found.append(None)
            continue
        lines = (line for block in blocks if block.header in headers for line in block.lines)
        found.append(_widest(lines))
    return found


def _widest(lines: Iterable[str]) -> int:
    widest = 0
    for line in lines:
        is_packed = _PACKED.match(line) is not None
        for register, bits in _REGISTERS:
            # Narrow registers hold single elements, too.
            if register in line and (is_packed or bits > 128):
                widest = max(widest, bits)
    return widest
