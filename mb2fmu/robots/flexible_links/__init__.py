"""Links of a robot that bend: their elastic data from the side file, and the records of the mechanism.

Input: tables ``[flexible.LINK]`` and the files that these name. Output: ``FlexibleBody`` objects, the nodes that
joints hang on, and frames, points, bodies and loads as records. Promises: all faults of the tables at once. Must not:
change links that do not bend.
"""
