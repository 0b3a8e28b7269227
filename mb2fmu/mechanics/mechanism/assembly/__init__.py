"""TODO mechanics/mechanism/assembly."""
