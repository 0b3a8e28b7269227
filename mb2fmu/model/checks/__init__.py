"""Checks of a model before any equation is formed.

Input: ``Model``. Output: a list of faults, or the checked ``CheckedModel``. One file checks one subject: symbols,
units, events, contacts, arrays, the experiment.

Promises: all faults are reported together, each with the line of the declaration and a remedy.
Must not: form equations, change the user's SymPy objects, or correct a fault silently.
"""
