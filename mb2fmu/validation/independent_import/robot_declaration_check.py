"""Declared values of a robot, against its file and side file read again.

x' of the independent import is computed with the declared values of dampers and with the declared start: a damper that
was not read, a bound or a start of the side file that is another one show here only. Of MJCF where MuJoCo is installed;
values that an argument or ``--at`` gave are the user's own.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from xml.etree import ElementTree as ET

import sympy as sm

from mb2fmu.robots import MJCF, URDF
from mb2fmu.robots.robot_loading import read_robot_file
from mb2fmu.validation.independent_import.independent_sdf import read_sdf_joint_values
from mb2fmu.validation.independent_import.mujoco_equations import is_mujoco_installed, read_mujoco_joint_values

if TYPE_CHECKING:
    from mb2fmu.model.checked_model import CheckedModel
    from mb2fmu.model.quantity_declarations import Coordinate, Speed
    from mb2fmu.robots import RobotMechanics
    from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols

_ROUND_OFF = 1e-9
_LIMIT_ATTRIBUTES = ("lower", "upper", "effort", "velocity")
"""Of ``<limit>``; others are their tools' own."""


@dataclass(frozen=True, slots=True)
class _JointFileValues:
    """Values of one joint in a file.

    Attributes:
        damping: N·m·s/rad or N·s/m.
        lower: Bound of the position, rad or m; infinite where there is none.
        upper: Likewise.
        effort: Largest effort; infinite where the file says none.
        velocity: Largest speed; likewise.
    """

    damping: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    effort: float = math.inf
    velocity: float = math.inf


def compare_joint_declarations_with_file(definition: CheckedModel) -> Iterator[tuple[str, bool]]:
    """Yield each comparison of what is declared of a robot's joints with its files, and whether both agree."""
    robot = cast("RobotMechanics", definition.mechanics)
    joints = _read_joint_values(robot)
    starts, start_speeds = (_read_start_table(robot, key) for key in ("start", "speeds"))
    given_symbols = {item.symbol for item in definition.parameters if item.name in definition.given}
    given_symbols |= {item.symbol for item in definition.coordinates if item.name in definition.given}
    given_symbols |= {item.symbol for item in definition.speeds if item.name in definition.given}
    values = {p.symbol: float(p.value) for p in definition.parameters if not p.calculated}
    for i, part in enumerate(robot.tree.parts[1:], 1):
        name, joint_symbols = part.moving_joint.name, robot.variables.get(i)
        leader = joint_symbols if part.coordinate is None else robot.variables.get(part.coordinate[0])
        if name not in joints or (leader is not None and leader.prescribed is not None):
            continue
        damping = values[robot.damping[i]] if i in robot.damping else 0.0
        if i not in robot.damping or robot.damping[i] not in given_symbols:
            yield _compare(name, "damping", joints[name].damping, damping)
        if joint_symbols is not None and part.coordinate is not None:
            yield from _compare_joint(definition, robot, joint_symbols, joints[name], name)
            if name in starts and joint_symbols.q[0] not in given_symbols:
                item = _find_quantity(definition, joint_symbols.q[0])
                yield _compare(name, "start", starts[name], item.start if item.kind == "fixed" else starts[name])
            if name in start_speeds and joint_symbols.u[0] not in given_symbols:
                rate = _find_speed(definition, joint_symbols.u[0])
                expected_speed = start_speeds[name]
                yield _compare(
                    name, "start speed", expected_speed, rate.start if rate.kind == "fixed" else expected_speed
                )


def _read_joint_values(robot: RobotMechanics) -> dict[str, _JointFileValues]:
    """Return joint → its values in the robot's file; empty without a file, and of MJCF without MuJoCo."""
    source = robot.description.source
    if source is None or not source.is_file() or (robot.kind == MJCF and not is_mujoco_installed()):
        return {}
    if robot.kind == URDF:
        return _read_urdf_joint_values(source, robot.settings.packages)
    if robot.kind == MJCF:
        values_by_joint = read_mujoco_joint_values(
            source, [j.name for j in robot.description.joints if j.kind != "fixed"]
        )
        return {name: _JointFileValues(*values) for name, values in values_by_joint.items()}
    file_values = read_sdf_joint_values(source.read_bytes(), source, robot.settings.packages)
    return {name: _JointFileValues(*values) for name, values in file_values.items()}


