"""What native units have beyond the variables of the model: abilities, and the parameter that chooses the solver.

FMI knows structural parameters from 3.0 on only, and they are about sizes of arrays: the solver is chosen by a fixed
parameter of an enumeration type. It acts in Co-Simulation; in Model Exchange the importer integrates.
"""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.interface.description import Capabilities, FmuVariable, SolverSettings, Target
from mb2fmu.interface.grouping import EnumerationItem, TypeDefinition

SOLVERS = (
    EnumerationItem("DormandPrince", 1, "explicit Runge-Kutta method of order 5 with step size control"),
    EnumerationItem("RungeKutta4", 2, "classical Runge-Kutta method of order 4 with fixed steps"),
    EnumerationItem("SemiImplicitEuler", 3, "semi-implicit Euler method with fixed steps"),
    EnumerationItem("Stiff", 4, "implicit method for stiff models with step size control"),
)
"""Values of the enumeration parameter; the runtime counts alike."""


def capabilities(target: Target) -> Capabilities:
    """What units of that kind can do."""
    if target.backend == "python":
        return Capabilities(needs_execution_tool=True, state=True)
    new = target.fmi == "3"
    return Capabilities(
        needs_execution_tool=False,
        state=True,
        model_exchange=True,
        directional_derivatives=True,
        adjoint_derivatives=new,
        input_derivatives=not new,
        output_derivative_order=1,
        intermediate_update=new,
        early_return=new,
    )


def solver_type(taken: Sequence[str]) -> TypeDefinition:
    """The enumeration of solvers, named unlike anything in ``taken``."""
    return TypeDefinition(free_name("Solver", taken), items=SOLVERS, description="how the Co-Simulation integrates")


def solver_parameter(variables: Sequence[FmuVariable], settings: SolverSettings) -> FmuVariable:
    """The parameter that chooses the solver, to be put behind ``variables``.

    Args:
        variables: Those of the model; names and value references of theirs are not taken again.
        settings: The choice at export: the start value.
    """
    return FmuVariable(
        name=free_name("solver", [variable.name for variable in variables]),
        value_reference=len(variables),
        causality="parameter",
        variability="fixed",
        initial="exact",
        start=float(settings.choice),
        source="solver",
        index=0,
        kind="enumeration",
        description="how the Co-Simulation integrates",
    )


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """``wanted``, with as many underscores behind it as it takes to be another name than those of ``taken``."""
    while wanted in taken:
        wanted += "_"
    return wanted
