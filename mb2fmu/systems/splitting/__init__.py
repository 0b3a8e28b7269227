"""Split one mechanism into parts: ``Mechanism`` → ``MechanismCut`` → ``MechanismPart`` (a mechanism each).

A part keeps the bodies that move with its own states, and the loads on them. States of other parts on which these
bodies and loads depend become its inputs; quantities that other parts need become its outputs; both are members of one
terminal.
"""

from mb2fmu.systems.splitting.mechanism_cut import CUT_METHODS, choose_cut_method, cut_mechanism, find_joint_names
from mb2fmu.systems.splitting.mechanism_cut_records import CutMethod, MechanismCut
from mb2fmu.systems.splitting.part_mechanisms import MechanismPart, make_part_mechanisms
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings

__all__ = [
    "CUT_METHODS",
    "CutMethod",
    "MechanismCut",
    "MechanismPart",
    "SplittingSettings",
    "choose_cut_method",
    "cut_mechanism",
    "find_joint_names",
    "make_part_mechanisms",
]
