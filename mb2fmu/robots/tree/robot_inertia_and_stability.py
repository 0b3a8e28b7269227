"""Inertia and weight of a moving tree at one position, in numbers: to size efforts and find singular joints.

Links that bend are rigid here, as they are at rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mb2fmu.errors import Fault, ModelError
from mb2fmu.robots.description.robot_description import Array, Pose
from mb2fmu.robots.tree.articulated_tree import RigidLinkGroup, RobotPartTree, rotation_about_axis

Dof = tuple[int, int]
"""Number of a part, and which of the directions of its joint."""

_INERTIA_ROUND_OFF = 1e-12
"""Inertia left along a joint, relative to that before joints behind it gave way, that is round-off."""
_MASS_ON_AXIS_FRACTION = 1e-14
"""Inertia along a joint, relative to that of the same masses at right angles to it, of masses on its axis.

Files write angles with eight digits: a mass that is meant to be on an axis is 1e-8 of its distance beside it.
"""


@dataclass(frozen=True, slots=True)
class MassMatrixAndWeightAtStart:
    """Values at the start: mass matrix, weight along each speed, first row of each part.

    ``compute_robot_instability_rate`` is how fast the robot falls from there if its weight is held: rate of the fastest
    exponential, 1/s; 0 where it hangs. ``compute_robot_damping_rate`` is how fast its dampers stop it, likewise. ``D``
    is what joint dampers make of the speeds.
    """

    M: Array
    weight: Array
    row: dict[int, int]
    falling_rate: float
    D: Array
    braking_rate: float

    def joint_inertia(self, part: int) -> float:
        """Return the inertia along a joint with all others held, kg·m² or kg."""
        return float(self.M[self.row[part], self.row[part]])

    def effort_per_acceleration(self, row: int, rate: float) -> float:
        """Return the effort along a joint over the acceleration that it causes, with all others held, kg·m² or kg.

        A swing of this angular frequency takes m a against the inertia and, a quarter of a period later, d a/rate
        against the dampers.
        """
        return math.hypot(self.M[row, row], self.D[row, row] / rate)


def list_tree_motion_directions(tree: RobotPartTree) -> list[Dof]:
    """Return the directions in which the tree can move, parents first; followers have none."""
    sizes = {"revolute": 1, "prismatic": 1, "planar": 3, "floating": 6, "ball": 3, "elastic": 0}
    own = [(i, part) for i, part in enumerate(tree.parts[1:], 1) if part.coordinate is None or part.coordinate[0] == i]
    return [(i, k) for i, part in own for k in range(sizes[part.moving_joint.kind])]


def compute_robot_inertia_and_weight(
    tree: RobotPartTree, positions: Mapping[int, float], gravity: Array
) -> tuple[Array, Array, Array]:
    """Return mass matrix along all directions, the efforts that hold the robot, and their derivatives.

    Args:
        tree: The parts.
        positions: Number of a part → position of its joint, rad or m; 0 where it is not named.
        gravity: m/s², in the ground.

    Returns:
        M, shape (n, n), the efforts against gravity, shape (n,), and their derivatives by the positions, shape (n, n),
        in the order of :func:`list_tree_motion_directions`.
    """
    order = {dof: j for j, dof in enumerate(list_tree_motion_directions(tree))}
    n = len(order)
    M, weight, K = np.zeros((n, n)), np.zeros(n), np.zeros((n, n))
    poses, columns = compute_part_poses_and_twists(tree, positions)
    for i, part in enumerate(tree.parts[1:], 1):
        own, at = columns[i], poses[i]
        if part.coordinate is not None:
            owner, factor, _ = part.coordinate
            M[order[owner, 0], order[owner, 0]] += factor**2 * part.moving_joint.armature
        elif part.moving_joint.kind == "ball":
            for k in range(3):
                M[order[i, k], order[i, k]] += part.moving_joint.armature
        if part.inertia is None or not own:
            continue
        center = at.position + at.rotation @ part.inertia.center
        moving = list(own)
        J = np.array([own[k] for k in moving])
        w, v = J[:, :3], J[:, 3:] + np.cross(J[:, :3], center)
        inertia = at.rotation @ part.inertia.inertia @ at.rotation.T
        M[np.ix_(moving, moving)] += part.inertia.mass * v @ v.T + w @ inertia @ w.T
        weight[moving] -= part.inertia.mass * v @ gravity
        # Joint a turns the velocity that joint b behind it gives: ∂v_b/∂q_a = w_a × v_b, and ∂v_a/∂q_b is the same.
        # Where a joint mimics another one this leaves out how the two turn each other: enough to say what falls.
        half = np.triu(np.cross(w[:, None], v[None]) @ gravity)
        K[np.ix_(moving, moving)] -= part.inertia.mass * (half + np.triu(half, 1).T)
    return M, weight, K


def compute_part_poses_and_twists(
    tree: RobotPartTree, positions: Mapping[int, float]
) -> tuple[list[Pose], list[dict[int, Array]]]:
    """Return the poses of all parts, and the twist (ω, v at the origin of the ground) that each direction gives a part.

    Args:
        tree: The parts.
        positions: Number of a part → position of its joint, rad or m; 0 where it is not named.

    Returns:
        Per part its pose in the ground, and direction → its twist per unit of the speed, shape (6,).
    """
    order = {dof: j for j, dof in enumerate(list_tree_motion_directions(tree))}
    poses: list[Pose] = [Pose()]
    columns: list[dict[int, Array]] = [{}]
    for i, part in enumerate(tree.parts[1:], 1):
        own = dict(columns[part.parent])
        at = poses[part.parent] @ part.parent_rotation
        if part.coordinate is not None:
            owner, factor, offset = part.coordinate
            j = order[owner, 0]
            axis = part.sign * at.rotation[:, part.axis]
            column = _rotation_twist(at, axis) if part.moving_joint.kind == "revolute" else _translation_twist(axis)
            own[j] = own.get(j, np.zeros(6)) + factor * column
            at = at @ _joint_pose(part, factor * positions.get(owner, 0.0) + offset)
        else:
            own |= {order[i, k]: column for k, column in enumerate(_joint_twists(part, at))}
        poses.append(at)
        columns.append(own)
    return poses, columns


def compute_robot_instability_rate(M: Array, K: Array, D: Array) -> float:
    """Return the rate of the fastest growing exponential of M q'' + D q' + K q = 0, 1/s; 0 where nothing falls."""
    if not len(M):
        return 0.0
    slopes = np.linalg.solve(M, -np.hstack([K, D]))
    rates = np.linalg.eigvals(np.vstack([np.eye(len(M), 2 * len(M), k=len(M)), slopes]))
    return max(0.0, float(rates.real.max()))


