"""Loads on the joints and links of a robot: actuators, tendons, friction, stops, forces, inverse dynamics.

Input: ``RobotDescription``, ``RobotSettings`` and the symbols of the joints. Output: efforts along joints in N·m or N,
elements (friction, stops), inputs, and signals for the default experiment.

Promises: limits and damping of the file are honoured, or a note says that they are ignored.
Must not: parse files, or form equations of motion.
"""
