"""How CVODE solves the implicit equations of its steps: by fixed-point iteration, or by Newton's method as fmpy has it.

Newton's method needs a dense matrix: one evaluation of the derivatives for each state, and n³/3 operations to factorize
it, several times after each event, and inputs that jump at each communication point are events. Fixed-point iteration
needs derivatives only and is as accurate; where the equations are stiff it makes many short steps (A. C. Hindmarsh et
al., SUNDIALS, ACM Transactions on Mathematical Software 31, 2005, section 2.1).
"""

from __future__ import annotations

from ctypes import POINTER, byref, c_double, c_int, c_void_p
from typing import Any

from fmpy.sundials.cvode import CVodeReInit, CVodeSetMaxNumSteps
from fmpy.sundials.libraries import sundials_cvode

LARGE_STATE_COUNT = 100
"""From as many states on, the matrices take most of the time of a run."""
FIXED_POINT_STEPS = 500
"""Steps up to one communication point; who needs more has stiff equations."""
_TOO_MUCH_WORK, _CONVERGENCE_FAILURE = -1, -4

_get_current_time = sundials_cvode.CVodeGetCurrentTime
_get_current_time.argtypes = [c_void_p, POINTER(c_double)]
_set_nonlinear_solver = sundials_cvode.CVodeSetNonlinearSolver
_set_nonlinear_solver.argtypes = [c_void_p, c_void_p]
_make_fixed_point, _make_newton = sundials_cvode.SUNNonlinSol_FixedPoint, sundials_cvode.SUNNonlinSol_Newton
_make_fixed_point.argtypes, _make_fixed_point.restype = [c_void_p, c_int, c_void_p], c_void_p
_make_newton.argtypes, _make_newton.restype = [c_void_p, c_void_p], c_void_p


def use_fixed_point_iteration(solver: Any) -> None:
    """Let one of fmpy's solvers iterate without matrices, ``FIXED_POINT_STEPS`` steps at most."""
    _set_nonlinear_solver(solver.cvode_mem, _make_fixed_point(solver.x, 0, solver.sunctx))
    CVodeSetMaxNumSteps(solver.cvode_mem, FIXED_POINT_STEPS)


def use_newton_iteration(solver: Any, max_steps: int) -> float:
    """Let it iterate as fmpy does, from the state that it has reached; return the time of that in s."""
    time = c_double()
    _get_current_time(solver.cvode_mem, byref(time))
    _set_nonlinear_solver(solver.cvode_mem, _make_newton(solver.x, solver.sunctx))
    CVodeSetMaxNumSteps(solver.cvode_mem, max_steps)
    CVodeReInit(solver.cvode_mem, time.value, solver.x)
    return time.value


def is_too_stiff(solver: Any) -> bool:
    """Return whether its last step failed since it needed too many or too short ones."""
    return bool(solver.error_info) and solver.error_info[0] in (_TOO_MUCH_WORK, _CONVERGENCE_FAILURE)
