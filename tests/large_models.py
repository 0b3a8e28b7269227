"""Models of many bodies in space, which no formulation writes out: they go the native way to their validation, once.

What is tried with every model for the importers' sake, or in Python's own time, does without them.
"""

LARGE = frozenset({"chain", "hand", "robot_arm"})
