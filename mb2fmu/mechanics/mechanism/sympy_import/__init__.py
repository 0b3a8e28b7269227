"""TODO mechanics/mechanism/sympy_import."""
