"""TODO report/pages."""
