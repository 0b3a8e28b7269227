"""Sections of the pages: facts, errors, events, what was exercised, independent checks, measurements.

Input: results of the validation. Output: records that the templates print. Promises: what was not judged is listed,
too. Must not: judge; numbers are copied.
"""
