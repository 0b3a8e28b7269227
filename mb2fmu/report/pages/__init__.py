"""Whole pages and files for people and machines: of a validation, a description, an audit, a fit, a study.

Input: results. Output: bytes of self-contained HTML, or texts for CI. Promises: a page is one file that needs no
network. Must not: judge; numbers are copied.
"""
