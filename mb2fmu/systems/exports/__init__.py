"""Systems for other masters: OSP files, an FMPy script, and runs of these masters to compare with.

Input: a wired system. Output: files, and results of other masters, each run in a process of its own. Promises: what
another master cannot express is refused with the reason. Must not: change the system.
"""
