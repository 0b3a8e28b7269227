"""TODO pipeline/system_runs."""
