"""The perturbed experiment, and which quantities it exercises.

Input: the default reference. Output: moved parameters, start values and inputs, and the exercised ones. Must not: run
an FMU.
"""
