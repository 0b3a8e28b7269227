"""TODO model/checks."""
