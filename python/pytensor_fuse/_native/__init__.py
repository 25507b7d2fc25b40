"""Native code for loops: LLVM text, compiled and run."""
