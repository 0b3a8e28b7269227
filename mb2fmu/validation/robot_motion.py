"""x' of a robot from a second reading of its file: samples for ``independence``."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.model.definition import ModelDefinition
from mb2fmu.robots import MJCF, URDF, RobotMechanics
from mb2fmu.validation.admissible import SEED, Point
from mb2fmu.validation.mujoco_reading import MujocoReading, mujoco_there
from mb2fmu.validation.own_motion import EPSILON, POINTS, ROUNDING, OwnMotions, Sample
from mb2fmu.validation.second_reading import Array, SecondReading, Situation, urdf_tree
from mb2fmu.validation.second_sdf import sdf_tree
from mb2fmu.variables import AuxiliaryState, Coordinate, Input, Parameter, Speed

WAY = "second reading"
_TURN, _SLIDE = 0.6, 0.1
Reading = SecondReading | MujocoReading


def robot_motions(definition: ModelDefinition) -> OwnMotions:
    """Samples of x' from the file that the robot was read from, read again.

    Args:
        definition: The checked model; its mechanics are a robot's.

    Raises:
        ValidationError: If the file is not there any more.
    """
    robot = definition.mechanics
    assert isinstance(robot, RobotMechanics)
    source = robot.description.source
    missing = _missing(definition, robot)
    if missing or source is None:
        return OwnMotions((), {}, {}, {WAY: missing or "the robot was not read from a file"}, ways=(WAY,))
    try:
        content = source.read_bytes()
    except OSError as error:
        fault = Fault(str(error.strerror or error), source.name, "keep the file until the unit is proven")
        raise ValidationError("the robot's file cannot be read again:", [fault]) from None
    s = robot.settings
    reading: Reading
    if robot.kind == MJCF:
        moving = [joint.name for joint in robot.description.joints if joint.kind != "fixed"]
        drives = [actuator.name for actuator in robot.description.actuators]
        reading = MujocoReading(source, moving, drives, s.locked, s.mimic == "free", s.prescribed)
    else:
        read = urdf_tree if robot.kind == URDF else sdf_tree
        reading = SecondReading(content, read, s.base, s.locked, s.mimic == "free", s.prescribed)
    return _Sampler(definition, robot, reading).motions()


def _missing(definition: ModelDefinition, robot: RobotMechanics) -> str:
    """Why the second reading says nothing of a model; empty if it does."""
    added = any(len(own) > (joint in robot.friction) for joint, own in robot.efforts.items())
    repaired = robot.settings.inertia == "repair" and any("repaired" in note for note in robot.notes)
    why = {
        f"the second reading of {robot.kind} is MuJoCo's, which is not installed: pip install mujoco": (
            robot.kind == MJCF and not mujoco_there()
        ),
        "joints have hard stops, of whose stiffness the file says nothing": robot.stops,
        "efforts or states were added to what the file says": added or definition.auxiliary_states,
        "loops are closed, which the second reading does not know": robot.loops,
        "inertias were repaired: the unit is not what the file says": repaired,
    }
    return next((reason for reason, holds in why.items() if holds), "")


class _Sampler:
    """Draws points and asks the second reading there."""

    def __init__(self, definition: ModelDefinition, robot: RobotMechanics, reading: Reading) -> None:
        self._d, self._robot, self._reading = definition, robot, reading
        states: list[Coordinate | Speed | AuxiliaryState] = [*definition.coordinates, *definition.speeds]
        self._parameters = [p for p in definition.parameters if not p.calculated]
        self._items: list[Any] = [*self._parameters, *states, *definition.inputs]
        self._slot = {item.name: k + 1 for k, item in enumerate(self._items)}
        self._of = {item.symbol: self._slot[item.name] for item in self._items}
        self._states = states

    def motions(self) -> OwnMotions:
        """All samples."""
        random = np.random.default_rng(SEED)
        samples = [self._sample(self._drawn(random)) for _ in range(POINTS)]
        starts = {item.name: self._slot[item.name] for item in (*self._parameters, *self._states)}
        inputs = {item.name: self._slot[item.name] for item in self._d.inputs}
        return OwnMotions(tuple(samples), starts, inputs, {}, ways=(WAY,))

    def _drawn(self, random: np.random.Generator) -> list[float]:
        """Values of all slots: time, then the items."""
        t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        values = [float(random.uniform(0.0, self._d.experiment.stop))]
        for item in self._items:
            part = float(random.uniform(-1.0, 1.0))
            match item:
                case Parameter():
                    value = float(item.value) * (1.0 + 0.3 * part)
                case Input():
                    signal = sm.sympify(self._d.experiment.signals.get(item.symbol, 0.0))
                    value = float(signal.subs(t, values[0])) + part
                case _:
                    reach = _SLIDE if item.unit.startswith("m") else _TURN
                    value = float(item.start) + part * reach * (5.0 if isinstance(item, Speed) else 1.0)
            values.append(_inside(item, value))
        for each in self._robot.variables.values():
            if len(each.q) > len(each.u):
                places = [self._of[q] for q in each.q[-4:]]
                length = float(np.linalg.norm([values[k] for k in places]))
                for k in places:
                    values[k] /= length
        return values

    def _sample(self, values: list[float]) -> Sample:
        at = self._situation(values)
        M, f = self._reading.equations(at)
        u_dot = np.linalg.solve(M, f)
        inverse = np.abs(np.linalg.inv(M))
        # ω × I ω, of which each joint's own speed is only a part, cancels where I is the same about all axes
        turning = max((abs(speed) for speeds in at.u.values() for speed in speeds), default=0.0) ** 2
        scale = inverse @ (np.abs(M) @ (np.abs(u_dot) + turning) + self._size_of_forces(values))
        rates, bounds = self._rates_of_coordinates(values)
        for i, each in self._robot.variables.items():
            column = self._reading.column.get(self._robot.tree.parts[i].moved_by.name)
            for k, u in enumerate(each.u):
                assert column is not None
                name = self._name(u)
                rates[name], bounds[name] = float(u_dot[column + k]), ROUNDING * EPSILON * float(scale[column + k])
        return Sample(Point(values[0], tuple(values)), {WAY: rates}, bounds, {}, {})

    def _size_of_forces(self, values: list[float]) -> Array:
        """How large the terms of f are, before they cancel: gravity, velocities and efforts asked one by one."""
        at = self._situation(values)
        nothing = dict.fromkeys(at.effort, 0.0)
        idle = dict.fromkeys(at.control, 0.0)
        zero = {name: [0.0] * len(u) for name, u in at.u.items()}
        parts = [
            Situation(at.q, zero, {}, nothing, at.damping, at.gravity, idle, {}),
            Situation(at.q, at.u, at.acceleration, nothing, at.damping, np.zeros(3), idle, {}),
            Situation(at.q, zero, {}, at.effort, at.damping, np.zeros(3), at.control, at.friction),
        ]
        return np.asarray(sum(np.abs(self._reading.equations(part)[1]) for part in parts))

    def _situation(self, values: list[float]) -> Situation:
        q, u, acceleration, effort = {}, {}, {}, {}
        for i, each in self._robot.variables.items():
            joint = self._robot.tree.parts[i].moved_by.name
            if each.prescribed is not None:
                position, speed, given = (values[self._of[symbol]] for symbol in each.prescribed)
                q[joint], u[joint], acceleration[joint] = [position], [speed], given
                continue
            q[joint] = [values[self._of[symbol]] for symbol in each.q]
            u[joint] = [values[self._of[symbol]] for symbol in each.u]
            if each.effort is not None:
                effort[joint] = values[self._of[each.effort]]
        damping = {self._robot.tree.parts[i].moved_by.name: values[self._of[d]] for i, d in self._robot.damping.items()}
        parameters = {p.symbol: values[self._slot[p.name]] for p in self._parameters}
        gravity = np.array([float(sm.sympify(g).subs(parameters)) for g in self._robot.gravity])
        declared = {p.name: float(p.value) for p in self._parameters}
        own = self._reading.gravity if isinstance(self._reading, SecondReading) else None
        if own is not None and self._robot.settings.gravity is None:  # the file says where weight pulls
            size = declared.get("gravity", 0.0)
            gravity = own * (values[self._slot["gravity"]] / size if size else 1.0)
        friction = {joint: values[self._slot[name]] / declared[name] for joint, name in self._robot.friction.items()}
        control = {name: values[self._of[symbol]] for name, symbol in self._robot.controls.items()}
        return Situation(q, u, acceleration, effort, damping, gravity, control, friction)

    def _rates_of_coordinates(self, values: list[float]) -> tuple[dict[str, float], dict[str, float]]:
        """q' by name: the speeds; of floating parts and balls the turned velocity, and half the quaternion product."""
        rates: dict[str, float] = {}
        for each in self._robot.variables.values():
            if len(each.q) == len(each.u):
                rates |= {self._name(q): values[self._of[u]] for q, u in zip(each.q, each.u, strict=True)}
                continue
            w, x, y, z = (values[self._of[q]] for q in each.q[-4:])
            a, b, c = (values[self._of[u]] for u in each.u[-3:])
            product = (-x * a - y * b - z * c, w * a + y * c - z * b, w * b + z * a - x * c, w * c + x * b - y * a)
            rates |= {self._name(q): rate / 2 for q, rate in zip(each.q[-4:], product, strict=True)}
            axis = np.array([x, y, z])
            for q, velocity in zip(
                each.q[:-4], _turned(w, axis, [values[self._of[u]] for u in each.u[:-3]]), strict=True
            ):
                rates[self._name(q)] = velocity
        return rates, {name: ROUNDING * EPSILON * (1.0 + abs(rate)) for name, rate in rates.items()}

    def _name(self, symbol: sm.Expr) -> str:
        return str(self._items[self._of[symbol] - 1].name)


def _turned(w: float, axis: Array, v: list[float]) -> list[float]:
    """A vector turned by a unit quaternion; none of a ball, which has no velocity."""
    if not v:
        return []
    vector = np.array(v)
    turned: list[float] = (vector + 2 * np.cross(axis, w * vector + np.cross(axis, vector))).tolist()
    return turned


def _inside(item: Any, value: float) -> float:
    low = -np.inf if item.minimum is None else item.minimum
    high = np.inf if item.maximum is None else item.maximum
    return float(min(max(value, low), high))
