"""TODO validation/independent_import."""
