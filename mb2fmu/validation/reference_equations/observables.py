"""Observables: outputs, energies and pathways of a mechanism, written in quantities read at an instant.

The reference's side of every output. A user's own expression stays as it is; kinematic quantities, loads, energies,
momenta and multipliers are taken from numbers (``kinematic_quantities``), joint forces from Newton's and Euler's
laws (``joint_wrenches``).
Nothing here comes from a formulation, but one thing: the closed form of a potential energy, which is given. Its
slopes are compared with the loads of the mechanism by ``potential_energy_check``.

Angles and quaternions of direction cosines: the reference's own formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, OutputExpression, SymbolAssignment
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    MotionVectorKind,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
)
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput, RequestedOutput
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KinematicQuantities, KinematicQuantityKind
from mb2fmu.validation.reference_equations.joint_wrenches import JointWrenches

AXIS_SUFFIXES = (".x", ".y", ".z")


def convert_rotation_to_quaternion(R: sm.MatrixBase) -> tuple[sm.Expr, ...]:
    """Return (w, x, y, z) with w ≥ 0 of a rotation ``A_C_B``.

    Four times the product of each two components stands in the matrix; a row of these products, divided by the root of
    its own diagonal entry, is the quaternion up to its sign (Shepperd, J. Guidance and Control 1, 1978, 223-224). The
    row with the largest entry is taken.
    """
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    w = [1 + trace, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]
    products = sm.zeros(4, 4)
    for i in range(4):
        products[0, i] = products[i, 0] = w[i]
    for i in range(3):
        for j in range(3):
            products[1 + i, 1 + j] = R[i, j] + R[j, i] if i != j else 1 + 2 * R[i, i] - trace
    largest = [sm.And(*(products[i, i] >= products[j, j] for j in range(4) if j != i)) for i in range(3)]
    parts = []
    for part in range(4):
        branches = []
        for i in range(4):
            sign = sm.Piecewise((1, products[i, 0] >= 0), (-1, True), evaluate=False) if i else sm.S.One
            larger = sm.Max(products[i, i], 1, evaluate=products[i, i].is_number)  # else SymPy factors the difference
            value = sign * products[i, part] / (2 * sm.sqrt(larger))
            branches.append((value, largest[i] if i < 3 else sm.true))
        parts.append(sm.Piecewise(*branches, evaluate=False))
    return tuple(parts)


def _dot(a: Iterable[sm.Expr], b: Iterable[sm.Expr]) -> sm.Expr:
    """Return the sum of products, without SymPy's matrices of polynomials in between, which take ten times as long."""
    return sm.Add(*(x * y for x, y in zip(a, b, strict=True) if x != 0 and y != 0))


def euler_angles(R: sm.MatrixBase, sequence: str) -> tuple[sm.Expr, sm.Expr, sm.Expr]:
    """Return angles (a, b, c) in rad of a body-fixed sequence such as ``zxy`` or ``313``, for ``A_C_B``.

    a and c lie in (-π, π], b in [-π/2, π/2] for three different axes and in [0, π] otherwise. b comes from an
    arctangent, which loses no digits near the ends of its range.
    """
    i, j, k = ("xyz".index(axis) for axis in sequence.lower().translate(str.maketrans("123", "xyz")))
    if i != k:
        e = sm.LeviCivita(i, j, k)
        b = sm.atan2(e * R[i, k], sm.sqrt(R[i, i] ** 2 + R[i, j] ** 2))
        return sm.atan2(-e * R[j, k], R[k, k]), b, sm.atan2(-e * R[i, j], R[i, i])
    third = 3 - i - j
    e = sm.LeviCivita(i, j, third)
    b = sm.atan2(sm.sqrt(R[i, j] ** 2 + R[i, third] ** 2), R[i, i])
    return sm.atan2(R[j, i], -e * R[third, i]), b, sm.atan2(R[i, j], e * R[i, third])


