"""Say by the numbers why the reference's integration came to a standstill."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.validation.reference.smooth_integration import SlopeFunction, StandstillError

Floats = npt.NDArray[np.float64]

_RUNAWAY_RATIO = 30.0
"""Times its largest magnitude in the first half of the motion, at which a state runs away."""
_SHOWN_STATES = 3


def diagnose_standstill(error: StandstillError, slope: SlopeFunction, names: Sequence[str]) -> ValidationError:
    """Return the error with what the states and their derivatives show where the integration ended.

    Args:
        error: As it was raised, with the states that were reached.
        slope: x' there.
        names: Of the states, which are in SI units.

    Returns:
        ``error`` itself where nothing was reached, or x' has no value: then its own remedy holds.
    """
    reached = error.reached
    if reached is None or len(reached) < 2:
        return error
    with np.errstate(all="ignore"):
        derivatives = np.asarray(slope(error.time, reached[-1]))[: len(names)]
    if not np.all(np.isfinite(derivatives)):
        return error
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
    return ValidationError(
        "the reference cannot be integrated:", [Fault(f"at t = {error.time:.6g} s {error.reason}; {what}", "", remedy)]
    )
