"""Notes of what rules did follow a matrix, and go with the graph."""

import gc
import io
import pickle
import weakref

import pytensor.tensor as pt
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.linalg import cholesky, solve, solve_triangular

from pytensor_fuse._linalg.notes import note_pass, notes_of, noting

A, B = pt.dmatrices("A", "B")
Y = pt.dvector("y")


def applied(fgraph, variable):
    return [one.rule for one in notes_of(fgraph).applied_to(variable).values()]


def graph_with_notes(*outputs, rule="rule", fires=True):
    """Return a graph, to all nodes of which a rule was applied, which changed nothing."""
    fgraph = FunctionGraph([A, B, Y], list(outputs), clone=False)
    apply = noting(rule, lambda fgraph, node: [node.outputs[0]] if fires else None)
    for output in outputs:
        apply(fgraph, output.owner)
    return fgraph


def test_a_rule_without_a_result_is_not_noted():
    fgraph = graph_with_notes(solve(A, Y), fires=False)
    assert notes_of(fgraph) is None
    note_pass(fgraph, "rule", may_run=True)
    assert notes_of(fgraph).ran == {"rule": True}
    assert applied(fgraph, A) == []


def test_the_matrix_of_a_factor_is_noted():
    matrix = A + 1
    fgraph = graph_with_notes(
        solve_triangular(cholesky(matrix).T, Y, lower=False, b_ndim=1), pt.diagonal(A @ B.T)
    )
    assert applied(fgraph, matrix) == ["rule"]
    assert applied(fgraph, A) == ["rule"]
    assert applied(fgraph, B) == ["rule"]
    assert applied(fgraph, Y) == []


def test_work_on_a_product_is_noted_for_the_product():
    matrix = A @ B
    fgraph = graph_with_notes(solve(matrix, Y), pt.linalg.det(matrix))
    assert applied(fgraph, matrix) == ["rule", "rule"]
    assert applied(fgraph, A) == applied(fgraph, B) == []


def test_a_matrix_is_followed():
    matrix = A + 1
    fgraph = graph_with_notes(solve(matrix, Y))
    in_between, last = A + 1, 1 + A
    fgraph.replace(matrix, in_between, reason="test")
    fgraph.replace(in_between, last, reason="test")
    assert applied(fgraph, last) == ["rule"]
    assert applied(fgraph, A) == []


def test_notes_go_with_the_graph():
    fgraph = graph_with_notes(solve(A, Y))
    notes = weakref.ref(notes_of(fgraph))
    del fgraph
    gc.collect()
    assert notes() is None


class Read(pickle.Unpickler):
    """Notes from which modules a pickle takes anything."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.modules = set()

    def find_class(self, module, name):
        self.modules.add(module.partition(".")[0])
        return super().find_class(module, name)


def test_copies_have_no_notes():
    fgraph = graph_with_notes(solve(A, Y))
    copied = pickle.dumps(fgraph)
    read = Read(copied)
    assert notes_of(read.load()) is None
    # Who reads it need not have the package.
    assert (
        {"pytensor"} <= read.modules <= {"pytensor", "builtins", "numpy", "collections", "copyreg"}
    )
    for copy in (fgraph.clone(), pickle.loads(copied)):
        assert notes_of(copy) is None
        copy.check_integrity()
        copy.replace(copy.outputs[0], copy.inputs[2] * 2, reason="test")
    assert applied(fgraph, A) == ["rule"]
