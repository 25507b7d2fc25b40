"""Rules that other packages register, and checks of what these return."""
