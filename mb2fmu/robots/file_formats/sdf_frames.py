"""Poses of an SDF file, relative to other frames there, here all in the model's frame.

The frame ``__model__`` is the model's own, ``world`` the one that the model stands in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mb2fmu.robots.description.robot_description import Pose, rotation_from_roll_pitch_yaw, round_rotation_entries
from mb2fmu.robots.file_formats.mjcf_settings_and_poses import rotation_from_quaternion
from mb2fmu.robots.file_formats.strict_xml import XmlElement, XmlFaultCollector

MODEL, WORLD = "__model__", "world"
_UNIT_LENGTH_TOLERANCE = 1e-12
_UNDERSCORE_REMEDY = "SDF keeps names with two underscores at both ends for itself: rename it"
_RESERVED_NAMES = {
    WORLD: "SDF keeps it for what the model stands in: rename it, or remove it: a joint from world needs no link",
    MODEL: "it is the model's own frame: rename it",
}
"""Name that no element may have → what to do about it."""


@dataclass(frozen=True, slots=True)
class SdfRelativePose:
    """A pose relative to a named frame.

    Attributes:
        relative_to: That frame.
        pose: Of what is placed; of ``placement_frame``, if that is named.
        line: In the file.
        placement_frame: Frame of an inner model, which has the pose in place of the model.
    """

    relative_to: str
    pose: Pose
    line: int
    placement_frame: str = ""


@dataclass(slots=True)
class SdfFrames:
    """All named frames of a model.

    Attributes:
        faults: Collector of faults.
        pose_of_frame: Frame → where it is.
        parent_of_frame: Frame that the file adds → link, joint or frame that it moves with.
        duplicate_names: Names that occur more than once, reported already.
    """

    faults: XmlFaultCollector
    pose_of_frame: dict[str, SdfRelativePose] = field(default_factory=dict)
    parent_of_frame: dict[str, str] = field(default_factory=dict)
    duplicate_names: set[str] = field(default_factory=set)
    _known: dict[str, Pose] = field(default_factory=lambda: {MODEL: Pose()})

    def add_frame(self, name: str, placed: SdfRelativePose) -> None:
        """Add a frame; links, joints and frames share one set of names, of which SDF keeps some for itself."""
        known = name in self.pose_of_frame or name == MODEL
        if name == WORLD or (name.startswith("__") and name.endswith("__")):
            self.duplicate_names.add(name)
            self.faults.add(
                placed.line, f"a link, joint or frame is called {name}", _RESERVED_NAMES.get(name, _UNDERSCORE_REMEDY)
            )
        elif name and name not in self.duplicate_names and known:
            self.duplicate_names.add(name)
            self.faults.add(placed.line, f"2 links, joints or frames are called {name}", "rename all but one")
        if not known:  # of what stands twice the first counts, lest poses seem to go in a circle
            self.pose_of_frame[name] = placed

    def find_pose(self, name: str, line: int) -> Pose:
        """Return a frame's pose in the model; the identity, with a fault, where it is undetermined."""
        way: list[str] = []
        current = name
        while current not in self._known:
            if current not in self.pose_of_frame:
                self.faults.add(line, f"{current!r} is no link, joint or frame", "correct the name")
                return Pose()
            if current in way:
                circle = " → ".join([*way[way.index(current) :], current])
                self.faults.add(
                    line, f"poses are relative to each other in a circle: {circle}", "give one in the model"
                )
                self._known[current] = Pose()
                return Pose()
            way.append(current)
            line = self.pose_of_frame[current].line
            current = self.pose_of_frame[current].relative_to
        at = self._known[current]
        for each in reversed(way):
            at = at @ self._find_local_pose(each)
            self._known[each] = at
        return at

    def _find_local_pose(self, name: str) -> Pose:
        """Return a frame's pose in the one that it is relative to, whichever of its frames the file places there."""
        placed = self.pose_of_frame[name]
        within, current, seen = Pose(), placed.placement_frame, {""}
        while current not in {*seen, name}:
            if current not in self.pose_of_frame:
                what = f"placement_frame {placed.placement_frame!r} is no frame of the model"
                self.faults.add(placed.line, what, "correct the name")
                return placed.pose
            seen.add(current)
            within = self._find_local_pose(current) @ within
            current = self.pose_of_frame[current].relative_to
        return placed.pose @ within.inverse()

    def find_link(self, name: str, links: set[str], line: int) -> str:
        """Return the link that a frame moves with; empty, and a fault, where there is none."""
        seen: set[str] = set()
        while name not in links and name != WORLD:
            if name in seen or name not in self.parent_of_frame:
                self.faults.add(line, f"{name!r} is no link, nor a frame that is attached to one", "correct the name")
                return ""
            seen.add(name)
            name = self.parent_of_frame[name]
        return name


def read_sdf_relative_pose(element: XmlElement, default: str) -> SdfRelativePose:
    """Return the ``pose`` of an element; the identity relative to ``default`` where there is none."""
    pose = element.child("pose")
    if pose is None:
        return SdfRelativePose(default, Pose(), element.line)
    pose.check_allowed((), attributes=("relative_to", "degrees", "rotation_format", "frame"))
    text = (pose.node.text or "").strip()
    style = pose.attribute("rotation_format") or "euler_rpy"
    if style not in {"euler_rpy", "quat_xyzw"}:
        pose.faults.add(pose.line, f'rotation_format is "{style}"', "it is one of euler_rpy, quat_xyzw")
    count = 7 if style == "quat_xyzw" else 6
    numbers = pose.read_numbers(text, "the text", count) if text else (0.0,) * count
    relative = pose.attribute("relative_to") or default
    if numbers is None:
        return SdfRelativePose(relative, Pose(), element.line)
    position = np.array(numbers[:3])
    if count == 7:
        quaternion = np.array(numbers[3:]) if text else np.array([0.0, 0.0, 0.0, 1.0])
        if np.linalg.norm(quaternion) < _UNIT_LENGTH_TOLERANCE:
            pose.faults.add(pose.line, "the quaternion is zero", "give one of unit length: x y z w")
            return SdfRelativePose(relative, Pose(), element.line)
        turn = np.roll(quaternion / np.linalg.norm(quaternion), 1)
        return SdfRelativePose(
            relative, Pose(round_rotation_entries(rotation_from_quaternion(turn)), position), element.line
        )
    angles = np.deg2rad(numbers[3:]) if pose.attribute("degrees") in {"true", "1"} else np.array(numbers[3:])
    return SdfRelativePose(
        relative, Pose(round_rotation_entries(rotation_from_roll_pitch_yaw(angles.tolist())), position), element.line
    )
