"""Compare a system's motion with that of the whole model: errors per variable, relative to its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.system_simulation import SystemTrajectories

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SystemVariableDeviation:
    """Deviation of one variable of a system from the reference.

    Attributes:
        name: ``component.variable``.
        reference_name: Name in the monolithic model.
        unit: Unit of measure by the system's FMU.
        time: Times in s, shape (n_t,).
        system_values: Values of the system, shape (n_t,).
        reference_values: Values of the monolithic model, shape (n_t,).
    """

    name: str
    reference_name: str
    unit: str
    time: Floats
    system_values: Floats
    reference_values: Floats

    @property
    def max_error(self) -> float:
        """Largest absolute error, in its unit."""
        return float(np.max(np.abs(self.system_values - self.reference_values)))

    @property
    def reference_magnitude(self) -> float:
        """Largest absolute reference value, in its unit."""
        return float(np.max(np.abs(self.reference_values)))

    @property
    def relative_error(self) -> float:
        """Largest error divided by the reference's magnitude; the error itself if the reference is zero."""
        return self.max_error / self.reference_magnitude if self.reference_magnitude else self.max_error


def compute_errors_against_monolithic_model(
    motion: SystemTrajectories, reference_names: Mapping[str, str], reference_values: Mapping[str, Floats]
) -> tuple[SystemVariableDeviation, ...]:
    """Return the errors of a system.

    Args:
        motion: Recorded outputs of the system.
        reference_names: ``component.variable`` → name in the monolithic model.
        reference_values: Name in the monolithic model → values at the motion's times.
    """
    units = dict(zip(motion.names, motion.units, strict=True))
    return tuple(
        SystemVariableDeviation(
            name, reference_name, units[name], motion.time, motion[name], reference_values[reference_name]
        )
        for name, reference_name in reference_names.items()
    )
