"""TODO robots/joints."""
