"""Records of a mechanism: frozen dataclasses for frames, points, bodies, loads, constraints, outputs and appearance.

Input: none, except for the helpers, which take SymPy expressions. Output: ``Mechanism`` and its parts; plain symbols in
place of the user's functions of time; quaternion coordinates.

Promises: frames and points are numbers, parents come first; a vector keeps the frames that it was written in.
Must not: hold SymPy's mechanics objects, form equations, or evaluate numbers of a motion.
"""
