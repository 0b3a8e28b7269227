"""TODO audit/behaviour/instance."""
