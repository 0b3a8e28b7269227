"""Analysis: what can be told of a mechanism without simulating it.

Input: ``EquationsOfMotion`` and their ``Program``. Output: ``Linearization``. Promises: derivatives are exact (of the
program, not by differences); what is linearized is the motion on the constraints. Must not: know FMI, form equations,
or print.
"""

from mb2fmu.analysis.linearization import Linearization, linearize
from mb2fmu.analysis.operating_point import Motion, OperatingPoint
from mb2fmu.analysis.start import Start, start_at

__all__ = ["Linearization", "Motion", "OperatingPoint", "Start", "linearize", "start_at"]
