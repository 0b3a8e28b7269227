"""Analyses and studies: linearization, sensitivities, parameter fits, many cases.

Input: a model or FMU and a plan. Output: records, and folders of results. Promises: a case that fails is recorded and
does not end the others. Must not: analyse by itself; ``analysis`` does.
"""
