"""An independent, minimal import of a URDF file, and Kane's equations of a robot in numbers, without ``mb2fmu.robots``.

SDF is read by ``independent_sdf``.

Links are followed from the root in the ground's components: positions, velocities, accelerations at u' = 0, and the
Jacobians of every link. Then, with J_v of a mass centre and J_w of a link,

    M = Σ m J_vᵀ J_v + J_wᵀ I J_w,    f = τ − Σ J_vᵀ m (a_0 − g) + J_wᵀ (I α_0 + ω × I ω)

(Kane and Levinson, Dynamics, 1985, ch. 6).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from xml.etree import ElementTree as ET
from xml.parsers import expat

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Pose = tuple[Array, Array]
"""Rotation, position."""
_SPEED_COUNTS = {"revolute": 1, "continuous": 1, "prismatic": 1, "ball": 3, "planar": 3, "floating": 6, "fixed": 0}


@dataclass(frozen=True, slots=True)
class LinkModalState:
    """Modal coordinates of a link that bends, m, their speeds, and modal stiffness and damping, shapes (m,), (m, m)."""

    eta: Array
    rate: Array
    stiffness: Array
    damping: Array


@dataclass(frozen=True, slots=True)
class RobotEvaluationPoint:
    """Configuration of the robot, and its efforts.

    Attributes:
        q: Joint → coordinates; floating: position and quaternion (w, x, y, z); planar: x, y, angle.
        u: Joint → speeds; floating: velocity and angular velocity along the moving axes.
        acceleration: Joint → given acceleration, of joints whose motion is prescribed.
        effort: Joint → along its one speed.
        damping: Joint → N·m·s/rad or N·s/m.
        gravity: m/s², in the root's frame.
        control: Actuator → its control, where the file has laws for actuators.
        friction: Joint that moves by itself → factor on the dry friction that the file says of it and its followers.
        modal: Link that bends → its modes.
    """

    q: Mapping[str, Sequence[float]]
    u: Mapping[str, Sequence[float]]
    acceleration: Mapping[str, float]
    effort: Mapping[str, float]
    damping: Mapping[str, float]
    gravity: Array
    control: Mapping[str, float] = field(default_factory=dict)
    friction: Mapping[str, float] = field(default_factory=dict)
    modal: Mapping[str, LinkModalState] = field(default_factory=dict)


@dataclass(slots=True)
class LinkMotion:
    """Motion of a link in the ground's components; accelerations at u' = 0.

    Attributes:
        R: The link's axes.
        p, v, a: Of its origin.
        w, alpha: Angular velocity and acceleration.
        Jw, Jv: Columns per speed, shape (3, n).
    """

    R: Array
    p: Array
    w: Array
    v: Array
    alpha: Array
    a: Array
    Jw: Array
    Jv: Array


@dataclass(slots=True, eq=False)
class RobotTreeJoint:
    """A joint; R and p between its parent's frame and its child's come before its motion."""

    name: str
    kind: str
    parent: str
    child: str
    R: Array
    p: Array
    axis: Array
    mimic: tuple[str, float, float] | None = None
    armature: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class RobotTree:
    """Links, joints, closing joints and gravity of a robot's file.

    Attributes:
        bodies: Link → mass, mass centre, and inertia about it along the link's axes.
        joints: By name.
        root: The link, or the ground, that no joint moves.
        gravity: In the root's axes, m/s²; None where the file says nothing of it.
        closing: Of the joints that move nothing but close loops: kind (``point``, ``hinge``, ``weld``), both links, and
            where the joint is in each.
        frames: Link → its own frame in the frame that its body stands in, where that is another one.
    """

    bodies: Mapping[str, tuple[float, Array, Array]]
    joints: Mapping[str, RobotTreeJoint]
    root: str
    gravity: Array | None = None
    closing: Sequence[tuple[str, tuple[str, str], tuple[Pose, Pose]]] = ()
    frames: Mapping[str, Pose] = field(default_factory=dict)


class UrdfBendingLink(Protocol):
    """A link that bends (``independent_flexible_links.NodalFlexibleLink``)."""

    @property
    def mode_count(self) -> int:
        """Number of modes."""

    def move_section(
        self, joint: RobotTreeJoint, link: LinkMotion, modal: LinkModalState, first: int
    ) -> tuple[LinkMotion, RobotTreeJoint]:
        """Return the motion of the section that a joint hangs on, and the joint with its place in it."""

    def add_equations(
        self, link: LinkMotion, modal: LinkModalState, first: int, gravity: Array, terms: tuple[Array, Array]
    ) -> None:
        """Add a link's share of M and f, in place."""


