"""The facts that features require: private parts of PyTensor, and functions that are replaced.

Signatures and functions were reviewed in every release from 3.0.0 to 3.3.8 (`known_sources` has the
digests of the functions). If one of them differs in a release, the features that require it stay
off.
"""

from __future__ import annotations

from typing import Final

from pytensor_fuse._pytensor.compat.checks import (
    Does,
    Fact,
    Has,
    Keeps,
    Takes,
    TakesIfThere,
    does,
    keeps,
)

_INNER: Final = "pytensor.compile.inner_function"
_OPTDB: Final = "pytensor.compile.mode:optdb"
_GRAPH: Final = "pytensor.graph.fg:FunctionGraph"
_FEATURE: Final = "pytensor.graph.features:Feature"
_MERGE_FEATURE: Final = "pytensor.graph.rewriting.basic:MergeFeature"

# The contents of databases.
DATABASES: Final[tuple[Fact, ...]] = (Has(_OPTDB, "__db__"), Has(_OPTDB, "__position__"))

# The contents of a tag.
TAGGED: Final[tuple[Fact, ...]] = (Does("pytensor.misc.ordered_set:OrderedSet.__iter__"),)

# Additions to databases.
ENTRIES: Final[tuple[Fact, ...]] = (
    Has(_OPTDB, "_names"),
    Does("pytensor.graph.rewriting.db:RewriteDatabase.register"),
)

# `_pytensor.graphs.edits` makes the same edits in one step.
EDITS: Final[tuple[Fact, ...]] = (
    *keeps(_GRAPH, "_features execute_callbacks_time execute_callbacks_times"),
    Has(_FEATURE, "_feature_callbacks"),
    *does(
        _GRAPH, "execute_callbacks import_node add_client remove_client change_node_input replace"
    ),
    Takes(f"{_FEATURE}.on_import", ("self, fgraph, node, reason",)),
    Takes(f"{_FEATURE}.on_change_input", ("self, fgraph, node, i, var, new_var, reason",)),
    Takes(f"{_FEATURE}.on_prune", ("self, fgraph, node, reason",)),
)

# `_pytensor.graphs.composites` makes Composites from their parts.
KERNELS: Final[tuple[Fact, ...]] = (
    Takes(
        "pytensor.graph.basic:FrozenApply.__new__",
        ("cls, op, inputs, output_types", "cls, op, inputs, output_types, topo_idx"),
    ),
    Takes(
        "pytensor.graph.fg:FrozenFunctionGraph.__init__",
        ("self, inputs, outputs", "self, inputs, toposort, output_nodes"),
    ),
    Does("pytensor.scalar.basic:Composite.__init__"),
    *does("pytensor.scalar.basic:ScalarInnerGraphOp", "__init__ __getstate__ __setstate__"),
)

# `_pytensor.graphs.comparison` lists the attributes by which ops and types are compared.
COMPARISON: Final[tuple[Fact, ...]] = (
    Does("pytensor.graph.utils:MetaType.__new__"),
    Keeps("pytensor.compile.ops:FromFunctionOp", "_FromFunctionOp__fn"),
)

FUSION: Final[tuple[Fact, ...]] = (
    Takes("pytensor.tensor.rewriting.elemwise:FusionOptimizer.apply", ("self, fgraph",)),
    # A plan fuses the nodes that this pass would fuse.
    Does("pytensor.tensor.rewriting.elemwise:FusionOptimizer.apply"),
    Takes("pytensor.tensor.rewriting.elemwise:elemwise_max_operands_fct", ("node",)),
    Does(f"{_GRAPH}.orderings"),
)

MERGING: Final[tuple[Fact, ...]] = (
    Takes("pytensor.graph.rewriting.basic:MergeOptimizer.apply", ("self, fgraph",)),
    # Merging follows its choice of nodes.
    *does("pytensor.graph.rewriting.basic:MergeOptimizer", "apply add_requirements"),
    *does(_MERGE_FEATURE, "on_attach on_import on_change_input process_node"),
    Keeps("pytensor.graph.destroyhandler:DestroyHandler", "_destroying_apps"),
    *keeps(_MERGE_FEATURE, "scheduled blacklist atomic_sig_inv"),
)

SIGNATURES: Final[tuple[Fact, ...]] = (
    Does("pytensor.scalar.basic:ScalarConstantSignature.__eq__"),
    Does("pytensor.tensor.variable:TensorConstantSignature.__eq__"),
    Does("pytensor.scalar.basic:ScalarConstantSignature.__hash__"),
    Does("pytensor.tensor.variable:TensorConstantSignature.__hash__"),
)

