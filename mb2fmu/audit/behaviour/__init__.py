"""What the running unit shows: probes, each in a process that it may kill."""
