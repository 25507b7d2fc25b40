"""The sections of an audit, one concept each."""
