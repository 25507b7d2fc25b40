"""The loop program: data model, text format, verifier, interpreter and builder."""
