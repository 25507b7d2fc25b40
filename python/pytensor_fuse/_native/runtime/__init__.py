"""Runtime: from LLVM text to callable functions."""
