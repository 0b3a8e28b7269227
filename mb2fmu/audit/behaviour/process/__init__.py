"""TODO audit/behaviour/process."""
