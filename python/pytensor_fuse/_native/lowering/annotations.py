"""Types for the annotations of rules, imported by type checkers alone."""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Apply, Constant, Variable

from pytensor_fuse._native.lowering.context import Context
from pytensor_fuse._native.lowering.tensors import Index, Layout, Tensor
from pytensor_fuse._native.program.blocks import Loop
from pytensor_fuse._native.program.builder import Builder
from pytensor_fuse._native.program.model import BufferId, Operand, Program, Statement, Value

__all__ = [
    "BufferId",
    "Builder",
    "Constant",
    "Context",
    "Index",
    "Layout",
    "Loop",
    "Node",
    "Operand",
    "Program",
    "Statement",
    "Tensor",
    "Tensors",
    "Value",
    "Variable",
]

Node = Apply[Any]
Tensors = list[Tensor]
