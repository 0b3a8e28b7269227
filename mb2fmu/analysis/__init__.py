"""Analysis of a mechanism and its motion without any unit.

Input: ``EquationsOfMotion`` and their ``Program``. Output: ``Linearization``, ``Sweep``, ``Sensitivities``. Promises:
derivatives are exact (of the program, not by differences); what is linearized is the motion on the
constraints. Must not: know FMI, form equations, or print.
"""

from mb2fmu.analysis.conditioning import Conditioning, conditioning
from mb2fmu.analysis.linearization import Linearization, linearize
from mb2fmu.analysis.nominals import with_nominals
from mb2fmu.analysis.operating_point import Motion, OperatingPoint
from mb2fmu.analysis.operating_point_start import Start, start_at
from mb2fmu.analysis.root_locus import Critical, Sweep, sweep
from mb2fmu.analysis.sensitivities import Sensitivities, sensitivities
from mb2fmu.analysis.sensitivity_request import Study, signals_of, study_of
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
