"""Motion of a robot's links, and reactions of its joints, as outputs of the FMU.

A reaction is the force on all bodies beyond the joint, and the torque about its origin, other than weights: of its
bearing and of its drive, springs, dampers and friction together, as of Pinocchio's ``data.f`` or a sensor of six
components that stands in the joint. Along the axis the torque (of a slide the force) is what moves the joint, less
what its rotor takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS
from mb2fmu.model.model import Model
from mb2fmu.model.sources.record_based_mechanics import BodyReference, NamedFramePoint
from mb2fmu.robots.robot_settings import RequestedFrameOutput
from mb2fmu.robots.tree.articulated_tree import RobotPartTree
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics


def find_reaction_setting_faults(mechanics: RobotMechanics) -> Iterator[Fault]:
    """Yield faults of the joints whose reactions the settings request."""
    joints = _moved_parts(mechanics.tree)
    for name in mechanics.settings.reactions:
        if name not in joints:
            what = f"the reaction of {name!r} is requested, which is no joint that moves"
            yield Fault(what, "", f"there are {', '.join(joints)}")
        elif mechanics.loops:
            what = f"the reaction of joint {name} is requested, and loops are closed, which hold the links, too"
            yield Fault(what, "", "leave reactions out")
        elif not _carried_bodies(mechanics, joints[name]):
            yield Fault(f"joint {name} carries no mass: it has no reaction", "", "leave it out of reactions")


def request_joint_reactions(model: Model, mechanics: RobotMechanics, names: Mapping[int, str]) -> None:
    """Add force and torque of the joints that the settings name, in the inertial frame's components.

    Args:
        model: Receives the requests.
        mechanics: Without faults.
        names: Number of a part → legal name of its joint.
    """
    joints = _moved_parts(mechanics.tree)
    for joint in mechanics.settings.reactions:
        i = joints[joint]
        at = NamedFramePoint(mechanics.tree.parts[i].name)
        model.output_reaction(f"{names[i]}.reaction", _carried_bodies(mechanics, i), at=at)
        for k, word in ((-2, "force"), (-1, "torque about its origin")):
            text = f"{word} of joint {joint} and its drive on what it carries, in the inertial frame"
            model.declared[k] = replace(model.declared[k], description=text)


def _moved_parts(tree: RobotPartTree) -> dict[str, int]:
    """Return joint → number of the part that it moves."""
    return {part.moving_joint.name: i for i, part in enumerate(tree.parts[1:], 1) if not part.section}


def _carried_bodies(mechanics: RobotMechanics, first: int) -> tuple[BodyReference, ...]:
    """Return the bodies that a joint carries; a link that bends is several."""
    tree = mechanics.tree
    found = sorted(tree.list_carried_parts([first]))
    names = [tree.parts[i].name for i in found if tree.parts[i].body_inertia is not None]
    for link in mechanics.flexible:
        names += [body.name for body in link.body.bodies if tree.location_of_link[link.name][0] in found]
    return tuple(map(BodyReference, names))


def request_link_frame_outputs(model: Model, mechanics: RobotMechanics, item: RequestedFrameOutput) -> None:
    """Add outputs for the requested quantities of one link, at its offset.

    Args:
        model: Receives the requests.
        mechanics: Has the link's frame and point.
        item: Link, offset in m along its axes, quantities.
    """
    name = item.name or re.sub(r"\W+", "_", item.frame)
    point, frame = mechanics.point(item.frame, item.offset), mechanics.frame(item.frame)
    of = f"link {item.frame}"
    if any(item.offset):
        of = f"the point at {', '.join(f'{x:g}' for x in item.offset)} m of {of}"
    for word in item.of:
        of_frame = OUTPUT_KINDS[word].subject in {"frame", "oriented frame"}
        subject: Any = frame if of_frame else point
        getattr(model, f"output_{word}")(f"{name}.{word}", subject)
        of = f"link {item.frame}" if of_frame else of
        text = f"{word.replace('_', ' ')} of {of}, in the inertial frame"
        model.declared[-1] = replace(model.declared[-1], description=text)
