"""Emission of loop programs as LLVM's textual IR."""
