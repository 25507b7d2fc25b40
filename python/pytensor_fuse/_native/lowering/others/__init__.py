"""Third-party rules, and checks of their results."""
