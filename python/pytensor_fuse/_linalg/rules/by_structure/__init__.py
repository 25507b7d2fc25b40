"""Rules that replace work on a matrix of known structure by work on its parts."""
