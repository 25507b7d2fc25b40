"""Requirements on the installed PyTensor, and the known releases."""
