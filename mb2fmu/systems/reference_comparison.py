"""Compare a system's motion with that of the whole model: errors per variable, relative to its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.system_simulation import SystemMotion

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class VariableDeviation:
    """Error of one variable of a system against the whole model.

    Attributes:
        name: ``component.variable``.
        whole: Name in the whole model.
        unit: As the system's FMU says.
        time: In s, shape (n_t,).
        found: Of the system, shape (n_t,).
        truth: Of the whole, shape (n_t,).
    """

    name: str
    whole: str
    unit: str
    time: Floats
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
        """Largest error relative to the scale; the error itself if the truth is zero."""
        return self.error / self.scale if self.scale else self.error


def compute_deviations(
    motion: SystemMotion, same: Mapping[str, str], truth: Mapping[str, Floats]
) -> tuple[VariableDeviation, ...]:
    """Return the errors of a system.

    Args:
        motion: What the system did.
        same: ``component.variable`` → name in the whole.
        truth: Name in the whole → values at the motion's times.
    """
    units = dict(zip(motion.names, motion.units, strict=True))
    return tuple(
        VariableDeviation(name, whole, units[name], motion.time, motion[name], truth[whole])
        for name, whole in same.items()
    )
