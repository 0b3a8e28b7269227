"""TODO validation/bounds."""
