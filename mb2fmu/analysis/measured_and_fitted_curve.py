"""A measured column beside the values of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeasuredAndFittedCurve:
    """One measured column of one experiment.

    Attributes:
        experiment: Its file.
        name: FMU name.
        unit: Of both.
        time: s, shape (n,).
        measured: Shape (n,); NaN where nothing was.
        found: By the model with the found values, shape (n,).
    """

    experiment: str
    name: str
    unit: str
    time: Floats
    measured: Floats
    found: Floats
