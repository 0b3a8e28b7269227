"""Simulate a model or an FMU, one motion or many.

Input: a model or FMU, inputs and values. Output: trajectories, with tables, plots and animations of them. Promises: a
motion that ends early says where and why. Must not: validate.
"""
