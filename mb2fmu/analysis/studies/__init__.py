"""Studies: many runs of one model or unit, and their evaluation.

Input: a compiled program (``ensembles``), or any FMU by its file (``plans``, ``cases``, ``running``). Output: arrays,
and folders of results. ``fitting`` finds parameters from measurements.

Promises: an instance moves as the FMU's solver moves it, to the last bit, whatever runs beside it; a failing case is a
row with its message; what is on disk is whole.

Must not: derive, lower or emit; ``pipeline`` hands over what is made of a model.
"""
