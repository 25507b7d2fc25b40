"""Edits of graphs: no copy of all variables for each import, and no calls of empty callbacks."""

from __future__ import annotations

from typing import Final

from pytensor_fuse._accelerators.record import Accelerator, Gain
from pytensor_fuse._pytensor.compat.checks import Does, does

ACCELERATOR: Final = Accelerator(
    title="a replacement takes time in proportion to the change, not to the graph",
    replaces="FunctionGraph.execute_callbacks, import_node, remove_client and remove_feature",
    skips=(
        "a copy of the set of all variables for each import; calls of inherited methods of "
        "features that do nothing; a question to each feature, for each event, whether it "
        "listens; comparisons of tuples and nodes to find the client that goes. Rust calls "
        "the listeners"
    ),
    ground=(
        *does(
            "pytensor.graph.fg:FunctionGraph",
            "execute_callbacks remove_feature import_node remove_client",
        ),
        Does("pytensor.graph.traversal:toposort"),
    ),
    gain=Gain(1.17, "large(100)"),
)
