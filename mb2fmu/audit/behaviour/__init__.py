"""Behaviour of the running unit: probes, each in a process that the FMU may kill."""
