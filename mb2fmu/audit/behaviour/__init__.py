"""Behaviour of the running FMU: trials, each in a process that the FMU may kill."""
