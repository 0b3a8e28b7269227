"""TODO robots/tree."""
