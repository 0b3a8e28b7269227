"""TODO fmu."""
