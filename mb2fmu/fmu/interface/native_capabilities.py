"""Abilities of native FMUs, and the parameters that choose their solver.

FMI knows structural parameters from 3.0 on only, and they are about sizes of arrays: the solver is chosen by a fixed
parameter of an enumeration type. It acts in Co-Simulation; in Model Exchange the importer integrates.
"""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.fmu.interface.fmu_interface import Capabilities, FmuVariable, SolverSettings, Target
from mb2fmu.fmu.interface.variable_groups import EnumerationItem, TypeDefinition
from mb2fmu.fmu.solvers import SOLVERS


def describe_native_capabilities(target: Target, *, remembers: bool = False, switches: bool = False) -> Capabilities:
    """Return the abilities of such units; those with discrete memory must be told of accepted steps.

    Args:
        target: Kind of unit.
        remembers: Something is remembered from one accepted step to the next.
        switches: The model has events.
    """
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
        event_mode=new and switches,
        remembers=remembers,
    )


def describe_solver_type(taken: Sequence[str]) -> TypeDefinition:
    """Return the enumeration of solvers, with a name that is not in ``taken``."""
    items = tuple(EnumerationItem(row.item, row.number, row.method) for row in SOLVERS)
    return TypeDefinition(make_free_name("Solver", taken), items=items, description="how the Co-Simulation integrates")


def describe_solver_parameters(
    variables: Sequence[FmuVariable], settings: SolverSettings, internal_step: float | None = None
) -> tuple[FmuVariable, ...]:
    """Return parameters for the choice of solver and its fixed step; they are placed behind ``variables``.

    Args:
        variables: Those of the model; names and value references of theirs are not taken again.
        settings: The choice at export: the start value.
        internal_step: Of the experiment in s; None: fixed steps are the communication steps.
    """
    taken = [variable.name for variable in variables]
    free = max(variable.value_reference for variable in variables) + 1
    choice = FmuVariable(
        name=make_free_name("solver", taken),
        value_reference=free,
        causality="parameter",
        variability="fixed",
        initial="exact",
        start=float(settings.choice),
        source="solver",
        index=0,
        kind="enumeration",
        description="how the Co-Simulation integrates",
    )
    step = FmuVariable(
        name=make_free_name("solver_step", taken),
        value_reference=free + 1,
        causality="parameter",
        variability="fixed",
        initial="exact",
        start=0.0 if internal_step is None else float(internal_step),
        minimum=0.0,
        unit="s",
        source="solver_step",
        index=0,
        description="longest internal step of solvers with fixed steps; 0: the communication step",
    )
    return choice, step


def make_free_name(wanted: str, taken: Sequence[str]) -> str:
    """Return ``wanted``, with underscores added until the name is not in ``taken``."""
    while wanted in taken:
        wanted += "_"
    return wanted
