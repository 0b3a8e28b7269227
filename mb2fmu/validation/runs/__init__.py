"""TODO validation/runs."""
