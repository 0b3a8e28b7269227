"""Driving: run units by fmpy in separate processes, which ``validation.simulate`` starts.

Input: ``request.json``, which names everything; nothing is read from the unit's description. Output: values recorded
in experiments, and the answers of sessions (calls in mid-run).

Promises: what goes wrong in a unit is written down or kills this process only. Nothing but fmpy and NumPy is imported,
so that it begins quickly.

This stage must not judge anything.
"""
