"""Lowering: from equations of motion to a program.

Input: ``EquationsOfMotion``. Output: ``ScalarProgram``; ``equation_lowering`` lists its entry points.

Promises: equal subexpressions are computed once; nothing is evaluated that requested results do not need (a position
costs no linear solve); numbers stay exact until rounded once; the same equations give the same program, whatever
``PYTHONHASHSEED``.

Must not: know FMI, printers of other languages, or how the equations were formed; no SymPy object leaves this stage.
"""

from mb2fmu.compiler.lowering.auxiliary_program import AuxiliaryProgramBuilder
from mb2fmu.compiler.lowering.equation_lowering import lower_cheapest_equations, lower_equations_to_program

__all__ = ["AuxiliaryProgramBuilder", "lower_cheapest_equations", "lower_equations_to_program"]
