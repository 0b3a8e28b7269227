"""End and step of a simulation, as requested or as in the experiment."""

from __future__ import annotations

import math

from mb2fmu.errors import Fault, ValidationError

MAX_TIMES = 10_000_000
"""Of a simulation's result: a table of ten variables at so many times has 0.8 GB."""
_DEFAULT_SHORT_RUN_STEPS = 100
"""Steps of a run that is asked to be shorter than one step of its experiment."""


def choose_stop_time_and_step(
    stop: float | None, step: float | None, *, usual_stop: float, usual_step: float
) -> tuple[float, float]:
    """Return end and step of a run, in s.

    Args:
        stop: As requested; None: the usual one.
        step: As requested; None: the usual one, or a hundredth of a run that is shorter than that.
        usual_stop: Of the experiment.
        usual_step: Of the experiment.

    Raises:
        ValidationError: With every fault: what is no positive number, a step beyond the end, too many times.
    """
    given = {"stop": stop, "step": step}
    faults = [
        Fault(f"{value!r} is no positive number", name, "give a time in s, as in 5.0")
        for name, value in given.items()
        if value is not None and not _require_positive(value)
    ]
    if faults:
        raise ValidationError("nothing can be simulated:", faults)
    end = usual_stop if stop is None else float(stop)
    size = usual_step if step is None else float(step)
    if step is None and size > end:
        size = end / _DEFAULT_SHORT_RUN_STEPS
    if size > end:
        faults = [Fault(f"a step of {size:g} s is longer than the run of {end:g} s", "step", "give a shorter step")]
    elif end / size > MAX_TIMES:
        what = f"{end:g} s in steps of {size:g} s are {end / size:,.0f} times, more than {MAX_TIMES:,}"
        faults = [Fault(what, "stop", "give a longer step too, or an earlier stop")]
    if faults:
        raise ValidationError("nothing can be simulated:", faults)
    return end, size


def _require_positive(value: object) -> bool:
    """Return a positive number; text is refused, NumPy's numbers are converted."""
    try:
        return not isinstance(value, str | bytes | bool) and 0.0 < float(value) < math.inf  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
