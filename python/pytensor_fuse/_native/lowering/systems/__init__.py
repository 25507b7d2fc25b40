"""Systems of equations, and the factors that solve them."""
