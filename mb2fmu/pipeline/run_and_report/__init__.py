"""TODO pipeline/run_and_report."""
