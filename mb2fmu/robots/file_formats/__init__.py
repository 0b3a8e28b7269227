"""File formats of robots: readers for URDF, MJCF and SDF.

Input: the bytes of a file and its path. Output: ``RobotDescription``.

Promises: every element is used, or ignored with a note, or refused by name; each fault has its line; all faults of a
file are reported together. Must not: fetch anything from the network, or read files outside of the robot's folders.
"""
