"""TODO validation/data."""
