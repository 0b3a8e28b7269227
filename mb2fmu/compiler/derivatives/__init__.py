"""Derivatives of a program's entry points, as further entry points.

Input: ``ScalarProgram``. Output: a ``ScalarProgram`` with tangents (``forward``), adjoints (``reverse``), Jacobians,
and all that a native FMU offers (``derivative_entry_points``). Linear solves and Newton's method are differentiated by
the implicit function theorem (``implicit``).

Promises: exact derivatives (no differences), of every result that the program has, with few operations more.

Must not: know SymPy, mechanics, or FMI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.compiler.derivatives.derivative_entry_points import (
        MAX_JACOBIAN_OPERATIONS,
        ProgramWithDerivatives,
        add_fmu_derivatives,
    )
    from mb2fmu.compiler.derivatives.forward_derivatives import (
        SparseJacobianEntryPoint,
        differentiate_forward,
        form_jacobian,
    )
    from mb2fmu.compiler.derivatives.reverse_derivatives import differentiate_reverse
    from mb2fmu.compiler.derivatives.variational_equations import add_variational_jacobian, add_variational_states

__all__ = [
    "MAX_JACOBIAN_OPERATIONS",
    "ProgramWithDerivatives",
    "SparseJacobianEntryPoint",
    "add_fmu_derivatives",
    "add_variational_jacobian",
    "add_variational_states",
    "differentiate_forward",
    "differentiate_reverse",
    "form_jacobian",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "derivative_entry_points": "MAX_JACOBIAN_OPERATIONS ProgramWithDerivatives add_fmu_derivatives",
        "forward_derivatives": "SparseJacobianEntryPoint differentiate_forward form_jacobian",
        "reverse_derivatives": "differentiate_reverse",
        "variational_equations": "add_variational_jacobian add_variational_states",
    },
)
