"""``FlexibleLink``: a link of a robot that bends, its ``FlexibleBody``, and the nodes that its joints hang on.

The body's frame is fixed in the link's frame, which the joint before the link moves: so a beam is clamped at its root.
Each joint behind the link hangs on a node, and turns with the section there; what lies between node and joint is rigid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.flexible_body import FlexibleBody
from mb2fmu.model.flexible.flexible_body_equivalent import convert_second_moment_to_inertia
from mb2fmu.model.flexible.runge_kutta_stability_constants import MAX_INTERNAL_STEPS, STABLE_STEP
from mb2fmu.model.model import Model
from mb2fmu.model.variable_naming import suggest_identifier
from mb2fmu.robots.description.robot_description import (
    Array,
    LinkInertia,
    Pose,
    RobotDescription,
    RobotJoint,
    rotation_from_roll_pitch_yaw,
)
from mb2fmu.robots.flexible_links.flexible_link_files import read_flexible_body_file
from mb2fmu.robots.flexible_links.flexible_link_settings import FlexibleLinkSetting
from mb2fmu.robots.robot_settings import RobotSettings

_ROUND_OFF = 1e-12
"""Share of a body's size below which a node and a joint are at one place."""


@dataclass(frozen=True, slots=True, eq=False)
class FlexibleLink:
    """A link that bends.

    Attributes:
        name: Of the link.
        body: Its elastic body.
        pose: The body's frame in the link's frame.
        nodes: Joint that the link carries → number of the node it hangs on.
        drawing: Arguments of ``FlexibleBody.draw``; empty: the file's shapes are drawn, which do not bend.
    """

    name: str
    body: FlexibleBody
    pose: Pose
    nodes: Mapping[str, int]
    drawing: Mapping[str, Any]

    def section_pose(self, node: int) -> Pose:
        """Return the frame of a node at rest, in the link's frame."""
        return self.pose @ Pose(position=self.body.data.nodes[node])

    def joint_pose(self, joint: RobotJoint) -> Pose:
        """Return a joint's frame in the frame of the node that it hangs on, without rounding errors."""
        found = self.section_pose(self.nodes[joint.name]).inverse() @ joint.origin
        size = float(np.max(np.abs(self.body.data.nodes))) + float(np.max(np.abs(joint.origin.position)))
        return Pose(found.rotation, np.where(np.abs(found.position) > _ROUND_OFF * size, found.position, 0.0))

    def rest_inertia(self) -> LinkInertia:
        """Return mass, mass centre and inertia at rest, in the link's frame."""
        gram = self.body.data.gram()
        mass, centre = float(gram[0, 0]), gram[0, 1:4] / gram[0, 0]
        central = convert_second_moment_to_inertia(gram[1:4, 1:4] - mass * np.outer(centre, centre))
        R = self.pose.rotation
        return LinkInertia(mass, self.pose.position + R @ centre, R @ central @ R.T)

    def draw(self, model: Model) -> None:
        """Draw it as it bends."""
        if self.drawing:
            self.body.draw(model, **self.drawing)


def make_flexible_links(
    description: RobotDescription, settings: RobotSettings, reserved: Iterable[str]
) -> tuple[FlexibleLink, ...]:
    """Return the links that bend, in the order of the settings.

    Args:
        description: Of the robot; relative names of files are seen from its folder.
        settings: With elastic data.
        reserved: Names of variables that bodies may not have.

    Raises:
        ModelError: With every fault of the settings, files and arrays.
    """
    faults = [*_setting_faults(description, settings)]
    taken = {*reserved, *(suggest_identifier(joint.name, "joint") for joint in description.joints)}
    taken |= {suggest_identifier(actuator.name, "actuator") for actuator in description.actuators}
    found = []
    for link, setting in settings.flexible.items() if not faults else ():
        where = f"[flexible.{link}]"
        plain = suggest_identifier(link, "link")
        name = next(each for each in (plain, *(f"{plain}_link{'_' * k}" for k in range(9))) if each not in taken)
        taken.add(name)
        try:
            found.append(_make_flexible_link(description, link, setting, name))
        except ModelError as error:
            own = Path(setting.file).name  # other places are lines of this program
            faults += [
                replace(fault, where=f"{where} {fault.where}" if own and fault.where.startswith(own) else where)
                for fault in error.faults
            ]
    if faults:
        raise ModelError("links of the robot cannot bend:", faults)
    return tuple(found)


def set_flexible_link_inertias(description: RobotDescription, flexible: Sequence[FlexibleLink]) -> RobotDescription:
    """Return a description in which links that bend have the inertia of their elastic data, with notes on it."""
    bending = {link.name: link for link in flexible}
    links, notes = [], list(description.notes)
    for link in description.links:
        if link.name not in bending:
            links.append(link)
            continue
        inertial, drawing = bending[link.name].rest_inertia(), bending[link.name].drawing
        given = "no mass" if link.inertial is None else f"mass {link.inertial.mass:g} kg and inertia"
        text = f"link {link.name} bends: {given} of the file {'is' if link.inertial is None else 'are'} replaced by "
        notes.append(f"{text}its elastic data, {inertial.mass:.6g} kg")
        if link.shapes and not drawing:
            notes.append(f"link {link.name} bends, and its shapes are drawn as they are at rest")
        shapes = () if drawing else link.shapes
        links.append(replace(link, inertial=inertial, shapes=shapes, unknown_mass_reason=""))
    return replace(description, links=tuple(links), notes=tuple(notes))


