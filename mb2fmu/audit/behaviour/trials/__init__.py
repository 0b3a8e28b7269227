"""TODO audit/behaviour/trials."""
