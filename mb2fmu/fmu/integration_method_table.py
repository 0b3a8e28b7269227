"""``SOLVERS``: one row per integration method of Co-Simulation; the runtime uses the same numbers.

A new method is a row here, a C file with its step and dense output, its row in
``fmu/emit_c/runtime/solver_methods.c``, and a line in docs/reference/native.md. Choices of the command, the
enumeration that importers see and the names in reports come from here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IntegrationMethod:
    """A method of integration.

    Attributes:
        name: What ``--solver`` calls it.
        kind: What FMUs receive for it: the name, but for the method that experiments call ``fixed``.
        item: Its name in the enumeration that importers see.
        method: What it is, as a clause for importers.
        title: What it is, for reports.
        fixed: It takes equal steps, whatever the error.
    """

    name: str
    kind: str
    item: str
    method: str
    title: str
    fixed: bool = False

    @property
    def number(self) -> int:
        """Value of the enumeration, from 1 on."""
        return SOLVERS.index(self) + 1


SOLVERS = (
    IntegrationMethod(
        "explicit",
        "explicit",
        "DormandPrince",
        "explicit Runge-Kutta method of order 5 with step size control",
        "Runge–Kutta, adaptive",
    ),
    IntegrationMethod(
        "rk4",
        "fixed",
        "RungeKutta4",
        "classical Runge-Kutta method of order 4 with fixed steps",
        "Runge–Kutta of order 4",
        fixed=True,
    ),
    IntegrationMethod(
        "euler",
        "euler",
        "SemiImplicitEuler",
        "semi-implicit Euler method with fixed steps",
        "semi-implicit Euler",
        fixed=True,
    ),
    IntegrationMethod(
        "implicit",
        "implicit",
        "Stiff",
        "implicit method for stiff models with step size control",
        "implicit, adaptive",
    ),
    IntegrationMethod(
        "bogacki_shampine",
        "bogacki_shampine",
        "BogackiShampine",
        "explicit Runge-Kutta method of order 3 with step size control",
        "Runge–Kutta of order 3, adaptive",
    ),
)
"""In the order of their numbers, which are part of what units promise: new ones come last."""


def find_integration_method_by_name(name: str) -> IntegrationMethod:
    """Return the row of a name.

    Raises:
        ValueError: If there is none; the text lists those there are.
    """
    for row in SOLVERS:
        if row.name == name:
            return row
    raise ValueError(f"there is no solver {name!r}; there are {', '.join(row.name for row in SOLVERS)}")


def find_integration_method_by_kind(kind: str) -> IntegrationMethod:
    """Return the row of a kind.

    Raises:
        ValueError: If there is none.
    """
    for row in SOLVERS:
        if row.kind == kind:
            return row
    raise ValueError(f"there is no kind {kind!r} of solver; there are {', '.join(row.kind for row in SOLVERS)}")
