"""Coupled systems: run a declared system, and split one model into several FMUs.

Input: a ``CoupledSystem`` or a model. Output: results and files. Promises: files appear complete or not at all. Must
not: step components by itself; ``systems`` does.
"""
