"""Startup: importing the package only waits for the import of PyTensor."""
