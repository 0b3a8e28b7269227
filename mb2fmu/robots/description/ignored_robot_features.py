"""Sentences on what a robot's file says and its settings leave out: dry friction, ranges, laws of actuators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mb2fmu.robots.description.robot_description import RobotDescription
from mb2fmu.robots.robot_display_names import format_name_list
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import RobotPartTree
from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols


def describe_ignored_features(
    description: RobotDescription,
    settings: RobotSettings,
    tree: RobotPartTree,
    variables: Mapping[int, RobotJointSymbols],
) -> Iterator[str]:
    """Yield a sentence on friction, ranges and laws of the file that the settings ignore."""
    joints = [part.moving_joint for part in tree.parts[1:]]
    if settings.role == "inverse-dynamics" and description.actuators:
        yield "laws of actuators are left out: efforts are those along the joints"
    acting = {p.moving_joint.name for p in tree.parts[1:] if p.coordinate and variables[p.coordinate[0]].q}
    rubbing = [j.name for j in joints if j.friction and (settings.friction != "stick" or j.name not in acting)]
    if rubbing:
        how = "" if settings.friction else " (--friction stick adds it)"
        yield f"Coulomb friction is left out{how}: joint{format_name_list(rubbing)}"
    tendons = [tendon.name for tendon in description.tendons if tendon.friction]
    if tendons:
        yield f"Coulomb friction is left out: tendon{format_name_list(tendons)}"
    bounded = [joint.name for joint in joints if np.isfinite(joint.limits.lower) or np.isfinite(joint.limits.upper)]
    if bounded and settings.limits is None:
        what = "the range of joints is declared as bounds of their variables, without hard stops"
        yield f"{what} (--limits stop adds them, --limits ignore says that this is meant)"
