"""Actuators, fixed tendons and couplings of an MJCF file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mb2fmu.robots.description.robot_description import (
    UNBOUNDED_RANGE,
    JointMimic,
    LoopConnection,
    Pose,
    RobotActuator,
    RobotJoint,
    RobotLoop,
    RobotTendon,
    round_rotation_entries,
)
from mb2fmu.robots.file_formats.mjcf_bodies import WORLD_LINK, read_mjcf_active_limits
from mb2fmu.robots.file_formats.mjcf_settings_and_poses import (
    MjcfCompilerSettings,
    check_mjcf_attributes,
    format_name_attribute,
    read_choice_attribute,
    rotation_from_quaternion,
)
from mb2fmu.robots.file_formats.strict_xml import XmlElement, XmlFaultCollector
from mb2fmu.robots.tree.articulated_tree import lock_joint

TransmissionTerms = tuple[tuple[str, float], ...]
_ACTUATOR_ATTRIBUTES = (
    "joint",
    "jointinparent",
    "tendon",
    "gear",
    "ctrlrange",
    "ctrllimited",
    "forcerange",
    "forcelimited",
)
_INACTIVE_ATTRIBUTES = ("group", "lengthrange", "nsample", "interp")
_LAW_ATTRIBUTES = {
    "motor": (),
    "position": ("kp", "kv", "dampratio", "inheritrange"),
    "velocity": ("kv",),
    "damper": ("kv",),
    "general": ("gaintype", "gainprm", "biastype", "biasprm", "dyntype", "dynprm"),
}
_SOFT_CONSTRAINT_ATTRIBUTES = ("solref", "solimp")
_TENDON_ATTRIBUTES = ("stiffness", "damping", "springlength", "frictionloss")
_SOLVER_ATTRIBUTES = ("group", "material", "margin", "range", "limited", "rgba", "width", "solimpfriction",
                      "solimplimit",
           "solreffriction", "solreflimit")  # fmt: skip
_LOOP_ATTRIBUTES = ("body1", "body2", "site1", "site2", "anchor", "active")
_MAX_LAW_PARAMETERS = 10
"""Parameters that a gain or bias may have; the laws that are honoured use the first three."""


@dataclass(slots=True, eq=False)
class MjcfActuationReader:
    """Reads the efforts along joints.

    Attributes:
        compiler: Settings.
        joints: Name → joint.
        reference_positions: Joint → position that the file draws it at.
        faults: Collector of faults.
        drawn_poses: Body or site → where the file draws it in the world.
        tendons: Name → terms, all fixed tendons of the file.
        loops: Loops of ``connect`` and ``weld``.
        damping_ratios: Actuator → damping, as a part of what is critical where the file draws the robot.
    """

    compiler: MjcfCompilerSettings
    joints: Mapping[str, RobotJoint]
    reference_positions: Mapping[str, float]
    drawn_poses: Mapping[str, Pose]
    faults: XmlFaultCollector
    tendons: dict[str, TransmissionTerms] = field(default_factory=dict)
    loops: list[RobotLoop] = field(default_factory=list)
    damping_ratios: dict[str, float] = field(default_factory=dict)
    _tendon_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    def read_tendons(self, root: XmlElement) -> tuple[RobotTendon, ...]:
        """Return all fixed tendons; those without springs, dampers and friction only carry actuators."""
        found = []
        for element in (one for section in root.children("tendon") for one in section.list_elements()):
            name = element.attribute("name") or f"tendon_{len(self.tendons) + 1}"
            if element.name != "fixed":
                what = f"<{element.name}{format_name_attribute(element)}> in <tendon> is not honoured"
                self.faults.add(element.line, what, "give the forces along joints: fixed tendons are honoured")
                continue
            check_mjcf_attributes(element, _TENDON_ATTRIBUTES, _SOLVER_ATTRIBUTES)
            terms = tuple(self._read_term(joint) for joint in element.children("joint"))
            if not terms:
                self.faults.add(element.line, f"tendon {name} has no joint", 'add <joint joint="…" coef="…"/>')
            if name in self.tendons:
                self.faults.add(element.line, f"2 tendons are called {name}", "rename one")
            self.tendons[name] = terms
            if element.attribute("range"):
                lower, upper = element.vector("range", (0.0, 0.0))
                self._tendon_ranges[name] = (lower, upper)
                self.faults.note(f"the range of tendon {name} is left out: it has no hard stops")
            record = self._read_tendon(element, name, terms)
            if record.stiffness or record.damping or record.friction:
                found.append(record)
        return tuple(found)

    def _read_term(self, element: XmlElement) -> tuple[str, float]:
        """Return joint and coefficient of a tendon's term."""
        return self._read_joint_name(element, "joint"), element.number("coef", required=True)

    def _read_joint_name(self, element: XmlElement, key: str) -> str:
        """Return the name of a joint with one coordinate."""
        name = element.attribute(key)
        joint = self.joints.get(name)
        if joint is None:
            what = f"<{element.name}{format_name_attribute(element)}> names the joint {name!r}, which does not exist"
            self.faults.add(element.line, what, "correct the name")
        elif joint.kind not in {"revolute", "prismatic"}:
            what = f"<{element.name}{format_name_attribute(element)}> acts on {name}, which is no hinge or slide"
            self.faults.add(element.line, what, "let it act on hinges and slides")
        return name

    def _read_tendon(self, element: XmlElement, name: str, terms: TransmissionTerms) -> RobotTendon:
        """Read a fixed tendon; without springlength its spring rests where those of its joints do."""
        text = element.attribute("springlength")
        count = len(text.split())
        given = element.read_numbers(text, "springlength", 2 if count > 1 else 1) if text else None
        rest = (given[0], given[-1]) if given else (-1.0, -1.0)
        if rest == (-1.0, -1.0):  # where the springs of all joints rest
            length = sum(factor * self.find_spring_reference(joint) for joint, factor in terms)
            rest = (length, length)
        if rest[0] > rest[1]:
            self.faults.add(element.line, f"springlength of tendon {name} is {text}", "give the shorter one first")
        return RobotTendon(
            name=name, terms=terms, stiffness=element.number("stiffness"), damping=element.number("damping"),
            rest=rest, friction=element.number("frictionloss"), line=element.line,
        )  # fmt: skip

    def find_spring_reference(self, name: str) -> float:
        """Return the position at which the spring of a joint is relaxed."""
        joint = self.joints.get(name)
        return joint.spring_reference if joint else 0.0

    def read_actuators(self, root: XmlElement) -> tuple[RobotActuator, ...]:
        """Read all actuators."""
        found: dict[str, RobotActuator] = {}
        for element in (one for section in root.children("actuator") for one in section.list_elements()):
            target = element.attribute("joint") or element.attribute("jointinparent") or element.attribute("tendon")
            name = element.attribute("name") or f"{target}_{element.name}"
            if element.name not in _LAW_ATTRIBUTES:
                what = f"the actuator <{element.name}{format_name_attribute(element)}> is not honoured"
                self.faults.add(element.line, what, f"honoured are {', '.join(_LAW_ATTRIBUTES)}")
                continue
            if name in found:
                what = f"2 actuators are called {name}"
                self.faults.add(element.line, what, 'rename one: name="…"')
            check_mjcf_attributes(
                element, (*_ACTUATOR_ATTRIBUTES, *_LAW_ATTRIBUTES[element.name]), _INACTIVE_ATTRIBUTES
            )
            gain, bias = self._read_law(element)
            if gain == -bias[1] and bias[2] > 0:  # as MuJoCo has it: no law pushes along its own motion
                self.damping_ratios[name], bias = bias[2], (*bias[:2], 0.0)
            record = RobotActuator(
                name=name, terms=self._read_transmission(element, name), gain=gain, bias=bias, line=element.line,
                control=self._read_control_range(element, name, target),
                force=read_mjcf_active_limits(element, "forcerange", "forcelimited", f"actuator {name}", self.compiler),
            )  # fmt: skip
            found[name] = record
        return tuple(found.values())

    def _read_control_range(self, element: XmlElement, name: str, target: str) -> tuple[float, float]:
        """Return bounds of a control; with ``inheritrange`` those of its joint, scaled about their middle."""
        part = element.number("inheritrange")
        if not part:
            return read_mjcf_active_limits(element, "ctrlrange", "ctrllimited", f"actuator {name}", self.compiler)
        joint = self.joints.get(target)
        limits = (joint.limits.lower, joint.limits.upper) if joint else UNBOUNDED_RANGE
        lower, upper = self._tendon_ranges.get(target, UNBOUNDED_RANGE) if element.attribute("tendon") else limits
        if element.attribute("ctrlrange"):
            self.faults.add(element.line, f"actuator {name} has ctrlrange and inheritrange", "leave one")
        elif part < 0 or not np.isfinite(upper - lower):
            what = f"inheritrange of actuator {name} is {part:g}, and the range of {target} {lower:g} … {upper:g}"
            self.faults.add(element.line, what, "give a number > 0, and what it acts on a range; or give ctrlrange")
        middle, half = (lower + upper) / 2, part * (upper - lower) / 2
        return middle - half, middle + half

    def _read_transmission(self, element: XmlElement, name: str) -> TransmissionTerms:
        """Return the joints that an actuator acts on with its gear; empty, with a fault, if that is not clear."""
        given = [key for key in ("joint", "jointinparent", "tendon") if element.attribute(key)]
        if len(given) != 1:
            what = f"actuator {name} acts on {' and '.join(given) or 'no joint or tendon'}"
            self.faults.add(element.line, what, 'give one of joint="…", tendon="…"')
            return ()
        text = element.attribute("gear")
        gear = (element.read_numbers(text.split()[0], "gear", 1) or (1.0,))[0] if text else 1.0
        if given != ["tendon"]:
            return ((self._read_joint_name(element, given[0]), gear),)
        tendon = element.attribute("tendon")
        if tendon not in self.tendons:
            self.faults.add(element.line, f"actuator {name} acts on {tendon}, which is no fixed tendon", "name one")
        return tuple((joint, gear * factor) for joint, factor in self.tendons.get(tendon, ()))

    def _read_law(self, element: XmlElement) -> tuple[float, tuple[float, float, float]]:
        """Return gain and bias."""
        match element.name:
            case "motor":
                return 1.0, (0.0, 0.0, 0.0)
            case "position":
                kp, kv, ratio = element.number("kp", 1.0), element.number("kv"), element.number("dampratio")
                if ratio and element.attribute("kv"):
                    self.faults.add(
                        element.line,
                        f"<position{format_name_attribute(element)}> has kv and dampratio",
                        "leave one",
                    )
                if kp < 0 or kv < 0 or ratio < 0:
                    what = f"kp, kv or dampratio of <position{format_name_attribute(element)}> is negative"
                    self.faults.add(element.line, what, "give numbers ≥ 0")
                return kp, (0.0, -kp, ratio or -kv)
            case "velocity":
                kv = element.number("kv", 1.0)
                return kv, (0.0, 0.0, -kv)
            case "damper":
                what = (
                    f"<damper{format_name_attribute(element)}> brakes by what its control says, which is not honoured"
                )
                self.faults.add(element.line, what, "give the joint a damping")
                return 0.0, (0.0, 0.0, 0.0)
        gain, bias = self._pad_parameters(element, "gainprm", 1.0), self._pad_parameters(element, "biasprm", 0.0)
        for key, known in (("gaintype", ("fixed",)), ("biastype", ("none", "affine")), ("dyntype", ("none",))):
            if element.attribute(key) not in {"", *known}:
                what = f'{key}="{element.attribute(key)}" of <general{format_name_attribute(element)}> is not honoured'
                self.faults.add(element.line, what, f"honoured: {', '.join(known)}")
        affine = element.attribute("biastype") == "affine"
        return gain[0], (bias[0], bias[1], bias[2]) if affine else (0.0, 0.0, 0.0)

    def _pad_parameters(self, element: XmlElement, key: str, default: float) -> tuple[float, ...]:
        """Return at least three parameters, zeros behind those given."""
        text = element.attribute(key)
        found = element.read_numbers(text, key, min(len(text.split()), _MAX_LAW_PARAMETERS)) if text else None
        return (*(found or (default,)), 0.0, 0.0)

    def read_couplings(self, root: XmlElement) -> dict[str, RobotJoint]:
        """Return the joints, followers tied by ``<equality>`` included, or held where it says so."""
        joints = dict(self.joints)
        for element in (one for section in root.children("equality") for one in section.list_elements()):
            if read_choice_attribute(element, "active", ("true", "false")) == "false":
                self.faults.note(
                    f"<{element.name}{format_name_attribute(element)}> in <equality> is not active and left out"
                )
            elif element.name in {"connect", "weld"}:
                self._add_loop(element)
            elif element.name != "joint":
                what = f"<{element.name}{format_name_attribute(element)}> in <equality> is not honoured"
                self.faults.add(element.line, what, "honoured are connect, weld, joint")
            else:
                self._read_follower(element, joints)
        return joints

    def _add_loop(self, element: XmlElement) -> None:
        """Add a loop: points that coincide in the file stay together; a weld also keeps the orientation."""
        own = ("relpose",) if element.name == "weld" else ()
        check_mjcf_attributes(element, (*_LOOP_ATTRIBUTES, *own), (*_SOFT_CONSTRAINT_ATTRIBUTES, "torquescale"))
        sites = "site1" in element.node.attrib
        ends = [element.attribute(f"{'site' if sites else 'body'}{k}") or WORLD_LINK for k in (1, 2)]
        for end in ends:
            if end not in self.drawn_poses:
                what = f"<{element.name}{format_name_attribute(element)}> names {end!r}, which does not exist"
                self.faults.add(element.line, what, "correct the name")
                return
        if ends[0] == ends[1]:
            what = f"<{element.name}{format_name_attribute(element)}> connects {ends[0]} with itself"
            self.faults.add(element.line, what, f"name two {'sites' if sites else 'bodies'}")
            return
        first, second = (self.drawn_poses[end] for end in ends)
        anchor = Pose(position=np.array(element.vector("anchor", (0.0, 0.0, 0.0))))
        if sites:
            at, other = Pose(), Pose()
        elif element.name == "connect":
            at, other = anchor, second.inverse() @ first @ anchor
        else:  # the anchor of a weld is in the second body; a given pose is that of the anchor
            at, other = _read_weld_pose(element) or first.inverse() @ second @ anchor, anchor
        name = element.attribute("name") or f"{ends[0]}_{ends[1]}"
        kind: LoopConnection = "point" if element.name == "connect" else "weld"
        loop = RobotLoop(name=name, kind=kind, first=ends[0], second=ends[1], at=at, other=other, line=element.line)
        self.loops.append(loop)

    def _read_follower(self, element: XmlElement, joints: dict[str, RobotJoint]) -> None:
        """Read one follower: its distance from where it is drawn is a0 + a1 times its leader's."""
        check_mjcf_attributes(element, ("joint1", "joint2", "polycoef", "active"), _SOFT_CONSTRAINT_ATTRIBUTES)
        name = self._read_joint_name(element, "joint1")
        leader = self._read_joint_name(element, "joint2") if element.attribute("joint2") else ""
        text = element.attribute("polycoef") or "0 1 0 0 0"
        found = element.read_numbers(text, "polycoef", min(len(text.split()), 5)) or (0.0, 1.0)
        a = (*found, *(0.0, 1.0, 0.0, 0.0, 0.0)[len(found) :])
        joint = joints.get(name)
        if joint is None or joint.kind not in {"revolute", "prismatic"}:
            return
        if not leader:
            joints[name] = lock_joint(joint, self.reference_positions[name] + a[0])
        elif any(a[2:]):
            what = f"joint {name} follows {leader} by a polynomial of a higher degree than 1"
            self.faults.add(element.line, what, "give two numbers in polycoef")
        elif joint.mimic is not None:
            self.faults.add(element.line, f"joint {name} follows two others", "leave one")
        elif leader in joints:
            offset = self.reference_positions[name] + a[0] - a[1] * self.reference_positions.get(leader, 0.0)
            joints[name] = replace(joint, mimic=JointMimic(leader, a[1], offset), start=0.0)


def _read_weld_pose(element: XmlElement) -> Pose | None:
    """Return where a weld holds its anchor, seen from the first body; None if where the file draws it."""
    text = element.attribute("relpose")
    numbers = element.read_numbers(text, "relpose", 7) if text else None
    quaternion = np.array(numbers[3:] if numbers else (0.0, 0.0, 0.0, 0.0))
    length = float(np.linalg.norm(quaternion))
    if numbers is None or length == 0.0:  # MuJoCo's sign that nothing is said
        return None
    return Pose(round_rotation_entries(rotation_from_quaternion(quaternion / length)), np.array(numbers[:3]))
