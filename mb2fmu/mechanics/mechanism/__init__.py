"""Mechanism: from SymPy's trees to plain records.

Input: ``CheckedModel``. Output: ``Mechanism``. Promises: the user's SymPy objects are not changed; every vector is
kept as written; the kinematics have been checked numerically. Must not: compose or expand anything symbolically, know
about formulations or FMI.
"""

from mb2fmu.mechanics.mechanism.assembly.discontinuous_force_diagnosis import add_discontinuity_note, has_events
from mb2fmu.mechanics.mechanism.assembly.loop_closure_start_values import solve_loop_closure_start_values
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.mechanism_import import read_mechanism

__all__ = ["Mechanism", "add_discontinuity_note", "has_events", "read_mechanism", "solve_loop_closure_start_values"]
