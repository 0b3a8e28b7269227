"""Behaviour of the running FMU: trials, each in a process that the FMU may kill.

Input: an unpacked FMU and its description. Output: observations, each of a rule of ``rules.json``.

Promises: a crash, a hang or a leak ends one trial, and is reported; the same FMU gives the same observations.

Must not: load an FMU into the auditor's own process, or import a stage that makes FMUs.
"""
