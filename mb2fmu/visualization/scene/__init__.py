"""Scenes and drawings: the visible parts of a mechanism, their poses over time, meshes and contacts.

Input: ``Mechanism`` and a motion. Output: ``Scene`` and ``Drawing``. Promises: the same motion gives the same
drawing. Must not: paint; pages and still pictures do.
"""
