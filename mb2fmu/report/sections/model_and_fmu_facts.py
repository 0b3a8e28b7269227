"""Facts about model and FMU that need no run: size, equations, variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from mb2fmu.fmu.integration_method_table import find_integration_method_by_kind
from mb2fmu.fmu.interface.fmu_interface import FmuCapabilities, FmuInterface, FmuSolverSettings, FmuVariable
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.formulation_registry import METHOD_TITLES
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, DeclaredVariable, Input, Parameter, Speed
from mb2fmu.report.equation_display.mathml import format_mathml_identifier
from mb2fmu.report.number_format import format_declared_number
from mb2fmu.report.pages.report_page_records import FmuVariableRow, ReportFact
from mb2fmu.version import __version__

_ROLE_DESCRIPTIONS = {
    "independent": "time",
    "parameter": "parameter",
    "calculatedParameter": "calculated parameter",
    "input": "input",
    "output": "output",
}


def list_fmu_facts(interface: FmuInterface | None, platforms: Sequence[str]) -> tuple[ReportFact, ...]:
    """Return standard, kinds and platforms of the FMU, and its tools; nothing for a foreign FMU."""
    if interface is None:
        return ()
    native = interface.target.backend == "native"
    kinds = "Model Exchange and Co-Simulation" if native else "Co-Simulation, needs Python on the importer's machine"
    facts = [
        ("FMU", f"FMI {interface.target.fmi}.0, {kinds}"),
        ("Runs on", ", ".join(platforms)),
        ("Made by", f"mb2fmu {__version__}"),
    ]
    return tuple(ReportFact(term, text) for term, text in facts if text)


def summarize_fmu(equations: EquationsOfMotion, interface: FmuInterface, platforms: Sequence[str]) -> str:
    """Return one sentence: FMI version, kinds, platforms, size of the mechanism, and formulation."""
    native = interface.target.backend == "native"
    kinds = "ME and CS" if native else "CS, needs Python where it runs"
    rows = len(equations.velocity_constraints.names) if equations.velocity_constraints else 0
    speeds, constraints = len(equations.u), rows or len(equations.holonomic)  # rows: those of positions, too
    size = f"{speeds} speeds under {constraints} constraint{'s' * (constraints != 1)}"
    if not constraints:
        size = f"{speeds} degree{'s' * (speeds != 1)} of freedom"
    further = len(equations.z)
    size += f", {further} further state{'s' * (further != 1)}" if further else ""
    where = f" for {', '.join(platforms)}" if platforms else ""
    return f"FMI {interface.target.fmi}.0 ({kinds}){where}; {size}; {METHOD_TITLES[equations.method]}"


def list_model_facts(
    definition: DeclaredModelContent, equations: EquationsOfMotion, interface: FmuInterface | None
) -> tuple[ReportFact, ...]:
    """Return size of the mechanism, source of the mechanics, experiment; of the FMU only what is known."""
    experiment = definition.experiment
    dependent = len(equations.u_dependent)
    speeds = f"{len(equations.u)}" + (f", {dependent} of them dependent" if dependent else "")
    facts = [
        ReportFact("Source", definition.origin),
        ReportFact("Equations by" if interface else "Reference by", METHOD_TITLES[equations.method]),
        ReportFact("Coordinates", f"{len(equations.q)}"),
        ReportFact("Speeds", speeds),
        ReportFact("Auxiliary states", f"{len(equations.z)}" if equations.z else ""),
        ReportFact("Constraints", _describe_constraints(equations), note=_describe_projection_accuracy(equations)),
        ReportFact("Parameters", f"{len(definition.parameters)}"),
        ReportFact("Inputs", ", ".join(record.name for record in definition.inputs) or "none"),
        ReportFact("Outputs", f"{len(equations.outputs)}"),
        ReportFact(
            "Experiment",
            f"0 to {format_declared_number(experiment.stop)} s in steps of {format_declared_number(experiment.step)} s",
        ),
        ReportFact("Solver of the FMU", _describe_solver(interface.solver, experiment.step) if interface else ""),
        ReportFact("The FMU", _describe_capabilities(interface.capabilities) if interface else ""),
    ]
    return tuple(fact for fact in facts if fact.text)


def describe_equations(equations: EquationsOfMotion, interface: FmuInterface | None) -> str:
    """Return one paragraph before the equations."""
    whose = "The FMU's equations" if interface else "The reference's equations (the FMU's are not known)"
    return (
        f"{whose}, formed by {METHOD_TITLES[equations.method]}. A dot is a derivative with respect to time. "
        "Entries too "
        "long for their matrix are listed below it; what has a name of its own is among the intermediates."
    )


def list_variable_rows(interface: FmuInterface, definition: DeclaredModelContent) -> tuple[FmuVariableRow, ...]:
    """Return one row per variable of the FMU, in order."""
    symbols = _symbol_names(definition)
    return tuple(
        FmuVariableRow(
            name=variable.name,
            symbol=_format_symbol(symbols, variable.derivative_of or variable.name, 1 if variable.derivative_of else 0),
            role=_describe_role(variable),
            unit=variable.unit,
            start="" if variable.start is None else format_declared_number(variable.start),
            bounds=_format_bounds(variable),
            description=variable.description,
        )
        for variable in interface.variables
    )


def list_declared_variable_rows(definition: DeclaredModelContent) -> tuple[FmuVariableRow, ...]:
    """Return one row per declared variable, for an FMU about which nothing else is known."""
    roles: tuple[tuple[str, tuple[DeclaredVariable, ...]], ...] = (
        ("parameter", definition.parameters),
        ("input", definition.inputs),
        ("coordinate", definition.coordinates),
        ("speed", definition.speeds),
        ("auxiliary state", definition.auxiliary_states),
    )
    symbols = _symbol_names(definition)
    return tuple(
        FmuVariableRow(
            name=record.name,
            symbol=_format_symbol(symbols, record.name),
            role=role,
            unit=record.unit,
            start=_format_start_value(record),
            bounds=_format_bounds(record),
            description=record.description,
        )
        for role, records in roles
        for record in records
    )


def list_variable_descriptions(definition: DeclaredModelContent, equations: EquationsOfMotion) -> dict[str, str]:
    """Return variable → its description."""
    declared = (*definition.inputs, *definition.coordinates, *definition.speeds, *definition.auxiliary_states)
    return {r.name: r.description for r in declared} | {o.name: o.description for o in equations.outputs}


def _describe_constraints(equations: EquationsOfMotion) -> str:
    """Say how many constraints there are, and how they are treated."""
    holonomic = len(equations.holonomic)
    velocity = len(equations.velocity_constraints.names) if equations.velocity_constraints else 0
    by = f" (treated by {equations.treatment})" if equations.treatment else ""
    parts = [f"{holonomic} holonomic{by}" if holonomic else "", f"{velocity} on velocities" if velocity else ""]
    return ", ".join(part for part in parts if part)


def _describe_projection_accuracy(equations: EquationsOfMotion) -> str:
    """Say how accurate x' is where states are projected onto constraints; nothing for others."""
    return _PROJECTION_ACCURACY_TEXT if equations.holonomic and equations.treatment == "attractor" else ""


