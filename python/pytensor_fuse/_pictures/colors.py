"""Colors of nodes in static pictures, by their roles."""

from __future__ import annotations

from pytensor_fuse._pictures.picture import Role
from pytensor_fuse._reports.palette import COLORS

_NAMES = {
    Role.ALONE: "alone",
    Role.UNFUSABLE: "unfusable",
    Role.INPUT: "input",
    Role.CONSTANT: "input",
}


def role_colors(role: Role) -> tuple[str, str]:
    """Return the fill and border of a node outside kernels."""
    name = _NAMES[role]
    return COLORS[name].light, COLORS[f"{name}-border"].light