def joint_damping_matrix(tree: RobotPartTree, damped: Iterable[int]) -> Array:
    """Return D, by which these parts' joint dampers brake the speeds with D u."""
    dofs = list_tree_motion_directions(tree)
    D = np.zeros((len(dofs), len(dofs)))
    for i in damped:
        joint, coordinate = tree.parts[i].moving_joint, tree.parts[i].coordinate
        owner, factor = coordinate[:2] if coordinate else (i, 1.0)  # what follows brakes its leader
        for j, (part, _) in enumerate(dofs):
            D[j, j] += joint.damping * factor**2 if part == owner else 0.0
    return D


def compute_robot_damping_rate(M: Array, D: Array) -> float:
    """Return the rate of the fastest exponential of M u' + D u = 0, 1/s."""
    return float(np.linalg.eigvals(np.linalg.solve(M, D)).real.max()) if len(M) else 0.0


def check_massless_joints(tree: RobotPartTree, where: str) -> None:
    """Refuse joints without inertia once the joints beyond them move freely: their acceleration is undetermined.

    Raises:
        ModelError: With every such joint and link.
    """
    dofs = list_tree_motion_directions(tree)
    positions = {i: 0.3 + 0.1 * (i % 7) for i in range(len(tree.parts))}
    M = compute_robot_inertia_and_weight(tree, positions, np.zeros(3))[0]
    before, off_axis = np.diag(M).copy(), _inertia_off_axis(tree, positions)
    found: dict[int, None] = {}
    for j in reversed(range(len(dofs))):
        if M[j, j] <= max(_INERTIA_ROUND_OFF * before[j], _MASS_ON_AXIS_FRACTION * off_axis[j]):
            found[dofs[j][0]] = None
            continue
        M[:j, :j] -= np.outer(M[:j, j], M[:j, j]) / M[j, j]
    faults = []
    for i in reversed(found):
        part = tree.parts[i]
        what = f"joint {part.moving_joint.name} moves link {part.name}, which no inertia resists in some direction"
        remedy = f"give {part.name} mass and inertia, or make {part.moving_joint.name} or the joint behind it fixed"
        line = part.moving_joint.line
        faults.append(Fault(what, f"{where}:{line}" if line else where, remedy))
    if faults:
        raise ModelError("the robot's equations of motion would be singular:", faults)


def _inertia_off_axis(tree: RobotPartTree, positions: Mapping[int, float]) -> Array:
    """Return the largest inertia that the masses beyond each joint could have at their distances, shape (n,)."""
    dofs = list_tree_motion_directions(tree)
    largest = np.zeros(len(dofs))
    poses, columns = compute_part_poses_and_twists(tree, positions)
    for part, pose, own in zip(tree.parts, poses, columns, strict=True):
        if part.inertia is None:
            continue
        center = pose.position + pose.rotation @ part.inertia.center
        for j, twist in own.items():
            turning = float(twist[:3] @ twist[:3])
            arm = center - poses[dofs[j][0]].position
            largest[j] += turning * (part.inertia.mass * arm @ arm + np.linalg.norm(part.inertia.inertia))
    return largest


def _joint_twists(part: RigidLinkGroup, at: Pose) -> list[Array]:
    """Return the columns of a joint with several directions, in the order of its speeds."""
    axes = [at.rotation[:, k] for k in range(3)]
    match part.moving_joint.kind:
        case "planar":
            return [_translation_twist(axes[0]), _translation_twist(axes[1]), _rotation_twist(at, axes[2])]
        case "floating":
            return [*map(_translation_twist, axes), *(_rotation_twist(at, axis) for axis in axes)]
        case "elastic":  # links that bend are as at rest
            return []
    return [_rotation_twist(at, axis) for axis in axes]


def _rotation_twist(at: Pose, axis: Array) -> Array:
    """Return the unit twist (ω, v of the origin) of turning about an axis through a pose's position."""
    return np.concatenate([axis, np.cross(at.position, axis)])


def _translation_twist(axis: Array) -> Array:
    """Return the unit twist (ω, v) of sliding along an axis."""
    return np.concatenate([np.zeros(3), axis])


def _joint_pose(part: RigidLinkGroup, position: float) -> Pose:
    """Return the pose that a joint at a position adds, in rad or m."""
    axis = np.zeros(3)
    axis[part.axis] = part.sign
    if part.moving_joint.kind == "revolute":
        return Pose(rotation_about_axis(axis, position))
    return Pose(position=position * axis)
