"""How much a small error at the start grows: measured, not estimated, because chaos decides what can be judged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.event_sides import apart, for_a_moment
from mb2fmu.validation.event_walk import WalkLog
from mb2fmu.validation.hybrid import HybridEquations
from mb2fmu.validation.reference import Reference, observe, solve

Floats = npt.NDArray[np.float64]

EPSILON = 1e-6
TOLERANCE = 1e-10
DIRECTIONS = 6
POINTS = 200
SEED = 20111


def directions(n: int) -> Floats:
    """Rows of ±1 and 0: each state by itself while they are few, else random signs of all states with a fixed seed."""
    if n <= DIRECTIONS:
        return np.eye(n)
    return np.random.default_rng(SEED).choice(np.array([-1.0, 1.0]), size=(DIRECTIONS, n))


def measure_sensitivity(reference: Reference) -> Floats:
    """Error of each variable per relative error of the state, as it grows over time.

    S_v(t) = max over s ≤ t of the sum (states perturbed one by one) or the maximum (random signs of all states) over
    the directions d of |v(s; x0 + ε d ∘ scale) − v(s; x0)| / ε, with ε = 1e-6 and each state's own scale (``scales``):
    where every state is wrong by a part ε of its scale, v is wrong by at most ε S_v to first order. Where no input
    changes it is measured at about 200 points and interpolated. Points between an event and the same event of the
    perturbed motion are left out: there v differs by a jump, and not by what errors grow to. What is held at the start
    stays so.

    Returns:
        Shape (n_t, n), in the variables' units, never decreasing in time.

    Raises:
        ValidationError: If a perturbed start cannot be integrated.
    """
    numeric = reference.numeric
    run, rows = reference.conditions.thinned(POINTS)
    truth = reference.trajectory.values[rows]
    prepared = numeric.prepare(run.parameters)
    scales = reference.error_scales(TOLERANCE)
    grown = []
    axes = directions(numeric.n_x)
    for direction in axes:
        x0 = numeric.project(0.0, reference.states[0] + EPSILON * direction * reference.state_scales, prepared)
        if isinstance(numeric, HybridEquations):
            x0 = numeric.kept_at_rest(0.0, x0, run.inputs[0].tolist(), prepared, reference.modes[0])
        log = WalkLog()
        moved = solve(numeric, run, np.append(x0, 0.0), TOLERANCE, scales, seen=log)
        values, _, _ = observe(numeric, run, moved[:, :-1], prepared, log.modes)
        between, _ = apart(run.time, reference.events, log.events)
        if reference.modes:
            between |= for_a_moment([reference.modes[row] for row in rows.tolist()], log.modes)
        grown.append(np.where(between[:, None], 0.0, np.abs(values - truth)) / EPSILON)
    if not grown:  # without states nothing is perturbed
        return np.zeros_like(reference.trajectory.values)
    together = np.sum(grown, axis=0) if len(axes) == numeric.n_x else np.max(grown, axis=0)
    largest = np.maximum.accumulate(together, axis=0)
    # Between the points looked at: linear, which keeps it from decreasing.
    return np.array([np.interp(reference.trajectory.time, run.time, column) for column in largest.T]).T
