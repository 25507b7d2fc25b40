"""What makes things the same: contents, terms, interned and frozen graphs, value numbering."""

# First of all: what is switched on once it is there imports modules of this package.
import pytensor  # noqa: F401
