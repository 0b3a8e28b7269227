"""Behaviour of the running FMU: probes, each in a process that the FMU may kill."""
