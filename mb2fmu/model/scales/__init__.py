"""Scales of a model: characteristic units, and typical magnitudes of switching functions.

Input: the numbers of a model with their units (parameters, start values, nominals, times). Output: a typical magnitude
for each unit, coordinate, speed and switching function; the default rate of constraint stabilization.

Promises: the result does not depend on the units that the user chose. Must not: change the model, or form equations.
"""
