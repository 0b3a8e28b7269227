"""``RobotDescription``: the content of a robot file as plain numbers; readers of all formats return it.

SI units throughout. A pose says where a frame B is in a frame A: ``rotation`` is ``A_C_B`` (components in A =
``rotation`` @ components in B), ``position`` goes from A's origin to B's, in A's components. Every record knows the
line of the file that it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
RobotJointKind = Literal["revolute", "prismatic", "fixed", "floating", "planar", "ball", "elastic"]
LoopConnection = Literal["point", "hinge", "weld"]
GeometryKind = Literal["box", "cylinder", "sphere", "capsule", "ellipsoid", "mesh"]

UNBOUNDED_RANGE = (-np.inf, np.inf)
_ROTATION_ROUND_OFF = 4.5e-16
_MASSLESS_LINK_MARK = " (behind "
"""What products of rotations leave of an entry that is 0 or ±1."""


def _identity_rotation() -> Array:
    """Return the rotation that does not turn."""
    return np.eye(3)


def _zero_vector() -> Array:
    """Return the zero vector."""
    return np.zeros(3)


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Pose of a frame in another one."""

    rotation: Array = field(default_factory=_identity_rotation)
    position: Array = field(default_factory=_zero_vector)

    def __matmul__(self, other: Pose) -> Pose:
        """Return ``A_pose_B @ B_pose_C``: the pose of C in A."""
        return Pose(
            round_rotation_entries(self.rotation @ other.rotation), self.position + self.rotation @ other.position
        )

    def inverse(self) -> Pose:
        """Return the pose of A in B."""
        return Pose(self.rotation.T, -self.rotation.T @ self.position)


def round_rotation_entries(rotation: Array) -> Array:
    """Return direction cosines with entries within round-off of 0 and ±1 set there: products stay sparse."""
    nearest = np.round(rotation)
    return np.where(np.abs(rotation - nearest) <= _ROTATION_ROUND_OFF, nearest + 0.0, rotation)


