"""Trials of a running FMU: each tries one kind of behaviour and compares it with the standard.

Input: ``TrialFixture``. Output: observations by rule. Promises: a trial leaves the FMU as others may find it, or runs
last. Must not: depend on another trial.
"""
