"""The command ``pytensor-fuse``: a runner of programs, and reports about files."""
