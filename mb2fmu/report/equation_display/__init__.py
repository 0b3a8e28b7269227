"""TODO report/equation_display."""
