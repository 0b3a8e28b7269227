"""Mechanics: import a mechanism, and form its equations of motion by one of several methods.

Input: ``CheckedModel``, the checked model. Output: ``EquationsOfMotion``. ``mechanism`` imports the SymPy objects
into records, ``formulations`` forms the equations, ``equations`` has the records of the equations.

Promises: the user's SymPy objects stay unchanged; all formulations agree wherever they apply.
Must not: know how equations are evaluated, or anything of FMI.
"""
