"""TODO audit/behaviour/runner."""
