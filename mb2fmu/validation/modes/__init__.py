"""Equations with events: switches, contacts, friction, latches and impacts in given modes, in numbers.

Input: equations or a mechanism. Output: motions, impulses and modes at one instant. Must not: use the FMU's program.
"""
