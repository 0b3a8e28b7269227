"""OutputRequest: a one-line output before the mechanism is read."""

from __future__ import annotations

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
