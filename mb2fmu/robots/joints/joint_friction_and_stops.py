"""Dry friction and hard stops of a robot's joints, as elements.

A joint that mimics another one moves with it: its friction and its stops are felt by the leader, F |k| and the range
(q − offset) / k, with k its factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mb2fmu.model.elements import CoulombFriction, HardStop
from mb2fmu.robots.tree.articulated_tree import RobotPartTree
from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols

STOP_RATE = 200.0
"""rad/s; of the vibration of a joint on its stop, the other joints being held: an impact takes some 16 ms."""
STOP_DAMPING = 0.5
"""Part of critical damping on a stop."""


@dataclass(frozen=True, slots=True)
class JointFrictionAndRange:
    """Friction and range along one coordinate, of its joint and the joint's followers.

    Attributes:
        joint: Name in the file.
        name: In front of the names of its variables.
        part_number: Number of the part that it moves.
        friction: N·m or N.
        lower: Smallest position, −∞ where there is none.
        upper: Largest position, ∞ where there is none.
    """

    joint: str
    name: str
    part_number: int
    friction: float
    lower: float
    upper: float


def find_joint_friction_and_ranges(
    tree: RobotPartTree, variables: Mapping[int, RobotJointSymbols]
) -> tuple[JointFrictionAndRange, ...]:
    """Return friction and range of every joint with its own coordinate that is not prescribed.

    Args:
        tree: The parts that move.
        variables: Number of a part → symbols of its joint.
    """
    found = []
    for i, each in variables.items():
        if len(each.q) != 1:
            continue
        friction, lower, upper = 0.0, -np.inf, np.inf
        for part in tree.parts[1:]:
            if part.coordinate is None or part.coordinate[0] != i:
                continue
            _, factor, offset = part.coordinate
            joint = part.moving_joint
            friction += abs(factor) * joint.friction
            if factor:
                ends = sorted((end - offset) / factor for end in (joint.limits.lower, joint.limits.upper))
                lower, upper = max(lower, ends[0]), min(upper, ends[1])
        found.append(
            JointFrictionAndRange(tree.parts[i].moving_joint.name, each.name, i, friction, float(lower), float(upper))
        )
    return tuple(found)


def make_joint_friction(felt: JointFrictionAndRange) -> CoulombFriction:
    """Return Coulomb's law; robot files give one number, so break-away and sliding friction are equal."""
    return CoulombFriction(f"{felt.name}.friction", felt.joint, kinetic=felt.friction)


def make_hard_stops(felt: JointFrictionAndRange, inertia: float) -> HardStop:
    """Return stops at both ends of a range.

    No file says how stiff they are. With ``inertia`` (of the joint at the start, kg·m² or kg) they are as stiff as
    makes it vibrate at ``STOP_RATE``: under its weight an arm of 1 m then leans 0.2 mm into the stop.
    """
    bounds = [float(end) if np.isfinite(end) else None for end in (felt.lower, felt.upper)]
    return HardStop(
        f"{felt.name}.stop",
        felt.joint,
        stiffness=float(f"{inertia * STOP_RATE**2:.3g}"),
        damping=float(f"{2.0 * STOP_DAMPING * inertia * STOP_RATE:.3g}"),
        lower=bounds[0],
        upper=bounds[1],
    )


def select_bounded_joints(felt: tuple[JointFrictionAndRange, ...]) -> Iterator[JointFrictionAndRange]:
    """Return the joints whose range ends somewhere and is not empty."""
    return (each for each in felt if (np.isfinite(each.lower) or np.isfinite(each.upper)) and each.lower < each.upper)
