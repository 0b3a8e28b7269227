"""TODO pipeline/simulation."""
