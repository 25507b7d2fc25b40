"""The list of all changes of PyTensor that enabling the package makes.

An entry has its feature, the code that it replaces, the facts that it requires, and the
`Patch` that applies and undoes it. A feature is applied completely or not at all: if a required
fact does not hold, or an entry cannot be prepared, its feature stays off. Patches are made
when their feature is first requested, which imports their modules.

To add a feature: a name in `pytensor_fuse._startup.features`, an argument in
`pytensor_fuse._activation.switch`, entries here, facts in
`pytensor_fuse._pytensor.compat.requirements`. To add an accelerator: a folder in
`pytensor_fuse._accelerators`, and its name there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytensor_fuse._accelerators import NAMES, patch_of, record_of
from pytensor_fuse._activation.withdrawal import load, withdraw
from pytensor_fuse._pytensor.compat import requirements as facts
from pytensor_fuse._pytensor.compat.checks import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytensor_fuse._pytensor.compat.checks import Fact
    from pytensor_fuse._pytensor.patching.patches import Patch


class Change(NamedTuple):
    """One change in PyTensor.

    Attributes
    ----------
    feature
        The feature that it belongs to.
    replaces
        A description of the replaced code.
    ground
        The facts that must hold.
    make
        Returns the patch that applies and undoes it.
    part
        The part of the feature, if it has parts that can be switched separately.
    since
        The release of PyTensor before which there is nothing to change.
    """

    feature: str
    replaces: str
    ground: tuple[Fact, ...]
    make: Callable[[], Patch]
    part: str = ""
    since: tuple[int, int] = (0, 0)

    @property
    def unit(self) -> str:
        """The name by which it is switched: that of the feature, or of the part."""
        return f"{self.feature}:{self.part}" if self.part else self.feature


def _at(place: str) -> Callable[[], Patch]:
    """Return the function at a place in this package; its module is imported by the first call."""

    def make() -> Patch:
        function: Any = find(f"pytensor_fuse.{place}")
        patch: Patch = function()
        return patch

    return make


def _native_thunks() -> Patch:
    from pytensor_fuse._native.linking.linker import native_thunks

    return native_thunks(lambda: load("native", "pytensor_fuse._native.linking.graphs"))


def _known_draws() -> Patch:
    from pytensor_fuse._pytensor.linking.known_runs import known_draws

    return known_draws(lambda reason: withdraw("single_runs", reason))


def _nutpie_callbacks() -> Patch:
    from pytensor_fuse._pytensor.linking.nutpie_models import callbacks_once_imported

    return callbacks_once_imported(
        lambda: load("nutpie", "pytensor_fuse._native.c_entry.nutpie"),
        lambda reason: withdraw("nutpie", reason),
    )


# In the order in which they are applied.
CHANGES: Final[tuple[Change, ...]] = (
    Change(
        "exact_constants",
        "the equality of constants' signatures",
        facts.SIGNATURES,
        _at("_identity.exact_constants:exact_signatures"),
    ),
    Change(
        "merging",
        "the class of the registered MergeOptimizer passes",
        (*facts.DATABASES, *facts.MERGING, *facts.EDITS, *facts.COMPARISON),
        _at("_activation.passes.merging:switched_passes"),
    ),
    Change(
        "fusion",
        "the class of the registered pass composite_elemwise_fusion",
        (*facts.DATABASES, *facts.FUSION, *facts.EDITS, *facts.KERNELS, *facts.COMPARISON),
        _at("_activation.passes.fusion:switched_pass"),
    ),
    Change(
        "joins",
        "nothing: the passes join_buffer_elimination and join_buffer_reuse are added to optdb",
        (*facts.DATABASES, *facts.ENTRIES, *facts.JOINS),
        _at("_activation.passes.joins:listed_passes"),
    ),
    Change(
        "joins",
        "nothing: stored queries with the pass join_buffer_elimination follow",
        (),
        _at("_activation.passes.joins:switched_pass"),
    ),
    Change(
        "joins",
        "the rewriter local_useless_composite_outputs, for kernels that work in place",
        facts.USELESS_OUTPUTS,
        _at("_joins.keep_targets:kept_write_targets"),
    ),
    Change(
        "joins",
        "nothing: DebugMode's log leaves out a warning about WriteJoin",
        (),
        _at("_pytensor.patching.debug_mode:FilteredLog"),
    ),
    Change(
        "linalg",
        "nothing: the passes whose names begin with linalg_ are added to optdb",
        (*facts.DATABASES, *facts.ENTRIES, *facts.LINALG),
        _at("_activation.passes.linalg.table:listed_rules"),
    ),
    Change(
        "linalg",
        "nothing: stored queries with these passes follow",
        (),
        _at("_activation.passes.linalg.table:switched_rules"),
    ),
    Change(
        "cache",
        "FunctionMaker.prepare_fgraph, which rewrites a graph",
        (*facts.DATABASES, *facts.TAGGED, *facts.REWRITING, *facts.GRAPHS),
        _at("_cache.lookup:cached_rewriting"),
    ),
    Change(
        "cache",
        "FunctionMaker.create_fgraph, for graphs that are in memory",
        facts.MAKING,
        _at("_cache.deferred:deferred_graphs"),
    ),
    Change(
        "cache",
        "FunctionMaker.__init__, likewise",
        (),
        _at("_cache.deferred:deferring_makers"),
    ),
    Change(
        "cache",
        "construct_function_ins_and_outs where pytensor.function calls it, which copies graphs",
        (),
        _at("_cache.deferred:deferred_copies"),
    ),
    Change(
        "cache",
        "NumbaLinker.fgraph_convert, for functions of equal graphs",
        facts.LINKING,
        _at("_cache.link.linked:shared_conversion"),
    ),
    Change(
        "cache",
        "NumbaLinker.jit_compile, for functions of equal graphs",
        (),
        _at("_cache.link.linked:shared_functions"),
    ),
    Change(
        "other_data",
        "TensorConstant.data, which records its readers for the cache",
        facts.DATA,
        _at("_pytensor.rewriting.constant_reads:watched_data"),
    ),
    Change(
        "other_data",
        "the rewriter unconditional_constant_folding, which records its steps for the cache",
        (),
        _at("_pytensor.rewriting.constant_reads:watched_folding"),
    ),
    Change(
        "other_data",
        "the rewriter local_upcast_elemwise_constant_inputs, likewise",
        (),
        _at("_pytensor.rewriting.constant_reads:watched_conversions"),
    ),
    Change(
        "other_data",
        "the rewriter constant_fold_branches_of_add_mul, likewise",
        (),
        _at("_pytensor.rewriting.constant_reads:watched_branches"),
    ),
    Change(
        "cache",
        "COp.make_c_thunk, for nodes of equal graphs",
        facts.C_THUNKS,
        _at("_cache.link.loaded:shared_code"),
    ),
    Change(
        "native",
        "JITLinker.create_jitable_thunk, for NumbaLinker: graphs become machine code",
        facts.NATIVE,
        _native_thunks,
    ),
    Change(
        "native",
        "Function.__call__, for functions of machine code",
        (),
        _at("_native.linking.calls:quick_calls"),
    ),
    Change(
        "native",
        "nothing: the linker native and the mode NATIVE are added to PyTensor",
        (),
        _at("_native.linking.mode:native_mode"),
    ),
    Change(
        "native",
        "ScipyWrapperOp.fn_wrapped: objectives of SciPy's optimizers become machine code",
        facts.OPTIMIZERS,
        _at("_native.linking.optimizers:native_inner_functions"),
    ),
    Change(
        "single_runs",
        "Variable.eval, which marks its function as one that runs once",
        facts.SINGLE_RUNS,
        _at("_pytensor.linking.known_runs:known_evaluations"),
    ),
    Change(
        "single_runs",
        "draw of pymc.sampling.forward, which records the number of runs, once PyMC is imported",
        (),
        _known_draws,
    ),
    Change(
        "nutpie",
        "_compile_pymc_model_numba of nutpie.compile_pymc, once that is imported",
        facts.NUTPIE,
        _nutpie_callbacks,
    ),
    *(
        Change("accelerators", one.replaces, one.ground, partial(patch_of, name), name, one.since)
        for name in NAMES
        for one in [record_of(name)]
    ),
)
