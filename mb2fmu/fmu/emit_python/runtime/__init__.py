"""Fixed part of a Python-hosted FMU, copied unchanged into every such FMU.

These files run on the importer's machine, in a package of their own whose name carries the FMU's token. They import
the standard library, each other (relatively) and ``pythonfmu``; never ``mb2fmu``, never SymPy.
"""
