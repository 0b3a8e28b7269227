"""Motion of a robot's links as outputs of the FMU."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mb2fmu.model.model import Model
from mb2fmu.robots.robot_settings import FrameOutput
from mb2fmu.robots.tree.robot_mechanics import RobotMechanics

_ORIENTATION_KINDS = {"orientation", "angular_velocity"}


def request_frame_outputs(model: Model, mechanics: RobotMechanics, item: FrameOutput) -> None:
    """Add outputs for the requested quantities of one link, at its offset.

    Args:
        model: Is asked.
        mechanics: Has the link's frame and point.
        item: Link, offset in m along its axes, quantities.
    """
    name = item.name or re.sub(r"\W+", "_", item.frame)
    point, frame = mechanics.point(item.frame, item.offset), mechanics.frame(item.frame)
    of = f"link {item.frame}"
    if any(item.offset):
        of = f"the point at {', '.join(f'{x:g}' for x in item.offset)} m of {of}"
    for word in item.of:
        subject: Any = frame if word in _ORIENTATION_KINDS else point
        getattr(model, f"output_{word}")(f"{name}.{word}", subject)
        of = f"link {item.frame}" if word in _ORIENTATION_KINDS else of
        text = f"{word.replace('_', ' ')} of {of}, in the inertial frame"
        model.declared[-1] = replace(model.declared[-1], description=text)
