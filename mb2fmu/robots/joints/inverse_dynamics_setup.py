"""Inverse dynamics of a robot: joints with given motions, and the requested efforts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.sources.record_based_mechanics import JointReference
from mb2fmu.robots.description.robot_description import RobotDescription
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import RobotPartTree
from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols

_PLANT_REMEDY = "leave --as out, and let the plant have what a motion takes as outputs: --with inverse-dynamics"


def select_prescribed_joints(description: RobotDescription, settings: RobotSettings) -> tuple[str, ...]:
    """Return the joints whose motion enters inverse dynamics.

    Raises:
        ModelError: Naming all that such an FMU cannot have.
    """
    where = description.format_location()
    odd = [joint for joint in description.joints if joint.kind in {"floating", "planar", "ball"}]
    faults = [
        Fault(f"joint {joint.name} is {joint.kind}, and no drive gives all of its motion",
              description.format_location(joint.line), _PLANT_REMEDY)
        for joint in odd
    ]  # fmt: skip
    if settings.base != "fixed":
        faults.append(Fault(f"base is {settings.base}, and no drive gives its motion", where, _PLANT_REMEDY))
    what = "inverse dynamics exist for a robot without loops"
    loops = [*(loop.name for loop in description.loops), *("+".join(loop.frames) for loop in settings.loops)]
    faults += [Fault(f"{name} closes a loop", where, what) for name in loops]
    if faults:
        raise ModelError("there are no inverse dynamics of this robot:", faults)
    follow = settings.mimic == "couple"
    return tuple(
        joint.name
        for joint in description.joints
        if joint.kind in {"revolute", "prismatic"}
        and joint.name not in settings.locked
        and not (follow and joint.mimic is not None)
    )


def request_joint_efforts(
    tree: RobotPartTree, variables: Mapping[int, RobotJointSymbols], description: RobotDescription
) -> list[OutputRequest]:
    """Return the effort along every joint with a given motion, with those of its followers.

    Args:
        tree: The parts that move.
        variables: Number of a part → symbols of its joint.
        description: Locates the joints in the file.
    """
    found = []
    for i, each in variables.items():
        joint = tree.parts[i].moving_joint
        moved = [p.moving_joint.name for p in tree.parts[1:] if p.coordinate and p.coordinate[0] == i]
        turns = joint.kind == "revolute"
        found.append(
            OutputRequest(
                name=f"{each.name}.effort",
                kind="joint_effort",
                unit="N.m" if turns else "N",
                subject=tuple(map(JointReference, moved)),
                where=description.format_location(joint.line),
                description=f"{'torque' if turns else 'force'} along joint {joint.name} that its motion takes",
            )
        )
    return found


def make_joint_excitation_signals(
    tree: RobotPartTree,
    variables: Mapping[int, RobotJointSymbols],
    starts: Mapping[sm.Expr, float],
    excitation: float,
) -> dict[sm.Expr, sm.Expr]:
    """Return position, speed and acceleration of every joint, within its range, each at its own frequency.

    Args:
        tree: The parts that move.
        variables: Number of a part → symbols of its joint; all are prescribed.
        starts: Of the inputs.
        excitation: Size of the accelerations, rad/s² or m/s².
    """
    t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
    signals: dict[sm.Expr, sm.Expr] = {}
    for k, (i, each) in enumerate(variables.items()):
        assert each.prescribed is not None
        limits, middle, rate = (
            tree.parts[i].moving_joint.limits,
            starts[each.prescribed[0]],
            choose_excitation_frequency(k),
        )
        room = min(middle - limits.lower, limits.upper - middle)
        size = float(f"{min(excitation / rate**2, room if room > 0 else np.inf):.6g}")
        position = middle + size * sm.sin(rate * t)
        signals |= {symbol: sm.diff(position, t, n) for n, symbol in enumerate(each.prescribed)}
    return signals


def choose_excitation_frequency(k: int) -> float:
    """Return the angular frequency of the k-th joint's excitation, rad/s; no two are alike."""
    return round(2.0 + 3.0 * ((0.618034 * (k + 1)) % 1.0), 3)
