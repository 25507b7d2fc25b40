"""Work on matrices, against LAPACK called by hand and against stock PyTensor."""
