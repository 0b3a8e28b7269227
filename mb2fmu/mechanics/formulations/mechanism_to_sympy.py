"""A Mechanism as fresh SymPy frames, points, bodies and loads, for SymPy's own methods to work on.

Fresh objects, because SymPy caches what it computes in the objects it is given, and because speeds can be written here
as what a method wants: functions of time u(t), or expressions of q'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sm
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody, inertia
from sympy.physics.vector import Vector

from mb2fmu.mechanics.formulations.applied_loads import form_actuator_magnitude
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Components,
    ForceLoad,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import replace_symbols, total_time_derivative
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics


@dataclass(frozen=True, slots=True)
class SympyMechanismCopy:
    """The same mechanism in SymPy's objects; numbers as in the Mechanism."""

    frames: tuple[ReferenceFrame, ...]
    points: tuple[Point, ...]
    bodies: tuple[Any, ...]
    loads: tuple[tuple[Any, Vector], ...]


def build_sympy_bodies(kinematics: SymbolicKinematics, speeds: Mapping[sm.Basic, sm.Expr]) -> SympyMechanismCopy:
    """Build SymPy's frames, points, bodies and loads of a mechanism.

    Args:
        kinematics: Of the mechanism; lengths, rates and directions of pathways are taken from it by name.
        speeds: Plain speed symbol (auxiliary ones included) → what stands for it, a function of time or an expression
            of q'.
    """
    builder = _SympyBodyBuilder(kinematics, speeds)
    return SympyMechanismCopy(builder.frames, builder.points, builder.build_bodies(), builder.build_loads())


class _SympyBodyBuilder:
    """Makes SymPy's frames, points, bodies and loads of a mechanism."""

    def __init__(self, kinematics: SymbolicKinematics, speeds: Mapping[sm.Basic, sm.Expr]) -> None:
        self.kinematics = kinematics
        self.m: Mechanism = kinematics.mechanism
        self.mapping: dict[sm.Basic, sm.Expr] = {**self.m.dynamic, **speeds}
        for symbol in self.m.constraint_forces:
            self.mapping.pop(symbol, None)  # unknown forces stay plain: they are never differentiated
        rate_functions = {
            symbol for pair in self.m.inputs_with_rates for symbol in pair
        }  # are differentiated, as functions of time
        for symbol in {*self.m.z, *self.m.r} - rate_functions:
            self.mapping.pop(symbol, None)
        self._rates = (
            list(self.m.kinematics.matrix * sm.Matrix(self.m.u) + self.m.kinematics.offset) if self.m.u else []
        )
        self.frames = self._build_frames()
        self.points = self._build_points()

    def to_dynamic(self, expression: sm.Expr) -> sm.Expr:
        """Return an expression in functions of time."""
        return replace_symbols(expression, self.mapping)

    def make_vector(self, terms: VectorTerms) -> Vector:
        """Return a SymPy vector of components in several frames."""
        return sum((self._in_frame(self.frames[k], c) for k, c in terms), Vector(0))

    def _in_frame(self, frame: ReferenceFrame, components: Components) -> Vector:
        """Return components along a frame's axes as a SymPy vector, with dynamic symbols."""
        x, y, z = (self.to_dynamic(c) for c in components)
        return x * frame.x + y * frame.y + z * frame.z

    def _build_frames(self) -> tuple[ReferenceFrame, ...]:
        """Build a frame of SymPy for each frame of the mechanism, oriented to its parent."""
        frames: list[ReferenceFrame] = []
        self.frames = ()
        for i, record in enumerate(self.m.frames):
            frame = ReferenceFrame(f"F{i}")
            if record.parent >= 0:
                matrix = sm.Matrix(record.rotation).applyfunc(self.to_dynamic)
                _orient_frame(frame, frames[record.parent], matrix)
            frames.append(frame)
        self.frames = tuple(frames)
        for frame, record in zip(frames[1:], self.m.frames[1:], strict=True):
            frame.set_ang_vel(frames[record.reference], self.make_vector(record.angular_velocity))
        return tuple(frames)

    def _build_points(self) -> tuple[Point, ...]:
        """Build all points with their velocities, so that SymPy never searches for one."""
        N = self.frames[0]
        points: list[Point] = []
        for i, place in enumerate(self.m.points):
            point = Point(f"P{i}")
            if place.velocity is not None:
                point.set_vel(N, self.make_vector(place.velocity))
            else:
                velocity = points[place.parent].vel(N)
                for k, components in place.position or ():
                    arm = self._in_frame(self.frames[k], components)
                    rate = [total_time_derivative(c, self.m.rates(self._rates)) for c in components]
                    velocity += self.frames[k].ang_vel_in(N).cross(arm)
                    velocity += self._in_frame(self.frames[k], (rate[0], rate[1], rate[2]))
                point.set_vel(N, velocity)
            points.append(point)
        return tuple(points)

    def build_bodies(self) -> tuple[Any, ...]:
        """Return rigid bodies and particles."""
        result = []
        for i, body in enumerate(self.m.bodies):
            point, mass = self.points[body.masscenter], self.to_dynamic(body.mass)
            if body.inertia is None:
                result.append(Particle(f"B{i}", point, mass))
                continue
            I = body.inertia.applyfunc(self.to_dynamic)
            frame = self.frames[body.frame]
            dyadic = inertia(frame, I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[1, 2], I[2, 0])
            result.append(RigidBody(f"B{i}", point, frame, mass, (dyadic, point)))
        return tuple(result)

    def build_loads(self) -> tuple[tuple[Any, Vector], ...]:
        """(point or frame, vector) pairs."""
        result: list[tuple[Any, Vector]] = []
        for load in self.m.loads:
            match load:
                case ForceLoad():
                    result.append((self.points[load.point], self.make_vector(load.force)))
                case TorqueLoad():
                    result.append((self.frames[load.frame], self.make_vector(load.torque)))
                case TorqueActuatorLoad():
                    torque = self.to_dynamic(load.torque) * self.make_vector(load.axis)
                    result.append((self.frames[load.frame], torque))
                    if load.reaction >= 0:
                        result.append((self.frames[load.reaction], -torque))
                case PathwayLoad():
                    result += self._build_pathway_forces(load)
        return tuple(result)

    def _build_pathway_forces(self, load: PathwayLoad) -> list[tuple[Any, Vector]]:
        """Return forces along a pathway; its unit vectors and magnitude are named symbols, so nothing expands."""
        N, result = self.frames[0], []
        directions = self.kinematics.assign_pathway(load)
        force = form_actuator_magnitude(load, self.kinematics)
        for (a, b), e in zip(zip(load.points, load.points[1:], strict=False), directions, strict=True):
            vector = force * e[0] * N.x + force * e[1] * N.y + force * e[2] * N.z
            result += [(self.points[a], -vector), (self.points[b], vector)]
        return result


def _orient_frame(frame: ReferenceFrame, parent: ReferenceFrame, matrix: sm.Matrix) -> None:
    """Set the direction cosines of ``frame`` only; its angular velocity is set separately.

    ``orient_explicit`` would differentiate and simplify the matrix, and leave an angular velocity to the parent that
    ``ang_vel_in`` might prefer to the one in the record.
    """
    frame._dcm(parent, matrix)  # noqa: SLF001
