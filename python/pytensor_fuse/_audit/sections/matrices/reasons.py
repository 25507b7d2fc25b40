"""The reasons for which the rules of the feature `linalg` leave work on matrices as it is."""

from __future__ import annotations

from enum import Enum


class LinalgReason(Enum):
    """Why work on a matrix was not saved. The value is a sentence for people."""

    NOT_RUN = (
        "no rule of linalg has run over the graph: the feature was off, the mode leaves all of "
        "them out, or it is a copy"
    )
    INNER_GRAPH = "it is in the graph of another node, over which no rule of linalg has run"
    RULE_EXCLUDED = "the mode leaves out the rule that may do it"
    OP_UNKNOWN = "who compiles the graph does not know the op of this package that it takes"
    NOT_KNOWN_POSITIVE_DEFINITE = "the matrix is not known to be positive definite"
    BATCHED = "it is a batch of matrices, which most rules leave alone"
    COMPLEX = "its elements are complex numbers, which the rules leave alone"
    UPPER_FACTOR = "the factor is the upper one, whose gradient has a form of its own"
    GRADIENT_TERM = "a term of the gradient of the factor is none of those that the rule knows"
    ONLY_INVERSE = "nothing else is done that takes a factorization of the matrix"
    EQUAL_BY_VALUE = "that it is one matrix shows only by its values: it is computed more than once"
    SIZES_NOT_STATIC = "its parts would serve it, but their sizes are not known before it runs"
    NO_WIN_BY_SHAPES = "by the sizes of its parts, little would be won by working on these"
    DIAGONAL_NOT_POSITIVE = (
        "it is a diagonal and a product of thin matrices, but the diagonal is not known to be "
        "positive"
    )
    FACTORS_NOT_SQUARE = "it is a Kronecker product of matrices that are not square"
    FACTORS_NOT_SYMMETRIC = (
        "it is a Kronecker product and a multiple of the identity, but the factors of the product "
        "are not known to be symmetric"
    )
    SHIFT_NOT_A_NUMBER = (
        "what is added to a Kronecker product is a diagonal, not a multiple of the identity"
    )
    BATCHED_RIGHT_HAND_SIDES = "the right-hand sides are a batch, which the rules leave alone"
    FACTOR_ASKED_FOR = "its parts would serve it, but its Cholesky factor is asked for"
    NO_RULE = "no rule makes one factorization serve these"
