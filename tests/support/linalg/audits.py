"""Audits of work on matrices, for a few matrices of any size."""

from __future__ import annotations

import json
import warnings

import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import graph_inputs

from pytensor_fuse._audit.audit import audit

A, B = pt.matrices("A", "B")
V = pt.vector("v")
T3 = pt.tensor3("T3")


def graph(inputs, outputs):
    return FunctionGraph(list(inputs), list(outputs), clone=False)


def found(*outputs, inputs=(A, B, V, T3), **options):
    shared = [v for v in graph_inputs(outputs) if isinstance(v, SharedVariable)]
    section = audit(graph([*inputs, *shared], outputs), **options).matrices
    as_dict = section.to_dict()
    assert json.loads(json.dumps(as_dict)) == as_dict
    assert section.lines()
    return section


def names(work):
    return [one.op for one in work]


def multivariate_normal(mean, covariance):
    with warnings.catch_warnings():
        # About its future return value.
        warnings.simplefilter("ignore")
        return pt.random.multivariate_normal(mean, covariance)
