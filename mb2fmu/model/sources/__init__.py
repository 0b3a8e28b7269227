"""TODO model/sources."""