@dataclass(slots=True)
class IndependentRobotImport:
    """The independent import of a robot's file.

    Args:
        content: Of the file.
        read: :func:`read_urdf_tree`, or ``independent_sdf.read_sdf_tree``.
        base: ``fixed``, ``floating`` or ``planar``: how the root link stands; its joint is called ``base``.
        locked: Joint → position at which it is held.
        free: True: joints that mimic others move by themselves.
        prescribed: Joints whose motion is given.
        bending: Link that bends → its nodes, in place of its body in the file.
    """

    content: bytes
    read: Callable[[bytes], RobotTree]
    base: str = "fixed"
    locked: Mapping[str, float] = field(default_factory=dict)
    free: bool = False
    prescribed: Sequence[str] = ()
    bending: Mapping[str, UrdfBendingLink] = field(default_factory=dict)
    joints: list[RobotTreeJoint] = field(default_factory=list)
    column: dict[str, int] = field(default_factory=dict)
    modal_column: dict[str, int] = field(default_factory=dict)
    size: int = 0
    gravity: Array | None = None
    tree: RobotTree | None = None
    _bodies: Mapping[str, tuple[float, Array, Array]] = field(default_factory=dict)
    _root: str = ""

    def __post_init__(self) -> None:
        tree = self.tree = self.read(self.content)
        self._bodies, self._root, self.gravity = tree.bodies, tree.root, tree.gravity
        joints = dict(tree.joints)
        if self.base != "fixed":
            base = RobotTreeJoint("base", self.base, "", self._root, np.eye(3), np.zeros(3), np.array([0.0, 0.0, 1.0]))
            joints = {"base": base, **joints}
        reached_links, remaining_joints = {self._root if self.base == "fixed" else ""}, list(joints.values())
        while following := [joint for joint in remaining_joints if joint.parent in reached_links]:
            self.joints += following
            reached_links |= {joint.child for joint in following}
            remaining_joints = [joint for joint in remaining_joints if joint not in following]
        for joint in self.joints:
            if self.free:
                joint.mimic = None
            is_independent = joint.mimic is None and joint.name not in self.locked and joint.name not in self.prescribed
            if is_independent and _SPEED_COUNTS[joint.kind]:
                self.column[joint.name] = self.size
                self.size += _SPEED_COUNTS[joint.kind]
        for name, link in self.bending.items():
            self.modal_column[name] = self.size
            self.size += link.mode_count

    def equations(self, state: RobotEvaluationPoint) -> tuple[Array, Array]:
        """Return M, shape (n, n), and f, shape (n,), of M u' = f; rows by :attr:`column`, :attr:`modal_column`."""
        n = self.size
        M, f = np.zeros((n, n)), np.zeros(n)
        for joint in self.joints:
            self._add_efforts(joint, state, M, f)
        for name, motion in self.compute_motions(state).items():
            if name in self.bending:
                first = self.modal_column[name]
                self.bending[name].add_equations(motion, state.modal[name], first, state.gravity, (M, f))
                continue
            mass, center, inertia = self._bodies.get(name, (0.0, np.zeros(3), np.zeros((3, 3))))
            r, I = motion.R @ center, motion.R @ inertia @ motion.R.T
            Jv = motion.Jv + _cross_columns(motion.Jw, r)
            a = motion.a + _cross(motion.alpha, r) + _cross(motion.w, _cross(motion.w, r))
            M += mass * Jv.T @ Jv + motion.Jw.T @ I @ motion.Jw
            f -= Jv.T @ (mass * (a - state.gravity))
            f -= motion.Jw.T @ (I @ motion.alpha + _cross(motion.w, I @ motion.w))
        return M, f

    def has_frame(self, name: str) -> bool:
        """Return whether there is a link of that name."""
        return name in self._bodies

    def compute_motions(self, state: RobotEvaluationPoint) -> dict[str, LinkMotion]:
        """Return the motion of every link."""
        zero, no_columns = np.zeros(3), np.zeros((3, self.size))
        ground_motion = LinkMotion(np.eye(3), zero, zero, zero, zero, zero, no_columns, no_columns)
        motions = {self._root if self.base == "fixed" else "": ground_motion}
        for joint in self.joints:
            parent, moved_joint = motions[joint.parent], joint
            if joint.parent in self.bending:
                first = self.modal_column[joint.parent]
                parent, moved_joint = self.bending[joint.parent].move_section(
                    joint, parent, state.modal[joint.parent], first
                )
            motions[joint.child] = self._move_child(moved_joint, parent, state)
        return motions

    def _resolve_mimic(
        self, joint: RobotTreeJoint, state: RobotEvaluationPoint
    ) -> tuple[float, float, float, str, float]:
        """Return position, speed and given acceleration of a joint with one coordinate; its mover, and the factor."""
        factor, offset, leader = 1.0, 0.0, joint
        joint_by_name = {each.name: each for each in self.joints}
        while leader.mimic is not None and leader.name not in self.locked:
            offset += factor * leader.mimic[2]
            factor *= leader.mimic[1]
            leader = joint_by_name[leader.mimic[0]]
        if leader.name in self.locked or leader.kind == "fixed":
            return factor * self.locked.get(leader.name, 0.0) + offset, 0.0, 0.0, leader.name, 0.0
        q, u = state.q[leader.name][0], state.u[leader.name][0]
        acceleration = state.acceleration.get(leader.name, 0.0)
        return factor * q + offset, factor * u, factor * acceleration, leader.name, factor

    def _move_child(self, joint: RobotTreeJoint, m: LinkMotion, state: RobotEvaluationPoint) -> LinkMotion:
        """Return the motion of a joint's child."""
        R, r = m.R @ joint.R, m.R @ joint.p
        p = m.p + r
        v = m.v + _cross(m.w, r)
        a = m.a + _cross(m.alpha, r) + _cross(m.w, _cross(m.w, r))
        Jw, Jv = m.Jw.copy(), m.Jv + _cross_columns(m.Jw, r)
        w, alpha = m.w, m.alpha
        if joint.kind == "fixed":
            return LinkMotion(R, p, w, v, alpha, a, Jw, Jv)
        if joint.kind in {"floating", "ball"}:
            return self._move_floating(joint, LinkMotion(R, p, w, v, alpha, a, Jw, Jv), state)
        if joint.kind == "planar":
            return self._move_planar(joint, LinkMotion(R, p, w, v, alpha, a, Jw, Jv), state)
        q, u, acceleration, owner, factor = self._resolve_mimic(joint, state)
        axis = R @ joint.axis
        column = self.column.get(owner)
        if joint.kind == "prismatic":
            displacement = q * axis
            a = (
                a
                + _cross(alpha, displacement)
                + _cross(w, _cross(w, displacement))
                + 2 * _cross(w, u * axis)
                + acceleration * axis
            )
            v, p = v + _cross(w, displacement) + u * axis, p + displacement
            Jv = Jv + _cross_columns(Jw, displacement)
            if column is not None:
                Jv[:, column] += factor * axis
        else:
            alpha = alpha + _cross(w, u * axis) + acceleration * axis
            w = w + u * axis
            R = R @ rotation_about_axis(joint.axis, q)
            if column is not None:
                Jw[:, column] += factor * axis
        return LinkMotion(R, p, w, v, alpha, a, Jw, Jv)

    def _move_floating(self, joint: RobotTreeJoint, m: LinkMotion, state: RobotEvaluationPoint) -> LinkMotion:
        """Return the motion behind a floating joint, or behind a ball joint, which only turns."""
        column, ball = self.column[joint.name], joint.kind == "ball"
        q, u = [*[0.0] * (3 * ball), *state.q[joint.name]], np.array([*[0.0] * (3 * ball), *state.u[joint.name]])
        e0, e = q[3] / np.linalg.norm(q[3:]), np.array(q[4:]) / np.linalg.norm(q[3:])
        cross = cross_product_matrix(e)
        C = np.eye(3) + 2 * e0 * cross + 2 * cross @ cross
        R, displacement = m.R @ C, m.R @ np.array(q[:3])
        rate, turn = R @ u[:3], R @ u[3:]
        # v is written along the moving axes: its rate in the frame before is turn × rate, seen from there
        a = m.a + _cross(m.alpha, displacement) + _cross(m.w, _cross(m.w, displacement)) + 2 * _cross(m.w, rate)
        a = a + _cross(turn, rate)
        Jv, Jw = m.Jv + _cross_columns(m.Jw, displacement), m.Jw.copy()
        if not ball:
            Jv[:, column : column + 3] += R
        turning = column if ball else column + 3
        Jw[:, turning : turning + 3] += R
        v = m.v + _cross(m.w, displacement) + rate
        return LinkMotion(R, m.p + displacement, m.w + turn, v, m.alpha + _cross(m.w, turn), a, Jw, Jv)

    def _move_planar(self, joint: RobotTreeJoint, m: LinkMotion, state: RobotEvaluationPoint) -> LinkMotion:
        """Return the motion behind a planar joint: slides x, y in its plane, then turns about the normal."""
        column, (x, y, angle), (vx, vy, rate) = self.column[joint.name], state.q[joint.name], state.u[joint.name]
        first, second, normal = (m.R @ each for each in _planar_joint_directions(joint.axis))
        displacement, sliding_velocity, turn = x * first + y * second, vx * first + vy * second, rate * normal
        a = (
            m.a
            + _cross(m.alpha, displacement)
            + _cross(m.w, _cross(m.w, displacement))
            + 2 * _cross(m.w, sliding_velocity)
        )
        Jv, Jw = m.Jv + _cross_columns(m.Jw, displacement), m.Jw.copy()
        Jv[:, column] += first
        Jv[:, column + 1] += second
        Jw[:, column + 2] += normal
        v, R = m.v + _cross(m.w, displacement) + sliding_velocity, m.R @ rotation_about_axis(joint.axis, angle)
        return LinkMotion(R, m.p + displacement, m.w + turn, v, m.alpha + _cross(m.w, turn), a, Jw, Jv)

    def _add_efforts(self, joint: RobotTreeJoint, state: RobotEvaluationPoint, M: Array, f: Array) -> None:
        """Add effort, damping and rotor of one joint in the row of the speed that moves it."""
        if _SPEED_COUNTS[joint.kind] != 1:
            column, damping = self.column.get(joint.name), state.damping.get(joint.name, 0.0)
            if column is not None and damping:
                f[column : column + _SPEED_COUNTS[joint.kind]] -= damping * np.array(state.u[joint.name])
            return
        q, u, _, owner, factor = self._resolve_mimic(joint, state)
        column = self.column.get(owner)
        if column is not None:
            f[column] += factor * (state.effort.get(joint.name, 0.0) - state.damping.get(joint.name, 0.0) * u)
            f[column] -= factor * joint.stiffness * (q - joint.rest)
            f[column] -= factor * state.friction.get(owner, 0.0) * joint.friction * np.sign(u)
            M[column, column] += factor**2 * joint.armature


