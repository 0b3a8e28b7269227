"""Integrate x' = f(t, x, r_k) from one communication point to the next, to the accuracy of doubles.

Every step between two communication points is integrated by itself, starting with the step size that the one
before ended with: inputs that jump there need it, and where they do not, it saves the error of dense output (only of
order 7).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import SingularReferenceMatrixError

Floats = npt.NDArray[np.float64]
SlopeFunction = Callable[[float, Floats], Floats]
HeldSlopeFunction = Callable[[int], SlopeFunction]
BatchSlopeFunction = Callable[[Floats, Floats], Floats]
"""y' at several instants: times, shape (k,), and values, shape (k, n), to slopes, shape (k, n)."""
HeldBatchSlopeFunction = Callable[[int], BatchSlopeFunction]

# Below this SciPy ignores the tolerance; at it the error is round-off.
TIGHTEST_SOLVER_TOLERANCE = 2.3e-14
_NOISY_TOLERANCE = 1e-10  # tolerances from here on are not far from round-off
_ROUND_OFF_SAMPLES = 6


def integrate_smooth_equations(
    slope: HeldSlopeFunction,
    time: Floats,
    start: Floats,
    tolerance: float,
    scales: Floats,
    budget: int,
    parts: int = 1,
    project: Callable[[int], Callable[[float, Floats], Floats]] | None = None,
) -> Floats:
    """Integrate by Dormand and Prince's method of order 8(5, 3), with a step end at every communication point.

    Args:
        slope: k → f(t, y) with the inputs held over step k.
        time: Communication points, shape (n_t,).
        start: y at ``time[0]``, shape (n,).
        tolerance: Relative; the local error of y_j is kept below ``tolerance`` (``scales[j]`` + |y_j|).
        scales: Magnitude of each y_j, > 0.
        budget: Evaluations of f that may be spent.
        parts: At least so many steps between two points.
        project: k → (t, y) → the point of the manifold of the constraints that is nearest to y, where every step ends.

    Returns:
        Shape (n_t, n).

    Raises:
        ValidationError: If the step size vanishes or the budget is spent: the equations are stiff or singular there.
    """
    from scipy.integrate import DOP853  # takes long to import, and equations in C do without

    # So many times the round-off of one slope may stand in the estimated error of a step, over its size.
    error_weight_sum = float(np.sum(np.abs(DOP853.E5)))
    y = np.empty((len(time), len(start)))
    y[0] = start
    step, evaluations_spent, noise = np.inf, 0, np.zeros(len(start))
    for k, (begin, end) in enumerate(zip(time[:-1].tolist(), time[1:].tolist(), strict=True)):
        f, largest_step = return_nan_outside_domain(slope(k)), (end - begin) / parts
        noise = np.maximum(noise, _estimate_slope_round_off(f, begin, y[k])) if tolerance <= _NOISY_TOLERANCE else noise
        solver = DOP853(
            f,
            begin,
            y[k],
            end,
            first_step=min(step, largest_step) if np.isfinite(step) else None,
            max_step=largest_step,
            rtol=max(tolerance, TIGHTEST_SOLVER_TOLERANCE),
            atol=tolerance * scales
            + min(step, largest_step) * error_weight_sum * noise,  # SciPy takes one per component
        )
        require_slope_at_start(solver.t, solver.f, y[: k + 1])
        while solver.status == "running":
            failure = solver.step()
            if failure:
                raise make_integration_standstill_error(
                    solver.t, failure.rstrip("."), np.vstack([y[: k + 1], solver.y])
                )
            if project:
                solver.y = project(k)(solver.t, solver.y)
                solver.f = solver.fun(solver.t, solver.y)
            if evaluations_spent + solver.nfev > budget:
                raise make_integration_standstill_error(
                    solver.t, f"{budget} evaluations are spent", np.vstack([y[: k + 1], solver.y])
                )
        y[k + 1] = solver.y
        step, evaluations_spent = solver.h_abs, evaluations_spent + solver.nfev
    return y


def _estimate_slope_round_off(slope: SlopeFunction, t: float, y: Floats) -> Floats:
    """Return the accuracy of the slopes at y: their change if every y_j moves by some units of round-off, (n,).

    A state that is nothing but round-off (a rate of a parallelogram's coupler) has no scale of its own that steps could
    be steered by; no step makes its error smaller than its size times this.
    """
    slope_at_y, numbers = slope(t, y), np.arange(len(y))
    units = [(sample * (numbers + 1) + numbers) % 5 - 2 for sample in range(_ROUND_OFF_SAMPLES)]
    changes = np.abs([slope(t, y * (1 + unit * np.finfo(float).eps)) - slope_at_y for unit in units])
    return np.asarray(np.max(np.where(np.isfinite(changes), changes, 0.0), axis=0))


def return_nan_outside_domain(slope: SlopeFunction) -> SlopeFunction:
    """Turn errors of the domain, singular matrices and what overflows into NaN: a shorter step is tried."""

    def guarded(t: float, y: Floats) -> Floats:
        """Return the slope; NaN where it cannot be evaluated or is not finite."""
        try:
            y_dot = slope(t, y)
        except (ArithmeticError, ValueError, SingularReferenceMatrixError):
            return np.full_like(y, np.nan)
        return y_dot if np.isfinite(y_dot).all() else np.full_like(y, np.nan)

    return guarded


def require_slope_at_start(t: float, slope: npt.ArrayLike, reached: Floats) -> None:
    """Raise the error of a standstill where an integration begins and the slope has no value: SciPy would never end."""
    if not np.isfinite(slope).all():
        raise make_integration_standstill_error(t, "x' has no value", reached)


def make_slope_at_instants(slope: SlopeFunction) -> BatchSlopeFunction:
    """Evaluate a slope at several instants, one after the other; rows outside of the domain are NaN."""
    guarded = return_nan_outside_domain(slope)

    def several(times: Floats, values: Floats) -> Floats:
        return np.array([guarded(t, y) for t, y in zip(times.tolist(), values, strict=True)])

    return several


REFERENCE_HEADLINE = "the reference cannot be integrated:"


class IntegrationStandstillError(ValidationError):
    """An integration came to a standstill.

    Attributes:
        time: When, in s.
        reason: Why, as the integrator sees it.
        reached: y at the communication points before, shape (k, n); None where it is not known.
    """

    time: float
    reason: str
    reached: Floats | None


_STANDSTILL_REMEDY = (
    "x' has no value there (a root or logarithm of a negative number, a division by zero), or the position is "
    "singular: other start values or parameters, an earlier stop, or stiff=True"
)


def make_integration_standstill_error(
    t: float, reason: str, reached: Floats | None = None, *, headline: str = REFERENCE_HEADLINE,
    remedy: str = _STANDSTILL_REMEDY,
) -> IntegrationStandstillError:  # fmt: skip
    """Return the error of an integration that ends at t, in s; ``reached``: y up to there, if it is known."""
    error = IntegrationStandstillError(headline, [Fault(f"at t = {t:.6g} s {reason}", remedy=remedy)])
    error.time, error.reason, error.reached = t, reason, reached
    return error
