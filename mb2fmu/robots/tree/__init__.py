"""Articulated tree of a robot: rigid parts, their joints and closed loops, as mechanism records.

Input: ``RobotDescription`` and ``RobotSettings``. Output: the tree of parts; ``RobotMechanics``; ``Mechanism``; inertia
and weight at the start as numbers.

Promises: links that are fixed to each other are one part; parents come first; a joint without inertia is refused.
Must not: use SymPy's frames and points, or know formulations and FMI.
"""
