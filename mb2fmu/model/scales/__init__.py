"""TODO model/scales."""
