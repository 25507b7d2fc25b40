"""Identity by value: contents, terms, interned and frozen graphs, value numbering."""

# PyTensor comes first: the features that its import switches on import modules of this package.
import pytensor  # noqa: F401
