"""Split one mechanism into parts.

Input: ``Mechanism`` and the places of the cut. Output: ``MechanismCut``, and a ``CutMechanismPart`` (a mechanism) each.

A part keeps the bodies that move with its own states, and the loads on them. States of other parts on which these
bodies and loads depend become its inputs; quantities that other parts need become its outputs; both are members of one
terminal.

Promises: the parts together have the bodies, loads and states of the mechanism, each once. Must not: step the parts,
or write FMUs.
"""

from mb2fmu.systems.splitting.mechanism_cut_records import CutMethod, MechanismCut
from mb2fmu.systems.splitting.mechanism_part_assignment import (
    CUT_METHODS,
    choose_mechanism_cut_method,
    cut_mechanism,
    select_joints_to_cut,
)
from mb2fmu.systems.splitting.part_mechanisms import CutMechanismPart, make_cut_mechanism_parts
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings

__all__ = [
    "CUT_METHODS",
    "CutMechanismPart",
    "CutMethod",
    "MechanismCut",
    "SplittingSettings",
    "choose_mechanism_cut_method",
    "cut_mechanism",
    "make_cut_mechanism_parts",
    "select_joints_to_cut",
]
