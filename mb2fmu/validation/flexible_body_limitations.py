"""What a reader must know of flexible bodies: spin that stiffens them, large deflections, fast modes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import append_auxiliary_speeds
from mb2fmu.model import CheckedModel
from mb2fmu.model.flexible.runge_kutta_stability_constants import MAX_INTERNAL_STEPS, STABLE_STEP
from mb2fmu.validation.reference.reference_run import ReferenceRun

if TYPE_CHECKING:
    from mb2fmu.model.flexible import FlexibleBody

SPIN_SHARE = 0.1
"""Angular speed over lowest eigenfrequency from which spin changes the square of the frequency by 1 % or more."""

LARGE_DEFLECTION = 0.1
"""Share of a body's size from which displacements are not small: slopes of 0.15 change a beam's curvature by 3 %."""

_MAX_INSTANTS = 200


def list_flexible_body_limitations(
    definition: CheckedModel, mechanism: Mechanism, reference: ReferenceRun
) -> tuple[str, ...]:
    """Return notes on a model's flexible bodies; none where spin and modes are slow enough.

    Args:
        definition: The checked model.
        mechanism: The mechanism imported from it.
        reference: Its motion.
    """
    bodies = definition.flexible_bodies
    if not bodies:
        return ()
    return (
        *_spin_notes(bodies, mechanism, reference),
        *_deflection_notes(bodies, definition, reference),
        *_step_notes(bodies, definition, reference),
    )


def find_largest_flexible_body_spin(mechanism: Mechanism, body: FlexibleBody, reference: ReferenceRun) -> float:
    """Return the largest angular speed of a flexible body's frame along a motion, rad/s."""
    run, numeric = reference.experiment, MechanismEvaluator(mechanism)
    columns = {
        kind: [k for k, variable in enumerate(reference.variables) if variable.kind == kind]
        for kind in ("coordinate", "speed")
    }
    names = {part.name for part in body.bodies}
    frame = next(part.frame for part in mechanism.bodies if part.name in names and part.frame >= 0)
    parameters = numeric.parameters(list(run.parameters))
    z_count, largest = len(mechanism.z), 0.0
    rows = np.unique(np.linspace(0, len(run.time) - 1, _MAX_INSTANTS).round().astype(int))
    for k in rows.tolist():
        values = reference.trajectory.values[k]
        u = append_auxiliary_speeds(mechanism, values[columns["speed"]])
        z = reference.states[k, reference.states.shape[1] - z_count :]
        numeric.set_state(float(run.time[k]), values[columns["coordinate"]], u, z, run.inputs_at(k), parameters)
        largest = max(largest, float(np.linalg.norm(numeric.frames[frame].omega)))
    return largest


def _spin_notes(bodies: tuple[FlexibleBody, ...], mechanism: Mechanism, reference: ReferenceRun) -> Iterator[str]:
    """Yield bodies that spin fast without second-order displacements."""
    for body in bodies:
        if body.data.second_order is not None or not np.any(body.data.modes):
            continue
        largest_spin, lowest = (
            find_largest_flexible_body_spin(mechanism, body, reference),
            float(body.data.frequencies()[0]),
        )
        if largest_spin > SPIN_SHARE * lowest:
            yield (
                f"{body.name} is too soft, and diverges near its lowest eigenfrequency of {lowest:.3g} rad/s: it turns "
                f"at up to {largest_spin:.3g} rad/s without second-order displacements; give second_order=…, or "
                "foreshortening=True of a beam"
            )


def _find_largest_deflection(definition: CheckedModel, body: FlexibleBody, reference: ReferenceRun) -> float:
    """Return the largest displacement of a node in its body's frame along a motion, of first order, m."""
    coordinates = [item.symbol for item in definition.coordinates]
    columns = [k for k, variable in enumerate(reference.variables) if variable.kind == "coordinate"]
    modal_columns = [columns[coordinates.index(q)] for q in body.q]
    rows = np.unique(np.linspace(0, len(reference.experiment.time) - 1, _MAX_INSTANTS).round().astype(int))
    displacements = np.einsum("tk,knj->tnj", reference.trajectory.values[rows][:, modal_columns], body.data.modes)
    return float(np.max(np.linalg.norm(displacements, axis=2)))


def _deflection_notes(
    bodies: tuple[FlexibleBody, ...], definition: CheckedModel, reference: ReferenceRun
) -> Iterator[str]:
    """Yield bodies whose displacements are not small."""
    for body in bodies:
        deflection = _find_largest_deflection(definition, body, reference)
        size = float(np.linalg.norm(np.ptp(body.data.nodes, axis=0)))
        if deflection > LARGE_DEFLECTION * size:
            yield (
                f"{body.name} is displaced by up to {deflection:.3g} m, {100.0 * deflection / size:.0f} % of its size: "
                "modes are for small displacements; make it stiffer, or several bodies in a row"
            )


def _step_notes(bodies: tuple[FlexibleBody, ...], definition: CheckedModel, reference: ReferenceRun) -> Iterator[str]:
    """Yield the fastest mode, where it sets the step of an explicit solver."""
    experiment = definition.experiment
    if experiment.stiff:
        return
    fastest = max(bodies, key=lambda body: float(body.data.frequencies()[-1]))
    frequency = float(fastest.data.frequencies()[-1])
    limit, step = STABLE_STEP / frequency, reference.experiment.step
    internal = step if experiment.internal_step is None else experiment.internal_step
    mode_text = (
        f"the fastest mode of {fastest.name} has {frequency / (2.0 * np.pi):.4g} Hz: explicit steps are stable up "
    )
    mode_text += f"to {limit:.2g} s"
    if experiment.solver == "fixed" and internal > limit:
        yield f"{mode_text}, and internal_step is {internal:.2g} s; shorten it, or leave fast modes out by up_to"
    elif experiment.solver == "adaptive" and step > MAX_INTERNAL_STEPS * limit:
        remedy = "take model.experiment(stiff=True), or leave fast modes out by up_to"
        yield f"{mode_text}, {step / limit:.0f} of them in each communication step; {remedy}"
