"""Evaluation: entry points of a program as NumPy callables, for one state or a batch of them.

Input: ``Program``. Output: ``Evaluator``, and the printed Python source that it runs (``printer``); FMUs hosted by
Python are made of the same source, so both give the same bits.

Promises: numbers are printed by ``repr`` and read back to the same bits; of a batch, instances that fail are NaN.

Must not: know SymPy, mechanics, or FMI.
"""

from mb2fmu.compiler.evaluation.numpy_evaluator import Evaluator, evaluator
from mb2fmu.compiler.evaluation.numpy_printer import print_function

__all__ = ["Evaluator", "evaluator", "print_function"]
