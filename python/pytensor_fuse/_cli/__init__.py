"""The command line ``python -m pytensor_fuse``: a runner of programs, and reports about files."""
