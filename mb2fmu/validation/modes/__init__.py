"""Equations with events: switches, contacts, friction, latches and impacts in given modes, in numbers.

Input: equations or a mechanism. Output: motions, impulses and modes at one instant. Promises: modes are found by the
laws of each row, not by the FMU's order of search. Must not: use the FMU's program.
"""
