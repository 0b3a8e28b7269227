"""Compare an FMU's run with the reference: variables, events, invariants, constraint diagnostics.

Input: recorded values and bounds. Output: results with verdicts. Must not: change a bound.
"""
