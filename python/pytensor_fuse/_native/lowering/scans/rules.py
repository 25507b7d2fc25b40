"""Scan: a loop over the inner graph, with the state that each step passes to the next.

States differ in their storage. Scalar states that only refer to earlier steps are in registers:
each step carries the last values, and writes the trace if that has more than one row. All other
states are read from the trace, at an index that moves with the step. A trace with room for all
steps is indexed by the step; a shorter one is a ring buffer, with a position that is carried and
wraps around at the end.

All results of a step are computed before any of them is written to a row that may be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytensor.scan.op import Scan

from pytensor_fuse._native.lowering.graph import graph_refusal, lower_inner
from pytensor_fuse._native.lowering.parts import is_generator, own_generator
from pytensor_fuse._native.lowering.registry import NoRuleError, dtypes_refusal, lower
from pytensor_fuse._native.lowering.scans.traces import TOO_SHORT, Trace, settled
from pytensor_fuse._native.lowering.tensors import Tensor, element_of, scalar, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor_fuse._native.lowering.types import Context, Loop, Node, Tensors, Variable


# Messages of Scan's Python implementation.
_NEGATIVE: Final = "Scan was asked to run for negative number of step {0}"
_SEQUENCE: Final = "Sequence"

_NO_ROWS: Final = "Scan has {0} rows for the results of its steps"
# PyTensor allows a state without a trace to change its shape, which no model of PyMC's does.
_CHANGES: Final = (
    "Scan has a state without a trace that changes from {0} to {1} elements, for which machine code"
    ' has no memory: compile with pytensor_fuse.enabled(False, "native")'
)

# The beginnings of messages of checks that Numba omits, at the risk of memory errors.
BEYOND_END: Final = tuple(text.partition("{")[0] for text in (_NEGATIVE, _SEQUENCE, TOO_SHORT))


def _refuses(op: Scan, node: Node) -> str | None:
    # Random generators can be states without a trace, and nothing else.
    generators = {
        one
        for one in (
            *op.outer_untraced_sit_sot(node.inputs),
            *op.outer_untraced_sit_sot_outs(node.outputs),
        )
        if is_generator(one)
    }
    arrays = [one for one in (*node.inputs, *node.outputs) if one not in generators]
    return dtypes_refusal(arrays) or graph_refusal(op.fgraph)


@lower.register(Scan, refuses=_refuses)
def _scan(op: Scan, node: Node, context: Context, inputs: Tensors) -> Tensors:
    return _Scan(op, node, context, inputs).run()


class _Scan:
    """A Scan that is being lowered."""

    def __init__(self, op: Scan, node: Node, context: Context, inputs: Tensors) -> None:
        self._op = op
        self._context = context
        self._builder = context.builder
        self._n_steps = self._builder.cast(inputs[0].at(()), "i64")
        self._inputs = inputs
        info = op.info
        self._require_steps()
        self._in_taps = [*info.mit_mot_in_slices, *info.mit_sot_in_slices, *info.sit_sot_in_slices]
        n_single = info.n_mit_sot + info.n_sit_sot
        self._out_taps = [*info.mit_mot_out_slices, *[(0,)] * n_single]
        states = [*op.outer_mitmot(inputs), *op.outer_mitsot(inputs), *op.outer_sitsot(inputs)]
        self._traces = [
            Trace.of_state(
                context,
                state,
                (self._in_taps[place], self._out_taps[place]),
                self._n_steps,
                may_overwrite=place in op.destroy_map,
                in_registers=place >= info.n_mit_mot,
            )
            for place, state in enumerate(states)
        ]
        first = op.outer_untraced_sit_sot_outs(range(len(node.outputs)))
        self._untraced = [
            self._first_of(one, variable, destroys=out in op.destroy_map)
            for one, variable, out in zip(
                op.outer_untraced_sit_sot(inputs),
                op.outer_untraced_sit_sot(node.inputs),
                first,
                strict=True,
            )
        ]
        # Lengths of existing arrays, which are therefore nonnegative.
        buffers = self._builder.program.buffers
        shapes = [*[one.lengths for one in inputs], *[one.lengths for one in buffers]]
        self._lengths = {context.length(length) for shape in shapes for length in shape}

    def _first_of(self, given: Tensor, variable: Variable, *, destroys: bool) -> Tensor:
        """Return the initial value of a state without a trace."""
        if given.parts:
            return own_generator(self._context, given, variable, destroys=destroys)
        if given.ndim == 0:
            return given
        return stored(self._builder, self._context.copied(given, is_once=False))

    def _require_steps(self) -> None:
        builder, n_steps = self._builder, self._n_steps
        builder.check(builder.op("ge", n_steps, builder.index(0)), IndexError, _NEGATIVE, n_steps)
        for number, sequence in enumerate(self._op.outer_seqs(self._inputs)):
            length = self._context.length(sequence.lengths[0])
            shape = ", ".join([f"{{{axis}}}" for axis in range(min(sequence.ndim, 7))])
            shape += "," if sequence.ndim == 1 else ""
            builder.check(
                builder.op("le", n_steps, length),
                ValueError,
                f"{_SEQUENCE} {number} has shape ({shape}) but the Scan's required number of steps"
                f" is {{{min(sequence.ndim, 7)}}}",
                *sequence.lengths[:7],
                n_steps,
            )

        for given in self._op.outer_nitsot(self._inputs):
            size, zero = builder.cast(given.at(()), "i64"), builder.index(0)
            builder.check(builder.op("ge", size, zero), ValueError, _NO_ROWS, size)
            has_room = builder.op("gt", size, zero)
            has_room = builder.op("or", has_room, builder.op("eq", n_steps, zero))
            builder.check(has_room, IndexError, _NO_ROWS, size)

    def run(self) -> Tensors:
        """Emit the loop and return the op's outputs."""
        op, context, builder = self._op, self._context, self._builder
        info = op.info
        n_mit_mot_outs = info.n_mit_mot_outs
        with builder.loop(self._n_steps) as loop, builder.guarding(), context.repeating():
            for trace in self._traces:
                trace.begin(loop)
            carried = [
                scalar(builder, builder.carried(one.dtype))
                if one.ndim == 0 and not one.parts
                else one
                for one in self._untraced
            ]
            outs = self._step(loop, carried)
            end = builder.cast(outs.pop().at(()), "bool") if info.as_while else None
            sizes = op.outer_nitsot(self._inputs)
            first = n_mit_mot_outs + info.n_mit_sot + info.n_sit_sot
            last = first + info.n_nit_sot
            fresh = [
                Trace.of_results(
                    context, out, builder.cast(size.at(()), "i64"), self._n_steps, self._lengths
                )
                for out, size in zip(outs[first:last], sizes, strict=True)
            ]
            for trace in fresh:
                trace.begin(loop)
            traces = [*self._traces, *fresh]
            out_taps = [*self._out_taps, *[(0,)] * len(fresh)]
            writes = []
            written = iter(outs)
            for trace, taps in zip(traces, out_taps, strict=True):
                writes += [trace.prepared(next(written), tap) for tap in taps]
            states = [out if out.parts else settled(context, out) for out in outs[last:]]
            for write in writes:
                write()
            for trace in traces:
                trace.carry_on(loop)
            finals = self._carry_untraced(loop, carried, states)
            if end is not None:
                loop.until = end
                count = builder.carried("i64")
                after = builder.op("add", loop.index, builder.index(1))
                n_done = builder.carry(loop, count, builder.index(0), after)
            else:
                n_done = self._n_steps
        results = [stored(builder, trace.buffer) for trace in self._traces[: info.n_mit_mot]]
        results += [
            trace.finished(n_done, is_while=info.as_while) for trace in traces[info.n_mit_mot :]
        ]
        return [*results, *finals]

    def _step(self, loop: Loop, carried: Sequence[Tensor]) -> Tensors:
        """Emit the inner graph and return its outputs."""
        op, builder = self._op, self._builder
        given = [element_of(builder, one, loop.index) for one in op.outer_seqs(self._inputs)]
        for trace, taps in zip(self._traces, self._in_taps, strict=True):
            given += [trace.at_tap(tap) for tap in taps]
        given += carried
        # All steps share these operands, so none may overwrite them.
        given += [
            one if one.parts else Tensor(one.dtype, one.lengths, one.at, None, one.data, one.layout)
            for one in op.outer_non_seqs(self._inputs)
        ]
        context, graph, nodes = self._context, op.fgraph, op.fgraph.toposort()
        generators = [place for place, one in enumerate(given) if one.parts]
        return lower_inner(context, graph.inputs, graph.outputs, nodes, given, destroyed=generators)

    def _carry_untraced(
        self, loop: Loop, carried: Sequence[Tensor], states: Sequence[Tensor]
    ) -> Tensors:
        context, builder = self._context, self._builder
        finals = []
        for before, inner, after in zip(self._untraced, carried, states, strict=True):
            if before.parts:
                if [one.buffer for one in after.parts] != [one.buffer for one in before.parts]:
                    raise NoRuleError("a Scan whose steps exchange generators")
                finals.append(before)
                continue
            if before.ndim == 0:
                out = builder.carry(loop, inner.at(()), before.at(()), after.at(()))
                finals.append(scalar(builder, out))
                continue
            for one, other in zip(before.lengths, after.lengths, strict=True):
                context.require_equal(one, other, NotImplementedError, _CHANGES)
            assert before.buffer is not None
            context.write(before.buffer, after)
            finals.append(before)
        return finals