JOINS: Final[tuple[Fact, ...]] = (
    Keeps("pytensor.tensor.rewriting.elemwise:InplaceElemwiseOptimizer", "_get_protected_inputs"),
    Takes(
        "pytensor.tensor.rewriting.elemwise:InplaceElemwiseOptimizer.filter_candidate_pairs",
        ("self, fgraph, node, protected_inputs",),
    ),
    Keeps("pytensor.compile.aliasing:Supervisor", "protected"),
    Keeps(_GRAPH, "_features"),
    # The C code of a kernel's scalar op is generated for it.
    Keeps("pytensor.tensor.elemwise:Elemwise", "fake_node"),
    Takes(
        "pytensor.tensor.elemwise:Elemwise._c_all", ("self, node, nodename, inames, onames, sub",)
    ),
    Does("pytensor.tensor.elemwise:Elemwise._c_all"),
)

_SOLVERS: Final = "pytensor.tensor.linalg.solvers"
_DECOMPOSITIONS: Final = "pytensor.tensor.linalg.decomposition"

LINALG: Final[tuple[Fact, ...]] = (
    # The rules recognize an op by it.
    Keeps("pytensor.tensor.blockwise:Blockwise", "core_op"),
    *keeps(f"{_SOLVERS}.core:SolveBase", "b_ndim lower"),
    Keeps(f"{_SOLVERS}.general:Solve", "assume_a"),
    Keeps(f"{_SOLVERS}.triangular:SolveTriangular", "unit_diagonal"),
    Keeps(f"{_DECOMPOSITIONS}.cholesky:Cholesky", "lower"),
    *keeps("pytensor.tensor.basic:ExtractDiag", "offset axis1 axis2"),
    Keeps("pytensor.tensor.basic:AllocDiag", "offset"),
    *keeps("pytensor.tensor.subtensor:IncSubtensor", "idx_list set_instead_of_inc"),
    *keeps("pytensor.tensor.subtensor:AdvancedIncSubtensor", "idx_list set_instead_of_inc"),
    Keeps("pytensor.tensor.subtensor:AdvancedSubtensor", "idx_list"),
    *keeps("pytensor.tensor.elemwise:DimShuffle", "new_order input_ndim"),
    Keeps("pytensor.tensor.elemwise:Elemwise", "scalar_op"),
    # The gradient of an op that contains a graph is a graph in a node.
    Keeps("pytensor.compile.builders:OpFromGraph", "fgraph"),
    # The order of their inputs.
    Takes("pytensor.tensor.basic:Eye.make_node", ("self, n, m, k",)),
    Takes("pytensor.tensor.basic:ARange.make_node", ("self, start, stop, step",)),
    # PyTensor 3.0.0 has no assumptions.
    TakesIfThere("pytensor.assumptions.core:check_assumption", ("fgraph, var, key",)),
    # The rules call these.
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
        f"{_SOLVERS}.tridiagonal:tridiagonal_lu_solve", ("a_diagonals, b, *, b_ndim, transposed",)
    ),
    Takes(f"{_SOLVERS}.tridiagonal:LUFactorTridiagonal.make_node", ("self, dl, d, du",)),
    # They identify the gradient of a block-diagonal matrix.
    *keeps("pytensor.tensor.extra_ops:CumOp", "axis mode"),
    # The pivots count from 0, and all factors are NaN if the factorization failed.
    Does(f"{_DECOMPOSITIONS}.lu:LUFactor.perform"),
    # These pivots count from 1.
    Does(f"{_SOLVERS}.tridiagonal:LUFactorTridiagonal.perform"),
)

_LAPACK: Final = "pytensor.link.numba.dispatch.linalg._LAPACK"

# `_pytensor.linking.numba_lapack` calls these. Checking them loads Numba.
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
    Does("pytensor.tensor.rewriting.elemwise:local_useless_composite_outputs.fn"),
    Takes(
        "pytensor.graph.rewriting.basic:FromFunctionNodeRewriter.transform",
        ("self, fgraph, node, enforce_tracks",),
    ),
)

_MAKER: Final = "pytensor.compile.maker:FunctionMaker"
_CONFIG: Final = "pytensor.configdefaults:config"

# `_cache.lookup` replaces the rewriting here, and relies on what precedes and follows it. Graphs in
# memory are not copied where these functions would copy them, or look at the copy.
MAKING: Final[tuple[Fact, ...]] = (
    Has("pytensor.compile.maker", "construct_function_ins_and_outs"),
    Does("pytensor.compile.maker:function"),
    Does(f"{_MAKER}.__init__"),
    Takes(
        "pytensor.compile.rebuild:construct_function_ins_and_outs",
        (
            "params, outputs, updates, givens, no_default_updates, rebuild_strict, "
            "allow_input_downcast, fgraph",
        ),
    ),
    *does("pytensor.compile.rebuild", "construct_function_ins_and_outs rebuild_collect_shared"),
    Does("pytensor.compile.aliasing:add_supervisor_to_fgraph"),
    Takes(
        f"{_MAKER}.create_fgraph",
        ("input_specs, output_specs, accept_inplace, fgraph, features, force_clone",),
    ),
)

