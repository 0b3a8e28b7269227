"""Arithmetic: Python functions for the operations of a program, on numbers, arrays and linear systems.

Input: numbers, or arrays over a batch. Output: numbers, or arrays. The files of this room are copied into FMUs that a
Python host runs; the evaluator runs them too, and the builder folds constants with them: one meaning of each operation.

Promises: the same bits for one state in the evaluator and in a unit; inf and NaN as IEEE 754 has them where requested.

Must not: import anything but ``math``, ``numpy`` and each other.
"""
