"""TODO validation/api_checks."""
