"""TODO report/figures."""