def rotation_from_roll_pitch_yaw(angles: Sequence[float]) -> Array:
    """Return the rotation about fixed axes x, y, z: Rz(yaw) Ry(pitch) Rx(roll), as in URDF and SDF."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(angles), np.cos(angles)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


@dataclass(frozen=True, slots=True, eq=False)
class LinkInertia:
    """Mass and inertia of a link.

    Attributes:
        mass: kg.
        center: Mass centre in the link's frame, m, shape (3,).
        inertia: About the mass centre, along the link's axes, kg·m², shape (3, 3).
        line: In the file.
    """

    mass: float
    center: Array
    inertia: Array
    line: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class LinkGeometry:
    """A shape that is drawn.

    Attributes:
        kind: Boxes have three edges, cylinders and capsules radius and length about z, spheres a radius, ellipsoids
            three half axes, meshes a scale along each axis.
        sizes: m (meshes: m per unit of the file).
        pose: In the link's frame.
        color: ``#rrggbb``, or empty.
        mesh: Of a mesh: as the file names it.
        collision: True: for contact; drawn only where a link has nothing else.
        line: In the file.
    """

    kind: GeometryKind
    sizes: tuple[float, ...]
    pose: Pose
    color: str = ""
    mesh: str = ""
    collision: bool = False
    line: int = 0


def form_massless_link_name(link: str, joint: str) -> str:
    """Return the name of a link without mass that stands between a joint and the link that it moves."""
    return f"{link}{_MASSLESS_LINK_MARK}{joint})"


def find_link_name_in_file(link: str) -> str:
    """Return what the file calls a link, or the link that one without mass stands before."""
    return link.partition(_MASSLESS_LINK_MARK)[0]


@dataclass(frozen=True, slots=True, eq=False)
class RobotLink:
    """A rigid part of the robot; ``inertial`` is None where the file gives none.

    ``unknown_mass_reason`` says why mass and inertia are not known, in a sentence; empty where they are.
    """

    name: str
    inertial: LinkInertia | None = None
    shapes: tuple[LinkGeometry, ...] = ()
    line: int = 0
    unknown_mass_reason: str = ""


@dataclass(frozen=True, slots=True)
class JointMimic:
    """A joint that follows another: position = ``multiplier`` × its leader's position + ``offset``."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLimits:
    """Bounds of a joint, rad or m, N·m or N, rad/s or m/s; infinite where there is none."""

    lower: float = -np.inf
    upper: float = np.inf
    effort: float = np.inf
    velocity: float = np.inf


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RobotJoint:
    """Motion of a link against its parent.

    Attributes:
        name: Of the joint.
        kind: ``planar``: in the plane perpendicular to ``axis``. ``elastic``, which no file has: a node of a link that
            bends moves in the link's frame.
        parent: Name of a link.
        child: Name of a link.
        origin: Joint frame in the parent link's frame; the child link's frame coincides with it at position 0.
        axis: Unit vector in the joint frame.
        limits: Bounds.
        damping: N·m·s/rad or N·s/m.
        friction: Coulomb friction, N·m or N.
        stiffness: Of a spring along the joint, N·m/rad or N/m.
        spring_reference: Position at which that spring is at rest.
        armature: Inertia of a rotor as felt at the joint, kg·m² or kg.
        mimic: The joint it follows; None: it moves by itself.
        start: Position at which the robot starts.
        start_pose: Of a floating joint or a ball: where it starts.
        actuated: Bounds of what all actuators together do along the joint, N·m or N.
        driven: False: nothing drives it (MJCF: no actuator acts on it).
        line: In the file.
    """

    name: str
    kind: RobotJointKind
    parent: str
    child: str
    origin: Pose = field(default_factory=Pose)
    axis: Array = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    limits: JointLimits = JointLimits()
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    spring_reference: float = 0.0
    armature: float = 0.0
    mimic: JointMimic | None = None
    start: float = 0.0
    start_pose: Pose = field(default_factory=Pose)
    actuated: tuple[float, float] = UNBOUNDED_RANGE
    driven: bool = True
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotActuator:
    """An actuator: along L = Σ factor × joint's position acts gain × control + b0 + b1 L + b2 L'.

    Attributes:
        name: Of the actuator.
        terms: (joint, factor).
        gain: N or N·m per unit of the control, over the factors.
        bias: b0, b1, b2.
        control: Bounds of the control.
        force: Bounds of the force.
        line: In the file.
    """

    name: str
    terms: tuple[tuple[str, float], ...]
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    control: tuple[float, float] = UNBOUNDED_RANGE
    force: tuple[float, float] = UNBOUNDED_RANGE
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotTendon:
    """A spring and damper along L = Σ factor × joint's position; slack between the two rest lengths.

    Attributes:
        name: Of the tendon.
        terms: (joint, factor).
        stiffness: N/m, or N·m/rad.
        damping: Along L', of that unit times s.
        rest: Shortest and longest length at which the spring does nothing; None: the length at the start.
        friction: Dry friction along L.
        line: In the file.
    """

    name: str
    terms: tuple[tuple[str, float], ...]
    stiffness: float = 0.0
    damping: float = 0.0
    rest: tuple[float, float] = (0.0, 0.0)
    friction: float = 0.0
    line: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RobotLoop:
    """Two links that are connected in addition to the tree.

    Attributes:
        name: Of the loop.
        kind: ``point``: origins of two frames meet; ``hinge``: and their z axes; ``weld``: and all axes.
        first: Name of a link.
        second: Name of a link.
        at: The frame in the first link's axes.
        other: The frame in the second link's axes.
        line: In the file.
    """

    name: str
    kind: LoopConnection
    first: str
    second: str
    at: Pose = field(default_factory=Pose)
    other: Pose = field(default_factory=Pose)
    line: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RobotDescription:
    """The content of a robot file.

    Attributes:
        name: As the file has it; may be empty.
        links: In the order of the file.
        joints: In the order of the file.
        gravity: Acceleration in the root's frame, m/s²; None where the file does not say it.
        root: The link that no joint moves.
        source: The file.
        notes: What was left out or assumed, one sentence each.
        actuators: With laws; joints that they act on have no effort of their own.
        tendons: Springs and dampers along sums of positions.
        loops: What closes the tree.
    """

    name: str
    links: tuple[RobotLink, ...]
    joints: tuple[RobotJoint, ...]
    root: str
    gravity: tuple[float, float, float] | None = None
    source: Path | None = None
    notes: tuple[str, ...] = ()
    actuators: tuple[RobotActuator, ...] = ()
    tendons: tuple[RobotTendon, ...] = ()
    loops: tuple[RobotLoop, ...] = ()

    def format_location(self, line: int = 0) -> str:
        """Return file and line for a message; no line if it is 0."""
        file = self.source.name if self.source else self.name
        return f"{file}:{line}" if line else file
