"""Validate an FMU, render its pages, and publish both together.

Input: ``FmuBuildResult``, or any FMU and a model. Output: verdicts, pages and published files. Promises: until a
verdict is there, the folder of results stays as it was. Must not: judge by itself; ``validation`` does.
"""
