"""Run all trials of one FMU under a supervisor, which survives crashes and hangs.

Input: an FMU and its limits. Output: the observations of all trials. Promises: a crash, a hang or a leak is a finding,
and the next trial goes on. Must not: decide which rules exist.
"""
