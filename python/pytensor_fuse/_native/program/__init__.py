"""The loop program: its form, text, verifier and interpreter."""
