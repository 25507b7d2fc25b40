"""From loop programs to LLVM's text."""
