"""Analyses and studies: linearization, sensitivities, parameter fits, many cases.

Input: a model or FMU and a plan. Output: records, and folders of results. Must not: analyse by itself; ``analysis``
does.
"""
