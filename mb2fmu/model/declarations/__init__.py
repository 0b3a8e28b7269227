"""TODO model/declarations."""
