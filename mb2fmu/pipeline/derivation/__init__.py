"""From a model to its program: load, check, import, choose a formulation, formulate, lower.

Input: a model or its file, and options. Output: ``DerivationResult`` with every intermediate, and x' as a callable.
Promises: every intermediate is made once and kept. Must not: describe, print or run an FMU.
"""
