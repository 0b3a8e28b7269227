"""Run an FMU by fmpy in a process of its own, and read what of its description a run needs.

Input: an FMU and an experiment. Output: recorded values of all interface types. Promises: a crash or a hang of the
FMU is a result with its reason. Must not: judge them.
"""
