"""Robots: turn a robot description (URDF, MJCF, SDF) into a model with mechanism records, without SymPy objects.

Input: a robot file, and its settings. Output: ``Model``; and ``Mechanism`` of such a model, once it is checked.
Promises: everything in the file is honoured, or refused or left out by name; all faults of a file are reported
together, with their lines; SymPy makes symbols and scalar products only. Must not: fetch anything, know formulations or
FMI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.robots.robot_file_suffixes import MJCF, URDF, is_robot_file
    from mb2fmu.robots.robot_loading import load_robot
    from mb2fmu.robots.tree.mechanism_from_robot import make_robot_mechanism
    from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics

__all__ = [
    "MJCF",
    "URDF",
    "RobotMechanics",
    "is_robot_file",
    "load_robot",
    "make_robot_mechanism",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "robot_file_suffixes": "MJCF URDF is_robot_file",
        "robot_loading": "load_robot",
        "tree.robot_mechanics_records": "RobotMechanics",
        "tree.mechanism_from_robot": "make_robot_mechanism",
    },
)
