"""TODO robots/outputs."""
