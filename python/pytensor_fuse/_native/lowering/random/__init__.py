"""Random variables as loops of draws."""
