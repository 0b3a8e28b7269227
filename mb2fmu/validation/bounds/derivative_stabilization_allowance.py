"""Allow for what constraint stabilization does to derivatives of x' at a state beside the constraints.

x is drawn to the nearest point P(x) of the constraints by α (x - P(x)). On them, where the reference is, that is
nothing, and stays so along them. An FMU's own state is as far away as its integrator's errors have brought it: α has
an effect of its own there, and what lies along the constraints at the reference's state leads off them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.validation.reference.finite_differences import DirectionalDifferences
from mb2fmu.validation.reference.reference_run import ReferenceRun

Floats = npt.NDArray[np.float64]

_NORM_RATIO = 4.0  # times a distance, in another norm
_DIRECTION_STEP = 1e-4  # of a direction


def compute_stabilization_effect(
    reference: ReferenceRun,
    directions: DirectionalDifferences,
    row: int,
    x: Floats,
    parameters: Sequence[float],
    default_rate: float,
) -> Floats:
    """Return how far derivatives of x' may be off through constraint stabilization, shape as ``directions.rates``.

    Args:
        reference: Of the experiment.
        directions: What was compared.
        row: The communication point.
        x: The FMU's own state there.
        parameters: Free ones.
        default_rate: α where it is no parameter of the reference: a model that is read again does not have the FMU's.
    """
    numeric, t = reference.numeric, float(reference.experiment.time[row])
    rate, parameter_symbols = numeric.equations.attractor_rate, numeric.equations.p
    if rate is None:
        return np.zeros_like(directions.rates)
    prepared = numeric.prepare(list(parameters))
    index = parameter_symbols.index(rate) if rate in parameter_symbols else None
    stabilization_rate = default_rate if index is None else parameters[index]

    def distance_to_constraints(state: Floats) -> Floats:
        """Return the way to the constraints."""
        return state - numeric.project(t, state, reference.experiment.inputs_at(row), prepared)

    def differentiate_distance(v: Floats) -> Floats:
        """Return its derivative along a direction: central differences, extrapolated."""
        derivative, largest_parts = (
            (distance_to_constraints(x + step * v) - distance_to_constraints(x - step * v)) / (2 * step)
            for step in (_DIRECTION_STEP, 2 * _DIRECTION_STEP)
        )
        return np.asarray((4 * derivative - largest_parts) / 3)

    effects = []
    for v, dp in zip(directions.variables[:, list(reference.state_columns)], directions.parameters, strict=True):
        try:
            effect = np.zeros(len(x)) if index is None else np.abs(dp[index] * distance_to_constraints(x))
            effect += stabilization_rate * np.abs(differentiate_distance(v)) if np.any(v) else 0.0
        except (ValidationError, ArithmeticError, ValueError):
            effect = np.zeros(len(x))
        # the FMU's nearest point on the constraints is nearest in another norm; that of q without u
        parts = effect / reference.state_scales
        largest_parts = np.where(
            np.arange(len(x)) < numeric.n_q, np.max(parts[: numeric.n_q], initial=0.0), np.max(parts)
        )
        effects.append(_NORM_RATIO * largest_parts * reference.state_scales)
    return np.array(effects).reshape(directions.rates.shape)
