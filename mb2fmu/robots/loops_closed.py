"""``loops_of``: what closes the tree of a robot, by its file and by its settings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mb2fmu.errors import Fault, ModelError
from mb2fmu.robots.moving_tree import z_along
from mb2fmu.robots.robot_description import Array, LoopRecord, Pose, RobotDescription
from mb2fmu.robots.robot_settings import RobotSettings


def loops_of(
    description: RobotDescription, settings: RobotSettings, legal: Callable[[str, str], str]
) -> tuple[LoopRecord, ...]:
    """What the file and the settings close, those of the file first.

    Args:
        description: What the file says.
        settings: What it leaves open.
        legal: A name, and of what → the name in the unit.

    Raises:
        ModelError: Naming every link of a loop that there is not, and every joint of a loop that is prescribed.
    """
    found, faults = list(description.loops), []
    links = {link.name for link in description.links}
    for item in settings.loops:
        first, second = item.frames
        faults += [
            Fault(f"a loop connects {name!r}, which is no link", "", f"there are {', '.join(sorted(links))}")
            for name in item.frames
            if name not in links
        ]
        if first == second:
            faults.append(Fault(f"a loop connects link {first} with itself", "", "name two links"))
        axes = (item.axis, item.other_axis or item.axis)
        turned = [_axes_along(axis) if item.by == "hinge" else np.eye(3) for axis in axes]
        poses = [Pose(R, np.array(p)) for R, p in zip(turned, (item.offset, item.other_offset), strict=True)]
        name = legal(item.name or f"{first}_{second}", "loop")
        found.append(LoopRecord(name=name, kind=item.by, first=first, second=second, at=poses[0], other=poses[1]))
    if found and settings.prescribed:
        what = f"loops are closed, and joints are prescribed: {', '.join(settings.prescribed)}"
        faults.append(Fault(what, "", "a loop would jump with them: give these joints efforts"))
    if faults:
        raise ModelError("the robot's settings do not fit it:", faults)
    return tuple(found)


def _axes_along(axis: tuple[float, float, float]) -> Array:
    """Axes whose z axis is a direction."""
    return z_along(np.array(axis) / np.linalg.norm(axis))
