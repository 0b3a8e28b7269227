"""Import of a checked model: from SymPy's frames, points, bodies, joints and loads to mechanism records.

Input: ``CheckedModel``. Output: ``Mechanism``, with constraints, contacts, latches, events, outputs and appearance.

Promises: the user's SymPy objects stay unchanged; every vector is kept as written; given velocities are compared with
the derivatives of positions at random states; all faults of one kind are reported together.
Must not: combine or expand expressions, form equations of motion, or know of FMI.
"""
