"""Scripts that run a written system in other masters, each in a process of its own; they import nothing of mb2fmu."""
