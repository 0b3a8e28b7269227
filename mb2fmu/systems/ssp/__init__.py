"""TODO systems/ssp."""
