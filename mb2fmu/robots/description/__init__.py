"""TODO robots/description."""
