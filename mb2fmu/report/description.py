"""What is said about model and unit before anything has run: facts, equations, variables."""

from __future__ import annotations

from markupsafe import Markup
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, System

from mb2fmu.equations.motion import EquationsOfMotion
from mb2fmu.interface.description import FmuInterface, FmuVariable
from mb2fmu.model.definition import ModelDefinition
from mb2fmu.report.content import Fact, VariableRow
from mb2fmu.report.mathml import identifier
from mb2fmu.report.numbers import plain

_METHODS = {
    "kane": "Kane's method",
    "tmt": "the TMT method",
    "lagrange": "Lagrange's method",
    "recursive": "a recursion over the bodies",
}
_ROLES = {
    "independent": "time",
    "parameter": "parameter",
    "calculatedParameter": "calculated parameter",
    "input": "input",
    "output": "output",
}


def model_facts(definition: ModelDefinition, equations: EquationsOfMotion) -> tuple[Fact, ...]:
    """Size of the mechanism, how it was handed over, what was run."""
    experiment = definition.experiment
    dependent = len(equations.u_dependent)
    speeds = f"{len(equations.u)}" + (f", {dependent} of them dependent" if dependent else "")
    facts = [
        ("Handed over as", _door(definition)),
        ("Equations by", _METHODS[equations.method]),
        ("Coordinates", f"{len(equations.q)}"),
        ("Speeds", speeds),
        ("Auxiliary states", f"{len(equations.z)}" if equations.z else ""),
        ("Constraints", _constraints(equations)),
        ("Parameters", f"{len(definition.parameters)}"),
        ("Inputs", ", ".join(record.name for record in definition.inputs) or "none"),
        ("Outputs", f"{len(equations.outputs)}"),
        ("Experiment", f"0 to {plain(experiment.stop)} s in steps of {plain(experiment.step)} s"),
        ("Solver of the unit", _solver(definition)),
    ]
    return tuple(Fact(term, text) for term, text in facts if text)


def equations_text(equations: EquationsOfMotion) -> str:
    """One paragraph before the equations."""
    return (
        f"Formed by {_METHODS[equations.method]}. A dot is a derivative with respect to time; "
        "names with an index beyond the model's own are intermediates or entries listed below their matrix."
    )


def variable_rows(interface: FmuInterface) -> tuple[VariableRow, ...]:
    """One row per variable of the unit, in its order."""
    return tuple(
        VariableRow(
            name=variable.name,
            symbol=_symbol(variable),
            role=_role(variable),
            unit=variable.unit,
            start="" if variable.start is None else plain(variable.start),
            bounds=_bounds(variable),
            description=variable.description,
        )
        for variable in interface.variables
    )


def _door(definition: ModelDefinition) -> str:
    doors = {System: "a SymPy System", KanesMethod: "a KanesMethod", LagrangesMethod: "a LagrangesMethod"}
    return next((text for kind, text in doors.items() if isinstance(definition.mechanics, kind)), "parts")


def _constraints(equations: EquationsOfMotion) -> str:
    holonomic = len(equations.holonomic)
    velocity = len(equations.velocity_constraints.names) if equations.velocity_constraints else 0
    parts = [f"{holonomic} holonomic" if holonomic else "", f"{velocity} on velocities" if velocity else ""]
    return ", ".join(part for part in parts if part)


def _solver(definition: ModelDefinition) -> str:
    experiment = definition.experiment
    if experiment.solver == "fixed":
        return f"Runge–Kutta of order 4, fixed step {plain(experiment.internal_step or experiment.step)} s"
    kind = "implicit, adaptive" if experiment.stiff else "Runge–Kutta, adaptive"
    return f"{kind}, relative tolerance {plain(experiment.tolerance)}"


def _symbol(variable: FmuVariable) -> Markup:
    """The name in mathematical notation, where it is a simple one."""
    state = variable.derivative_of
    base = state or variable.name
    if not base.replace("_", "").isalnum():
        return Markup()
    text = identifier(base, dots=1 if state else 0)
    return Markup(f"<math>{text}</math>")  # noqa: S704 (identifier escapes)


def _role(variable: FmuVariable) -> str:
    if variable.derivative_of is not None:
        role = "derivative"
    elif variable.source == "state":
        role = "state"
    else:
        role = _ROLES.get(variable.causality, "local variable")
    return f"{role}, fixed" if variable.causality == "parameter" and variable.variability == "fixed" else role


def _bounds(variable: FmuVariable) -> str:
    low, high = variable.minimum, variable.maximum
    if low is None and high is None:
        return ""
    return f"{'' if low is None else plain(low)} … {'' if high is None else plain(high)}".strip()
