"""TODO pipeline/study_runs."""
