"""Bounds: how far an FMU may be off, from tolerances, sensitivities, round-off and events.

Input: a reference. Output: allowed errors of variables, events and steps. Promises: every bound has a stated reason.
Must not: look at the FMU that is judged.
"""
