"""Reasons for which the rules of the feature `linalg` leave work on matrices unchanged."""

from __future__ import annotations

from enum import Enum


class LinalgReason(Enum):
    """The reason why work on a matrix was not saved. The value is a sentence for people."""

    NOT_RUN = (
        "no rule of linalg has run over the graph: the feature was off, the mode excludes all of "
        "its rules, or the graph is a copy"
    )
    INNER_GRAPH = "it is in an inner graph, over which no rule of linalg has run"
    RULE_EXCLUDED = "the mode leaves out the rule that may do it"
    OP_UNKNOWN = "the compiler of the graph does not support the op of this package that it needs"
    NOT_KNOWN_POSITIVE_DEFINITE = "the matrix is not known to be positive definite"
    BATCHED = "it is a batch of matrices, which most rules leave alone"
    COMPLEX = "its elements are complex numbers, which the rules leave alone"
    UPPER_FACTOR = "the factor is upper triangular, whose gradient has another form"
    GRADIENT_TERM = "a term of the gradient of the factor has a form that the rule does not know"
    ONLY_INVERSE = "no other work on the matrix needs a factorization"
    EQUAL_BY_VALUE = "the matrix is computed more than once, and is only known to be equal by value"
    SIZES_NOT_STATIC = "work on its parts could replace this, but their sizes are not static"
    NO_WIN_BY_SHAPES = "given the sizes of its parts, working on them would save little"
    DIAGONAL_NOT_POSITIVE = (
        "it is the sum of a diagonal and a product of thin matrices, but the diagonal is not known "
        "to be positive"
    )
    FACTORS_NOT_SQUARE = "it is a Kronecker product of matrices that are not square"
    FACTORS_NOT_SYMMETRIC = (
        "it is the sum of a Kronecker product and a multiple of the identity, but the factors of "
        "the product are not known to be symmetric"
    )
    SHIFT_NOT_A_NUMBER = (
        "a diagonal, not a multiple of the identity, is added to a Kronecker product"
    )
    BATCHED_RIGHT_HAND_SIDES = "the right-hand sides are a batch, which the rules leave alone"
    FACTOR_ASKED_FOR = "work on its parts could replace this, but its Cholesky factor is requested"
    NO_RULE = "no rule shares one factorization between these"
