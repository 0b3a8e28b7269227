"""Scripts that run a written system in other masters, each in its own process; they import nothing of mb2fmu."""