def describe_stiff_modes(flexible: Sequence[FlexibleLink], step: float) -> Iterator[str]:
    """Yield a note where the fastest mode makes an explicit method take many small steps.

    Args:
        flexible: The links that bend.
        step: Communication step, s.
    """
    for link in flexible:
        fastest = float(link.body.data.frequencies()[-1])
        limit = STABLE_STEP / fastest
        if step > MAX_INTERNAL_STEPS * limit:
            yield (
                f"the fastest mode of link {link.name} has {fastest / (2.0 * np.pi):.4g} Hz: explicit steps are stable "
                f"up to {limit:.2g} s, so the FMU's own solver is implicit (--solver explicit: it is not)"
            )


def _setting_faults(description: RobotDescription, settings: RobotSettings) -> Iterator[Fault]:
    """Yield links that do not exist, and what links that bend do not go together with."""
    links = [link.name for link in description.links]
    joints = {joint.name: joint for joint in description.joints}
    for link, setting in settings.flexible.items():
        where = f"[flexible.{link}]"
        if link not in links:
            yield Fault(f"{link!r} is no link", where, f"there are {', '.join(links)}")
            continue
        carried = [name for name, joint in joints.items() if joint.parent == link]
        for name in setting.nodes:
            if name not in carried:
                remedy = f"it carries {', '.join(carried)}" if carried else "it carries none: leave nodes out"
                yield Fault(f"nodes name the joint {name}, which link {link} does not carry", where, remedy)
    if settings.flexible and settings.role == "inverse-dynamics":
        remedy = "leave --as out: a drive gives the motion of joints, not of modes"
        yield Fault("there are no inverse dynamics of links that bend", description.format_location(), remedy)


def _make_flexible_link(
    description: RobotDescription, link: str, setting: FlexibleLinkSetting, name: str
) -> FlexibleLink:
    """Return one link that bends."""
    pose = Pose(rotation_from_roll_pitch_yaw(setting.rpy), np.array(setting.offset))
    carried = [joint for joint in description.joints if joint.parent == link]
    places = {joint.name: (pose.inverse() @ joint.origin).position for joint in carried}
    if setting.file:
        folder = description.source.parent if description.source else None
        if folder is None:
            raise ModelError("", [Fault("the robot was not read from a file", setting.file, "give a beam")])
        body, faces = read_flexible_body_file(name, folder / setting.file, setting.damping)
        drawing = {} if faces is None else {"faces": faces}
    else:
        assert setting.section is not None, "the settings' reader asks for it"
        axis = "xyz".find(str(setting.beam.get("axis", "x")))
        length = setting.beam["length"]
        along = [float(place[axis]) for place in places.values()]
        body = FlexibleBody.beam(
            name,
            **setting.beam,
            section=setting.section,
            damping=0.0 if setting.damping is None else setting.damping,
            stations=[min(max(x, 0.0), length) for x in along] if isinstance(length, int | float) else (),
        )
        drawing = dict(setting.outline)
    nodes = {joint: _choose_node(body, setting.nodes.get(joint), place) for joint, place in places.items()}
    faults = [fault for node in nodes.values() for fault in _turning_faults(body, node)]
    faults += _root_faults(body, pose)
    if faults:
        raise ModelError("", list(dict.fromkeys(faults)))
    return FlexibleLink(link, body, pose, nodes, drawing | {"scale": setting.scale} if drawing else {})


def _choose_node(body: FlexibleBody, given: int | str | None, place: Array) -> int:
    """Return the number of the node that a joint hangs on: the given one, else the nearest that turns.

    Args:
        body: Has the nodes.
        given: Number or name of a node.
        place: Of the joint in the body's frame at rest, m.
    """
    if given is not None:
        return body.find_node_number(given)
    rotations = body.data.rotations
    known = np.ones(len(body.data.nodes), dtype=bool) if rotations is None else ~np.isnan(rotations).any(axis=(0, 2))
    distances = np.linalg.norm(body.data.nodes - place, axis=1)
    return int(np.argmin(np.where(known, distances, np.inf)))


def _turning_faults(body: FlexibleBody, node: int) -> Iterator[Fault]:
    """Yield a node whose section has no known rotation."""
    try:
        body.frame(node)
    except ModelError as error:
        yield from (replace(fault, where="") for fault in error.faults)


def _root_faults(body: FlexibleBody, pose: Pose) -> Iterator[Fault]:
    """Yield a node at the link's origin that moves in the body's frame: the joint there holds that frame."""
    data = body.data
    size = float(np.max(np.abs(data.nodes)))
    at = np.linalg.norm(data.nodes - pose.inverse().position, axis=1) <= _ROUND_OFF * size
    largest = float(np.max(np.abs(data.modes)))
    if np.any(at) and np.max(np.abs(data.modes[:, at])) > 1e-9 * largest:
        what = f"node {int(np.argmax(at))} lies at the link's origin and moves in the body's frame"
        yield Fault(what, "", "give mode shapes that vanish there: the joint before the link holds the frame")
