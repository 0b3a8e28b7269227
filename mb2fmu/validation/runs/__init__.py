"""Run an FMU by fmpy in a process of its own, and read what of its description a run needs.

Input: an FMU and an experiment. Output: recorded values of all interface types. Must not: judge them.
"""
