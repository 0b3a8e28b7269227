"""Joints of a robot: variables, actuators, tendons, friction, stops, inverse dynamics; and forces on links.

Input: ``RobotDescription``, ``RobotSettings`` and the tree of parts. Output: declared variables, efforts along joints
in N·m or N, elements (friction, stops), inputs, and signals for the default experiment.

Promises: limits and damping of the file are honoured, or a note says that they are ignored.
Must not: parse files, or form equations of motion.
"""
