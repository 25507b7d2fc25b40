"""Types for the annotations of rules and of linking, imported by type checkers alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph import basic

from pytensor_fuse._native.lowering.context import Context
from pytensor_fuse._native.lowering.tensors import Index, Layout, Tensor
from pytensor_fuse._native.program.blocks import Loop
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import BufferId, Operand, Program, Statement, Value

__all__ = [
    "Array",
    "BufferId",
    "Builder",
    "Constant",
    "Context",
    "Index",
    "Layout",
    "Loop",
    "Node",
    "Nodes",
    "Operand",
    "Program",
    "Statement",
    "Tensor",
    "Tensors",
    "Value",
    "Variable",
    "Variables",
]

Array = np.ndarray[Any, Any]
Constant = basic.Constant[Any]
Node = basic.Apply[Any]
Nodes = Sequence[Node]
Tensors = list[Tensor]
Variable = basic.Variable[Any, Any]
Variables = Sequence[Variable]
