"""Evaluation: entry points of a program as NumPy callables, for one state or a batch of them.

Input: ``ScalarProgram``. Output: ``EntryPointEvaluator``, and the printed Python source that it runs (``printer``);
FMUs hosted by Python are made of the same source, so both give the same bits.

Promises: numbers are printed by ``repr`` and read back to the same bits; of a batch, instances that fail are NaN.

Must not: know SymPy, mechanics, or FMI.
"""

from mb2fmu.compiler.evaluation.numpy_evaluator import EntryPointEvaluator, make_evaluator
from mb2fmu.compiler.evaluation.numpy_printer import print_numpy_function

__all__ = ["EntryPointEvaluator", "make_evaluator", "print_numpy_function"]