@dataclass(frozen=True, slots=True)
class ObservableExpressions:
    """Quantities of a mechanism, as expressions.

    Attributes:
        kinematic_quantities: The numbers that the expressions are written in, besides the mechanism's own symbols.
        pathways: Length and rate of each pathway.
        outputs: In declared order.
        kinetic: T in J.
    """

    kinematic_quantities: KinematicQuantities
    pathways: tuple[SymbolAssignment, ...]
    outputs: tuple[OutputExpression, ...]
    kinetic: sm.Expr


def form_observable_expressions(mechanism: Mechanism, equations: EquationsOfMotion) -> ObservableExpressions:
    """Return all outputs of ``equations`` and the kinetic energy, from a mechanism's motion.

    Args:
        mechanism: With bodies.
        equations: Of the same mechanism: they give the outputs' names, units and levels, and a potential energy.
    """
    writer = _ObservableWriter(mechanism, equations)
    outputs = tuple(writer.outputs())
    pathways, kinetic = tuple(writer.pathways()), writer.kinetic()
    return ObservableExpressions(writer.kinematic_quantities, pathways, outputs, kinetic)


class _ObservableWriter:
    """Writes the expressions."""

    def __init__(self, mechanism: Mechanism, equations: EquationsOfMotion) -> None:
        self.mechanism, self.equations = mechanism, equations
        self.kinematic_quantities = KinematicQuantities(len(mechanism.u))
        self._joint_wrenches = JointWrenches(mechanism, self.kinematic_quantities)
        self._kinetic: sm.Expr | None = None

    def outputs(self) -> Iterator[OutputExpression]:
        """Yield the outputs of the equations, each with its new expression."""
        declared = {output.name: output for output in self.equations.outputs}
        for item in self.mechanism.outputs:
            scalars: list[tuple[str, sm.Expr]] = []
            if isinstance(item, ExpressionOutput):
                scalars = [(item.name, sm.sympify(item.expression))]
            elif isinstance(item, RequestedOutput):
                scalars = list(self._form_requested(item))
            yield from (replace(declared[name], expression=e) for name, e in scalars if name in declared)

    def kinetic(self) -> sm.Expr:
        """Return the sum of m v·v/2 + w·I w/2, formed once."""
        if self._kinetic is None:
            self._kinetic = sm.Add(*self._energies())
        return self._kinetic

    def _energies(self) -> Iterator[sm.Expr]:
        """Yield the terms."""
        for body in self.mechanism.bodies:
            if body.mass != 0:
                v = self.kinematic_quantities.vector("velocity", body.masscenter)
                yield body.mass * _dot(v, v) / 2
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                R, omega = (
                    self.kinematic_quantities.rotation(body.frame).flat(),
                    self.kinematic_quantities.vector("omega", body.frame),
                )
                rows = body.inertia.tolist()
                turned = [any(rows[k]) or any(row[k] for row in rows) for k in range(3)]
                w = [_dot(R[k::3], omega) if turned[k] else sm.S.Zero for k in range(3)]
                yield _dot(w, [_dot(row, w) for row in rows]) / 2

    def pathways(self) -> Iterator[SymbolAssignment]:
        """Yield length and rate of pathways, sums over segments, and motion vectors that expressions contain."""
        for load in self.mechanism.loads:
            if isinstance(load, PathwayLoad):
                length, rate = sm.S.Zero, sm.S.Zero
                for a, b in zip(load.points, load.points[1:], strict=False):
                    segment = self._form_difference("position", a, b)
                    segment_length = sm.sqrt(segment.dot(segment))
                    length += segment_length
                    rate += segment.dot(self._form_difference("velocity", a, b)) / segment_length
                yield from (SymbolAssignment(load.length, length), SymbolAssignment(load.rate, rate))
        kinds: dict[MotionVectorKind, KinematicQuantityKind] = {
            "position": "position",
            "velocity": "velocity",
            "angular velocity": "omega",
        }
        for motion_vector in self.mechanism.motion_vectors:
            vector = self.kinematic_quantities.vector(kinds[motion_vector.kind], motion_vector.point_or_frame)
            yield from (
                SymbolAssignment(symbol, value) for symbol, value in zip(motion_vector.symbols, vector, strict=True)
            )

    def _form_difference(self, kind: str, a: int, b: int) -> sm.Matrix:
        """Return position or velocity of point b less that of point a."""
        return self.kinematic_quantities.vector(kind, b) - self.kinematic_quantities.vector(kind, a)  # type: ignore[arg-type]

    def _form_requested(  # noqa: C901, PLR0912 (one case per family of kinds)
        self, request: RequestedOutput
    ) -> Iterator[tuple[str, sm.Expr]]:
        """Yield (name, expression) of each scalar of a request; nothing for an FMU's own numbers."""
        match request.kind:
            case "orientation":
                yield from self._orientation(request)
            case "force" | "power":
                yield from self._list_load_outputs(request)
            case "reaction_force" | "reaction_torque":
                yield from self._form_joint_wrench(request)
            case "joint_effort":
                yield from self._form_joint_effort(request)
            case "mass_matrix" | "gravity_effort" | "inverse_effort":
                yield from self._form_speed_quantity(request)
            case "partial_velocity" | "partial_angular_velocity":
                yield from self._form_partial_velocity(request)
            case "angular_velocity":
                yield from self._angular_velocity(request)
            case "angular_acceleration":
                yield from self._angular_acceleration(request)
            case "relative_velocity":
                yield from self._relative_velocity(request)
            case "centre_of_mass" | "centre_of_mass_velocity" | "linear_momentum":
                yield from self._form_center_of_mass_quantity(request)
            case "angular_momentum":
                yield from self._angular_momentum(request)
            case "position" | "velocity" | "acceleration":
                yield from self._form_point_motion(request)
            case "distance" | "multiplier" | "momentum":
                yield from self._scalar(request)
            case "coordinate_momentum" | "jacobi_integral":
                yield from self._canonical(request)
            case "kinetic_energy" | "potential_energy" | "total_energy":
                yield from self._energy(request)
            case "position_residual" | "velocity_residual" | "constraint_rank" | "constraint_condition":
                pass  # an FMU's own numbers
            case _:
                assert_never(request.kind)

    def _scalar(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield a distance, a multiplier, or dT/du."""
        if request.kind == "distance":
            d = self._form_difference("position", *request.subject)
            yield request.name, sm.sqrt(d.dot(d))
        elif request.kind == "multiplier":
            yield request.name, self.mechanism.multipliers[request.subject[0]]
        else:
            yield request.name, self.kinematic_quantities.momentum(request.subject[0])

    def _canonical(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield a component of p, where K⊤ p = ∂T/∂u, or q'·p − T + V with q' = K u + k0."""
        m = self.mechanism
        momenta = sm.Matrix([self.kinematic_quantities.momentum(j) for j in range(len(m.u))])
        if request.kind == "coordinate_momentum":
            p = sm.Matrix(m.kinematics.matrix).T.LUsolve(momenta)
            yield request.name, p[request.subject[0]]
        elif m.kinematics.offset.is_zero_matrix:
            yield request.name, sm.Matrix(m.u).dot(momenta) - self.kinetic() + self._potential()
        else:
            rates = m.kinematics.matrix * sm.Matrix(m.u) + m.kinematics.offset
            p = sm.Matrix(m.kinematics.matrix).T.LUsolve(momenta)
            yield request.name, rates.dot(p) - self.kinetic() + self._potential()

    def _energy(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield kinetic energy, potential energy, or both."""
        kinetic = sm.S.Zero if request.kind == "potential_energy" else self.kinetic()
        yield request.name, kinetic + (sm.S.Zero if request.kind == "kinetic_energy" else self._potential())

    def _form_joint_wrench(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield the force or torque in a cut."""
        yield from self._components(request, self._joint_wrenches.form_requested_wrench(request))

    def _form_joint_effort(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield the effort of a drive along a joint and its followers, from the forces in the cuts there."""
        total = sm.S.Zero
        for number in request.subject:
            joint = self.mechanism.joints[number]
            assert joint.axis is not None
            axis = self.kinematic_quantities.in_inertial_frame((joint.axis,))
            total += joint.speed_factor * (
                axis.dot(self._joint_wrenches.form_joint_wrench(number, force=not joint.is_revolute))
                + joint.passive_effort
            )
        yield request.name, total

    def _form_speed_quantity(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield entries of M and M a - f from the mechanism in numbers; or the efforts that hold the weights."""
        j = request.subject[0]
        if request.kind == "mass_matrix":
            yield request.name, self.kinematic_quantities.mass(*request.subject)
        elif request.kind == "inverse_effort":
            inverse_dynamics, potential_forces = self.mechanism.inverse_dynamics, self.mechanism.potential_forces
            assert inverse_dynamics is not None
            inertia_effort = sm.Add(
                *(self.kinematic_quantities.mass(j, i) * a for i, a in enumerate(inverse_dynamics.accelerations))
            )
            other_efforts = (potential_forces[j] if potential_forces else 0) - (
                inverse_dynamics.passive_forces[j] if inverse_dynamics.passive_forces else 0
            )
            yield request.name, inertia_effort - self.kinematic_quantities.forcing(j) + other_efforts
        else:
            total = sm.S.Zero
            centres = {body.masscenter for body in self.mechanism.bodies}
            for load in self.mechanism.loads:
                if isinstance(load, ForceLoad) and load.point in centres and [frame for frame, _ in load.force] == [0]:
                    total -= self.kinematic_quantities.partial_velocity("point partials", load.point, j).dot(
                        sm.Matrix(load.force[0][1])
                    )
            yield request.name, total

    def _form_partial_velocity(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield an entry of a Jacobian."""
        node, speed = request.subject
        of_point = request.kind == "partial_velocity"
        yield (
            request.name,
            self.kinematic_quantities.partial_velocity("point partials" if of_point else "frame partials", node, speed)[
                request.component
            ],
        )

    def _angular_velocity(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield the components of a frame's angular velocity, less that of the frame it is relative to."""
        vector = self._angular_velocity_of(request.subject[0])
        if request.relative_to is not None:
            vector -= self._angular_velocity_of(request.relative_to)
        yield from self._components(request, vector)

    def _angular_acceleration(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield d/dt of ω_BA in A's own axes, turned back: Aᵀ ω_BA has the rate Aᵀ (ω_BA' - ω_A × ω_BA)."""
        frame, base = request.subject[0], request.relative_to
        vector = self.kinematic_quantities.vector("alpha", frame)
        if base:
            turning = self._angular_velocity_of(frame) - self._angular_velocity_of(base)
            vector = (
                vector
                - self.kinematic_quantities.vector("alpha", base)
                - self._angular_velocity_of(base).cross(turning)
            )
        yield from self._components(request, vector)

    def _relative_velocity(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield a point's velocity relative to the point of the other body at the same place."""
        point, origin = request.subject
        base = request.relative_to or 0
        body_velocity = self.kinematic_quantities.vector("velocity", origin)
        if base:
            body_velocity += self._angular_velocity_of(base).cross(self._form_difference("position", origin, point))
        yield from self._components(request, self.kinematic_quantities.vector("velocity", point) - body_velocity)

    def _form_center_of_mass_quantity(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield sums over mass centres."""
        bodies = [self.mechanism.bodies[i] for i in request.subject] or list(self.mechanism.bodies)
        kind: KinematicQuantityKind = "position" if request.kind == "centre_of_mass" else "velocity"
        total = sum((b.mass * self.kinematic_quantities.vector(kind, b.masscenter) for b in bodies), sm.zeros(3, 1))
        mass = sm.Integer(1) if request.kind == "linear_momentum" else sm.Add(*(b.mass for b in bodies))
        yield from self._components(request, total / mass)

    def _angular_momentum(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield the angular momentum about the origin, or moved from there: H_P = H_O - r_P × Σ m v."""
        bodies = [self.mechanism.bodies[i] for i in request.subject] or list(self.mechanism.bodies)
        total, momentum, mass_moment = sm.zeros(3, 1), sm.zeros(3, 1), sm.zeros(3, 1)
        for body in bodies:
            r, v = (
                self.kinematic_quantities.vector("position", body.masscenter),
                self.kinematic_quantities.vector("velocity", body.masscenter),
            )
            momentum, mass_moment = momentum + body.mass * v, mass_moment + body.mass * r
            total += body.mass * r.cross(v)
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                R = self.kinematic_quantities.rotation(body.frame)
                total += R * body.inertia * R.T * self._angular_velocity_of(body.frame)
        reference_node = request.relative_to
        reference_point = (
            mass_moment / sm.Add(*(b.mass for b in bodies))
            if reference_node is None
            else self.kinematic_quantities.vector("position", reference_node)
        )
        yield from self._components(request, total - reference_point.cross(momentum))

    def _angular_velocity_of(self, frame: int) -> sm.Matrix:
        """Return the angular velocity of a frame, in N."""
        return self.kinematic_quantities.vector("omega", frame)

    def _form_point_motion(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield position, velocity or acceleration."""
        point = request.subject[0]
        if request.kind == "position" and request.relative_to is not None:
            vector = self._form_difference("position", request.relative_to, point)
        else:
            vector = self.kinematic_quantities.vector(request.kind, point)  # type: ignore[arg-type]
        yield from self._components(request, vector)

    def _components(self, request: RequestedOutput, vector: sm.Matrix) -> Iterator[tuple[str, sm.Expr]]:
        """Yield a vector's components in the requested frame."""
        if request.expressed_in is not None:
            vector = self.kinematic_quantities.rotation(request.expressed_in).T * vector
        yield from zip((request.name + axis for axis in AXIS_SUFFIXES), vector, strict=True)

    def _orientation(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield a frame's orientation as a quaternion or as angles, relative to a frame or to N."""
        rotation = self.kinematic_quantities.rotation(request.subject[0])
        if request.relative_to is not None:
            rotation = self.kinematic_quantities.rotation(request.relative_to).T * rotation
        if request.representation == "quaternion":
            yield from zip(
                (request.name + part for part in (".w", *AXIS_SUFFIXES)),
                convert_rotation_to_quaternion(rotation),
                strict=True,
            )
        else:
            angles = euler_angles(rotation, request.representation)
            yield from zip((f"{request.name}[{i}]" for i in (1, 2, 3)), angles, strict=True)

    def _list_load_outputs(self, request: RequestedOutput) -> Iterator[tuple[str, sm.Expr]]:
        """Yield the force, torque or power of a load; an actuator's power is by the relative rate of its ends."""
        load = self.mechanism.loads[request.subject[0]]
        if isinstance(load, PathwayLoad):
            yield request.name, load.force * (load.rate if request.kind == "power" else 1)
        elif isinstance(load, TorqueActuatorLoad):
            relative_omega = self.kinematic_quantities.vector("omega", load.frame)
            if load.reaction >= 0:
                relative_omega -= self.kinematic_quantities.vector("omega", load.reaction)
            relative_rate = self.kinematic_quantities.in_inertial_frame(load.axis).dot(relative_omega)
            yield request.name, load.torque * (relative_rate if request.kind == "power" else 1)
        else:
            yield from self._vector_load(request, load)

    def _vector_load(self, request: RequestedOutput, load: ForceLoad | TorqueLoad) -> Iterator[tuple[str, sm.Expr]]:
        """Yield the components of a force or torque, or its power at its point or frame, in W."""
        force = isinstance(load, ForceLoad)
        vector = self.kinematic_quantities.in_inertial_frame(load.force if isinstance(load, ForceLoad) else load.torque)
        if request.kind == "force":
            yield from zip((request.name + axis for axis in AXIS_SUFFIXES), vector, strict=True)
            return
        node = load.point if isinstance(load, ForceLoad) else load.frame
        yield request.name, vector.dot(self.kinematic_quantities.vector("velocity" if force else "omega", node))

    def _potential(self) -> sm.Expr:
        """Return the potential energy as it was given."""
        potential = self.equations.energy.potential
        assert potential is not None, "the formulation has refused it"
        return potential
