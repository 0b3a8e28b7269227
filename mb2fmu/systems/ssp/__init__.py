"""Systems as ``.ssp`` archives: written for other tools, and read from them.

Input: a wired system, or an archive of SSP 1.0, 2.0 or the draft 2.1. Output: files, or a ``CoupledSystem``. Promises:
written files are valid by the standard's schemas. Must not: run a system.
"""
