"""Derivatives of a program's entry points, as further entry points.

Input: ``Program``. Output: a ``Program`` with tangents (``forward``), adjoints (``reverse``), Jacobians, and all that a
native FMU offers (``unit_entries``). Linear solves and Newton's method are differentiated by the implicit function
theorem (``implicit``).

Promises: exact derivatives (no differences), of every result that the program has, with few operations more.

Must not: know SymPy, mechanics, or FMI.
"""

from mb2fmu.compiler.derivatives.fmu_derivative_entries import LARGEST_JACOBIAN, NativeProgram, with_derivatives
from mb2fmu.compiler.derivatives.forward_derivatives import Jacobian, differentiate_forward, jacobian
from mb2fmu.compiler.derivatives.reverse_derivatives import differentiate_reverse
from mb2fmu.compiler.derivatives.variational_equations import with_variations, with_varied_jacobian

__all__ = [
    "LARGEST_JACOBIAN",
    "Jacobian",
    "NativeProgram",
    "differentiate_forward",
    "differentiate_reverse",
    "jacobian",
    "with_derivatives",
    "with_variations",
    "with_varied_jacobian",
]
