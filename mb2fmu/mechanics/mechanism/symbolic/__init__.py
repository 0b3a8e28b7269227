"""TODO mechanics/mechanism/symbolic."""
