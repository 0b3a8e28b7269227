"""Mechanism: from SymPy's trees to plain records.

Input: ``ModelDefinition``. Output: ``Mechanism``. Promises: the user's SymPy objects are not changed; every vector is
kept as written; the kinematics have been checked numerically. Must not: compose or expand anything symbolically, know
about formulations or FMI.
"""

from mb2fmu.mechanism.closing import close_loops
from mb2fmu.mechanism.jumps import has_events, told_of_jumps
from mb2fmu.mechanism.reading import read
from mb2fmu.mechanism.records import Mechanism

__all__ = ["Mechanism", "close_loops", "has_events", "read", "told_of_jumps"]
