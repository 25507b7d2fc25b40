"""Positive definite and semidefinite matrices, recognized by form."""
