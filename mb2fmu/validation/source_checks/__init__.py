"""Compare with the user's own SymPy objects: x', constraints, outputs, events, values, laws of motion.

Input: the source objects, and an FMU or the imported mechanism. Output: samples and verdicts. Promises: the objects are
left untouched. Must not: use the imported records to compute what they are checked against.
"""
