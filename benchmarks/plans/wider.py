"""Would wider fusion pay? Two rules that the planner does not have, with kernels made by hand.

    python -m benchmarks.plans.wider                     # both rules, small graphs and models
    python -m benchmarks.plans.wider --sizes 10,1000     # other lengths
    python -m benchmarks.plans.wider --linkers c         # one linker alone
    python -m benchmarks.plans.wider --no-models         # small graphs only
    python -m benchmarks.plans.wider --no-small          # models only

*Siblings*: kernels of equal shape that have nothing in common, neither data nor an operand, become
one. *Recomputed*: a cheap kernel of one number or row that others read is done in each of them.

Each figure is the time with the rule divided by that without it, all else alike; below 1 the rule
pays. Results are compared before anything is timed. The times are those of the processor, each the
least of rounds in which both take turns; a figure is the median of several such pairs.

In models, the planner itself plans with the first rule: for each shape that is known, whether by
types or because PyTensor has the same variable for it, all nodes that may share a kernel get an
operand that is no array and brings them together. By the second, kernels of one number that only
kernels of arrays read are put into all of these. Both functions are compiled as a user's are, with
everything that PyTensor does after fusion.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from statistics import median
from typing import Any
from unittest import mock

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import explicit_graph_inputs

import pytensor_fuse
from benchmarks.graphs.named import GP, MIXTURE, RADON, STUDENT_T, pymc_references
from benchmarks.graphs.reference import GraphIO, Reference
from benchmarks.plans import problems
from benchmarks.plans.kernels import (
    LINKERS,
    assert_same_results,
    compiled_as_is,
    ends_of,
    kernel,
    times_of,
)
from pytensor_fuse._fusion import fuse

MODES = {"numba": "NUMBA", "c": "CVM"}
PAIRS = 5
CHEAP = {"Add", "Sub", "Mul", "Neg", "Sqr", "Identity", "Cast", "Abs", "Maximum", "Minimum"}
ROW = 64

# What a function computes without the rule, and with it.
Both = tuple[list[Variable], list[Variable]]


# Small graphs -----------------------------------------------------------------------------


def siblings(n_kernels: int, body: Callable[..., Variable], shape: tuple[int, ...]) -> Both:
    """Kernels that have nothing in common, and one of all."""
    apart, operands, results = [], [], []
    for i in range(n_kernels):
        xs = [pt.tensor(f"x{i}{name}", dtype="float64", shape=shape) for name in "ab"]
        operands += xs
        results.append(body(*xs))
        apart += kernel(xs, results[-1:])
    return apart, kernel(operands, results)


def recomputed(
    n_kernels: int, body: Callable[..., Variable], shape: tuple[int, ...], small: tuple[int, ...]
) -> Both:
    """A kernel of few elements that others read, and these with what it does in each."""
    xs = [pt.tensor(name, dtype="float64", shape=small) for name in "abc"]
    result = body(*xs)
    (made,) = kernel(xs, [result])
    apart, together = [], []
    for i in range(n_kernels):
        x = pt.tensor(f"x{i}", dtype="float64", shape=shape)
        y = pt.tensor(f"y{i}", dtype="float64", shape=shape)
        apart += kernel([x, y, made], [x * made + y])
        together += kernel([x, y, *xs], [x * result + y])
    return apart, together


def cheap(x: Variable, y: Variable) -> Variable:
    return x * y + x


def dear(x: Variable, y: Variable) -> Variable:
    return pt.exp(x) * y


def sum_of_product(a: Variable, b: Variable, c: Variable) -> Variable:
    return a * b + c


def square_root(a: Variable, b: Variable, c: Variable) -> Variable:
    return pt.sqrt(a * b + c)


def cases(size: int) -> Iterator[tuple[str, Callable[[], Both]]]:
    """Yield what is measured of vectors of that length."""
    for n in (2, 4, 16) if size <= 10 else (2, 4):
        for body in (cheap, dear):
            yield f"{n} siblings, {body.__name__}", lambda n=n, f=body: siblings(n, f, (size,))
    for n in (1, 2, 4):
        for body in (sum_of_product, square_root):
            name = body.__name__.replace("_", " ")
            yield (
                f"a number for {n}, {name}",
                lambda n=n, f=body: recomputed(n, f, (size,), (1,)),
            )
            if size >= ROW:
                shape = (size // ROW, ROW)
                yield (
                    f"a row of {ROW} for {n}, {name}",
                    lambda n=n, f=body, shape=shape: recomputed(n, f, shape, (1, ROW)),
                )


def numbers() -> Iterator[tuple[str, Callable[[], Both]]]:
    """Yield siblings that are numbers."""
    for n in (2, 4, 16):
        for body in (cheap, dear):
            yield f"{n} siblings, {body.__name__}", lambda n=n, f=body: siblings(n, f, ())


def ratio(both: Both, linker: str) -> float:
    """Time with the rule by that without."""
    inputs = list(dict.fromkeys(v for out in both[0] for v in explicit_graph_inputs([out])))
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 1.5, v.type.shape) for v in inputs]
    return compared([compiled_as_is(inputs, outputs, linker) for outputs in both], values)


def compared(functions: Sequence[Any], values: Sequence[np.ndarray]) -> float:
    """Time of the second by that of the first, once their results are the same."""
    assert_same_results(functions, values)
    pairs = (times_of(functions, values) for _ in range(PAIRS))
    return median(after / before for before, after in pairs)


# Models -----------------------------------------------------------------------------------


def known_shape(fgraph: FunctionGraph, variable: Variable) -> tuple[object, ...] | None:
    """The shape of a variable, equal for two that certainly have the same; None if not known."""
    shape = variable.type.shape
    if None not in shape:
        return shape
    feature = getattr(fgraph, "shape_feature", None)
    if feature is None:
        return None
    # Its old name is deprecated since PyTensor 3.3.8.
    if hasattr(feature, "shape_tuple"):
        symbolic = feature.shape_tuple(variable)
    else:
        symbolic = feature.shape_of.get(variable)
    if symbolic is None:
        return None
    return tuple(int(s.data) if isinstance(s, Constant) else s for s in symbolic)


def fuse_by_hand(fgraph: FunctionGraph, rule: str | None, counts: list[int]) -> None:
    """Fuse as the pass does, with one of the rules or none; take note of the kernels."""
    found = problems.extracted(fgraph, None)
    problem, nodes = found.problem, list(found.arrays.nodes)
    if rule == "siblings":
        _bring_siblings_together(fgraph, nodes, problem)
    clusters, _, _ = problems.plan(problem, None)
    fused = {i for cluster in clusters for i in cluster}
    alone = [[i] for i, group in enumerate(problem["groups"]) if group >= 0 and i not in fused]
    kernels = [[nodes[i] for i in kernel] for kernel in [*clusters, *alone]]
    if rule == "recomputed":
        kernels = _recomputed(fgraph, kernels)
    counts.append(len(kernels))
    for members in kernels:
        inputs, outputs = ends_of(members, fgraph)
        if rule == "recomputed":
            # What is done elsewhere as well is not given back by each.
            outputs = [out for out in outputs if not _is_number(out)] or outputs
        if len(members) > 1:
            new = kernel(inputs, outputs)
            fgraph.replace_all(list(zip(outputs, new, strict=True)), reason="wider")


def _recomputed(fgraph: FunctionGraph, kernels: list[list[Apply]]) -> list[list[Apply]]:
    """Put each cheap kernel of one number into all that read it, if these are kernels of arrays."""
    owner = {node: i for i, members in enumerate(kernels) for node in members}
    gone: set[int] = set()
    for i, members in enumerate(kernels):
        is_cheap = all(type(node.op.scalar_op).__name__ in CHEAP for node in members)
        if not is_cheap or not _is_number(members[0].outputs[0]):
            continue
        within = set(members)
        readers = {
            client
            for node in members
            for client, _ in fgraph.clients[node.outputs[0]]
            if client not in within
        }
        into = {owner.get(reader) for reader in readers}
        if None in into or any(_is_number(kernels[j][0].outputs[0]) for j in into):
            continue
        gone.add(i)
        for j in into:
            kernels[j] = [*members, *kernels[j]]
    return [members for i, members in enumerate(kernels) if i not in gone]


def _is_number(variable: Variable) -> bool:
    return variable.type.ndim > 0 and all(variable.type.broadcastable)


def _bring_siblings_together(
    fgraph: FunctionGraph, nodes: Sequence[Any], problem: dict[str, Any]
) -> None:
    """Give nodes of one group and shape an operand that links them."""
    classes: dict[tuple[object, ...], list[int]] = {}
    for i, group in enumerate(problem["groups"]):
        if group >= 0 and (shape := known_shape(fgraph, nodes[i].outputs[0])) is not None:
            classes.setdefault((group, *shape), []).append(i)
    for (group, *_), members in classes.items():
        variable = len(problem["links"])
        problem["links"].append(group)
        problem["constants"].append(variable)
        for i in members:
            problem["inputs"][i].append(variable)


def adam(size: int) -> Reference:
    """Updates of three parameters of one shape that is known, by Adam."""

    def build() -> GraphIO:
        rate = pt.scalar("rate")
        inputs, outputs = [rate], []
        for name in "abc":
            names = (f"{name}{part}" for part in ("", "_slope", "_mean", "_square"))
            value, slope, mean, square = xs = [
                pt.tensor(name, dtype="float64", shape=(size,)) for name in names
            ]
            mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
            outputs += [value - rate * mean / (pt.sqrt(square) + 1e-8), mean, square]
            inputs += xs
        return inputs, outputs

    def values(size: int) -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [np.array(0.1), *(rng.uniform(size=size) for _ in range(12))]

    return Reference("adam of three", build, values)


def model_ratio(reference: Reference, size: int, rule: str, linker: str) -> tuple[int, int, float]:
    """Kernels without the rule and with it, and the time with it by that without."""
    inputs, outputs = reference.build()
    functions, counts = [], []
    for used in (None, rule):
        own: list[int] = []

        def fuse_(
            fgraph: FunctionGraph,
            reason: str,
            used: str | None = used,
            own: list[int] = own,
        ) -> tuple[int, int]:
            fuse_by_hand(fgraph, used, own)
            return 0, 0

        with (
            pytensor_fuse.enabled(False, "cache", "native"),
            mock.patch.object(fuse, "fuse", fuse_),
        ):
            functions.append(
                pytensor.function(
                    inputs, outputs, mode=get_mode(MODES[linker]), on_unused_input="ignore"
                )
            )
        functions[-1].trust_input = True
        counts.append(own[0])
    return counts[0], counts[1], compared(functions, reference.values(size))


def main(arguments: Sequence[str]) -> int:
    """Measure, print the tables, and return the exit status."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="10,1000,100000,10000000")
    parser.add_argument("--linkers", default=",".join(LINKERS))
    parser.add_argument("--no-models", action="store_true")
    parser.add_argument("--no-small", action="store_true")
    asked = parser.parse_args(arguments)
    sizes = [int(size) for size in asked.sizes.split(",")]
    linkers = asked.linkers.split(",")
    if not asked.no_small:
        for linker in linkers:
            for name, make in numbers():
                print(f"{linker:6} numbers    {name:40} {ratio(make(), linker):6.2f}", flush=True)
            for size in sizes:
                for name, make in cases(size):
                    print(
                        f"{linker:6} {size:<10} {name:40} {ratio(make(), linker):6.2f}", flush=True
                    )
    if not asked.no_models:
        for linker in linkers:
            for size in (10, 1000):
                references = [adam(size), RADON, STUDENT_T, GP, MIXTURE, *pymc_references()]
                for reference, rule in product(references, ("siblings", "recomputed")):
                    before, after, found = model_ratio(reference, size, rule, linker)
                    print(
                        f"{linker:6} {size:<10} {reference.name:20} {rule:12}"
                        f"kernels {before:3} -> {after:3} {found:6.2f}",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
