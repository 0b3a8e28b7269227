"""TODO validation/comparison."""
