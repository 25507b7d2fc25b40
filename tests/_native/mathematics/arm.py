"""Functions compiled for 64-bit ARM, and run by QEMU's emulator, which `unicorn` wraps."""

from __future__ import annotations

import functools
import io
import struct

import llvmlite.binding as llvm
import numpy as np
import pytest

from pytensor_fuse._native.mathematics import FUNCTIONS, Target, definitions

from .machine import loop

_TRIPLE = "aarch64-unknown-linux-gnu"
# Vectors of NEON have two doubles.
LANES = 2

_CODE, _DATA, _STACK = 0x10_0000, 0x100_0000, 0x800_0000
_SIZE = 0x80_0000
_END = 0xFFFF_0000


@functools.cache
def _machine() -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(_TRIPLE).create_target_machine(
        opt=2, reloc="static", codemodel="small"
    )


def module(name: str) -> llvm.ModuleRef:
    """Return a module that applies a function to arrays."""
    text = definitions([(name, "f64", LANES)], Target(fma=True), inline=False)
    parsed = llvm.parse_assembly(text + loop(name, "f64", LANES))
    parsed.triple = _TRIPLE
    parsed.verify()
    return parsed


def assembly(name: str) -> str:
    """Return the assembly that LLVM makes of a function."""
    found: str = _machine().emit_assembly(module(name))
    return found


def _page(address: int) -> int:
    return address & ~0xFFF


def _patched(kind: int, word: int, place: int, value: int) -> int:
    """Return an instruction with a relocated address; kinds are ELF relocation types of AArch64."""
    if kind == 275:  # ADR_PREL_PG_HI21
        pages = (_page(value) - _page(place)) >> 12
        return word | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    if kind in (282, 283):  # JUMP26, CALL26
        return word | (value - place) >> 2 & 0x3FF_FFFF
    shifts = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # ..._ABS_LO12_NC
    return word | (value & 0xFFF) >> shifts[kind] << 10


def _linked(data: bytes) -> tuple[dict[int, bytearray], dict[str, int]]:
    """Return sections at their addresses, and the addresses of symbols."""
    elffile = pytest.importorskip("elftools.elf.elffile")
    elf = elffile.ELFFile(io.BytesIO(data))
    sections: dict[int, bytearray] = {}
    where: dict[int, int] = {}
    address = _CODE
    for number, section in enumerate(elf.iter_sections()):
        # Skip exception tables, which are unused and have other kinds of relocations.
        if section["sh_flags"] & 2 and section.name != ".eh_frame":
            address = -(-address // 64) * 64
            where[number], sections[address] = address, bytearray(section.data())
            address += section["sh_size"]
    symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
    for section in elf.iter_sections():
        if section["sh_type"] != "SHT_RELA" or section["sh_info"] not in where:
            continue
        start = where[section["sh_info"]]
        for one in section.iter_relocations():
            symbol = symbols[one["r_info_sym"]]
            value = where[symbol["st_shndx"]] + symbol["st_value"] + one["r_addend"]
            at = one["r_offset"]
            [word] = struct.unpack_from("<I", sections[start], at)
            word = _patched(one["r_info_type"], word, start + at, value)
            struct.pack_into("<I", sections[start], at, word)
    names = {
        symbol.name: where[symbol["st_shndx"]] + symbol["st_value"]
        for symbol in symbols
        if symbol["st_shndx"] in where
    }
    return sections, names


def emulated(name: str, *arguments: np.ndarray) -> np.ndarray:
    """Apply a function to arrays of full vectors on an emulated processor."""
    unicorn = pytest.importorskip("unicorn")
    from unicorn import arm64_const as arm

    sections, names = _linked(_machine().emit_object(module(name)))
    emulator = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    for base in (_CODE, _DATA, _STACK):
        emulator.mem_map(base, _SIZE)
    for address, content in sections.items():
        emulator.mem_write(address, bytes(content))
    # Enable the floating-point unit.
    emulator.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)
    emulator.reg_write(arm.UC_ARM64_REG_SP, _STACK + _SIZE - 64)
    emulator.reg_write(arm.UC_ARM64_REG_LR, _END)
    n_bytes = arguments[0].nbytes
    places = [_DATA + k * (n_bytes + 64) for k in range(len(arguments) + 1)]
    for place, argument in zip(places, arguments, strict=False):
        emulator.mem_write(place, argument.tobytes())
    for k, number in enumerate([*places, arguments[0].size]):
        emulator.reg_write(arm.UC_ARM64_REG_X0 + k, number)
    emulator.emu_start(names["run"], _END)
    assert FUNCTIONS[name].arguments == len(arguments)
    return np.frombuffer(bytes(emulator.mem_read(places[-1], n_bytes)), np.float64)
