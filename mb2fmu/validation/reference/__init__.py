"""The reference: integrate the experiment directly, to high order, with its own uncertainty.

Input: equations as functions of numbers. Output: ``ReferenceRun`` with trajectory, scales, events and sensitivities.
Promises: shares nothing with the program that it judges. Must not: look at an FMU.
"""