REWRITING: Final[tuple[Fact, ...]] = (
    Takes(
        f"{_MAKER}.prepare_fgraph", ("inputs, outputs, additional_outputs, fgraph, mode, profile",)
    ),
    *does(_MAKER, "prepare_fgraph create_fgraph"),
    Does("pytensor.compile.aliasing:insert_deepcopy"),
    Does("pytensor.compile.mode:Mode.__setstate__"),
    Takes(
        "pytensor.graph.rewriting.db:RewriteDatabaseQuery.__init__",
        ("self, include, require, exclude, subquery, position_cutoff, extra_rewrites",),
    ),
    Has(_CONFIG, "_config_var_dict"),
    Has("pytensor.graph.rewriting.basic", "_logger"),
    Does("pytensor.configparser:ConfigParam.__get__"),
)

# `_pytensor.graphs.contents` fills graphs in the same way.
GRAPHS: Final[tuple[Fact, ...]] = (
    Keeps(_GRAPH, "_features"),
    *does(_GRAPH, "__init__ add_output import_var import_node attach_feature"),
    Does("pytensor.compile.aliasing:Supervisor.on_attach"),
    Does("pytensor.graph.features:ReplaceValidate.on_attach"),
    Does("pytensor.graph.destroyhandler:DestroyHandler.on_attach"),
)

# `_cache.link.linked` shares their results.
LINKING: Final[tuple[Fact, ...]] = (
    Takes("pytensor.link.numba.linker:NumbaLinker.fgraph_convert", ("self, fgraph, **kwargs",)),
    Does("pytensor.link.numba.linker:NumbaLinker.fgraph_convert"),
    Takes("pytensor.link.numba.linker:NumbaLinker.jit_compile", ("self, fn_and_cache",)),
    Does("pytensor.link.numba.linker:NumbaLinker.jit_compile"),
    Does("pytensor.link.basic:JITLinker.create_jitable_thunk"),
)

# `_native.linking` creates thunks as the linker does, and calls them as functions do.
NATIVE: Final[tuple[Fact, ...]] = (
    Does("pytensor.link.basic:JITLinker.create_jitable_thunk"),
    Takes(
        "pytensor.link.basic:JITLinker.create_jitable_thunk",
        ("self, compute_map, order, input_storage, output_storage, storage_map",),
    ),
    Does("pytensor.link.basic:JITLinker.make_all"),
    Has("pytensor.link.numba.linker", "NumbaLinker"),
    *does("pytensor.compile.executor:Function", "__call__ _validate_inputs __init__"),
    Has("pytensor.compile.mode", "predefined_linkers"),
    Has("pytensor.compile.mode", "predefined_modes"),
    Has("pytensor.tensor.basic:Alloc", "_runtime_broadcast_error_msg"),
)

# `_pytensor.linking.optimizers` sets the attributes that these use.
OPTIMIZERS: Final[tuple[Fact, ...]] = (
    *keeps("pytensor.tensor.optimize:ScipyWrapperOp", "_fn _fn_wrapped"),
    TakesIfThere(f"{_INNER}:HasInnerFunction.compile_fn", ("self, mode",)),
)

# `linking.known_runs` replaces the `function` that `eval` imports to compile.
SINGLE_RUNS: Final[tuple[Fact, ...]] = (
    Does("pytensor.graph.basic:Variable.eval"),
    # How a function uses the thunks of its nodes; `linking.python_nodes` uses them in the same way.
    *does("pytensor.graph.op:Op", "make_thunk make_py_thunk"),
)

# `linking.nutpie_models` expects the shared variables after the first input of the graph.
NUTPIE: Final[tuple[Fact, ...]] = (Does("pytensor.compile.executor:Function.get_shared"),)

# `_pytensor.rewriting.constant_reads` relies on how these use the data of constants.
DATA: Final[tuple[Fact, ...]] = (
    Does("pytensor.tensor.rewriting.basic:unconditional_constant_folding.fn"),
    Does("pytensor.tensor.rewriting.elemwise:local_upcast_elemwise_constant_inputs.fn"),
    Does("pytensor.tensor.rewriting.elemwise:constant_fold_branches_of_add_mul.fn"),
    Does("pytensor.tensor.variable:TensorConstant.unique_value.fget"),
    Does("pytensor.tensor.variable:TensorConstant.__copy__"),
    *does("pytensor.graph.basic:Constant", "__init__ __repr__ __str__"),
    Does("pytensor.tensor.subtensor:_is_provably_positive"),
    Has("pytensor.assumptions.core", "CONSTANT_INFER_REGISTRY"),
)

_C: Final = "pytensor.link.c.basic"

# `_pytensor.linking.c_thunks` creates thunks in the same way.
C_THUNKS: Final[tuple[Fact, ...]] = (
    Takes(
        "pytensor.link.c.op:COp.make_c_thunk",
        ("self, node, storage_map, compute_map, no_recycling",),
    ),
    Does("pytensor.link.c.op:COp.make_c_thunk"),
    *does(f"{_C}:CLinker", "make_thunk __compile__ cthunk_factory"),
    Has(f"{_C}:CLinker", "code_gen"),
    *does(f"{_C}:CLinker", "cmodule_key_ get_init_tasks fetch_variables"),
    Does(f"{_C}:_CThunk.__init__"),
)