def read_urdf_tree(content: bytes) -> RobotTree:
    """Return the links and joints of a URDF file."""
    robot = parse_xml_with_undeclared_prefixes(content)
    bodies = {link.get("name", ""): _read_body(link.find("inertial")) for link in robot.findall("link")}
    joints = {joint.get("name", ""): _read_joint(joint) for joint in robot.findall("joint")}
    _add_rotor_inertias(robot, joints)
    children = {joint.child for joint in joints.values()}
    return RobotTree(bodies, joints, next(name for name in bodies if name not in children))


def parse_xml_with_undeclared_prefixes(content: bytes) -> ET.Element:
    """Return the root of a file that was parsed strictly before; prefixes stand for themselves, declared or not."""
    builder, parser = ET.TreeBuilder(), expat.ParserCreate()

    def named(name: str) -> str:
        """Return a name in ElementTree's form."""
        prefix, colon, local_name = name.rpartition(":")
        return f"{{{prefix}}}{local_name}" if colon else local_name

    def start(name: str, attributes: dict[str, str]) -> None:
        """Open an element."""
        builder.start(named(name), {named(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        """Close it."""
        builder.end(named(name))

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.ParseFile(io.BytesIO(content))
    return builder.close()


def _add_rotor_inertias(robot: ET.Element, joints: Mapping[str, RobotTreeJoint]) -> None:
    """Add rotor inertia × reduction² to the armature of each joint that one transmission drives, in kg·m²."""
    for transmission in robot.findall("transmission"):
        joint_names = [joint.get("name", "") for joint in transmission.findall("joint")]
        for actuator in transmission.findall("actuator"):
            elements = reversed(_list_rotor_elements(actuator))  # of several the first one counts
            values = {e.tag.rpartition("}")[2]: float(e.get("value") or e.text or "nan") for e in elements}
            inertia = next((values[w] for w in ("motorInertia", "rotorInertia", "rotor_inertia") if w in values), 0.0)
            reduction = values.get("gear_ratio", values.get("mechanicalReduction", 1.0))
            if len(joint_names) == 1 and joint_names[0] in joints:
                joints[joint_names[0]].armature += inertia * reduction**2


def _list_rotor_elements(actuator: ET.Element) -> list[ET.Element]:
    """Return the elements of an actuator that describe its rotor or its gear, those of Drake's own namespace too."""
    tag_words = ("motorInertia", "rotorInertia", "rotor_inertia", "gear_ratio", "mechanicalReduction")
    return [element for element in actuator if element.tag.rpartition("}")[2] in tag_words]


def _planar_joint_directions(axis: Array) -> tuple[Array, Array, Array]:
    """Return two directions of a planar joint, and its normal; the first is the least aligned axis, projected."""
    least_aligned_axis = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = least_aligned_axis - (least_aligned_axis @ axis) * axis
    first /= np.linalg.norm(first)
    return first, _cross(axis, first), axis


def _read_numbers(element: ET.Element | None, name: str, default: str) -> Array:
    """Return the numbers of an attribute; the default where element or attribute is absent."""
    return np.array([float(x) for x in (default if element is None else element.get(name, default)).split()])


def _read_origin(parent: ET.Element) -> tuple[Array, Array]:
    """Return rotation (fixed-axis roll, pitch, yaw) and position of an element's origin."""
    origin = parent.find("origin")
    roll, pitch, yaw = _read_numbers(origin, "rpy", "0 0 0")
    x, y, z = np.eye(3)
    return rotation_about_axis(z, yaw) @ rotation_about_axis(y, pitch) @ rotation_about_axis(x, roll), _read_numbers(
        origin, "xyz", "0 0 0"
    )


def _read_body(inertial: ET.Element | None) -> tuple[float, Array, Array]:
    """Return mass, mass centre and inertia along the link's axes."""
    if inertial is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    R, center = _read_origin(inertial)
    inertia = inertial.find("inertia")
    xx, xy, xz, yy, yz, zz = (
        float(_read_numbers(inertia, f"i{ij}", "0")[0]) for ij in ("xx", "xy", "xz", "yy", "yz", "zz")
    )
    mass = float(_read_numbers(inertial.find("mass"), "value", "0")[0])
    return mass, center, R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T


def _read_joint(element: ET.Element) -> RobotTreeJoint:
    """Read a joint: its place, unit axis, friction, and what it mimics."""
    R, p = _read_origin(element)
    axis = _read_numbers(element.find("axis"), "xyz", "1 0 0")
    length = float(np.linalg.norm(axis))
    end_elements = [(element.find(end), end) for end in ("parent", "child")]
    parent, child = (end.get("link", "") if end is not None else "" for end, _ in end_elements)
    joint = RobotTreeJoint(
        element.get("name", ""), element.get("type", ""), parent, child, R, p, axis / (length or 1.0)
    )
    joint.friction = float(_read_numbers(element.find("dynamics"), "friction", "0")[0])
    mimic = element.find("mimic")
    if mimic is not None and _SPEED_COUNTS[joint.kind] == 1:
        joint.mimic = (mimic.get("joint", ""), float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0")))
    return joint


def axes_with_third_direction(axis: Array) -> Array:
    """Return axes whose third is a given direction."""
    z = axis / np.linalg.norm(axis)
    x = _cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    x /= np.linalg.norm(x)
    return np.column_stack([x, _cross(z, x), z])


def cross_product_matrix(v: Array) -> Array:
    """Return v × as a matrix."""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _cross(a: Array, b: Array) -> Array:
    """Return a × b; ``numpy.cross`` takes ten times as long for three numbers."""
    a0, a1, a2 = a.tolist()
    b0, b1, b2 = b.tolist()
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0])


def _cross_columns(columns: Array, r: Array) -> Array:
    """Return column × r for every column; shape (3, n)."""
    x, y, z = r.tolist()
    product: Array = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]) @ columns
    return product


def rotation_about_axis(axis: Array, angle: float) -> Array:
    """Return the rotation by an angle about a unit vector."""
    cross = cross_product_matrix(axis)
    rotation: Array = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
    return rotation
