"""TODO pipeline/display."""
