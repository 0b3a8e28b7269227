"""Damping of MJCF's position drives from a ratio to critical damping (``dampratio``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mb2fmu.robots.description.robot_description import ActuatorRecord, Array, JointRecord, RobotDescription
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import build_articulated_tree
from mb2fmu.robots.tree.tree_inertia import compute_inertia_and_weight, motion_directions


def resolve_damping_ratios(
    description: RobotDescription,
    joints: Mapping[str, JointRecord],
    zero: Mapping[str, float],
    ratios: Mapping[str, float],
) -> tuple[ActuatorRecord, ...]:
    """Return the actuators; those with a damping ratio get the damping 2 × ratio × √(gain × m).

    m = 1/(J M⁻¹ Jᵀ) is the inertia that the drive feels at the file's own pose with all joints free, as in MuJoCo 4.

    Args:
        description: Of the robot; its order of joints is a tree's.
        joints: Name → joint as the file has it, nothing coupled or held.
        zero: Joint → position that the file draws it at.
        ratios: Actuator → ratio.

    Raises:
        ModelError: If the robot's mass matrix would be singular.
    """
    if not ratios:
        return description.actuators
    free = replace(description, joints=tuple(joints[joint.name] for joint in description.joints), loops=())
    tree = build_articulated_tree(free, RobotSettings(inertia="keep"))
    positions = {i: zero.get(part.moving_joint.name, 0.0) for i, part in enumerate(tree.parts[1:], 1)}
    M = compute_inertia_and_weight(tree, positions, np.zeros(3))[0]
    row = {tree.parts[i].moving_joint.name: j for j, (i, _) in enumerate(motion_directions(tree))}
    return tuple(
        _set_actuator_damping(actuator, ratios[actuator.name], M, row) if actuator.name in ratios else actuator
        for actuator in description.actuators
    )


def _set_actuator_damping(actuator: ActuatorRecord, ratio: float, M: Array, row: Mapping[str, int]) -> ActuatorRecord:
    """Return the actuator with its damping, rows of M being those of joints."""
    J = np.zeros(len(M))
    for joint, factor in actuator.terms:
        J[row[joint]] += factor
    inertia = 1.0 / float(J @ np.linalg.lstsq(M, J, rcond=None)[0])
    b0, b1, _ = actuator.bias
    return replace(actuator, bias=(b0, b1, -2.0 * ratio * float(np.sqrt(actuator.gain * inertia))))
