"""Explicit loops: dependent coordinates of closed loops in closed form of the independent ones.

Input: ``Mechanism``. Output: ``ClosedFormLoops``: a form for each loop, in an order in which what it uses is known.
Promises: each form is on the branch of the start values; a loop that no kind fits is refused with the reason.
Must not: iterate, or choose another branch. A kind is one file and one class (:class:`LoopClosedFormSolver`);
``CLOSED_FORM_LOOP_SOLVERS`` lists them.

Source: the loops of PyMbs (C. Schubert, J. Frank, Technische Universität Dresden: ``AddLoop.FourBar``,
``AddLoop.CrankSlider``, ``AddLoop.FourBarTrans``, ``AddLoop.Transmission``); M. Hiller, Mechanische Systeme, Springer
1983 (characteristic pair of joints: a loop that is cut at them closes explicitly).
"""

from mb2fmu.mechanics.formulations.loops.closed_form_loop_protocol import (
    AssemblyBranchStartValues,
    LoopClosedFormSolver,
    LoopClosureEquations,
    LoopKindMismatchError,
    make_closed_form_loop_solution,
)
from mb2fmu.mechanics.formulations.loops.closed_form_loop_recognition import ClosedFormLoops, find_closed_form_loops
from mb2fmu.mechanics.formulations.loops.transmission_loop_closed_form import TransmissionLoopSolver

__all__ = [
    "AssemblyBranchStartValues",
    "ClosedFormLoops",
    "LoopClosedFormSolver",
    "LoopClosureEquations",
    "LoopKindMismatchError",
    "TransmissionLoopSolver",
    "find_closed_form_loops",
    "make_closed_form_loop_solution",
]
