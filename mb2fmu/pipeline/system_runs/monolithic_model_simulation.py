"""Simulate the model of a whole system, with which the coupled one is compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.pipeline.derivation.event_requirements import needs_event_handling
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import start_values
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.pipeline.simulation.model_simulation import simulate_derivation
from mb2fmu.systems.wired_system import CouplingError
from mb2fmu.validation.modes.located_events import IntegrationEventLog
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.reference.reference_run import (
    compute_start_state,
    drop_diagnostic_outputs,
    integrate_reference,
    list_compared_variables,
    make_numeric_equations,
    observe_trajectory,
)
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations

Floats = npt.NDArray[np.float64]

MONOLITHIC_TOLERANCE = 1e-11
"""Relative tolerance with which the whole model is integrated."""


def simulate_monolithic_model(
    derivation: DerivationResult, time: Floats, tolerance: float = MONOLITHIC_TOLERANCE, where: str = ""
) -> dict[str, Floats]:
    """Return a model's variables at given times, by FMU name; inputs keep their start values.

    By the equations of its reference; a model with events, contacts or friction that sticks by its FMU, which finds
    them, with the tolerance of the model's own experiment.

    Args:
        derivation: Of the model.
        time: In s, rising from 0 on, shape (n_t,); of a model with events at equal distances.
        tolerance: Relative.
        where: Of the declaration, for messages.

    Raises:
        CouplingError: If a model with events is requested at times of unequal distances.
        ValidationError: If the integration stops early, or x' has no value at the start.
    """
    if needs_event_handling(derivation):
        return _simulate_by_fmu(derivation, time, where)
    return integrate_reference_equations(derivation.mechanism, time, tolerance)


def integrate_reference_equations(
    read: Mechanism, time: Floats, tolerance: float = MONOLITHIC_TOLERANCE
) -> dict[str, Floats]:
    """Return coordinates, speeds, states and outputs of a mechanism at given times; arguments as above.

    Steps end at these times: between steps the method knows its states to seventh order only, which was a thousand
    times worse than its tolerance in the rates of an excavator's arm (2.8e-8 of their size at 1e-13).

    Raises:
        ValidationError: If the integration stops early, or x' has no value at the start.
    """
    definition, chosen = read.declared, choose_reference_equations(read, None)
    equations = drop_diagnostic_outputs(chosen.equations)
    numeric = (
        NewtonEulerEquations(chosen.mechanism, equations)
        if chosen.mechanism
        else make_numeric_equations(equations, definition)
    )
    numeric.compile()
    held = np.tile([float(item.start) for item in definition.inputs], (len(time) - 1, 1))
    run = replace(form_experiment_values(definition), time=time, inputs=held)
    log = IntegrationEventLog()
    try:
        start = np.append(compute_start_state(numeric, run), 0.0)
        motion = integrate_reference(numeric, run, start, tolerance, np.ones(len(start)), event_log=log)
    except ValidationError as error:
        raise ValidationError(f"{definition.name} cannot be simulated:", error.faults) from error
    values, _, _ = observe_trajectory(numeric, run, motion[:, :-1], numeric.prepare(run.parameters), log.modes)
    variables = list_compared_variables(definition, equations)
    return {variable.name: column for variable, column in zip(variables, values.T, strict=True)}


def _simulate_by_fmu(derivation: DerivationResult, time: Floats, where: str) -> dict[str, Floats]:
    """Return the motion of the whole by the model's own FMU."""
    steps = np.diff(time)
    if np.ptp(steps) > 1e-9 * steps[0]:
        fault = Fault("the whole has events, and is known at equal steps only", where, "leave accuracy= out")
        raise CouplingError("the system cannot be compared with its whole:", [fault])
    values = start_values(derivation)[1].tolist()
    held = dict(zip((each.name for each in derivation.definition.inputs), values, strict=True))
    found = simulate_derivation(derivation, inputs=held, stop=float(time[-1]), step=float(time[-1]) / len(steps))
    return {name: found[name] for name in found.names}
