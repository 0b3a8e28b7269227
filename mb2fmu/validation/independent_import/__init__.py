"""Robot files imported a second time, minimally, to check the first import.

Input: a URDF, SDF or MJCF file. Output: x' at random points by Kane's equations in numbers, or by MuJoCo. Promises:
what it cannot read is named, and not judged. Must not: import ``mb2fmu.robots``, ``model`` or ``mechanics``.
"""
