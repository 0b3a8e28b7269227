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
    reached = error.reached
    if reached is None or not len(reached):
        return error
    f = return_nan_outside_domain(slope)
    with np.errstate(all="ignore"):
        derivatives = f(error.time, reached[-1])
        beyond = _find_point_without_value(f, error.time, reached[-1], derivatives)
    if beyond is not None:
        where = ", ".join(
            f"{name} = {value:.6g}" for name, value in zip(names[:_MAX_SHOWN_POINT], beyond, strict=False)
        )
        more = f" and {len(names) - _MAX_SHOWN_POINT} more states" if len(names) > _MAX_SHOWN_POINT else ""
        what = f"x' has no value at {where}{more}"
        remedy = "look for a root or logarithm of a negative number, or a division by zero, there; or stop earlier"
        return _form_explained_error(error, what, remedy)
    if len(reached) < 2:
        return error
    derivatives = derivatives[: len(names)]
    sizes = np.abs(reached[:, : len(names)])
    early, now = np.max(sizes[: max(len(sizes) // 2, 1)], axis=0), np.max(sizes[len(sizes) // 2 :], axis=0)
    ratios = np.divide(now, early, out=np.zeros(len(now)), where=early > 0.0)
    runaways = [int(i) for i in np.argsort(-ratios) if ratios[i] > _RUNAWAY_RATIO][:_SHOWN_STATES]
    if runaways:
        shown = ", ".join(f"{names[i]} from {early[i]:.3g} to {now[i]:.3g}" for i in runaways)
        what = f"x' has values there, and states grow without bound: {shown}"
        remedy = "an earlier stop; an unstable feedback, a force with the wrong sign or a damper that drives does so"
    else:
        fastest = int(np.argmax(np.abs(derivatives) / np.maximum(early, np.finfo(float).tiny)))
        what = f"x' has values there, and no state grows: {names[fastest]} changes fastest, "
        what += f"by {derivatives[fastest]:.3g} per second"
        remedy = "stiff=True if the model is stiff; near a singular position start elsewhere, or stop earlier"
    return _form_explained_error(error, what, remedy)


def explain_scipy_failure(
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
    reached = np.asarray(solution.y).T if len(solution.t) else None
    reason = "the step size vanishes" if "step size" in solution.message else str(solution.message).rstrip(".")
    error = make_integration_standstill_error(time, f"or soon after {reason}", reached, headline=headline)
    return diagnose_integration_standstill(error, slope, names)


def _find_point_without_value(f: SlopeFunction, t: float, y: Floats, derivatives: Floats) -> Floats | None:
    """Return y where x' has no value: there, or a little further on; None if it has values."""
    if not np.all(np.isfinite(derivatives)):
        return y
    rate = float(np.max(np.abs(derivatives) / np.maximum(np.abs(y), 1.0), initial=0.0))
    for part in _PROBED_PARTS if rate > 0.0 else ():
        ahead = y + part / rate * derivatives
        if not np.all(np.isfinite(f(t + part / rate, ahead))):
            return ahead
    return None


def _form_explained_error(error: IntegrationStandstillError, what: str, remedy: str) -> ValidationError:
    """Return the error of an integration whose end the numbers explain."""
    fault = Fault(f"at t = {error.time:.6g} s {error.reason}; {what}", "", remedy)
    explained = ValidationError(error.headline, [fault])
    explained.is_explained = True
    return explained
