"""Lowering: from equations of motion to a program.

Input: ``EquationsOfMotion``. Output: ``Program``.

Entry points of a lowered program (labels in brackets):

    prepare           calculated parameters; reads parameters only [their names]
    position          outputs that need q and t [output names]
    velocity          outputs that need u too [output names]
    acceleration      outputs that need u' or constraint forces [output names]
    outputs           all outputs in declared order [output names]
    dependent_speeds  speeds that follow from the velocity constraints [names]
    rhs               x' in the order q, independent u, z [state names]
    accelerations     u' of all speeds [names]
    project           P(x) where the constraints attract the states: the first states, q and u [names]; else nothing
    energy            as far as known [kinetic, potential, power]
    equations         for people and tests [M[i,j] row by row, f[i]]
    forward, inverse  on request: u' for added generalized forces, and forces for given u'
    tangent, adjoint, jacobian, jacobian_time   added by ``add_ensemble_sensitivities``

Promises: equal subexpressions are computed once; nothing is evaluated that the asked results do not need (a position
costs no linear solve); numbers stay exact until rounded once; the same equations give the same program, whatever
``PYTHONHASHSEED``.

Must not: know FMI, printers of other languages, or how the equations were formed; no SymPy object leaves this stage.
"""

from mb2fmu.compiler.lowering.auxiliary_program import AuxiliaryProgramBuilder
from mb2fmu.compiler.lowering.equation_lowering import lower_equations_to_program

__all__ = ["AuxiliaryProgramBuilder", "lower_equations_to_program"]
