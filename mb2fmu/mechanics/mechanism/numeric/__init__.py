"""TODO mechanics/mechanism/numeric."""
