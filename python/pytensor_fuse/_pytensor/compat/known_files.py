"""The files of the reviewed releases, by the digests of their bytes, oldest first.

Written by scripts/known-sources.
"""

from __future__ import annotations

from typing import Final

# Files in which all required functions are known.
FILES: Final[dict[str, str]] = {
    "nutpie.compile_pymc": "50d2df6be09c",
    "pymc.distributions.continuous": (
        "905c8a10e547 e6ef4cae81dd 49fefc573e2c 0a1d1f2bd272 4b993e9397f7"
    ),
    "pymc.distributions.discrete": "c88762c611c5 158cab61c5d7 7f797b76f8db d92fbbe1f718",
    "pymc.distributions.dist_math": "19a5798cff34 3dd9f9676c2c",
    "pytensor.assumptions.blockwise": "06deec282e37",
    "pytensor.assumptions.core": "fa695c977541",
    "pytensor.assumptions.diagonal": "de7849d340c0 629e6c80d175 cf5e1b11524a abe70b2e7a99",
    "pytensor.assumptions.dimshuffle": "560281927683 2c33ca07ed64 d800f5c10a0d",
    "pytensor.assumptions.elemwise": "dd8c52ecc020",
    "pytensor.assumptions.orthogonal": "2bebc47f1f80",
    "pytensor.assumptions.permutation": "fe603a23bead",
    "pytensor.assumptions.positive_definite": "cab6c8bec0aa 7e611bc4e159 0bbddbad6828",
    "pytensor.assumptions.selection": "b2c066dddfe2 ac5957a04626",
    "pytensor.assumptions.shape": "ac3dc0c55791 6ebe7d76986c",
    "pytensor.assumptions.subtensor": "1296b5dd0980",
    "pytensor.assumptions.symmetric": "c3ad55943012 221004a271cb 82939cd7547a 500f64a9cc65",
    "pytensor.assumptions.triangular": "23170bd2c7a0 1f579aec5f0e e849da01dba3",
    "pytensor.assumptions.tridiagonal": "282c371d44eb",
    "pytensor.compile.aliasing": "41624bd47c72",
    "pytensor.compile.builders": (
        "7ed9e487ee40 14bc655e3c1c bab6a2c24e92 a46bbb5a659b 6acce27b56c5 a80b39bd443a "
        "e46d7e2d31e4 9d0f180d5503"
    ),
    "pytensor.compile.executor": "2c7da46e3e54 f2ea708eae3b 0c4801a807e0",
    "pytensor.compile.inner_function": "7f2b05af4531 cce28046bd4d",
    "pytensor.compile.maker": "5898277ad1cc",
    "pytensor.compile.mode": (
        "a3ec029c1b2f 15045f538a1a 790cfcec4da6 65d4202b90bc aaf682bf6135 71f7d24b08dc"
    ),
    "pytensor.compile.ops": "df99d9257b7c c297fd83a7b6",
    "pytensor.compile.rebuild": "572507e272bd 0d4777753b1b",
    "pytensor.conditional.op": "f2b8dd0ec8d5",
    "pytensor.configparser": "3f6e0404b502 9f2dfaef9e0b f0b656fe0909",
    "pytensor.graph.basic": "18388f487acf d661cb2db14c ce52a2377011 c1f1cb23d553 2c5e3b448896",
    "pytensor.graph.destroyhandler": "cd0715959959",
    "pytensor.graph.features": (
        "c29e868a00b4 2cdfdc11834a b4abd45d5087 df7a6577f03f 557ca4a4cd2f fa1fcebb5fb0"
    ),
    "pytensor.graph.fg": "288418c818e2 23d9ebef4d0a 25378a515936 676e9feb554e a5d7ca012e10",
    "pytensor.graph.null_type": "e45523e1a299",
    "pytensor.graph.op": "0c4c389c7e7c 1ceb2cf78874 c9c17606138f",
    "pytensor.graph.rewriting.basic": (
        "b7554b8c61fa 5b4d75a98c39 b49bb64648d3 2c9dfb2a4587 b0b8afb00a9f"
    ),
    "pytensor.graph.rewriting.db": "3c3fcdda7c67",
    "pytensor.graph.traversal": (
        "24b3ff254e11 0b6a3a0d5a20 9ac34eaeecd0 cde1ec1cdd94 c7c4f0e77cef eae0fe355f04"
    ),
    "pytensor.graph.utils": "ac6d144ee58e 373146c5caff bcf497f03d73",
    "pytensor.ifelse": "13d25b19062a fd3c54de3325 59f438ccae12 ff3679d20f57",
    "pytensor.link.basic": "edefc1dc39ff 03df140eb577",
    "pytensor.link.c.basic": "eaff7970765a ab120090b3c4",
    "pytensor.link.c.op": "779cbd6ffc77 1cb246e29014 6e42c9fb82b0",
    "pytensor.link.c.params_type": "e7540ab15a54",
    "pytensor.link.c.type": "7c19f5c52d12",
    "pytensor.link.numba.linker": "d9cf34896bb7 8645c2da9f7e",
    "pytensor.link.vm": "a7d7004c48c0",
    "pytensor.misc.ordered_set": "7ed54c904d53",
    "pytensor.raise_op": "8598e9ee5bed 820ba93c9206",
    "pytensor.scalar.basic": (
        "d00f94a4dd5c b13cd3150cbd f0b291971bd6 67dd5fe61f66 22558312fa0c cb6bf9bb5dc6 "
        "3e454c246a9e 2abc8e3c60c9"
    ),
    "pytensor.scalar.math": (
        "bdf8b79c263d 41fe6bd88e4a 549a76928ae6 453d032f3340 b25f373b9edf 188f5b514808 "
        "26edf41064db 0a89e98c481e"
    ),
    "pytensor.scan.op": "1aa308f8da66 9cb596cacac9 383e96d75b86 a24fc98886af 19ae43cb39c0",
    "pytensor.sparse.type": "38c1b626b7c8",
    "pytensor.tensor.basic": (
        "70744c0574fa 0944644442a1 b939f2652295 3bae54f3ceb6 e94d776fff89 e88595e005b2 "
        "29e75826fa4a 63c0f2ebe164 a79157fe12fd 42a5f7ccf7d6"
    ),
    "pytensor.tensor.elemwise": "a19154b9bb92 267b71083ef7 8197fd3ea465 58e1d9725d64 5cb719ee062e",
    "pytensor.tensor.linalg.decomposition.lu": "377b2c04cf7b 7261b018fa59 c97a18366c23",
    "pytensor.tensor.linalg.solvers.tridiagonal": "26ea5db617d3",
    "pytensor.tensor.math": (
        "71f8db50100c 4273fd54dc9e 6252fce61ed7 29868d631b72 6eb679d1c875 f2c4d5addf3f 5be036db920b"
    ),
    "pytensor.tensor.optimize": (
        "b79d5055bcb8 eea3f7005b44 b40960a57a63 ad87fa36df2c 0b96115fd0f8 1ce5616cbfbc"
    ),
    "pytensor.tensor.random.type": "4aa973fa1ffc",
    "pytensor.tensor.rewriting.basic": "6a2c8428fa07 dfc36840c6b8",
    "pytensor.tensor.rewriting.blas": "e9a1fbafba79 ee48aa2c3988",
    "pytensor.tensor.rewriting.elemwise": (
        "984044a12ae9 c557c528d343 63541180628a 14070d9a872f bcc216a46c20 1a2a245a3f30 f57f3f754923"
    ),
    "pytensor.tensor.rewriting.math": "0e489295d4c5 4d81e698eb46",
    "pytensor.tensor.rewriting.shape": "a49b133f75fb b872a5865ec3",
    "pytensor.tensor.rewriting.subtensor": "a31b0880a942 201a1f2a31f4 6f8e62a81147",
    "pytensor.tensor.subtensor": (
        "189f03eac7aa 3276cbc3b96b b0be7c3d59be ee5eb81eeb04 175deb22efbb 46232f4b68ac 25d383df40e9"
    ),
    "pytensor.tensor.type": "b73a5d8db227 3a9ac379c93f",
    "pytensor.tensor.type_other": "3c2df17a8862",
    "pytensor.tensor.utils": "d86ad1b9da6f 7f9923534924 d362ec0445c1",
    "pytensor.tensor.variable": "9ae9ca4c48e4 8ad83c3ce8b0 83137b57aee8",
    "pytensor.typed_list.type": "3e806920d167",
    "pytensor.utils": "ffb7bc5a5d08 9dd9c03c2ac2",
    "pytensor.xtensor.random.type": "d23dce5d2638",
    "pytensor.xtensor.type": "fea7f49e6741 4bcbb4e76374 2406ffe67f01",
}

