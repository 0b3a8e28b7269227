"""API checks during the perturbed run: calls that only the reference can judge, and their comparison.

Input: reference data and a description. Output: call plans, and one result per family of calls. Must not: compare an
FMU with itself; the auditor does.
"""
