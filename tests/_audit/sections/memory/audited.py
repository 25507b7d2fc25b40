"""Functions of random graphs, and what an audit says about their memory."""

from __future__ import annotations

from typing import Any

import pytensor
from pytensor.compile.executor import Function
from pytensor.compile.io import In
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.basic import PerformLinker

from pytensor_fuse._audit.context.build import graph_context
from pytensor_fuse._audit.sections.memory.analysis import audit_memory
from pytensor_fuse._audit.sections.memory.record import Result
from pytensor_fuse._audit.sections.memory.section import MemorySection
from support.random_graphs.building import Case

FAST_RUN = RewriteDatabaseQuery(include=["fast_run"])
NO_INPLACE = RewriteDatabaseQuery(include=["fast_run"], exclude=["inplace"])


def python_mode(*, allow_gc: bool = True, optimizer: Any = None) -> Mode:
    return Mode(PerformLinker(allow_gc=allow_gc), optimizer)


def compiled(case: Case, mode: Mode, *, mutable: bool = False) -> Function:
    inputs = [In(v, borrow=mutable, mutable=mutable) for v in case.fgraph.inputs]
    return pytensor.function(inputs, list(case.fgraph.outputs), mode=mode, on_unused_input="ignore")


def memory_of(function: Any, shapes: Any = None) -> MemorySection:
    return audit_memory(graph_context(function, shapes))


def results_by_variable(function: Any, shapes: Any = None) -> dict[Variable, Result]:
    context = graph_context(function, shapes)
    nodes = {context.name(node): node for node in context.order}
    return {nodes[r.node].outputs[r.output]: r for r in audit_memory(context).results if not r.path}
