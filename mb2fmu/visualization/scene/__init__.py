"""TODO visualization/scene."""
