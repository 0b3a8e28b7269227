"""TODO pipeline/derivation."""
