"""TODO mechanics/mechanism/records."""
