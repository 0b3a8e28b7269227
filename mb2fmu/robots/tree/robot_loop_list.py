"""``list_robot_loops``: the loops that a robot's file and settings close."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mb2fmu.errors import Fault, ModelError
from mb2fmu.robots.description.robot_description import Array, Pose, RobotDescription, RobotLoop
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import rotation_with_z_along


def list_robot_loops(
    description: RobotDescription, settings: RobotSettings, legal: Callable[[str, str], str]
) -> tuple[RobotLoop, ...]:
    """Return the loops of the file, then those of the settings.

    Args:
        description: What the file says.
        settings: What it leaves open.
        legal: A name, and of what → the name in the FMU.

    Raises:
        ModelError: Naming every joint that is prescribed where loops are closed.
    """
    found = list(description.loops)
    for item in settings.loops:
        first, second = item.frames
        axes = (item.axis, item.other_axis or item.axis)
        turned = [_axes_along(axis) if item.by == "hinge" else np.eye(3) for axis in axes]
        poses = [Pose(R, np.array(p)) for R, p in zip(turned, (item.offset, item.other_offset), strict=True)]
        name = legal(item.name or f"{first}_{second}", "loop")
        found.append(RobotLoop(name=name, kind=item.by, first=first, second=second, at=poses[0], other=poses[1]))
    if found and settings.prescribed:
        what = f"loops are closed, and joints are prescribed: {', '.join(settings.prescribed)}"
        fault = Fault(what, "", "a loop would jump with them: give these joints efforts")
        raise ModelError("the robot's settings do not fit it:", [fault])
    taken: set[str] = set()
    for i, loop in enumerate(found):
        names = (loop.name, *(f"{loop.name}_{k}" for k in range(2, len(found) + 2)))
        found[i] = replace(loop, name=next(name for name in names if name not in taken))
        taken.add(found[i].name)
    return tuple(found)


def _axes_along(axis: tuple[float, float, float]) -> Array:
    """Return axes whose z axis has a given direction."""
    return rotation_with_z_along(np.array(axis) / np.linalg.norm(axis))
