"""From LLVM's text to functions that can be called."""
