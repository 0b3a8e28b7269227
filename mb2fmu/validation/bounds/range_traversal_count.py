"""Count how often a motion traverses its range: over this measure of time, integration errors accumulate.

Step size control keeps the error of a step at about the tolerance times what the step covers, so the error of a method
grows with the way that the motion makes, whatever the tolerance: by Dormand and Prince's method of order 5 it is 0.16
of tolerance · N · range for a spring and a mass, and 0.63 for the nutation of a fast top, N the ranges gone through
(1,400 periods, the same for tolerances from 1e-5 to 1e-9; ``docs/decisions/0051``).

Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 1993, sections II.3 and II.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference.variable_scales import find_moving_variables

Floats = npt.NDArray[np.float64]

_SAMPLED_POINTS = 200
TRANSIENT_RATIO = 100.0
"""Of the rates at two points of a steady oscillation one in a hundred pairs differs by more."""


def count_state_range_traversals(reference: ReferenceRun) -> Floats:
    """Return how often the fastest state has traversed its range by each communication point, shape (n_t,).

    The way of a state is the larger of the sum of its changes from point to point (which has its jumps) and of the
    integral of |x'| (which has what happens between points). Of states that move. Where the rates at both ends of an
    interval differ by more than ``TRANSIENT_RATIO`` something dies out in it (a stiff spring that is not where it rests
    as the run begins): its rate at the end counts, since errors die out with it.
    """
    states, columns = reference.states, list(reference.state_columns)
    time = reference.experiment.time
    if not columns:
        return np.zeros(len(time))
    rows = np.unique(np.linspace(0, len(time) - 1, _SAMPLED_POINTS).astype(np.int64))
    prepared = reference.numeric.prepare(reference.experiment.parameters)
    rates = np.abs([_compute_state_derivative(reference, k, prepared) for k in rows.tolist()])
    smaller, larger = np.minimum(rates[1:], rates[:-1]), np.maximum(rates[1:], rates[:-1])
    mean_rates = np.where(larger > TRANSIENT_RATIO * smaller, smaller, (smaller + larger) / 2)
    rate_integrals_per_interval = mean_rates * np.diff(time[rows])[:, None]
    integrals = np.concatenate([np.zeros((1, len(columns))), np.cumsum(rate_integrals_per_interval, axis=0)])
    travelled = np.cumsum(np.abs(np.diff(states, axis=0, prepend=states[:1])), axis=0)
    is_moving = find_moving_variables(states, reference.trajectory.uncertainty[:, columns], reference.typical[columns])
    ranges = np.where(is_moving, np.ptp(states, axis=0), np.inf)
    counts = [np.maximum(np.interp(time, time[rows], integrals[:, j]), travelled[:, j]) for j in range(len(columns))]
    return np.asarray(np.max(np.array(counts) / ranges[:, None], axis=0))


def _compute_state_derivative(reference: ReferenceRun, k: int, prepared: Sequence[float]) -> Floats:
    """Return x' of the reference at a communication point."""
    numeric, run = reference.numeric, reference.experiment
    t, x, inputs = float(run.time[k]), reference.states[k], run.inputs_at(k).tolist()
    if reference.modes and is_hybrid(numeric):
        return numeric.motion_in_modes(t, x, inputs, prepared, reference.modes[k]).x_dot
    return numeric.motion(t, x, inputs, prepared).x_dot
