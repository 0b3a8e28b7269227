"""Numerics: linear and nonlinear systems as nodes of a program, written out or as block statements.

Input: a ``ProgramBuilder`` and nodes of matrices and right-hand sides. Output: nodes of the solutions.

    linear_solve        dense and sparse systems: LDLᵀ, pivoted LU, elimination written out where that is cheap and safe
    constraint_systems  G Gᵀ y = r, regular where constraints lose rank; speeds put onto constraints
    eigenspaces         the space of a symmetric matrix's largest eigenvalues
    saddle, elimination, multipliers   accelerations and multipliers under velocity constraints

Promises: no rank and no pivot is decided that later steps would have to remember; equal input gives equal nodes.

Must not: know SymPy, equations of motion, or FMI.
"""
