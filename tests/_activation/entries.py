"""The entry of the fusion pass in PyTensor's database of rewrites, and what it does."""

import pytensor.tensor as pt
from pytensor.compile.aliasing import add_supervisor_to_fgraph
from pytensor.compile.io import In
from pytensor.compile.mode import optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabase

import pytensor_fuse


def switch(on):
    (pytensor_fuse.enable if on else pytensor_fuse.disable)()


def registered():
    return optdb["elemwise_fusion"]["composite_elemwise_fusion"]


def rewrite(rewriter):
    """Rewrite a graph of three nodes that can be one kernel; return how many are left."""
    x = pt.vector("x")
    fgraph = FunctionGraph([x], [pt.exp(x) + pt.sin(x)])
    add_supervisor_to_fgraph(fgraph, [In(x)])
    rewriter.rewrite(fgraph)
    return len(fgraph.apply_nodes)


def contents(database):
    """Describe a rewrite database in full detail, in order."""
    state = {key: value for key, value in vars(database).items() if key != "__db__"}
    described = [type(database), sorted(state.pop("_names")), sorted(state)]
    described += [
        list(value.items()) if isinstance(value, dict) else value for value in state.values()
    ]
    for tag, rewriters in vars(database)["__db__"].items():
        for rewriter in rewriters:
            described.append((tag, id(rewriter), type(rewriter)))
            if isinstance(rewriter, RewriteDatabase):
                described.append(contents(rewriter))
            else:
                described.append(sorted(vars(rewriter)))
    return described
