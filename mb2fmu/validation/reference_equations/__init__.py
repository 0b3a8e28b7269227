"""TODO validation/reference_equations."""
