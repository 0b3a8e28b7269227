"""``OutputRequest``: a one-line output as the model declares it; ``OUTPUT_KINDS``: one row of facts for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sympy.physics.mechanics import ReferenceFrame

from mb2fmu.model.quantity_declarations import Quantity

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
class OutputKindRow:
    """Facts of one output kind that its import, checks and names share; formulas stand with the formulations.

    Attributes:
        subject: Kind of each subject of a request.
        relative_to: Kind of the object that ``relative_to`` names.
        vector: The output has the components x, y and z; orientations and loads have names of their own.
        of_lagrangian: A Lagrangian without bodies has it too.
    """

    subject: SubjectKind
    relative_to: SubjectKind = "point"
    vector: bool = False
    of_lagrangian: bool = False


_ANGULAR_MOTION = OutputKindRow("frame", "frame", vector=True)
_BODY_SUM = OutputKindRow("body", vector=True)
_REACTION = OutputKindRow("joint or bodies", vector=True)
_JOINT_SPACE = OutputKindRow("coordinate or speed")
_LAGRANGIAN_MOMENTUM = OutputKindRow("coordinate or speed", of_lagrangian=True)
_MECHANISM = OutputKindRow("mechanism", of_lagrangian=True)

OUTPUT_KINDS: Mapping[OutputKind, OutputKindRow] = {
    "position": OutputKindRow("located point", "located point", vector=True),
    "velocity": OutputKindRow("point", vector=True),
    "acceleration": OutputKindRow("point", vector=True),
    "angular_velocity": _ANGULAR_MOTION,
    "angular_acceleration": _ANGULAR_MOTION,
    "relative_velocity": OutputKindRow("located point", "frame", vector=True),
    "centre_of_mass": _BODY_SUM,
    "centre_of_mass_velocity": _BODY_SUM,
    "linear_momentum": _BODY_SUM,
    "angular_momentum": OutputKindRow("body", "located point", vector=True),
    "orientation": OutputKindRow("oriented frame", "oriented frame"),
    "distance": OutputKindRow("located point"),
    "force": OutputKindRow("load"),
    "power": OutputKindRow("load"),
    "multiplier": OutputKindRow("constraint row", of_lagrangian=True),
    "momentum": _LAGRANGIAN_MOMENTUM,
    "coordinate_momentum": _LAGRANGIAN_MOMENTUM,
    "jacobi_integral": _MECHANISM,
    "reaction_force": _REACTION,
    "reaction_torque": _REACTION,
    "joint_effort": OutputKindRow("joint"),
    "mass_matrix": _JOINT_SPACE,
    "gravity_effort": _JOINT_SPACE,
    "inverse_effort": _JOINT_SPACE,
    "partial_velocity": OutputKindRow("point and speed"),
    "partial_angular_velocity": OutputKindRow("frame and speed"),
    "position_residual": _MECHANISM,
    "velocity_residual": _MECHANISM,
    "constraint_rank": _MECHANISM,
    "constraint_condition": _MECHANISM,
    "kinetic_energy": _MECHANISM,
    "potential_energy": _MECHANISM,
    "total_energy": _MECHANISM,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRequest(Quantity):
    """A one-line output: a kinematic, load or energy quantity that the mechanism can compute.

    Attributes:
        kind: What is asked.
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
        component: 0, 1 or 2: of a partial velocity, which component is asked, in the inertial frame.
        representation: For ``orientation``: ``quaternion`` (w, x, y, z) or a body-fixed Euler sequence like ``zxy``.
    """

    kind: OutputKind
    subject: tuple[Any, ...] = ()
    relative_to: Any = None
    expressed_in: ReferenceFrame | None = None
    component: int | None = None
    representation: str = "quaternion"