_PROJECTION_ACCURACY_TEXT = (
    "Where links come to lie flat, or two branches of the assembly meet, x' follows the states' last digits: within "
    "1e-3 rad (or of a length) of such a position it is uncertain by about 1e-6 of itself, within 1e-4 by 1e-3, within "
    "1e-5 it is not known. An integrator outside of the FMU that steps into the last of these may give up; in "
    "Co-Simulation the states are put back on the constraints after each communication step"
)
"""Measured on ``models/n_four_bar.py``, see docs/explanation/constraints.md."""


def _describe_solver(solver: FmuSolverSettings, step: float) -> str:
    """Return solver and step or tolerance, in words."""
    row = find_integration_method_by_kind(solver.kind)
    if row.fixed:
        return f"{row.title}, fixed step {format_declared_number(solver.internal_step or step)} s"
    return f"{row.title}, relative tolerance {format_declared_number(solver.tolerance)}"


def _describe_capabilities(capabilities: FmuCapabilities) -> str:
    """Say what the FMU can do, and what it needs."""
    parts = [
        "its state can be saved, restored and serialized" if capabilities.state else "",
        "needs software on the importer's machine" if capabilities.needs_execution_tool else "",
    ]
    return "; ".join(part for part in parts if part)


def _symbol_names(definition: DeclaredModelContent) -> dict[str, str]:
    """Return variable → name of its symbol in the equations."""
    records: tuple[Parameter | Input | Coordinate | Speed | AuxiliaryState, ...] = (
        *definition.parameters,
        *definition.inputs,
        *definition.coordinates,
        *definition.speeds,
        *definition.auxiliary_states,
    )
    return {r.name: str(getattr(r.symbol, "name", r.symbol.func.__name__)) for r in records}


def _format_symbol(symbols: Mapping[str, str], name: str, dots: int = 0) -> Markup:
    """Return a variable's symbol as MathML; empty if it has none."""
    if name not in symbols:
        return Markup()
    return Markup(f"<math>{format_mathml_identifier(symbols[name], dots)}</math>")  # noqa: S704 (identifier escapes)


def _format_start_value(record: DeclaredVariable) -> str:
    """Return a start value as text."""
    value = getattr(record, "start", getattr(record, "value", ""))
    return format_declared_number(value) if isinstance(value, float) else str(value)


def _describe_role(variable: FmuVariable) -> str:
    """Say how an importer may use a variable."""
    if variable.derivative_of is not None:
        role = "derivative"
    elif variable.source == "state":
        role = "state"
    else:
        role = _ROLE_DESCRIPTIONS.get(variable.causality, "local variable")
    return f"{role}, fixed" if variable.causality == "parameter" and variable.variability == "fixed" else role


def _format_bounds(record: FmuVariable | DeclaredVariable) -> str:
    """Return the bounds as text, such as 0 … 1 or ≥ 0; empty without any."""
    low, high = record.minimum, record.maximum
    if low is not None and high is not None:
        return f"{format_declared_number(low)} … {format_declared_number(high)}"
    return (
        f"≥ {format_declared_number(low)}"
        if low is not None
        else f"≤ {format_declared_number(high)}"
        if high is not None
        else ""
    )
