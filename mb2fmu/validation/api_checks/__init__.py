"""API checks during the perturbed run: calls that only the reference can judge, and their comparison.

Input: reference data and a description. Output: call plans, and one result per family of calls. Promises: each family
has one verdict; what was not called is listed with the reason. Must not: compare an FMU with itself; the auditor
does.
"""
