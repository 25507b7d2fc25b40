"""What the features stand on: PyTensor's private parts, and functions that are done anew.

Signatures and fingerprints were read from every release from 3.0.0 to 3.3.7. A release in which one
of these differs is not known to work with a feature that names it; that feature then stays off.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._pytensor.ground import (
    Does,
    DoesIfThere,
    Fact,
    Has,
    Keeps,
    Says,
    Takes,
    TakesIfThere,
)

_INNER: Final = "pytensor.compile.inner_function"
_OPTDB: Final = "pytensor.compile.mode:optdb"
_GRAPH: Final = "pytensor.graph.fg:FunctionGraph"
_FEATURE: Final = "pytensor.graph.features:Feature"
_MERGE_FEATURE: Final = "pytensor.graph.rewriting.basic:MergeFeature"

# How databases keep their entries.
DATABASES: Final[tuple[Fact, ...]] = (Has(_OPTDB, "__db__"), Has(_OPTDB, "__position__"))

# Where these keep what has a tag.
TAGGED: Final[tuple[Fact, ...]] = (
    Does("pytensor.misc.ordered_set:OrderedSet.__iter__", ("3aa74ce6",)),
)

# The same, for those who add entries.
ENTRIES: Final[tuple[Fact, ...]] = (
    Has(_OPTDB, "_names"),
    Does(
        "pytensor.graph.rewriting.db:RewriteDatabase.register",
        ("3575b3ca",),
    ),
)

# `_pytensor.edits` edits graphs as these do, in one step.
EDITS: Final[tuple[Fact, ...]] = (
    Keeps(_GRAPH, "_features"),
    Keeps(_GRAPH, "execute_callbacks_time"),
    Keeps(_GRAPH, "execute_callbacks_times"),
    Has(_FEATURE, "_feature_callbacks"),
    Does(f"{_GRAPH}.execute_callbacks", ("4797b37f",)),
    Does(f"{_GRAPH}.import_node", ("ffc4fd98",)),
    Does(f"{_GRAPH}.add_client", ("3804b3e9",)),
    Does(f"{_GRAPH}.remove_client", ("2610d604",)),
    Does(f"{_GRAPH}.change_node_input", ("01820cb0",)),
    Does(f"{_GRAPH}.replace", ("d9821cf9",)),
    Takes(f"{_FEATURE}.on_import", ("self, fgraph, node, reason",)),
    Takes(f"{_FEATURE}.on_change_input", ("self, fgraph, node, i, var, new_var, reason",)),
    Takes(f"{_FEATURE}.on_prune", ("self, fgraph, node, reason",)),
)

# `_pytensor.composites` makes Composites from their parts.
KERNELS: Final[tuple[Fact, ...]] = (
    Takes(
        "pytensor.graph.basic:FrozenApply.__new__",
        ("cls, op, inputs, output_types", "cls, op, inputs, output_types, topo_idx"),
    ),
    Takes(
        "pytensor.graph.fg:FrozenFunctionGraph.__init__",
        ("self, inputs, outputs", "self, inputs, toposort, output_nodes"),
    ),
    Does("pytensor.scalar.basic:Composite.__init__", ("2ab644d0", "f8c26887", "3b0235ac")),
    Does("pytensor.scalar.basic:ScalarInnerGraphOp.__init__", ("9d740bac",)),
    Does("pytensor.scalar.basic:ScalarInnerGraphOp.__getstate__", ("d2c3e67f",)),
    Does("pytensor.scalar.basic:ScalarInnerGraphOp.__setstate__", ("400b050e",)),
)

# `_pytensor.comparison` knows which attributes tell ops and types apart.
COMPARISON: Final[tuple[Fact, ...]] = (
    Does("pytensor.graph.utils:MetaType.__new__", ("47bcdc08",)),
    Keeps("pytensor.compile.ops:FromFunctionOp", "_FromFunctionOp__fn"),
)

FUSION: Final[tuple[Fact, ...]] = (
    Takes("pytensor.tensor.rewriting.elemwise:FusionOptimizer.apply", ("self, fgraph",)),
    # What it fuses and what not, which a plan takes over.
    Does(
        "pytensor.tensor.rewriting.elemwise:FusionOptimizer.apply",
        ("19436d94", "ff978c3b", "22db80d4", "266ebf62"),
    ),
    Takes("pytensor.tensor.rewriting.elemwise:elemwise_max_operands_fct", ("node",)),
    Does(f"{_GRAPH}.orderings", ("06bff153",)),
)

MERGING: Final[tuple[Fact, ...]] = (
    Takes("pytensor.graph.rewriting.basic:MergeOptimizer.apply", ("self, fgraph",)),
    # What it merges and what not.
    Does("pytensor.graph.rewriting.basic:MergeOptimizer.apply", ("15145fb0", "f9ecc47f")),
    Does("pytensor.graph.rewriting.basic:MergeOptimizer.add_requirements", ("0d8a9aa2",)),
    Does(f"{_MERGE_FEATURE}.on_attach", ("6ec92034",)),
    Does(f"{_MERGE_FEATURE}.on_import", ("bdabd88e",)),
    Does(f"{_MERGE_FEATURE}.on_change_input", ("16ce97a4",)),
    Does(f"{_MERGE_FEATURE}.process_node", ("8cb73856",)),
    Keeps("pytensor.graph.destroyhandler:DestroyHandler", "_destroying_apps"),
    Keeps(_MERGE_FEATURE, "scheduled"),
    Keeps(_MERGE_FEATURE, "blacklist"),
    Keeps(_MERGE_FEATURE, "atomic_sig_inv"),
)

SIGNATURES: Final[tuple[Fact, ...]] = (
    Does("pytensor.scalar.basic:ScalarConstantSignature.__eq__", ("3866b268",)),
    Does("pytensor.tensor.variable:TensorConstantSignature.__eq__", ("176e58a8",)),
    Does("pytensor.scalar.basic:ScalarConstantSignature.__hash__", ("e2ad37e1",)),
    Does("pytensor.tensor.variable:TensorConstantSignature.__hash__", ("3baffb22",)),
)

JOINS: Final[tuple[Fact, ...]] = (
    Keeps("pytensor.tensor.rewriting.elemwise:InplaceElemwiseOptimizer", "_get_protected_inputs"),
    Takes(
        "pytensor.tensor.rewriting.elemwise:InplaceElemwiseOptimizer.filter_candidate_pairs",
        ("self, fgraph, node, protected_inputs",),
    ),
    Keeps("pytensor.compile.aliasing:Supervisor", "protected"),
    Keeps(_GRAPH, "_features"),
    # What the C code of a kernel's scalar op is made for.
    Keeps("pytensor.tensor.elemwise:Elemwise", "fake_node"),
    Takes(
        "pytensor.tensor.elemwise:Elemwise._c_all", ("self, node, nodename, inames, onames, sub",)
    ),
    Does("pytensor.tensor.elemwise:Elemwise._c_all", ("e36c4351",)),
)

_SOLVERS: Final = "pytensor.tensor.linalg.solvers"
_DECOMPOSITIONS: Final = "pytensor.tensor.linalg.decomposition"

LINALG: Final[tuple[Fact, ...]] = (
    # By which the rules know what an op does.
    Keeps("pytensor.tensor.blockwise:Blockwise", "core_op"),
    Keeps(f"{_SOLVERS}.core:SolveBase", "b_ndim"),
    Keeps(f"{_SOLVERS}.core:SolveBase", "lower"),
    Keeps(f"{_SOLVERS}.general:Solve", "assume_a"),
    Keeps(f"{_SOLVERS}.triangular:SolveTriangular", "unit_diagonal"),
    Keeps(f"{_DECOMPOSITIONS}.cholesky:Cholesky", "lower"),
    Keeps("pytensor.tensor.basic:ExtractDiag", "offset"),
    Keeps("pytensor.tensor.basic:ExtractDiag", "axis1"),
    Keeps("pytensor.tensor.basic:ExtractDiag", "axis2"),
    Keeps("pytensor.tensor.basic:AllocDiag", "offset"),
    Keeps("pytensor.tensor.subtensor:IncSubtensor", "idx_list"),
    Keeps("pytensor.tensor.subtensor:IncSubtensor", "set_instead_of_inc"),
    Keeps("pytensor.tensor.subtensor:AdvancedIncSubtensor", "idx_list"),
    Keeps("pytensor.tensor.subtensor:AdvancedIncSubtensor", "set_instead_of_inc"),
    Keeps("pytensor.tensor.subtensor:AdvancedSubtensor", "idx_list"),
    Keeps("pytensor.tensor.elemwise:DimShuffle", "new_order"),
    Keeps("pytensor.tensor.elemwise:DimShuffle", "input_ndim"),
    Keeps("pytensor.tensor.elemwise:Elemwise", "scalar_op"),
    # Gradients of an op that is made of others are a graph in a node.
    Keeps("pytensor.compile.builders:OpFromGraph", "fgraph"),
    # In which order they have their inputs.
    Takes("pytensor.tensor.basic:Eye.make_node", ("self, n, m, k",)),
    Takes("pytensor.tensor.basic:ARange.make_node", ("self, start, stop, step",)),
    # PyTensor 3.0.0 knows no assumptions.
    TakesIfThere("pytensor.assumptions.core:check_assumption", ("fgraph, var, key",)),
    # What the rules call.
    Takes(f"{_DECOMPOSITIONS}.eigen:eigh", ("a, b, lower, UPLO, driver",)),
    Takes("pytensor.tensor.linalg.products:kron", ("a, b",)),
    Takes(
        f"{_SOLVERS}.general:solve",
        ("a, b, *, lower, overwrite_a, overwrite_b, check_finite, assume_a, transposed, b_ndim",),
    ),
    Takes(
        f"{_DECOMPOSITIONS}.cholesky:cholesky",
        ("x, lower, *, check_finite, overwrite_a, on_error",),
    ),
    Takes(f"{_DECOMPOSITIONS}.lu:lu_factor", ("a, *, check_finite, overwrite_a",)),
    Takes(
        f"{_SOLVERS}.general:lu_solve",
        ("LU_and_pivots, b, trans, b_ndim, check_finite, overwrite_b",),
    ),
    Takes(
        f"{_SOLVERS}.psd:cho_solve",
        ("c_and_lower, b, *, b_ndim", "c_and_lower, b, *, check_finite, b_ndim"),
    ),
    Takes(
        f"{_SOLVERS}.triangular:solve_triangular",
        ("a, b, *, trans, lower, unit_diagonal, check_finite, b_ndim",),
    ),
    Takes(
        f"{_SOLVERS}.tridiagonal:tridiagonal_lu_solve",
        ("a_diagonals, b, *, b_ndim, transposed",),
    ),
    Takes(f"{_SOLVERS}.tridiagonal:LUFactorTridiagonal.make_node", ("self, dl, d, du",)),
    # By which the gradient of a block-diagonal matrix is known.
    Keeps("pytensor.tensor.extra_ops:CumOp", "axis"),
    Keeps("pytensor.tensor.extra_ops:CumOp", "mode"),
    # The pivots count from 0, and all factors are NaN where the factorization has failed.
    Does(f"{_DECOMPOSITIONS}.lu:LUFactor.perform", ("0659c5cd", "12181cfb")),
    # These count from 1.
    Does(f"{_SOLVERS}.tridiagonal:LUFactorTridiagonal.perform", ("76e65f1a",)),
)

_LAPACK: Final = "pytensor.link.numba.dispatch.linalg._LAPACK"

# `_pytensor.numba_lapack` calls these. Asking them loads Numba.
NUMBA_LAPACK: Final[tuple[Fact, ...]] = (
    Takes(f"{_LAPACK}:get_lapack_ptr", ("dtype, name",)),
    Takes(f"{_LAPACK}:val_to_int_ptr._defn", ("typingctx, data",)),
    Takes(f"{_LAPACK}:int_ptr_to_val._defn", ("typingctx, data",)),
    Takes(
        "pytensor.link.numba.cache:_call_cached_ptr._defn",
        ("typingctx, get_ptr_func, func_type_ref, unique_func_name_lit",),
    ),
)

USELESS_OUTPUTS: Final[tuple[Fact, ...]] = (
    Does("pytensor.tensor.rewriting.elemwise:local_useless_composite_outputs.fn", ("350c6894",)),
    Takes(
        "pytensor.graph.rewriting.basic:FromFunctionNodeRewriter.transform",
        ("self, fgraph, node, enforce_tracks",),
    ),
)

_MAKER: Final = "pytensor.compile.maker:FunctionMaker"
_CONFIG: Final = "pytensor.configdefaults:config"

# `_cache.lookup` rewrites in the place of this, and knows what comes before and after.
# Graphs that are in memory are not copied where these would have them copied, or look at the copy.
MAKING: Final[tuple[Fact, ...]] = (
    Has("pytensor.compile.maker", "construct_function_ins_and_outs"),
    Does("pytensor.compile.maker:function", ("841dbbf8",)),
    Does(f"{_MAKER}.__init__", ("d621cdec",)),
    Takes(
        "pytensor.compile.rebuild:construct_function_ins_and_outs",
        (
            "params, outputs, updates, givens, no_default_updates, rebuild_strict, "
            "allow_input_downcast, fgraph",
        ),
    ),
    Does("pytensor.compile.rebuild:construct_function_ins_and_outs", ("cb1c5f63",)),
    Does("pytensor.compile.rebuild:rebuild_collect_shared", ("b7581644", "d5409470")),
    Does("pytensor.compile.aliasing:add_supervisor_to_fgraph", ("87155780",)),
    Takes(
        f"{_MAKER}.create_fgraph",
        ("input_specs, output_specs, accept_inplace, fgraph, features, force_clone",),
    ),
)

REWRITING: Final[tuple[Fact, ...]] = (
    Takes(
        f"{_MAKER}.prepare_fgraph",
        ("inputs, outputs, additional_outputs, fgraph, mode, profile",),
    ),
    Does(f"{_MAKER}.prepare_fgraph", ("7716c190",)),
    Does(f"{_MAKER}.create_fgraph", ("4b4ce599",)),
    Does("pytensor.compile.aliasing:insert_deepcopy", ("a8b32549",)),
    Does("pytensor.compile.mode:Mode.__setstate__", ("34223106",)),
    Takes(
        "pytensor.graph.rewriting.db:RewriteDatabaseQuery.__init__",
        ("self, include, require, exclude, subquery, position_cutoff, extra_rewrites",),
    ),
    Has(_CONFIG, "_config_var_dict"),
    Has("pytensor.graph.rewriting.basic", "_logger"),
    Does("pytensor.configparser:ConfigParam.__get__", ("3be23986",)),
)

# `_pytensor.graph_contents` fills graphs as these do.
GRAPHS: Final[tuple[Fact, ...]] = (
    Keeps(_GRAPH, "_features"),
    Does(f"{_GRAPH}.__init__", ("be7e5679",)),
    Does(f"{_GRAPH}.add_output", ("1958e43c",)),
    Does(f"{_GRAPH}.import_var", ("e5e3cc74",)),
    Does(f"{_GRAPH}.import_node", ("ffc4fd98",)),
    Does(f"{_GRAPH}.attach_feature", ("26273118",)),
    Does("pytensor.compile.aliasing:Supervisor.on_attach", ("12c20327",)),
    Does("pytensor.graph.features:ReplaceValidate.on_attach", ("83f97f91",)),
    Does("pytensor.graph.destroyhandler:DestroyHandler.on_attach", ("f5b59fa8",)),
)

# `_cache.linked` shares what comes of these.
LINKING: Final[tuple[Fact, ...]] = (
    Takes("pytensor.link.numba.linker:NumbaLinker.fgraph_convert", ("self, fgraph, **kwargs",)),
    Does("pytensor.link.numba.linker:NumbaLinker.fgraph_convert", ("2d3a31d2",)),
    Takes("pytensor.link.numba.linker:NumbaLinker.jit_compile", ("self, fn_and_cache",)),
    Does("pytensor.link.numba.linker:NumbaLinker.jit_compile", ("e0d5ba79",)),
    Does("pytensor.link.basic:JITLinker.create_jitable_thunk", ("df3a4e9a",)),
)

# `_native.linking` makes thunks as the linker does, and calls them as functions do.
NATIVE: Final[tuple[Fact, ...]] = (
    Does("pytensor.link.basic:JITLinker.create_jitable_thunk", ("df3a4e9a",)),
    Takes(
        "pytensor.link.basic:JITLinker.create_jitable_thunk",
        ("self, compute_map, order, input_storage, output_storage, storage_map",),
    ),
    Does("pytensor.link.basic:JITLinker.make_all", ("f5350089",)),
    Has("pytensor.link.numba.linker", "NumbaLinker"),
    Does("pytensor.compile.executor:Function.__call__", ("6d77d30b",)),
    Does("pytensor.compile.executor:Function._validate_inputs", ("4ac8ccd6",)),
    Does("pytensor.compile.executor:Function.__init__", ("107e9114", "3c5f6604")),
    Has("pytensor.compile.mode", "predefined_linkers"),
    Has("pytensor.compile.mode", "predefined_modes"),
    Has("pytensor.tensor.basic:Alloc", "_runtime_broadcast_error_msg"),
)

# `_pytensor.optimizers` sets what these keep.
OPTIMIZERS: Final[tuple[Fact, ...]] = (
    Keeps("pytensor.tensor.optimize:ScipyWrapperOp", "_fn"),
    Keeps("pytensor.tensor.optimize:ScipyWrapperOp", "_fn_wrapped"),
    TakesIfThere(f"{_INNER}:HasInnerFunction.compile_fn", ("self, mode",)),
)

# `_pytensor.known_runs` gives what `eval` compiles with another `function`, which it imports.
SINGLE_RUNS: Final[tuple[Fact, ...]] = (
    Does("pytensor.graph.basic:Variable.eval", ("2bb9f284",)),
    # What a function does with the thunks of its nodes, as `_pytensor.python_nodes` does it.
    Does("pytensor.graph.op:Op.make_thunk", ("e8d56337",)),
    Does("pytensor.graph.op:Op.make_py_thunk", ("34c3643e",)),
)

# `_pytensor.nutpie_models` takes the shared variables for the inputs of a graph after the first.
NUTPIE: Final[tuple[Fact, ...]] = (
    Does("pytensor.compile.executor:Function.get_shared", ("62c5fa8b",)),
)

# `_pytensor.constant_reads` knows what these do with the data of constants.
DATA: Final[tuple[Fact, ...]] = (
    Does("pytensor.tensor.rewriting.basic:unconditional_constant_folding.fn", ("dc7a47c2",)),
    Does(
        "pytensor.tensor.rewriting.elemwise:local_upcast_elemwise_constant_inputs.fn",
        ("8658d2c6",),
    ),
    Does("pytensor.tensor.rewriting.elemwise:constant_fold_branches_of_add_mul.fn", ("61c0c8fc",)),
    Does("pytensor.tensor.variable:TensorConstant.unique_value.fget", ("80e7a634",)),
    Does("pytensor.tensor.variable:TensorConstant.__copy__", ("38076463",)),
    Does("pytensor.graph.basic:Constant.__init__", ("fa82f438",)),
    Does("pytensor.graph.basic:Constant.__repr__", ("4c087d56",)),
    Does("pytensor.graph.basic:Constant.__str__", ("f051e4d3",)),
    Does("pytensor.tensor.subtensor:_is_provably_positive", ("618f3e07", "3bde801b")),
    Has("pytensor.assumptions.core", "CONSTANT_INFER_REGISTRY"),
)

_C: Final = "pytensor.link.c.basic"

# `_pytensor.c_thunks` makes thunks as these do.
C_THUNKS: Final[tuple[Fact, ...]] = (
    Takes(
        "pytensor.link.c.op:COp.make_c_thunk",
        ("self, node, storage_map, compute_map, no_recycling",),
    ),
    Does("pytensor.link.c.op:COp.make_c_thunk", ("9010cc5f",)),
    Does(f"{_C}:CLinker.make_thunk", ("3cc81c13",)),
    Does(f"{_C}:CLinker.__compile__", ("214dd584",)),
    Does(f"{_C}:CLinker.cthunk_factory", ("58c85493",)),
    Has(f"{_C}:CLinker", "code_gen"),
    Does(f"{_C}:CLinker.cmodule_key_", ("c36b191c",)),
    Does(f"{_C}:CLinker.get_init_tasks", ("83b354ba",)),
    Does(f"{_C}:CLinker.fetch_variables", ("e57c0271",)),
    Does(f"{_C}:_CThunk.__init__", ("4460ea1d",)),
)

_REWRITING: Final = "pytensor.graph.rewriting.basic"
_DB: Final = "pytensor.graph.rewriting.db"
_ASSUMPTIONS: Final = "pytensor.assumptions.core"
_MATH: Final = "pytensor.tensor.rewriting.math"
_DESTROY_HANDLER: Final = "pytensor.graph.destroyhandler"

# What each accelerator does anew, or knows the working of.
ACCELERATORS: Final[dict[str, tuple[Fact, ...]]] = {
    "instance_checks": (Does("pytensor.graph.utils:MetaType.__new__", ("47bcdc08",)),),
    "graph_edits": (
        Does(f"{_GRAPH}.execute_callbacks", ("4797b37f",)),
        Does(f"{_GRAPH}.remove_feature", ("ef8f3248",)),
        Does(f"{_GRAPH}.import_node", ("ffc4fd98",)),
        Does(f"{_GRAPH}.remove_client", ("2610d604",)),
        Does("pytensor.graph.traversal:toposort", ("ca0e0c6c",)),
    ),
    "validation": (
        Does("pytensor.compile.aliasing:Supervisor.on_validate", ("f4dc218a",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.destroyers", ("d2baa5f2",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.refresh_droot_impact", ("1902546b",)),
        Does(f"{_DESTROY_HANDLER}:_contains_cycle", ("c4303678",)),
    ),
    "cycles": (
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.on_validate", ("233a08e0",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.on_import", ("3217ae01",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.on_prune", ("746031aa",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.on_change_input", ("ca0463b3",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.orderings", ("b3b65336",)),
        Does(f"{_DESTROY_HANDLER}:_contains_cycle", ("c4303678",)),
    ),
    "order": (Does("pytensor.graph.traversal:toposort", ("ca0e0c6c",)),),
    "rewriter_loops": (
        Keeps("pytensor.tensor.elemwise:Elemwise", "scalar_op"),
        Does(f"{_REWRITING}:EquilibriumGraphRewriter.apply", ("437ec73b",)),
        Does(f"{_REWRITING}:WalkingGraphRewriter.apply", ("5a222101",)),
        Does(f"{_REWRITING}:NodeProcessingGraphRewriter.process_node", ("476c508b",)),
        Does(f"{_REWRITING}:FromFunctionNodeRewriter.transform", ("00c21711",)),
        Does(f"{_REWRITING}:SequentialNodeRewriter.transform", ("51631633",)),
        Does(f"{_REWRITING}:OpToRewriterTracker._get_trackers", ("8682a4c5",)),
    ),
    "queries": (
        Has(_OPTDB, "__db__"),
        Does("pytensor.misc.ordered_set:OrderedSet.__iter__", ("3aa74ce6",)),
        Does(f"{_DB}:RewriteDatabase.__query__", ("7397df1b",)),
        Does(f"{_DB}:RewriteDatabase.query", ("54658f21",)),
        Does(f"{_DB}:SequenceDB.query", ("0f11fc5b",)),
        Does(f"{_DB}:EquilibriumDB.query", ("501640a1",)),
        Does(f"{_DB}:LocalGroupDB.query", ("359effd5",)),
        Does(f"{_DB}:TopoDB.query", ("db5db551",)),
        Does(f"{_DB}:ProxyDB.query", ("c8996b24",)),
        Does(f"{_DB}:RewriteDatabaseQuery.__init__", ("e6e5a799",)),
        Does(f"{_REWRITING}:SequentialGraphRewriter.apply", ("b4b3dd0c",)),
        Does(f"{_REWRITING}:EquilibriumGraphRewriter.__init__", ("b4d11e90",)),
        Does(f"{_REWRITING}:WalkingGraphRewriter.__init__", ("81aa40e1",)),
        Does(f"{_REWRITING}:NodeProcessingGraphRewriter.__init__", ("1c417e17",)),
        Does(f"{_REWRITING}:SequentialNodeRewriter.__init__", ("2b1c7de4",)),
        Does(f"{_REWRITING}:OpToRewriterTracker.__init__", ("9984ac89",)),
        Does(f"{_REWRITING}:OpToRewriterTracker.add_tracker", ("031dbd8d",)),
        Does(f"{_REWRITING}:OpToRewriterTracker._get_trackers", ("8682a4c5",)),
        Has("pytensor.scan.rewriting.db", "ScanEquilibriumGraphRewriter"),
    ),
    "base_orders": (
        Does(f"{_REWRITING}:OpToRewriterTracker._get_trackers", ("8682a4c5",)),
        Has(_REWRITING, "_compose_mro"),
    ),
    "assumptions": (
        Does(f"{_ASSUMPTIONS}:AssumptionFeature._compute", ("bf32e01d",)),
        Does(f"{_ASSUMPTIONS}:AssumptionFeature.get", ("5565a909",)),
        Does(f"{_ASSUMPTIONS}:AssumptionKey.__hash__", ("bc034842",)),
        Does(f"{_ASSUMPTIONS}:infer_assumption_for_node", ("55b25c91",)),
        Does(f"{_ASSUMPTIONS}:infer_assumption_from_client", ("a7b6d824",)),
        Does("pytensor.graph.traversal:walk_toposort", ("0cdf2a24",)),
        Does("pytensor.graph.traversal:walk", ("edaa7c25",)),
    ),
    "blank_assumptions": (
        Does(f"{_ASSUMPTIONS}:AssumptionFeature.check", ("d92abe09",)),
        Does(f"{_ASSUMPTIONS}:AssumptionFeature.get", ("5565a909",)),
        Does(f"{_ASSUMPTIONS}:AssumptionFeature._compute", ("bf32e01d",)),
        Does(f"{_ASSUMPTIONS}:AssumptionFeature.on_change_input", ("2d67a749",)),
        Does(f"{_ASSUMPTIONS}:AssumptionFeature._drop_unknown_downstream", ("ab24f413",)),
        Does(f"{_ASSUMPTIONS}:infer_assumption_for_node", ("55b25c91",)),
        Does(f"{_ASSUMPTIONS}:infer_assumption_from_client", ("a7b6d824",)),
        Does(f"{_ASSUMPTIONS}:true_if", ("3b822d79",)),
        Does("pytensor.graph.traversal:walk_toposort", ("0cdf2a24",)),
        Does("pytensor.graph.traversal:walk", ("edaa7c25",)),
        *(
            Does(f"pytensor.assumptions.{place}", (known,))
            for place, known in (
                ("diagonal:_elemwise", "22f4b85d"),
                ("diagonal:_dimshuffle", "5339e1d6"),
                ("positive_definite:_is_psd_full_shape", "c00278d9"),
                ("positive_definite:_elemwise", "7c07ebb8"),
                ("positive_definite:_dimshuffle", "25beeb46"),
                ("symmetric:_preserves_symmetry_under_broadcast", "b9fac467"),
                ("symmetric:_elemwise", "56f57342"),
                ("symmetric:_dimshuffle", "25beeb46"),
                ("triangular:_elemwise_lower", "7bb37a8a"),
                ("triangular:_elemwise_upper", "a01c3bc8"),
                ("triangular:_lower_dimshuffle", "4bf3c120"),
                ("triangular:_upper_dimshuffle", "6848d4a4"),
                ("tridiagonal:_elemwise", "2877429a"),
                ("tridiagonal:_dimshuffle", "d4f1388b"),
                ("elemwise:elemwise_preserves_zero_pattern", "6d91a661"),
                ("dimshuffle:dimshuffle_propagates_matrix_property", "7b4deaa0"),
                ("dimshuffle:left_expand_dims_propagates_matrix_property", "1e018ebd"),
                ("subtensor:subtensor_propagates_matrix_property", "066589e1"),
                ("subtensor:incsubtensor_propagates_matrix_property", "0fb9b505"),
                ("diagonal:_inc_subtensor", "096a0ab4"),
                ("shape:reshape_propagates_matrix_property", "43a82d86"),
                ("blockwise:_blockwise_delegate", "c850484c"),
                ("orthogonal:_dimshuffle", "25beeb46"),
                ("permutation:_dimshuffle", "25beeb46"),
                ("selection:_subtensor", "e3a3fa0b"),
                ("permutation:_permutation_from_constant", "a657fba8"),
                ("selection:_selection_from_constant", "d363a681"),
                ("diagonal:_diagonal_from_constant", "9703c951"),
                ("tridiagonal:_tridiagonal_from_constant", "ee628877"),
            )
        ),
    ),
    "no_gemm": (
        Does("pytensor.tensor.rewriting.blas:GemmOptimizer.apply", ("5e83538a",)),
        Does("pytensor.tensor.rewriting.blas:_beta_L_plus_alpha_M", ("27901651",)),
        Does("pytensor.tensor.rewriting.blas:_gemm_from_node2", ("09c03642",)),
        Does("pytensor.tensor.rewriting.blas:_gemm_canonicalize", ("1473ced4",)),
        Does("pytensor.tensor.rewriting.blas:_gemm_from_factored_list", ("04da5313",)),
    ),
    "tags": (Does("pytensor.graph.utils:Scratchpad.__getattribute__", ("a051d42f",)),),
    "rewriter_names": (
        Does(f"{_REWRITING}:FromFunctionNodeRewriter.__str__", ("1b2e2931",)),
        Does(f"{_REWRITING}:FromFunctionGraphRewriter.__str__", ("ebb2bc61",)),
    ),
    "elemwise_nodes": (
        Does("pytensor.tensor.elemwise:Elemwise.make_node", ("5f1a0bad",)),
        Does("pytensor.tensor.elemwise:Elemwise.get_output_info", ("6ed1afd2",)),
        Does("pytensor.tensor.elemwise:Elemwise.make_scalar_node", ("32a6b1cd",)),
        Does("pytensor.scalar.basic:ScalarOp.make_node", ("c8487091",)),
        Does(
            "pytensor.scalar.basic:Composite.make_node",
            (
                "d5788a53",
                "e963b760",
            ),
        ),
        Does("pytensor.scalar.basic:Composite.output_types", ("f7ecd909",)),
        Does("pytensor.tensor.variable:_tensor_py_operators.dimshuffle", ("32eb5fc6",)),
        Keeps("pytensor.tensor.elemwise:DimShuffle", "input_ndim"),
        Keeps("pytensor.tensor.elemwise:DimShuffle", "new_order"),
        Does("pytensor.scalar.basic:upcast", ("6d6bc38c",)),
    ),
    "clones": (
        Does("pytensor.graph.basic:Apply.clone_with_new_inputs", ("03d06bc3", "ce3e0742")),
        Does("pytensor.graph.basic:Apply.clone", ("078b87de", "cd8a95b0")),
        Does("pytensor.graph.basic:Apply.__init__", ("4d1161d9",)),
        Does("pytensor.graph.basic:Variable.clone", ("5c1a1dc8",)),
        Does("pytensor.graph.basic:Variable.__init__", ("65661b64", "2abebc1f")),
        Does("pytensor.tensor.variable:TensorVariable.__init__", ("baebd2d9",)),
        Does("pytensor.graph.utils:Scratchpad.__setattr__", ("87626ab2",)),
        Has(_CONFIG, "_config_var_dict"),
    ),
    "tensor_types": (Does("pytensor.tensor.type:TensorType.__init__", ("623f86ee",)),),
    "sum_factors": (
        Does(f"{_MATH}:AlgebraicCanonizer.get_num_denum", ("fc675f75",)),
        Does(f"{_MATH}:AlgebraicCanonizer.simplify", ("220195d6",)),
        Does(f"{_MATH}:AlgebraicCanonizer.simplify_constants", ("ed573bb3",)),
        Does(f"{_MATH}:AlgebraicCanonizer.simplify_factors", ("56f15209",)),
        Does(f"{_MATH}:distribute_greedy", ("edb9e902",)),
        Does(f"{_MATH}:attempt_distribution", ("b98c2c2b",)),
        Does(f"{_MATH}:check_for_x_over_absX", ("096822ca",)),
    ),
    "canonizers": (
        Does(f"{_MATH}:AlgebraicCanonizer.transform", ("f849bdc2",)),
        Does(f"{_MATH}:AlgebraicCanonizer.get_num_denum", ("fc675f75",)),
        Does(f"{_MATH}:AlgebraicCanonizer.simplify", ("220195d6",)),
        Does(f"{_MATH}:AlgebraicCanonizer.simplify_constants", ("ed573bb3",)),
        Does(f"{_MATH}:AlgebraicCanonizer.simplify_factors", ("56f15209",)),
        Does(f"{_MATH}:mul_calculate", ("2bf76a7a",)),
        Does(f"{_MATH}:add_calculate", ("9189a434",)),
        Does(f"{_MATH}:check_for_x_over_absX", ("096822ca",)),
        Does(f"{_MATH}:attempt_distribution", ("b98c2c2b",)),
        Does(f"{_MATH}:local_greedy_distributor.fn", ("18c39bf3",)),
        Does(
            "pytensor.tensor.basic:_get_underlying_scalar_constant_value",
            (
                "e5657590",
                "a69da283",
            ),
        ),
        Has("pytensor.tensor.basic", "_scalar_constant_value_elemwise_ops"),
    ),
    # Of the rewriters that it is about, each is asked by itself (`_pytensor.declines`).
    "declines": (
        Keeps("pytensor.tensor.elemwise:Elemwise", "scalar_op"),
        Does(f"{_REWRITING}:EquilibriumGraphRewriter.apply", ("437ec73b",)),
        Does(f"{_REWRITING}:WalkingGraphRewriter.apply", ("5a222101",)),
        Does(f"{_REWRITING}:FromFunctionNodeRewriter.transform", ("00c21711",)),
        Does(f"{_REWRITING}:SequentialNodeRewriter.transform", ("51631633",)),
    ),
    "underlying_constants": (
        Does(
            "pytensor.tensor.basic:_get_underlying_scalar_constant_value",
            (
                "e5657590",
                "a69da283",
            ),
        ),
        Has("pytensor.tensor.basic", "_scalar_constant_value_elemwise_ops"),
        Does("pytensor.tensor.variable:TensorConstant.unique_value.fget", ("80e7a634",)),
    ),
    "increments": (
        Does("pytensor.tensor.rewriting.subtensor:local_IncSubtensor_serialize.fn", ("1b06455b",)),
        Does("pytensor.tensor.math:variadic_add", ("67379508",)),
        Does(f"{_REWRITING}:copy_stack_trace", ("d4c771da",)),
        Does(f"{_REWRITING}:WalkingGraphRewriter.apply", ("5a222101",)),
        Does(f"{_REWRITING}:NodeProcessingGraphRewriter.process_node", ("476c508b",)),
        Does(f"{_GRAPH}.replace", ("d9821cf9",)),
        Does(f"{_GRAPH}.change_node_input", ("01820cb0",)),
        Does(f"{_GRAPH}.import_node", ("ffc4fd98",)),
        Does(f"{_GRAPH}.remove_client", ("2610d604",)),
        Does("pytensor.graph.features:ReplaceValidate.replace_all_validate", ("022ef7f4",)),
        Does("pytensor.graph.features:ReplaceValidate.on_import", ("21dcf040",)),
        Does("pytensor.graph.features:History.on_change_input", ("37bf3cb5",)),
        Does("pytensor.graph.features:PreserveVariableAttributes.on_change_input", ("7f2cc7e0",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.on_import", ("3217ae01",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.on_change_input", ("ca0463b3",)),
        Does(f"{_DESTROY_HANDLER}:DestroyHandler.on_prune", ("746031aa",)),
        Does("pytensor.tensor.rewriting.shape:ShapeFeature.on_change_input", ("510408ac",)),
        Does("pytensor.tensor.rewriting.shape:ShapeFeature.on_prune", ("1401bc1e",)),
    ),
    "whole_kernels": (
        Does(
            "pytensor.tensor.rewriting.elemwise:local_useless_composite_outputs.fn", ("350c6894",)
        ),
    ),
    "shape_changes": (
        Does("pytensor.tensor.rewriting.shape:ShapeFeature.on_change_input", ("510408ac",)),
    ),
    "compiler_errors": (Says("pytensor.link.c.exceptions", ("a8fe0646",)),),
    "virtual_machines": (
        Does("pytensor.link.vm:VMLinker.make_vm", ("7702ce87",)),
        Takes(
            "pytensor.link.vm:VMLinker.make_vm",
            (
                "self, nodes, thunks, input_storage, output_storage, storage_map, "
                "post_thunk_clear, computed, compute_map, updated_vars",
            ),
        ),
    ),
    "inner_functions": (
        Does(f"{_INNER}:HasInnerFunction.link_mode", ("2e318213",)),
        Does(f"{_INNER}:link_only_mode", ("6ebe30ad",)),
        Takes(f"{_INNER}:HasInnerFunction.link_mode", ("self, impl",)),
    ),
    "special_functions": (
        Does("pytensor.tensor.utils:import_func_from_string", ("c8aaf27e",)),
        Has("pytensor.tensor.elemwise", "import_func_from_string"),
    ),
    "sparse_checks": (DoesIfThere("pytensor.utils:_LazyScipyModule.__getattr__", ("f1cc51dd",)),),
    "garbage": (
        Does(f"{_REWRITING}:GraphRewriter.rewrite", ("06d89793",)),
        Does("pytensor.compile.maker:function", ("841dbbf8",)),
    ),
}

# Those of which older releases have other functions, or none.
ACCELERATED_SINCE: Final[dict[str, tuple[int, int]]] = {
    "assumptions": (3, 3),
    "blank_assumptions": (3, 3),
    "sum_factors": (3, 3),
    "canonizers": (3, 3),
    "increments": (3, 3),
    "shape_changes": (3, 3),
    "inner_functions": (3, 3),
}
