"""Say by the numbers why the reference's integration came to a standstill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.validation.reference.smooth_integration import (
    IntegrationStandstillError,
    SlopeFunction,
    make_integration_standstill_error,
    return_nan_outside_domain,
)

Floats = npt.NDArray[np.float64]

_RUNAWAY_RATIO = 30.0
"""Times its largest magnitude in the first half of the motion, at which a state runs away."""
_SHOWN_STATES = 3
_MAX_SHOWN_POINT = 4
_PROBED_PARTS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
"""Of a state's size, or of 1 where it is smaller, by which the point to look at lies further on."""


def diagnose_integration_standstill(
    error: IntegrationStandstillError, slope: SlopeFunction, names: Sequence[str]
) -> ValidationError:
    """Return the error with what the states and their derivatives show where the integration ended.

    Args:
        error: As it was raised, with the states that were reached.
        slope: x' there.
        names: Of the states, which are in SI units.

    Returns:
        ``error`` itself where nothing was reached: then its own remedy holds.
    """
    reached_states = error.reached
    if reached_states is None or not len(reached_states):
        return error
    f = return_nan_outside_domain(slope)
    with np.errstate(all="ignore"):
        derivatives = f(error.time, reached_states[-1])
        point_without_value = _find_point_without_value(f, error.time, reached_states[-1], derivatives)
    if point_without_value is not None:
        state_text = ", ".join(
            f"{name} = {value:.6g}" for name, value in zip(names[:_MAX_SHOWN_POINT], point_without_value, strict=False)
        )
        remainder_text = f" and {len(names) - _MAX_SHOWN_POINT} more states" if len(names) > _MAX_SHOWN_POINT else ""
        problem = f"x' has no value at {state_text}{remainder_text}"
        remedy = "look for a root or logarithm of a negative number, or a division by zero, there; or stop earlier"
        return _form_explained_error(error, problem, remedy)
    if len(reached_states) < 2:
        return error
    derivatives = derivatives[: len(names)]
    sizes = np.abs(reached_states[:, : len(names)])
    early_sizes, late_sizes = np.max(sizes[: max(len(sizes) // 2, 1)], axis=0), np.max(sizes[len(sizes) // 2 :], axis=0)
    ratios = np.divide(late_sizes, early_sizes, out=np.zeros(len(late_sizes)), where=early_sizes > 0.0)
    growing_states = [int(i) for i in np.argsort(-ratios) if ratios[i] > _RUNAWAY_RATIO][:_SHOWN_STATES]
    if growing_states:
        growth_text = ", ".join(f"{names[i]} from {early_sizes[i]:.3g} to {late_sizes[i]:.3g}" for i in growing_states)
        problem = f"x' has values there, and states grow without bound: {growth_text}"
        remedy = "an earlier stop; an unstable feedback, a force with the wrong sign or a damper that drives does so"
    else:
        fastest = int(np.argmax(np.abs(derivatives) / np.maximum(early_sizes, np.finfo(float).tiny)))
        problem = f"x' has values there, and no state grows just before: {names[fastest]} = "
        problem += f"{reached_states[-1][fastest]:.3g} changes fastest, by {derivatives[fastest]:.3g} per second"
        remedy = "stiff=True if the model is stiff; near a singular position start elsewhere, or stop earlier; if the "
        remedy += "value is far too large, look for an unstable feedback"
    return _form_explained_error(error, problem, remedy)


def make_scipy_failure_error(
    solution: Any, slope: SlopeFunction, names: Sequence[str], headline: str, start: float
) -> ValidationError:
    """Return the error of an integration by SciPy that ended early.

    Args:
        solution: Result of ``solve_ivp``.
        slope: x' of t and x.
        names: Of the states.
        headline: What could not be done.
        start: Time at which it began, s.
    """
    time = float(solution.t[-1]) if len(solution.t) else start
    reached_states = np.asarray(solution.y).T if len(solution.t) else None
    reason = "the step size vanishes" if "step size" in solution.message else str(solution.message).rstrip(".")
    error = make_integration_standstill_error(time, f"or soon after {reason}", reached_states, headline=headline)
    return diagnose_integration_standstill(error, slope, names)


def _find_point_without_value(f: SlopeFunction, t: float, y: Floats, derivatives: Floats) -> Floats | None:
    """Return y where x' has no value: there, or a little further on; None if it has values."""
    if not np.all(np.isfinite(derivatives)):
        return y
    rate = float(np.max(np.abs(derivatives) / np.maximum(np.abs(y), 1.0), initial=0.0))
    for part in _PROBED_PARTS if rate > 0.0 else ():
        extrapolated = y + part / rate * derivatives
        if not np.all(np.isfinite(f(t + part / rate, extrapolated))):
            return extrapolated
    return None


def _form_explained_error(error: IntegrationStandstillError, problem: str, remedy: str) -> ValidationError:
    """Return the error of an integration whose end the numbers explain."""
    fault = Fault(f"at t = {error.time:.6g} s {error.reason}; {problem}", "", remedy)
    explained_error = ValidationError(error.headline, [fault])
    explained_error.is_explained = True
    return explained_error
