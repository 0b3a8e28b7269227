"""Equations and quantities for people: as text, LaTeX, MathML or NumPy code, and the mechanism's graph.

Input: ``EquationsOfMotion`` and named quantities. Output: texts and records. Promises: named quantities stay named;
what is left out is counted. Must not: form equations.
"""
