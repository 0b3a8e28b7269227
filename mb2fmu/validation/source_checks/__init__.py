"""TODO validation/source_checks."""
