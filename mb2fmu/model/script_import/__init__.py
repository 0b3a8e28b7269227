"""Import of mechanics from a user's SymPy script, which stays as it is.

Input: a script or notebook. Output: a ``ScriptRun`` (what the script made and which numbers it gave to which symbols)
and ``ScriptMechanics``, by which a model file fetches the mechanics.

Promises: the script runs unchanged, draws nowhere, asks nothing, and writes into a scratch folder only; its first
integration ends it; SymPy's forming of equations is put off, and its objects are returned as if they had never been
formed. All of SymPy and SciPy is as before when the run has ended.

Must not: judge the mechanics, infer units of measurement, or write a model file (``pipeline.adoption`` does).
"""
