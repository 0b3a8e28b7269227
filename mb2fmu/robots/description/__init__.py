"""Robot description: links, joints, actuators, tendons and loops of a robot file as plain numbers.

Input: values that a file reader found. Output: ``RobotDescription``, checked to be one tree, in SI units.

Promises: all formats give the same records; impossible inertias are found, and repaired only on request; features that
the settings ignore are listed in notes. Must not: parse files, or make symbols.
"""
