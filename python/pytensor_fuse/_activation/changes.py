"""The list of all changes of PyTensor that enabling the package makes.

An entry has its feature, the code that it replaces, the facts that it requires, and the
`Patch` that applies and undoes it. A feature is applied completely or not at all: if a required
fact does not hold, or an entry cannot be prepared, its feature stays off. Patches are made
when their feature is first requested, which imports their modules.

To add a feature: a name in `pytensor_fuse._startup.features`, entries here, facts in
`pytensor_fuse._pytensor.compat.requirements`. To add an accelerator: a folder in
`pytensor_fuse._accelerators`, and its name there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pytensor_fuse._accelerators import NAMES, patch_of, record_of
from pytensor_fuse._pytensor.compat import requirements as facts

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
        return unit_of(self.feature, self.part)


def unit_of(feature: str, part: str = "") -> str:
    """Return the name by which a feature, or a part of one, is switched."""
    return f"{feature}:{part}" if part else feature


def _watched(what: str) -> Callable[[], Patch]:
    def make() -> Patch:
        from pytensor_fuse._pytensor.rewriting import constant_reads

        patch: Patch = getattr(constant_reads, f"watched_{what}")()
        return patch

    return make


def _signatures() -> Patch:
    from pytensor_fuse._identity.exact_constants import exact_signatures

    return exact_signatures()


def _merging_passes() -> Patch:
    from pytensor.graph.rewriting.basic import MergeOptimizer

    from pytensor_fuse._activation.passes.merging import MergeRewriter, find_merging_passes
    from pytensor_fuse._pytensor.patching.patches import SwitchedClass

    return SwitchedClass(find_merging_passes, {MergeOptimizer: MergeRewriter})


def _fusion_pass() -> Patch:
    from pytensor.tensor.rewriting.elemwise import FusionOptimizer

    from pytensor_fuse._activation.passes.fusion import FusionRewriter, find_fusion
    from pytensor_fuse._pytensor.patching.patches import SwitchedClass

    return SwitchedClass(find_fusion, {FusionOptimizer: FusionRewriter})


def _useless_outputs() -> Patch:
    from pytensor_fuse._joins.keep_targets import kept_write_targets

    return kept_write_targets()


def _join_passes() -> Patch:
    from pytensor_fuse._activation.passes.joins import listed_passes

    return listed_passes()


def _join_pass_class() -> Patch:
    from pytensor_fuse._activation.passes.joins import switched_pass

    return switched_pass()


def _debug_mode_log() -> Patch:
    from pytensor_fuse._pytensor.patching.debug_mode import FilteredLog

    return FilteredLog()


def _linalg_rules() -> Patch:
    from pytensor_fuse._activation.passes.linalg import listed_rules

    return listed_rules()


def _linalg_rule_class() -> Patch:
    from pytensor_fuse._activation.passes.linalg import switched_rules

    return switched_rules()


def _cached_rewriting() -> Patch:
    from pytensor_fuse._cache.lookup import cached_rewriting

    return cached_rewriting()


def _deferred_graphs() -> Patch:
    from pytensor_fuse._cache.deferred import deferred_graphs

    return deferred_graphs()


def _deferring_makers() -> Patch:
    from pytensor_fuse._cache.deferred import deferring_makers

    return deferring_makers()


def _deferred_copies() -> Patch:
    from pytensor_fuse._cache.deferred import deferred_copies

    return deferred_copies()


def _shared_conversion() -> Patch:
    from pytensor_fuse._cache.link.linked import shared_conversion

    return shared_conversion()


def _shared_functions() -> Patch:
    from pytensor_fuse._cache.link.linked import shared_functions

    return shared_functions()


def _shared_code() -> Patch:
    from pytensor_fuse._cache.link.loaded import shared_code

    return shared_code()


def _native_thunks() -> Patch:
    from pytensor_fuse._activation.withdrawal import load
    from pytensor_fuse._native.linking.linker import native_thunks

    return native_thunks(lambda: load("native", "pytensor_fuse._native.linking.graphs"))


def _quick_calls() -> Patch:
    from pytensor_fuse._native.linking.calls import quick_calls

    return quick_calls()


def _native_mode() -> Patch:
    from pytensor_fuse._native.linking.mode import native_mode

    return native_mode()


def _optimizers() -> Patch:
    from pytensor_fuse._native.linking.optimizers import native_inner_functions

    return native_inner_functions()


def _known_evaluations() -> Patch:
    from pytensor_fuse._pytensor.linking.known_runs import known_evaluations

    return known_evaluations()


def _known_draws() -> Patch:
    from pytensor_fuse._activation.withdrawal import withdraw
    from pytensor_fuse._pytensor.linking.known_runs import known_draws

    return known_draws(lambda reason: withdraw("single_runs", reason))


def _nutpie_callbacks() -> Patch:
    from pytensor_fuse._activation.withdrawal import load, withdraw
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
        _signatures,
    ),
    Change(
        "merging",
        "the class of the registered MergeOptimizer passes",
        (*facts.DATABASES, *facts.MERGING, *facts.EDITS, *facts.COMPARISON),
        _merging_passes,
    ),
    Change(
        "fusion",
        "the class of the registered pass composite_elemwise_fusion",
        (*facts.DATABASES, *facts.FUSION, *facts.EDITS, *facts.KERNELS, *facts.COMPARISON),
        _fusion_pass,
    ),
    Change(
        "joins",
        "nothing: the passes join_buffer_elimination and join_buffer_reuse are added to optdb",
        (*facts.DATABASES, *facts.ENTRIES, *facts.JOINS),
        _join_passes,
    ),
    Change(
        "joins",
        "nothing: stored queries with the pass join_buffer_elimination follow",
        (),
        _join_pass_class,
    ),
    Change(
        "joins",
        "the rewriter local_useless_composite_outputs, for kernels that work in place",
        facts.USELESS_OUTPUTS,
        _useless_outputs,
    ),
    Change(
        "joins",
        "nothing: DebugMode's log leaves out a warning about WriteJoin",
        (),
        _debug_mode_log,
    ),
    Change(
        "linalg",
        "nothing: the passes whose names begin with linalg_ are added to optdb",
        (*facts.DATABASES, *facts.ENTRIES, *facts.LINALG),
        _linalg_rules,
    ),
    Change(
        "linalg",
        "nothing: stored queries with these passes follow",
        (),
        _linalg_rule_class,
    ),
    Change(
        "cache",
        "FunctionMaker.prepare_fgraph, which rewrites a graph",
        (*facts.DATABASES, *facts.TAGGED, *facts.REWRITING, *facts.GRAPHS),
        _cached_rewriting,
    ),
    Change(
        "cache",
        "FunctionMaker.create_fgraph, for graphs that are in memory",
        facts.MAKING,
        _deferred_graphs,
    ),
    Change(
        "cache",
        "FunctionMaker.__init__, likewise",
        (),
        _deferring_makers,
    ),
    Change(
        "cache",
        "construct_function_ins_and_outs where pytensor.function calls it, which copies graphs",
        (),
        _deferred_copies,
    ),
    Change(
        "cache",
        "NumbaLinker.fgraph_convert, for functions of equal graphs",
        facts.LINKING,
        _shared_conversion,
    ),
    Change(
        "cache",
        "NumbaLinker.jit_compile, for functions of equal graphs",
        (),
        _shared_functions,
    ),
    Change(
        "other_data",
        "TensorConstant.data, which records its readers for the cache",
        facts.DATA,
        _watched("data"),
    ),
    Change(
        "other_data",
        "the rewriter unconditional_constant_folding, which records its steps for the cache",
        (),
        _watched("folding"),
    ),
    Change(
        "other_data",
        "the rewriter local_upcast_elemwise_constant_inputs, likewise",
        (),
        _watched("conversions"),
    ),
    Change(
        "other_data",
        "the rewriter constant_fold_branches_of_add_mul, likewise",
        (),
        _watched("branches"),
    ),
    Change(
        "cache",
        "COp.make_c_thunk, for nodes of equal graphs",
        facts.C_THUNKS,
        _shared_code,
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
        _quick_calls,
    ),
    Change(
        "native",
        "nothing: the linker native and the mode NATIVE are added to PyTensor",
        (),
        _native_mode,
    ),
    Change(
        "native",
        "ScipyWrapperOp.fn_wrapped: objectives of SciPy's optimizers become machine code",
        facts.OPTIMIZERS,
        _optimizers,
    ),
    Change(
        "single_runs",
        "Variable.eval, which marks its function as one that runs once",
        facts.SINGLE_RUNS,
        _known_evaluations,
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
