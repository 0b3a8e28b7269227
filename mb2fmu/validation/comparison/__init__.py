"""Compare an FMU's run with the reference: variables, events, invariants, constraint diagnostics.

Input: recorded values and bounds. Output: results with verdicts. Promises: bounds are formulas, stated in
``motion_comparison``. Must not: change a bound.
"""
