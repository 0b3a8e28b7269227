"""The verdict on a quantity over time by its bounds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.result import InvariantResult

Floats = npt.NDArray[np.float64]


def form_invariant_result(
    time: Floats, name: str, formula: str, unit: str, values: Floats, bounds: Floats
) -> InvariantResult:
    """Return the result of values and their bounds, shapes as ``time``: the worst ratio, and when it was.

    A value that is no number fails.
    """
    ratios = np.where(values <= 0, 0.0, values / np.where(bounds > 0, bounds, np.finfo(float).tiny))
    worst = int(np.argmax(ratios))
    return InvariantResult(
        name=name,
        formula=formula,
        unit=unit,
        value=float(values[worst]),
        at=float(time[worst]),
        bound=float(bounds[worst]),
        ratio=float(ratios[worst]),
        verdict="passed" if bool(np.all(ratios <= 1.0)) else "failed",
        time=time,
        values=values,
        bounds=bounds,
    )
