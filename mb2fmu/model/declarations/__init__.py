"""Declarations of a model: what the user declares beside the SymPy mechanics.

Input: calls of methods of ``Model``. Output: frozen records for outputs, events, contacts, latches, loops, terminals,
arrays, appearance and the default experiment.

Promises: each record knows the line of the user's file that made it, where there is one; expressions stay as written.
Must not: check or form equations; that is the work of ``model.checks`` and ``mechanics``.
"""
