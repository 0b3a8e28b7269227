"""Lowering: EquationsOfMotion → Program.

Promises: equal subexpressions are computed once; nothing is evaluated that the asked results do not need (a position
costs no linear solve); numbers stay exact until rounded once; the same equations give the same program, whatever
``PYTHONHASHSEED``.

Must not: know FMI, printers of other languages, or how the equations were formed; no SymPy object leaves this stage.
"""

from mb2fmu.lowering.evaluation import Evaluator, evaluator
from mb2fmu.lowering.lower import lower
from mb2fmu.lowering.python_code import print_function

__all__ = ["Evaluator", "evaluator", "lower", "print_function"]
