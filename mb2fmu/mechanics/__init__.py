"""TODO mechanics."""
