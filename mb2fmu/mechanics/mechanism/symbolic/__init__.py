"""Symbolic kinematics of a mechanism, its gravity, and the graph of its bodies.

Input: ``Mechanism``. Output: positions, velocities and accelerations as expressions with named intermediates; the
acceleration of gravity; a graph of bodies, joints, loads and sensors.

Promises: nothing is expanded; equal expressions get one name; each quantity is formed once, when it is requested.
Must not: form equations of motion, or evaluate numbers.
"""
