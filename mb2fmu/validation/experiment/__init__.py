"""The perturbed experiment, and which quantities it exercises.

Input: the default reference. Output: moved parameters, start values and inputs, and the exercised ones. Promises:
equal input gives an equal experiment; what nothing exercises is named. Must not: run an FMU.
"""
