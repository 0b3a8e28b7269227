"""One-line outputs: their kinds (``OUTPUT_KINDS``), their record (``OutputRequest``) and the calls that declare them.

A request is kept as it is declared until the mechanism is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame

from mb2fmu.model.quantity_declarations import DeclaredVariable
from mb2fmu.model.source_location import find_user_source_line

PointAndFrame: TypeAlias = tuple[Point, ReferenceFrame]
"""A point and a frame of one body."""

OutputKind = Literal[
    "position",
    "velocity",
    "acceleration",
    "angular_velocity",
    "angular_acceleration",
    "relative_velocity",
    "centre_of_mass",
    "centre_of_mass_velocity",
    "linear_momentum",
    "angular_momentum",
    "orientation",
    "distance",
    "force",
    "power",
    "multiplier",
    "momentum",
    "coordinate_momentum",
    "jacobi_integral",
    "reaction_force",
    "reaction_torque",
    "joint_effort",
    "mass_matrix",
    "gravity_effort",
    "inverse_effort",
    "partial_velocity",
    "partial_angular_velocity",
    "position_residual",
    "velocity_residual",
    "constraint_rank",
    "constraint_condition",
    "kinetic_energy",
    "potential_energy",
    "total_energy",
]

SubjectKind = Literal[
    "point",
    "located point",
    "frame",
    "oriented frame",
    "body",
    "joint",
    "joint or bodies",
    "load",
    "constraint row",
    "coordinate or speed",
    "point and speed",
    "frame and speed",
    "mechanism",
]
"""A located point has a position, an oriented frame an orientation; the others need only velocities."""


@dataclass(frozen=True, slots=True)
class OutputKindDefinition:
    """Facts of one output kind that its import, checks, names and units share; formulas stand with the formulations.

    Attributes:
        subject: Kind of each subject of a request.
        relative_to: Kind of the object that ``relative_to`` names.
        unit: Of the values, in Modelica's notation, unless a request gives another.
        vector: The output has the components x, y and z; orientations and loads have names of their own.
        of_lagrangian: A Lagrangian without bodies has it too.
    """

    subject: SubjectKind
    relative_to: SubjectKind = "point"
    unit: str = "1"
    vector: bool = False
    of_lagrangian: bool = False


_JOINT_SPACE = OutputKindDefinition("coordinate or speed")
_LAGRANGIAN_MOMENTUM = OutputKindDefinition("coordinate or speed", of_lagrangian=True)
_ENERGY = OutputKindDefinition("mechanism", unit="J", of_lagrangian=True)
_DIAGNOSTIC = OutputKindDefinition("mechanism", of_lagrangian=True)

OUTPUT_KINDS: Mapping[OutputKind, OutputKindDefinition] = {
    "position": OutputKindDefinition("located point", "located point", "m", vector=True),
    "velocity": OutputKindDefinition("point", unit="m/s", vector=True),
    "acceleration": OutputKindDefinition("point", unit="m/s2", vector=True),
    "angular_velocity": OutputKindDefinition("frame", "frame", "rad/s", vector=True),
    "angular_acceleration": OutputKindDefinition("frame", "frame", "rad/s2", vector=True),
    "relative_velocity": OutputKindDefinition("located point", "frame", "m/s", vector=True),
    "centre_of_mass": OutputKindDefinition("body", unit="m", vector=True),
    "centre_of_mass_velocity": OutputKindDefinition("body", unit="m/s", vector=True),
    "linear_momentum": OutputKindDefinition("body", unit="kg.m/s", vector=True),
    "angular_momentum": OutputKindDefinition("body", "located point", "kg.m2/s", vector=True),
    "orientation": OutputKindDefinition("oriented frame", "oriented frame"),
    "distance": OutputKindDefinition("located point", unit="m"),
    "force": OutputKindDefinition("load", unit="N"),
    "power": OutputKindDefinition("load", unit="W"),
    "multiplier": OutputKindDefinition("constraint row", unit="N", of_lagrangian=True),
    "momentum": _LAGRANGIAN_MOMENTUM,
    "coordinate_momentum": _LAGRANGIAN_MOMENTUM,
    "jacobi_integral": _ENERGY,
    "reaction_force": OutputKindDefinition("joint or bodies", unit="N", vector=True),
    "reaction_torque": OutputKindDefinition("joint or bodies", unit="N.m", vector=True),
    "joint_effort": OutputKindDefinition("joint"),
    "mass_matrix": _JOINT_SPACE,
    "gravity_effort": _JOINT_SPACE,
    "inverse_effort": _JOINT_SPACE,
    "partial_velocity": OutputKindDefinition("point and speed"),
    "partial_angular_velocity": OutputKindDefinition("frame and speed"),
    "position_residual": _DIAGNOSTIC,
    "velocity_residual": _DIAGNOSTIC,
    "constraint_rank": _DIAGNOSTIC,
    "constraint_condition": _DIAGNOSTIC,
    "kinetic_energy": _ENERGY,
    "potential_energy": _ENERGY,
    "total_energy": _ENERGY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRequest(DeclaredVariable):
    """A one-line output: a kinematic, load or energy quantity that the mechanism can compute.

    Attributes:
        kind: What is requested.
        subject: Points, frames, loads or actuators, by kind: ``position``, ``velocity``, ``acceleration``: (point,);
            ``angular_velocity``, ``angular_acceleration``, ``orientation``: (frame,); ``distance``: (point, point);
            ``relative_velocity``: (point, point of the other frame); ``centre_of_mass``, ``centre_of_mass_velocity``,
            ``linear_momentum``, ``angular_momentum``: (body, …), () for all; ``force``, ``power``:
            (load or actuator,); ``multiplier``: (row,); ``momentum``: (speed,), or of
            a coordinate, as which ``coordinate_momentum`` is read; ``reaction_force``,
            ``reaction_torque``: (joint,) or (body, …); ``joint_effort``: (recorded joint, …); ``mass_matrix``:
            (speed, speed); ``gravity_effort``, ``inverse_effort``: (speed,); ``partial_velocity``: (point, speed),
            ``partial_angular_velocity``: (frame, speed); energies and diagnostics of constraints: ().
        relative_to: The point (position, reaction, angular momentum) or frame (the others) it is relative to; None:
            the origin, the joint's point on its child, the centre of mass, the inertial frame.
        expressed_in: The frame of the components; None: the inertial frame.
        component: 0, 1 or 2: of a partial velocity, which component is requested, in the inertial frame.
        representation: For ``orientation``: ``quaternion`` (w, x, y, z) or a body-fixed Euler sequence like ``zxy``.
    """

    kind: OutputKind
    subject: tuple[Any, ...] = ()
    relative_to: Any = None
    expressed_in: ReferenceFrame | None = None
    component: int | None = None
    representation: str = "quaternion"


class OutputDeclarations:
    """The ``output_…`` calls of a ``Model``."""

    declared: list[DeclaredVariable | OutputRequest]

    def output_position(
        self, name: str, point: Point, *, relative_to: Point | None = None, expressed_in: ReferenceFrame | None = None
    ) -> None:
        """Output ``name.x``, ``.y``, ``.z``: the position of ``point`` in m, from ``relative_to`` (the origin)."""
        self._request("position", name, (point,), relative_to=relative_to, expressed_in=expressed_in)

    def output_velocity(self, name: str, point: Point, *, expressed_in: ReferenceFrame | None = None) -> None:
        """Output ``name.x``, ``.y``, ``.z``: the velocity of ``point`` in the inertial frame, in m/s."""
        self._request("velocity", name, (point,), expressed_in=expressed_in)

    def output_acceleration(self, name: str, point: Point, *, expressed_in: ReferenceFrame | None = None) -> None:
        """Output ``name.x``, ``.y``, ``.z``: the acceleration of ``point`` in the inertial frame, in m/s2."""
        self._request("acceleration", name, (point,), expressed_in=expressed_in)

    def output_orientation(
        self,
        name: str,
        frame: ReferenceFrame,
        *,
        relative_to: ReferenceFrame | None = None,
        representation: str = "quaternion",
    ) -> None:
        """Output the orientation of ``frame``.

        ``quaternion``: ``name.w``, ``.x``, ``.y``, ``.z``, unit length, rotating vectors of ``frame`` into
        ``relative_to``, w ≥ 0. A body-fixed Euler sequence such as ``zxy``: ``name[1]``, ``[2]``, ``[3]`` in rad.
        """
        unit = "1" if representation == "quaternion" else "rad"
        self._request("orientation", name, (frame,), unit=unit, relative_to=relative_to, representation=representation)

    def output_angular_velocity(
        self,
        name: str,
        frame: ReferenceFrame,
        *,
        relative_to: ReferenceFrame | None = None,
        expressed_in: ReferenceFrame | None = None,
    ) -> None:
        """Output ``name.x``, ``.y``, ``.z``: the angular velocity of ``frame`` in ``relative_to``, in rad/s."""
        self._request("angular_velocity", name, (frame,), relative_to=relative_to, expressed_in=expressed_in)

    def output_angular_acceleration(
        self,
        name: str,
        frame: ReferenceFrame,
        *,
        relative_to: ReferenceFrame | None = None,
        expressed_in: ReferenceFrame | None = None,
    ) -> None:
        """Output ``name.x``, ``.y``, ``.z``: the angular acceleration of ``frame`` in ``relative_to``, in rad/s2.

        In a frame that turns itself it is the rate, as seen there, of the angular velocity seen there.
        """
        self._request("angular_acceleration", name, (frame,), relative_to=relative_to, expressed_in=expressed_in)

    def output_pose(
        self, name: str, at: PointAndFrame, *, relative_to: PointAndFrame, representation: str = "quaternion"
    ) -> None:
        """Output the pose of a frame relative to another: ``name.position.x``, …, and ``name.orientation.w``, ….

        Args:
            name: FMU name.
            at: (point, frame): of the body that is looked at.
            relative_to: (point, frame) of the body that looks; components of the position are in its frame.
            representation: As for :meth:`output_orientation`.
        """
        (point, frame), (origin, base) = at, relative_to
        self.output_position(f"{name}.position", point, relative_to=origin, expressed_in=base)
        self.output_orientation(f"{name}.orientation", frame, relative_to=base, representation=representation)

    def output_twist(self, name: str, at: PointAndFrame, *, relative_to: PointAndFrame) -> None:
        """Output the twist of a frame relative to another: ``name.velocity.x``, … in m/s, ``name.omega.x``, … in rad/s.

        Args:
            name: FMU name.
            at: (point, frame): of the body that is looked at.
            relative_to: (point, frame) of the body that looks, which moves itself; components are in its frame.
        """
        (point, frame), (origin, base) = at, relative_to
        subject = (point, origin)
        self._request("relative_velocity", f"{name}.velocity", subject, relative_to=base, expressed_in=base)
        self.output_angular_velocity(f"{name}.omega", frame, relative_to=base, expressed_in=base)

    def output_joint_motion(self, name: str, joint: Any, *, representation: str = "quaternion") -> None:
        """Output the motion of a joint: pose and twist of its child against its parent, at the joint itself.

        ``name.position``, ``.orientation``, ``.velocity``, ``.omega``: of the child's point and frame of the joint
        against the parent's, in the parent's frame; all zero (and the unit quaternion) where the joint is closed.
        """
        child = (joint.child_point, joint.child_interframe)
        parent = (joint.parent_point, joint.parent_interframe)
        self.output_pose(name, child, relative_to=parent, representation=representation)
        self.output_twist(name, child, relative_to=parent)

    def output_centre_of_mass(
        self, name: str, bodies: Sequence[Any] = (), *, expressed_in: ReferenceFrame | None = None
    ) -> None:
        """Output position, velocity and acceleration of the mass centre of bodies together (all unless given).

        ``name.position.x``, … from the origin in m, ``name.velocity.x``, … in the inertial frame in m/s.
        """
        subject = tuple(bodies)
        self._request("centre_of_mass", f"{name}.position", subject, expressed_in=expressed_in)
        self._request("centre_of_mass_velocity", f"{name}.velocity", subject, expressed_in=expressed_in)

    def output_momenta(
        self,
        name: str,
        bodies: Sequence[Any] = (),
        *,
        about: Point | None = None,
        expressed_in: ReferenceFrame | None = None,
    ) -> None:
        """Output momentum and angular momentum of bodies together (of all unless given), in the inertial frame.

        ``name.linear.x``, … in kg.m/s; ``name.angular.x``, … in kg.m2/s about their centre of mass, or about a point:
        Σ (r - r_about) × m v + I ω.
        """
        subject = tuple(bodies)
        self._request("linear_momentum", f"{name}.linear", subject, expressed_in=expressed_in)
        self._request("angular_momentum", f"{name}.angular", subject, relative_to=about, expressed_in=expressed_in)

    def output_distance(self, name: str, point: Point, other: Point) -> None:
        """Output ``name``: the distance of two points in m."""
        self._request("distance", name, (point, other))

    def output_force(self, name: str, load: Any, *, unit: str = "N") -> None:
        """Output the magnitude (actuator; expansile positive) or the components (load) of a force or torque.

        ``load`` is one of the given loads or actuators; a load gives ``name.x``, ``.y``, ``.z`` in the inertial
        frame, an actuator ``name``.
        """
        self._request("force", name, (load,), unit=unit)

    def output_power(self, name: str, load: Any) -> None:
        """Output ``name``: the power in W that a load or actuator delivers to the mechanism."""
        self._request("power", name, (load,))

    def output_multiplier(self, name: str, row: sm.Expr, *, unit: str = "N") -> None:
        """Output ``name``: the multiplier of a constraint of the mechanics, in M u' + A^T λ = f.

        Where the row is a component of a point's velocity (or its φ one of the point's position), -λ is the component
        of the force that holds the point.

        Args:
            name: FMU name.
            row: The constraint, the expression that was given to the mechanics.
            unit: W over the unit of the row's rate: ``N`` for a row in m/s, ``N.m`` for one in rad/s.
        """
        self._request("multiplier", name, (sm.sympify(row),), unit=unit)

    def output_momentum(self, name: str, speed: sm.Expr, *, unit: str) -> None:
        """Output ``name``: the generalized momentum ∂T/∂u of a speed u, or ∂T/∂q' of a coordinate q."""
        self._request("momentum", name, (speed,), unit=unit)

    def output_jacobi_integral(self, name: str = "jacobi_integral") -> None:
        """Output Jacobi's integral Σ q' ∂T/∂q' - T + V in J; it is T + V unless motion is prescribed."""
        self._request("jacobi_integral", name)

    def output_reaction(
        self,
        name: str,
        of: Any,
        *,
        at: Point | None = None,
        expressed_in: ReferenceFrame | None = None,
        torque: bool = True,
    ) -> None:
        """Output ``name.force.x``, … in N and ``name.torque.x``, … in N.m: the reaction of a joint.

        The force and the torque about ``at`` that the joint's parent exerts on its child, loads and actuators not
        counted: those are loads. Of bodies: what everything but loads exerts on them together; constraints of which
        the model says where their forces act count as loads.

        Args:
            name: FMU name.
            of: A joint of the ``System``; or a body, or several, whose reactions are summed up; a ``FlexibleBody`` is
                one of them.
            at: The point about which the torque is taken; of a joint its point on the child, unless given.
            expressed_in: The frame of the components; the inertial frame, unless given.
            torque: False: the force only, as of a point contact, which carries no torque.
        """
        given = tuple(of) if isinstance(of, list | tuple) else (of,)
        subject = tuple(
            part for item in given for part in getattr(item, "bodies", (item,))
        )  # several are a flexible one
        self._request("reaction_force", f"{name}.force", subject, relative_to=at, expressed_in=expressed_in)
        if torque:
            self._request("reaction_torque", f"{name}.torque", subject, relative_to=at, expressed_in=expressed_in)

    def output_kinetic_energy(self, name: str = "kinetic_energy") -> None:
        """Output the kinetic energy in J."""
        self._request("kinetic_energy", name)

    def output_potential_energy(self, name: str = "potential_energy") -> None:
        """Output the potential energy in J: of constant forces and springs, or what :meth:`potential_energy` gives."""
        self._request("potential_energy", name)

    def output_total_energy(self, name: str = "total_energy") -> None:
        """Output the sum of kinetic and potential energy in J."""
        self._request("total_energy", name)

    def output_diagnostics(self, name: str = "diagnostics", *, energy: bool = True) -> None:
        """Output residuals of the constraints, and measures of how well they are posed.

        ``name.position_residual``: the largest |φ| of the holonomic constraints (where there are any) at the states
        themselves, before they are projected, in the rows' own units. ``name.velocity_residual``: the same of
        |A u + b| at the coordinates that all outputs see. ``name.rank``: how many rows of A are independent.
        ``name.condition``: how nearly they are not, in the rows' own units: 1 where they are perpendicular and of one
        length, 1e7 where one comes to follow from others or vanishes. ``name.energy``: the total energy in J.

        Args:
            name: What they are called in front of the point.
            energy: False: without the energy, as where the potential energy is not known.
        """
        diagnostics: tuple[tuple[OutputKind, str, str], ...] = (
            ("position_residual", "position_residual", "largest violation of a holonomic constraint by the states"),
            ("velocity_residual", "velocity_residual", "largest violation of a velocity constraint by the states"),
            ("constraint_rank", "rank", "number of independent constraints, estimated"),
            ("constraint_condition", "condition", "condition of the constraints' Jacobian, estimated; at most 1e7"),
        )
        for kind, part, description in diagnostics:
            self._request(kind, f"{name}.{part}", description=description)
        if energy:
            self._request("total_energy", f"{name}.energy", description="kinetic and potential energy")

    def _request(
        self,
        kind: OutputKind,
        name: str,
        subject: tuple[Any, ...] = (),
        *,
        unit: str | None = None,
        relative_to: Any = None,
        expressed_in: ReferenceFrame | None = None,
        representation: str = "quaternion",
        description: str = "",
    ) -> None:
        """Record an output with the line of the model file that requests it, in the unit of its kind unless given."""
        self.declared.append(
            OutputRequest(
                kind=kind,
                name=name,
                unit=OUTPUT_KINDS[kind].unit if unit is None else unit,
                subject=subject,
                relative_to=relative_to,
                expressed_in=expressed_in,
                representation=representation,
                description=description,
                where=find_user_source_line(),
            )
        )
