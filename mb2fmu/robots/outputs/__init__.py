"""Outputs of a robot model: motion of links, joint reactions, joint-space quantities, and arrays of them.

Input: ``RobotSettings`` and the mechanics of the robot. Output: declarations and requests in the ``Model``, with units.

Promises: a name that does not exist in the robot is reported with all other faults; units follow from the joint type.
Must not: compute the outputs; ``mechanics.formulations.outputs`` does that.
"""
