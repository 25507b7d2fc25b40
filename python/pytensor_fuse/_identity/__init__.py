"""What makes things the same: contents, terms, interned and frozen graphs, value numbering."""