def _compare_joint(
    definition: CheckedModel,
    robot: RobotMechanics,
    joint_symbols: RobotJointSymbols,
    file_values: _JointFileValues,
    name: str,
) -> Iterator[tuple[str, bool]]:
    """Yield the comparisons of bounds of a joint with one coordinate."""
    position, speed = _find_quantity(definition, joint_symbols.q[0]), _find_speed(definition, joint_symbols.u[0])
    if robot.settings.limits != "stop":
        yield _compare(
            name, "lower bound", file_values.lower, -math.inf if position.minimum is None else position.minimum
        )
        yield _compare(
            name, "upper bound", file_values.upper, math.inf if position.maximum is None else position.maximum
        )
    largest = file_values.velocity if file_values.velocity > abs(speed.start) else math.inf
    yield _compare(name, "largest speed", largest, math.inf if speed.maximum is None else speed.maximum)
    effort = next((item for item in definition.inputs if item.symbol == joint_symbols.effort), None)
    if effort is not None:
        yield _compare(
            name, "largest effort", file_values.effort, math.inf if effort.maximum is None else effort.maximum
        )


def _find_quantity(definition: CheckedModel, symbol: sm.Expr) -> Coordinate:
    """Return the coordinate with a symbol."""
    return next(item for item in definition.coordinates if item.symbol == symbol)


def _find_speed(definition: CheckedModel, symbol: sm.Expr) -> Speed:
    """Return the speed with a symbol."""
    return next(item for item in definition.speeds if item.symbol == symbol)


def _compare(joint: str, quantity: str, file_value: float, declared: float) -> tuple[str, bool]:
    """Return one comparison; with words if it fails."""
    is_equal = file_value == declared or math.isclose(file_value, declared, rel_tol=_ROUND_OFF, abs_tol=1e-12)
    text = f"joint {joint}: {quantity}"
    return (text if is_equal else f"{text} is {file_value:g} in the file, {declared:g} was read"), is_equal


def _read_start_table(robot: RobotMechanics, key: str) -> Mapping[str, float]:
    """Return a table of joints of the side file; empty where an argument gave it."""
    if robot.settings_file is None or key in robot.arguments:
        return {}
    table = tomllib.loads(robot.settings_file.read_text(encoding="utf-8")).get(key, {})
    return {name: float(value) for name, value in table.items()}


def _read_urdf_joint_values(source: Path, packages: Mapping[str, str]) -> dict[str, _JointFileValues]:
    """Return joint → its values in a URDF file."""
    values_by_joint = {}
    root = ET.fromstring(read_robot_file(source, packages))  # noqa: S314 - the file was read before, strictly
    for joint in root.findall("joint"):
        if joint.get("type") not in {"revolute", "continuous", "prismatic"}:
            continue
        limit, dynamics = joint.find("limit"), joint.find("dynamics")
        limit_values = {key: float(limit.get(key, "0")) for key in _LIMIT_ATTRIBUTES} if limit is not None else {}
        damping = float(dynamics.get("damping", "0")) if dynamics is not None else 0.0
        lower, upper = limit_values.get("lower", 0.0), limit_values.get("upper", 0.0)
        is_bounded = joint.get("type") in {"revolute", "prismatic"} and lower != upper
        values_by_joint[str(joint.get("name"))] = _JointFileValues(
            damping=damping,
            lower=lower if is_bounded else -math.inf,
            upper=upper if is_bounded else math.inf,
            effort=abs(limit_values.get("effort", 0.0)) or math.inf,
            velocity=abs(limit_values.get("velocity", 0.0)) or math.inf,
        )
    return values_by_joint
