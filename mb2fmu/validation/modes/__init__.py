"""TODO validation/modes."""
