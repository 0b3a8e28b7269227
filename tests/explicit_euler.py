"""Equations integrated by explicit Euler, as some published results are, and as FMUs do that were made so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mb2fmu.validation import ExperimentValues
from mb2fmu.validation.reference.smooth_integration import SlopeFunction
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

Floats = npt.NDArray[np.float64]


def make_slope_with_held_inputs(numeric: NumericEquations, run: ExperimentValues) -> Callable[[int], SlopeFunction]:
    """Return the slope of (x, W) in step k, with the inputs of that step held."""
    return TrajectoryIntegrationProblem(numeric, run.time, run.inputs, numeric.prepare(run.parameters)).slope


def integrate_explicit_euler(slope: Callable[[int], SlopeFunction], time: Floats, start: Floats, step: float) -> Floats:
    """Integrate by explicit Euler with a fixed step, for published results of that kind.

    Args:
        slope: Of a step's number: y' by t in s and y.
        time: Communication points; each interval is divided into equal steps of about ``step``.
        start: y at ``time[0]``.
        step: In s.

    Returns:
        Shape (n_t, n).
    """
    y = np.empty((len(time), len(start)))
    y[0] = start
    for k, (begin, end) in enumerate(zip(time[:-1].tolist(), time[1:].tolist(), strict=True)):
        count = max(1, round((end - begin) / step))
        h = (end - begin) / count
        value, f = y[k], slope(k)
        for i in range(count):
            value = value + h * f(begin + i * h, value)
        y[k + 1] = value
    return y
