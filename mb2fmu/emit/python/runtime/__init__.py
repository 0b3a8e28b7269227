"""The fixed part of a Python-hosted unit: copied as it is into every unit, written once.

These files run on the importer's machine, in a package of their own whose name carries the unit's token. They import
the standard library, each other (relatively) and ``pythonfmu``; never ``mb2fmu``, never SymPy.
"""
