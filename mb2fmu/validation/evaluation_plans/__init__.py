"""TODO validation/evaluation_plans."""
