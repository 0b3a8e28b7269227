"""Analysis of a mechanism and its motion without any unit.

Input: ``EquationsOfMotion`` and their ``Program``. Output: ``Linearization``, ``Sweep``, ``Sensitivities``. Promises:
derivatives are exact (of the program, not by differences); what is linearized is the motion on the
constraints. Must not: know FMI, form equations, or print.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mb2fmu.analysis.linearization import Linearization, linearize
    from mb2fmu.analysis.nominals import with_nominals
    from mb2fmu.analysis.numerical_conditioning import Conditioning, conditioning
    from mb2fmu.analysis.operating_point import Motion, OperatingPoint
    from mb2fmu.analysis.operating_point_start import Start, start_at
    from mb2fmu.analysis.root_locus import Critical, Sweep, sweep
    from mb2fmu.analysis.sensitivity_request import Study, signals_of, study_of
    from mb2fmu.analysis.trajectory_sensitivities import Sensitivities, sensitivities
    from mb2fmu.analysis.zero_order_hold import HeldInputs

__all__ = [
    "Conditioning",
    "Critical",
    "HeldInputs",
    "Linearization",
    "Motion",
    "OperatingPoint",
    "Sensitivities",
    "Start",
    "Study",
    "Sweep",
    "conditioning",
    "linearize",
    "sensitivities",
    "signals_of",
    "start_at",
    "study_of",
    "sweep",
    "with_nominals",
]

_MODULES = {
    "numerical_conditioning": ("Conditioning", "conditioning"),
    "linearization": ("Linearization", "linearize"),
    "nominals": ("with_nominals",),
    "operating_point": ("Motion", "OperatingPoint"),
    "operating_point_start": ("Start", "start_at"),
    "root_locus": ("Critical", "Sweep", "sweep"),
    "trajectory_sensitivities": ("Sensitivities", "sensitivities"),
    "sensitivity_request": ("Study", "signals_of", "study_of"),
    "zero_order_hold": ("HeldInputs",),
}


def __getattr__(name: str) -> object:
    """Import a public name from its module, on first use: the command line reads plans of studies without SymPy."""
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
