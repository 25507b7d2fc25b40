"""Pictures of fusion plans."""
