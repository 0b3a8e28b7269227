"""Split one mechanism: ``Mechanism`` → ``MechanismCut`` (the part of each state) → ``MechanismPart`` (a mechanism each).

A part keeps the bodies that move with its own states, and the loads on them. States of other parts that these move
with, or that loads contain, become its inputs; what the others need of it becomes its outputs; both stand in one
terminal.
"""

from mb2fmu.systems.splitting.cut_records import MechanismCut, Way
from mb2fmu.systems.splitting.mechanism_cut import WAYS, cut, joints_among, usual_way
from mb2fmu.systems.splitting.part_mechanisms import MechanismPart, parts
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings

__all__ = [
    "WAYS",
    "MechanismCut",
    "MechanismPart",
    "SplittingSettings",
    "Way",
    "cut",
    "joints_among",
    "parts",
    "usual_way",
]
