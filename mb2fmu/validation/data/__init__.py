"""Compare an FMU with the user's own numbers: measured over time, or published at points.

Input: a table and an FMU. Output: one result per column. Promises: a column that cannot be judged does not pass. Must
not: need a model.
"""