# Files in which all required functions but these are known.
PARTLY_KNOWN: Final[dict[str, dict[str, str]]] = {
    "pytensor.assumptions.blockwise": {
        "c17f6484dbc1": "_blockwise_delegate",
    },
    "pytensor.assumptions.core": {
        "077027c5614f": (
            "AssumptionFeature._compute AssumptionFeature.on_change_input AssumptionKey"
        ),
        "5ad4bab22158": "AssumptionFeature._compute AssumptionKey",
        "2d2c6572fd85": "AssumptionFeature._compute AssumptionKey",
        "70c134141b69": "AssumptionFeature._compute",
    },
    "pytensor.assumptions.diagonal": {
        "7b52b6241824": "_diagonal_from_constant",
    },
    "pytensor.assumptions.permutation": {
        "eeb2cf3bf862": "_permutation_from_constant",
    },
    "pytensor.assumptions.selection": {
        "5f46c4914f4c": "_selection_from_constant",
    },
    "pytensor.assumptions.subtensor": {
        "996fb07e5851": "incsubtensor_propagates_matrix_property",
        "eea84428c29b": "incsubtensor_propagates_matrix_property",
    },
    "pytensor.compile.executor": {
        "1c8f918c89d5": "Function._validate_inputs",
    },
    "pytensor.compile.maker": {
        "4c9bba21f2bf": "function",
        "1563da537f4d": "FunctionMaker.prepare_fgraph",
    },
    "pytensor.scalar.basic": {
        "079a86440879": "Composite.make_node",
        "b0e25fc18fc4": "Composite.make_node",
    },
    "pytensor.tensor.elemwise": {
        "74813b9247ca": "Elemwise.get_output_info",
    },
    "pytensor.tensor.linalg.solvers.tridiagonal": {
        "7356c5a9d5a6": "LUFactorTridiagonal.perform",
    },
    "pytensor.tensor.rewriting.basic": {
        "dd28ea315f87": "local_alloc_unary local_elemwise_alloc local_useless_elemwise",
        "55842b2beb34": "local_alloc_unary",
        "d4e25f02a79a": "local_alloc_unary",
    },
    "pytensor.tensor.rewriting.math": {
        "320c6d27e827": (
            "AlgebraicCanonizer.get_num_denum AlgebraicCanonizer.simplify_constants "
            "AlgebraicCanonizer.simplify_factors AlgebraicCanonizer.transform "
            "check_for_x_over_absX local_exp_log local_expm1 local_mul_specialize "
            "local_reduce_chain local_reduce_join local_useless_elemwise_comparison"
        ),
        "311fdd92c542": (
            "AlgebraicCanonizer.get_num_denum AlgebraicCanonizer.simplify_constants "
            "AlgebraicCanonizer.simplify_factors AlgebraicCanonizer.transform "
            "check_for_x_over_absX local_exp_log local_reduce_chain local_reduce_join"
        ),
        "06f1cbd48f1e": (
            "AlgebraicCanonizer.get_num_denum AlgebraicCanonizer.simplify_constants "
            "AlgebraicCanonizer.simplify_factors AlgebraicCanonizer.transform "
            "check_for_x_over_absX local_exp_log local_reduce_chain local_reduce_join"
        ),
        "2fdaf1f7abd6": (
            "AlgebraicCanonizer.get_num_denum AlgebraicCanonizer.simplify_constants "
            "AlgebraicCanonizer.simplify_factors AlgebraicCanonizer.transform "
            "check_for_x_over_absX local_exp_log local_reduce_chain local_reduce_join"
        ),
        "f7a046ac97e9": (
            "AlgebraicCanonizer.get_num_denum AlgebraicCanonizer.simplify_constants "
            "AlgebraicCanonizer.simplify_factors AlgebraicCanonizer.transform "
            "check_for_x_over_absX local_careduce_of_alloc local_reduce_chain local_reduce_join"
        ),
        "c284a1c80b51": (
            "AlgebraicCanonizer.get_num_denum AlgebraicCanonizer.simplify_constants "
            "AlgebraicCanonizer.simplify_factors AlgebraicCanonizer.transform "
            "check_for_x_over_absX local_careduce_of_alloc local_reduce_chain local_reduce_join"
        ),
        "bb92c57941c4": "local_careduce_of_alloc local_reduce_chain local_reduce_join",
        "e3f917f91a99": "local_careduce_of_alloc local_reduce_chain local_reduce_join",
        "2fb2834b8eb7": "local_careduce_of_alloc local_reduce_chain local_reduce_join",
        "213b6458adc2": "local_careduce_of_alloc local_reduce_chain local_reduce_join",
    },
    "pytensor.tensor.rewriting.shape": {
        "4f9f2cdb312a": "ShapeFeature.on_change_input",
        "a6ab8c4208fa": "ShapeFeature.on_change_input",
    },
    "pytensor.tensor.rewriting.subtensor": {
        "64e620ad03d6": "local_IncSubtensor_serialize local_add_of_sparse_write",
        "196f8439c923": "local_IncSubtensor_serialize local_add_of_sparse_write",
        "3b0e3a5b4640": "local_IncSubtensor_serialize local_add_of_sparse_write",
        "3c436cd17238": "local_IncSubtensor_serialize local_add_of_sparse_write",
        "51ffa44e8e51": "local_IncSubtensor_serialize local_add_of_sparse_write",
        "a0d86c8fdb30": "local_IncSubtensor_serialize local_add_of_sparse_write",
        "2dc8dbd52084": "local_IncSubtensor_serialize local_add_of_sparse_write",
        "a6be4a2a6206": "local_add_of_sparse_write",
        "ca5a9542e606": "local_add_of_sparse_write",
        "64576588cfda": "local_add_of_sparse_write",
    },
}
