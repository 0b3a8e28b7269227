"""TODO systems/exports."""
