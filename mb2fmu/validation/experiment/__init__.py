"""TODO validation/experiment."""
