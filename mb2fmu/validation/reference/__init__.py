"""TODO validation/reference."""
