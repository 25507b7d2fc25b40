"""Colors of pages and pictures, each defined once and named for its purpose."""

from __future__ import annotations

import colorsys
from typing import NamedTuple


class Color(NamedTuple):
    """A color on a light ground, and its counterpart on a dark one."""

    light: str
    dark: str


COLORS = {
    # Any page.
    "ground": Color("#ffffff", "#14171b"),
    "panel": Color("#f4f5f7", "#1f242a"),
    "line": Color("#c9ced6", "#3c444e"),
    "text": Color("#1b1f24", "#e6e9ed"),
    "faint": Color("#5d6570", "#9aa4b0"),
    "accent": Color("#0b62c4", "#6db0ff"),
    "bad": Color("#b3261e", "#ff8a80"),
    "shadow": Color("#0004", "#0004"),
    # Pictures of plans: fill and border of nodes by their roles, edges, and search results.
    "unfusable": Color("#e3e6ea", "#31373f"),
    "unfusable-border": Color("#9aa3ae", "#66707c"),
    "alone": Color("#ffffff", "#191d22"),
    "alone-border": Color("#55606c", "#a3adb9"),
    "input": Color("#fff3d6", "#3a3119"),
    "input-border": Color("#b98a1b", "#c79a3a"),
    "edge": Color("#8a95a3", "#6c7784"),
    "found": Color("#c2410c", "#ffa45c"),
}

# The border of a page within another page, whose background is unknown.
FRAME = "#8888"

# Hues in degrees. The step between consecutive kernels gives neighbors distant hues.
_FIRST_HUE = 205
_HUE_STEP = 137.508

# Saturation and lightness of parts of a kernel, in percent, by light and dark ground.
_KERNEL_PARTS = {
    "ground": ((62, 95), (32, 17)),
    "fill": ((62, 86), (34, 30)),
    "border": ((48, 42), (50, 62)),
}


class KernelColors(NamedTuple):
    """The colors of a kernel on a light ground: open, closed, and its border."""

    ground: str
    fill: str
    border: str


def kernel_colors(kernel: int) -> KernelColors:
    """Return the colors of a kernel by its position in the plan, for a light ground."""
    hue = (kernel * _HUE_STEP + _FIRST_HUE) % 360
    return KernelColors(*(_hex(hue, *light) for light, _ in _KERNEL_PARTS.values()))


def custom_properties() -> str:
    """Return a style sheet with the named colors, light or dark as the user prefers.

    The color of a part of the first kernel is ``hsl(var(--kernel-hue) var(--kernel-fill))``.
    """
    hues = f"--kernel-hue: {_FIRST_HUE};\n--kernel-hue-step: {_HUE_STEP};\n"
    light, dark = (
        "".join(f"--{name}: {color[i]};\n" for name, color in COLORS.items())
        + "".join(
            f"--kernel-{name}: {part[i][0]}% {part[i][1]}%;\n"
            for name, part in _KERNEL_PARTS.items()
        )
        for i in range(2)
    )
    return (
        f":root {{\ncolor-scheme: light dark;\n{hues}{light}}}\n"
        f"@media (prefers-color-scheme: dark) {{\n:root {{\n{dark}}}\n}}\n"
    )


def _hex(hue: float, saturation: int, lightness: int) -> str:
    channels = colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in channels)
