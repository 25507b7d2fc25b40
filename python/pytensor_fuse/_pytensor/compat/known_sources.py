"""The functions of PyTensor that the package relies on, as they were when they were reviewed.

Digests of their normal forms (`_pytensor.compat.normal_form`), oldest first, by module and
qualified name (no name for the module itself). `facts` lists which code relies on which function.
The digest of a function that a release has changed is added after somebody has read the change and
found that the code that relies on it still works; `scripts/known-sources` shows the changes of a
release.
"""

from __future__ import annotations

from typing import Final

SOURCES: Final[dict[str, dict[str, str]]] = {
    "nutpie.compile_pymc": {
        "CompiledPyMCModel._make_model": "475790f2e220",
        "CompiledPyMCModel.with_data": "8f7a0693ba1f",
        "_compile_pymc_model_numba": "c339533dc7f2",
        "_make_c_expand_func": "fcd89a2037b8",
        "_make_c_logp_func": "70b87781bf9b",
        "_make_functions": "4d10c34d5f82",
        "make_extraction_fn": "8b15c5202c60",
        "make_user_data": "a7cc02786732",
        "update_user_data": "7ae4bb54c518",
    },
    "pymc.distributions.continuous": {
        "WaldRV.rng_fn": "69ee6b07847f",
    },
    "pymc.distributions.dist_math": {
        "SplineWrapper.perform": "804e7678864d",
    },
    "pymc.distributions.discrete": {
        "DiscreteUniformRV.rng_fn_scipy": "fb31d81ede24",
    },
    "pytensor.assumptions.blockwise": {
        "_blockwise_delegate": "cbcaa430042a",
    },
    "pytensor.assumptions.core": {
        "AssumptionFeature._compute": "f3d239e5de08",
        "AssumptionFeature._drop_unknown_downstream": "9b427dba24f7",
        "AssumptionFeature.check": "1d0248e5bd5d",
        "AssumptionFeature.get": "cb10b51863c5",
        "AssumptionFeature.on_change_input": "cca6b8f4a2e3",
        "AssumptionKey": "1a725650f8f2",
        "infer_assumption_for_node": "3de755923e72",
        "infer_assumption_from_client": "0bdc99ed83a8",
        "true_if": "07352cf49e41",
    },
    "pytensor.assumptions.diagonal": {
        "_diagonal_from_constant": "979eb6c72fdd",
        "_dimshuffle": "09355356a64a",
        "_elemwise": "32d3ea3f8f49",
        "_inc_subtensor": "926130608d2c",
    },
    "pytensor.assumptions.dimshuffle": {
        "dimshuffle_propagates_matrix_property": "88c3d7fa25c4",
        "left_expand_dims_propagates_matrix_property": "268bf88a8c39",
    },
    "pytensor.assumptions.elemwise": {
        "elemwise_preserves_zero_pattern": "890bb937a34d",
    },
    "pytensor.assumptions.orthogonal": {
        "_dimshuffle": "a16d8359f7ff",
    },
    "pytensor.assumptions.permutation": {
        "_dimshuffle": "7b0166704dd3",
        "_permutation_from_constant": "d6495211f13c",
    },
    "pytensor.assumptions.positive_definite": {
        "_dimshuffle": "5467d8389229",
        "_elemwise": "9cef03f76ab4",
        "_is_psd_full_shape": "a270909b239c",
    },
    "pytensor.assumptions.selection": {
        "_selection_from_constant": "ba4caf4dd3f5",
        "_subtensor": "3a6fd91ed2ff",
    },
    "pytensor.assumptions.shape": {
        "reshape_propagates_matrix_property": "ff21582d49e5",
    },
    "pytensor.assumptions.subtensor": {
        "incsubtensor_propagates_matrix_property": "5900c11736e0",
        "subtensor_propagates_matrix_property": "b187863ba98b",
    },
    "pytensor.assumptions.symmetric": {
        "_dimshuffle": "8687b3c448bc",
        "_elemwise": "23af54fde19f",
        "_preserves_symmetry_under_broadcast": "d4e580315bdc",
    },
    "pytensor.assumptions.triangular": {
        "_elemwise_lower": "0ee5d942f548",
        "_elemwise_upper": "0e0700a00eb3",
        "_lower_dimshuffle": "a1b17782c651",
        "_upper_dimshuffle": "08f01522f360",
    },
    "pytensor.assumptions.tridiagonal": {
        "_dimshuffle": "29868111c6e4",
        "_elemwise": "b7f74a7f4776",
        "_tridiagonal_from_constant": "39951ab5f924",
    },
    "pytensor.compile.aliasing": {
        "Supervisor.on_attach": "a1cb9649cc2e",
        "Supervisor.on_validate": "f6c0d5f9eef1",
        "add_supervisor_to_fgraph": "8ef9361fe7a3",
        "insert_deepcopy": "42f92c20afa1",
    },
    "pytensor.compile.builders": {
        # 3.0 compares shared inputs as well: `comparison.also_compared`.
        "OpFromGraph.__eq__": "4f5e9c04a481 5183da6811be",
    },
    "pytensor.compile.executor": {
        "Function.__call__": "5b76aca583cc",
        # 3.3.5 lists inner functions by another class, which this package does not use.
        "Function.__init__": "c37947576533 8b3b9e89fb74",
        "Function._validate_inputs": "07ca4ae28157",
        "Function.get_shared": "e6e7b6edb67e",
    },
    "pytensor.compile.inner_function": {
        "HasInnerFunction.link_mode": "f2f1bcdf4ddf",
        "link_only_mode": "7ce28f807613",
    },
    "pytensor.compile.maker": {
        "FunctionMaker.__init__": "7fa2dccfe932",
        "FunctionMaker.create_fgraph": "d9a80ee318da",
        "FunctionMaker.prepare_fgraph": "7a1979d9b203",
        "function": "e7223d812638",
    },
    "pytensor.compile.mode": {
        "Mode.__setstate__": "199cb77e2970",
    },
    "pytensor.compile.ops": {
        "FromFunctionOp.__eq__": "ddc4d15af0c8",
    },
    "pytensor.compile.rebuild": {
        # 3.1 does not request copies of inner graphs.
        "construct_function_ins_and_outs": "cee6e9ce602b 27de8fbad78b",
        # 3.1 copies no inner graphs and is not recursive any more; the order of variables is the
        # same.
        "rebuild_collect_shared": "f908ebade892 901a69684314",
    },
    "pytensor.conditional.op": {
        "IfElse.__eq__": "9a16c5b8f2b5",
    },
    "pytensor.configparser": {
        "ConfigParam.__get__": "c4fd5cb73ac5",
    },
    "pytensor.graph.basic": {
        "Apply.__init__": "0a298cc5dae5",
        # 3.1 copies no inner graphs, and warns if it is asked to.
        "Apply.clone": "2e0ccac691d5 966f3411dae5",
        "Apply.clone_with_new_inputs": "c9187f5b0e67 35dd7b90b08f",
        "Constant.__init__": "924836f87c11",
        "Constant.__repr__": "81e64cfa453f",
        "Constant.__str__": "290f8e84eaab",
        # 3.1 accepts owners of one more class.
        "Variable.__init__": "77bae390fd50 1f4be3a2372b",
        "Variable.clone": "e0335269e982",
        "Variable.eval": "8eeb9ed65ef7",
    },
    "pytensor.graph.destroyhandler": {
        "DestroyHandler.destroyers": "9900d5f3562d",
        "DestroyHandler.on_attach": "b013b9658e13",
        "DestroyHandler.on_change_input": "bc7923949889",
        "DestroyHandler.on_import": "f57cc6b83b59",
        "DestroyHandler.on_prune": "4bff13377b4c",
        "DestroyHandler.on_validate": "34ca560a13c8",
        "DestroyHandler.orderings": "263de93ef596",
        "DestroyHandler.refresh_droot_impact": "bd66a4c03d20",
        "_contains_cycle": "ea74c32c1a32",
    },
    "pytensor.graph.features": {
        "History.on_change_input": "a1b3464f06bb",
        "PreserveVariableAttributes.on_change_input": "fc920c098930",
        "ReplaceValidate.on_attach": "1d77f4b07dee",
        "ReplaceValidate.on_import": "344a21aa9c32",
        "ReplaceValidate.replace_all_validate": "cfdb14e60ab0",
    },
    "pytensor.graph.fg": {
        "FunctionGraph.__init__": "7ebed1393585",
        "FunctionGraph.add_client": "394b5d535fdb",
        "FunctionGraph.add_output": "5a1d025ddbf3",
        "FunctionGraph.attach_feature": "718bb7fc2765",
        "FunctionGraph.change_node_input": "544d9732b352",
        "FunctionGraph.execute_callbacks": "bf2389473c54",
        "FunctionGraph.import_node": "2b2c497261f8",
        "FunctionGraph.import_var": "a481f4c98b07",
        "FunctionGraph.orderings": "78ec46c5be12",
        "FunctionGraph.remove_client": "5f73df021105",
        "FunctionGraph.remove_feature": "638607f18780",
        "FunctionGraph.replace": "8e2a3c4139db",
    },
    "pytensor.graph.null_type": {
        "NullType.__eq__": "e48b4b2e0ffa",
    },
    "pytensor.graph.op": {
        "Op.make_py_thunk": "80631b881f7f",
        "Op.make_thunk": "6fd2d1a0c194",
    },
    "pytensor.graph.rewriting.basic": {
        "EquilibriumGraphRewriter.__init__": "9cf593a9ab87",
        "EquilibriumGraphRewriter.apply": "4120d4426e8b",
        "FromFunctionNodeRewriter.transform": "77e8a0e1974b",
        "MergeFeature.on_attach": "d2b78fbf3a5a",
        "MergeFeature.on_change_input": "cca046e434f2",
        "MergeFeature.on_import": "85490ebf3626",
        "MergeFeature.process_node": "f561ddedbcec",
        "MergeOptimizer.add_requirements": "7a18bbfd9222",
        # 3.3.1 refuses a merge only if both variables are overwritten.
        "MergeOptimizer.apply": "4d968f86d998 34fd8bd9da0e",
        "NodeProcessingGraphRewriter.__init__": "61e13368fff1",
        "NodeProcessingGraphRewriter.process_node": "7f2cbc1fd53b",
        "OpToRewriterTracker.__init__": "ab7425c9e785",
        "OpToRewriterTracker._get_trackers": "14b7a9f94dbd",
        # 3.1.3 lists each pattern once; this package calls the function and does not replace it.
        "OpToRewriterTracker.add_tracker": "fa22d8e19ea5 57bad87edf95",
        "SequentialGraphRewriter.apply": "33c494233c67",
        "SequentialNodeRewriter.__init__": "287580d6a85d",
        "SequentialNodeRewriter.transform": "7013aba1f976",
        "WalkingGraphRewriter.__init__": "478d276b8841",
        "WalkingGraphRewriter.apply": "0bf248b42c81",
        "copy_stack_trace": "2b31bac95926",
    },
    "pytensor.graph.rewriting.db": {
        "EquilibriumDB.query": "d48625a9facb",
        "LocalGroupDB.query": "e530bbf862cd",
        "ProxyDB.query": "9ecfb4ce173c",
        "RewriteDatabase.__query__": "8b34e78338c7",
        "RewriteDatabase.query": "3d094a0820ce",
        "RewriteDatabase.register": "e79a5193d33b",
        "RewriteDatabaseQuery.__init__": "8e0057022add",
        "SequenceDB.query": "4aa0283aef48",
        "TopoDB.query": "f7c13c8b0316",
    },
    "pytensor.graph.traversal": {
        "toposort": "7241aedc3b68",
        "walk": "e0221be8e5ab",
        "walk_toposort": "670ae917d2de",
    },
    "pytensor.graph.utils": {
        # 3.2 first tests whether the two objects are identical.
        "MetaType.__new__": "cbd87c85fd74 481f7869aadd",
        "Scratchpad.__setattr__": "470f1fe8621e",
    },
    "pytensor.ifelse": {
        "IfElse.__eq__": "9a16c5b8f2b5",
    },
    "pytensor.link.basic": {
        "JITLinker.create_jitable_thunk": "548e0457fcae",
        "JITLinker.make_all": "f7d6e0a7451e",
    },
    "pytensor.link.c.basic": {
        "CLinker.__compile__": "bdf916d81395",
        "CLinker.cmodule_key_": "7ad42bbff2a8",
        "CLinker.cthunk_factory": "14d3e970dfa8",
        "CLinker.fetch_variables": "8120fe4e6faa",
        "CLinker.get_init_tasks": "8bf18a5c4a46",
        "CLinker.make_thunk": "d42eb58c96e7",
        "_CThunk.__init__": "44ce12b66998",
    },
    "pytensor.link.c.op": {
        "COp.make_c_thunk": "48bf9638afa1",
    },
    "pytensor.link.c.params_type": {
        "ParamsType.__eq__": "c77791313929",
    },
    "pytensor.link.c.type": {
        "EnumType.__eq__": "a7d6ee4cec17",
    },
    "pytensor.link.numba.linker": {
        "NumbaLinker.fgraph_convert": "71dcd6225e02",
        "NumbaLinker.jit_compile": "217e08a12efb",
    },
    "pytensor.link.vm": {
        "VMLinker.make_vm": "dbe13a0ec824",
    },
    "pytensor.misc.ordered_set": {
        "OrderedSet.__iter__": "0eabb7d9c336",
    },
    "pytensor.raise_op": {
        "ExceptionType.__eq__": "e48b4b2e0ffa",
    },
    "pytensor.scalar.basic": {
        # 3.0.3 does not flatten Composites of Composites, and 3.1 merges equal nodes; the nodes of
        # kernels are merged already.
        "Composite.__init__": "6efb849984e2 3556941f446c f5da1efdce96",
        # 3.1.1 and 3.1.2 differ from both.
        "Composite.make_node": "5c86baf7fb04 8d40d1ac98dd",
        "Composite.output_types": "a860ac0f900d",
        "FixedLogicalComparison.__eq__": "8b77da0e32da",
        "LogicalComparison.__eq__": "03e747f653d8",
        "ScalarConstantSignature.__eq__": "c70ec3e1574f",
        "ScalarConstantSignature.__hash__": "0760a479e3fc",
        # 3.1 omits the name, which is computed on demand.
        "ScalarInnerGraphOp.__getstate__": "7fe5699cf39d 61adf6747421",
        "ScalarInnerGraphOp.__init__": "783e4496d140",
        "ScalarInnerGraphOp.__setstate__": "29c1c8bac904",
        "ScalarOp.__eq__": "5eeb28795ee4",
        "ScalarOp.make_node": "4cece507fa16",
        "unary_out_lookup.__eq__": "9ea4e39963a6",
        "upcast": "3b7e4587dca0",
    },
    "pytensor.scalar.math": {
        "GammaInc.__eq__": "e48b4b2e0ffa",
        "GammaIncC.__eq__": "e48b4b2e0ffa",
        "GammaL.__eq__": "e48b4b2e0ffa",
        "GammaU.__eq__": "e48b4b2e0ffa",
    },
    "pytensor.scan.op": {
        # 3.1 has the inner graph in another attribute.
        "Scan.__eq__": "a92b0bc0d86c 0f44ceb8cf88",
    },
    "pytensor.sparse.type": {
        "SparseTensorType.__eq__": "426cb77e58b2",
    },
    "pytensor.tensor.basic": {
        # 3.1 has the axis of a Join in its op, not among its inputs; Joins are left to PyTensor.
        "_get_underlying_scalar_constant_value": "d9582e05010d 40261b0fcb2f",
    },
    "pytensor.tensor.elemwise": {
        "Elemwise.__eq__": "de66694fbe94",
        "Elemwise._c_all": "3beb06f0e613",
        "Elemwise.get_output_info": "69e684e50186",
        "Elemwise.make_node": "08aa92edf0d4",
        "Elemwise.make_scalar_node": "d6ba9676ca15",
    },
    "pytensor.tensor.linalg.decomposition.lu": {
        # 3.0.0 imports SciPy's function by another name.
        "LUFactor.perform": "d65b0806f64d 3b1b3e4f4395",
    },
    "pytensor.tensor.linalg.solvers.tridiagonal": {
        "LUFactorTridiagonal.perform": "bff179a3b7bc",
    },
    "pytensor.tensor.math": {
        "variadic_add": "768fc1f299cb",
    },
    "pytensor.tensor.optimize": {
        "ScipyWrapperOp.__eq__": "888fa8694e88",
    },
    "pytensor.tensor.random.type": {
        "RandomGeneratorType.__eq__": "e48b4b2e0ffa",
    },
    "pytensor.tensor.rewriting.basic": {
        "constant_folding": "17a6c42b63ec",
        "local_alloc_unary": "7e144a6a1f62",
        "local_dimshuffle_alloc": "37529d088ffb",
        "local_elemwise_alloc": "f62ee1b9d929",
        "local_merge_switch_same_cond": "e420da548fa3",
        "local_second_sink": "0d8589b52f5a",
        "local_sum_make_vector": "e629532bae3f",
        "local_useless_elemwise": "75aa55fa1f30",
        "unconditional_constant_folding": "fe860358a72c",
    },
    "pytensor.tensor.rewriting.blas": {
        "GemmOptimizer.apply": "8d7af68899fa",
        "_beta_L_plus_alpha_M": "be0da05a8f3e",
        "_gemm_canonicalize": "26968129e641",
        "_gemm_from_factored_list": "2967535229dc",
        "_gemm_from_node2": "8f3e7b8e4347",
    },
    "pytensor.tensor.rewriting.elemwise": {
        # 3.0.3 sorts kernels differently, 3.0.4 fuses siblings, and 3.1 has functions for sets of
        # ancestors; which nodes may be fused is unchanged.
        "FusionOptimizer.apply": "7f8f0c1606e4 b1b47039d065 4f3abdba6d98 eac489d37309",
        "constant_fold_branches_of_add_mul": "eadb8e926619",
        "local_upcast_elemwise_constant_inputs": "d567353b5758",
        "local_useless_composite_outputs": "24cdbb201233",
    },
    "pytensor.tensor.rewriting.math": {
        "AlgebraicCanonizer.get_num_denum": "6cf3fae7c81c",
        "AlgebraicCanonizer.simplify": "f1565c011920",
        "AlgebraicCanonizer.simplify_constants": "498c566a0322",
        "AlgebraicCanonizer.simplify_factors": "10c0761caee7",
        "AlgebraicCanonizer.transform": "7c0580c82ad8",
        "add_calculate": "d6a0f541bbb9",
        "attempt_distribution": "036815c29899",
        "check_for_x_over_absX": "43e87540eaea",
        "distribute_greedy": "27b49636d5cc",
        "local_abs_merge": "de5d41b7bc48",
        "local_add_neg_to_sub": "9c179223fd28",
        "local_careduce_of_alloc": "86f2d1801415",
        "local_exp_log": "63a9d068a619",
        "local_expm1": "894fa155296e",
        "local_grad_log_erfc_neg": "126a26aa879c",
        "local_greedy_distributor": "43f20fd2be2a",
        "local_mul_exp_to_exp_add": "966f43b4e8ae",
        "local_mul_pow_to_pow_add": "ad13247fef5f",
        "local_mul_specialize": "16e21b168a73",
        "local_mul_switch_sink": "0aec79137e5a",
        "local_pow_canonicalize": "905d9976f714",
        "local_reduce_chain": "03cef123069a",
        "local_reduce_join": "9c5f9e826c4f",
        "local_sigm_times_exp": "23a967dfc0bb",
        "local_sub_neg_to_add": "eb6f22744fa2",
        "local_sumsqr2dot": "85911ed8fa88",
        # 3.1 has the axis of a Join in its op; the search itself is unchanged.
        "local_useless_elemwise_comparison": "e8990a78ee99 b4246aeaf501",
        "mul_calculate": "7b1a40dc1426",
    },
    "pytensor.tensor.rewriting.shape": {
        "ShapeFeature.on_change_input": "00de5adca920",
        "ShapeFeature.on_prune": "8f58e8d8eabf",
    },
    "pytensor.tensor.rewriting.subtensor": {
        "local_IncSubtensor_serialize": "e155b65d8f4c",
        "local_add_of_sparse_write": "b503c4ab32c3",
    },
    "pytensor.tensor.subtensor": {
        # 3.3.1 knows ops that are never negative, and 3.3.4 factors, products and squares; neither
        # reads data.
        "_is_provably_positive": "532c9aa1386e 986be7e94657 10afaf3d4287",
    },
    "pytensor.tensor.type": {
        "TensorType.__eq__": "59d807f792a3",
        # 3.3.4 defines the meaning of a shape of None, which is left to PyTensor.
        "TensorType.__init__": "dda3854387ca 16ecbcab2580",
    },
    "pytensor.tensor.type_other": {
        "SliceType.__eq__": "e48b4b2e0ffa",
    },
    "pytensor.tensor.utils": {
        "import_func_from_string": "129630500c03",
    },
    "pytensor.tensor.variable": {
        "TensorConstant.__copy__": "19b5845d6040",
        "TensorConstant.unique_value": "2c647ba70b58",
        "TensorConstantSignature.__eq__": "fd41461e7631",
        "TensorConstantSignature.__hash__": "27c3abf1b804",
        "TensorVariable.__init__": "f940b905b0ee",
        "_tensor_py_operators.dimshuffle": "569b819e8946",
    },
    "pytensor.typed_list.type": {
        "TypedListType.__eq__": "daf3356bea26",
    },
    "pytensor.utils": {
        "Singleton.__eq__": "eb92989b1dfa",
        "_LazyScipyModule.__getattr__": "696bea421dbb",
    },
    "pytensor.xtensor.random.type": {
        "XRandomGeneratorType.__eq__": "e48b4b2e0ffa",
    },
    "pytensor.xtensor.type": {
        "XTensorType.__eq__": "c4c585953a8f",
    },
}
