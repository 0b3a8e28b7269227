"""A system's motion held against that of the whole model: errors per variable, in their own size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.system_simulation import SystemMotion

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Deviation:
    """One variable of a system against the same of the whole.

    Attributes:
        name: ``component.variable``.
        whole: Name in the whole model.
        unit: As the system's unit says.
        found: Of the system, shape (n_t,).
        truth: Of the whole, shape (n_t,).
    """

    name: str
    whole: str
    unit: str
    found: Floats
    truth: Floats

    @property
    def error(self) -> float:
        """Largest, in its unit."""
        return float(np.max(np.abs(self.found - self.truth)))

    @property
    def scale(self) -> float:
        """Largest value of the truth, in its unit."""
        return float(np.max(np.abs(self.truth)))

    @property
    def relative(self) -> float:
        """Largest error of its own size; the error itself if the truth is zero."""
        return self.error / self.scale if self.scale else self.error


def deviations(motion: SystemMotion, same: Mapping[str, str], truth: Mapping[str, Floats]) -> tuple[Deviation, ...]:
    """Errors of a system.

    Args:
        motion: What the system did.
        same: ``component.variable`` → name in the whole.
        truth: Name in the whole → values at the motion's times.
    """
    units = dict(zip(motion.names, motion.units, strict=True))
    return tuple(Deviation(name, whole, units[name], motion[name], truth[whole]) for name, whole in same.items())
