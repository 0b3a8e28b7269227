"""``RobotMechanics``: a moving tree with the symbols of its coordinates, speeds, efforts and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import sympy as sm

from mb2fmu.mechanics.mechanism.records.appearance_records import MeshPlacement
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics
from mb2fmu.robots.description.robot_description import RobotDescription, RobotLoop
from mb2fmu.robots.flexible_links.flexible_link import FlexibleLink
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import RobotPartTree


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotJointSymbols:
    """Symbols of one joint: parameters, and functions of time for all else.

    Attributes:
        name: Legal and unique, in front of the names of its variables.
        q: Coordinates. ``floating``: position (3) in the frame before, quaternion w, x, y, z; ``ball``: quaternion;
            ``planar``: x, y, angle.
        u: Speeds. ``floating``: velocity and angular velocity along the moving axes; ``ball``: angular velocity along
            them; all others: q'.
        effort: Input along u; None where there is none.
        prescribed: Inputs (position, speed, acceleration) in place of q and u; None: it moves by itself.
    """

    name: str
    q: tuple[sm.Expr, ...] = ()
    u: tuple[sm.Expr, ...] = ()
    effort: sm.Expr | None = None
    prescribed: tuple[sm.Expr, sm.Expr, sm.Expr] | None = None


@dataclass(eq=False, kw_only=True)
class RobotMechanics(RecordBasedMechanics):
    """The mechanics of one robot.

    Attributes:
        description: Description from the file.
        settings: Settings for what the file leaves open.
        tree: The parts that move.
        variables: Number of a part → symbols of its joint; followers of other joints have none.
        damping: Number of a part → parameter of its joint's damper, where there is one.
        friction: Joint → name of the parameter of its dry friction, its followers' included, and the file's value.
        joints_with_stops: Joints with hard stops.
        actuator_efforts: Joint → effort of actuators and tendons along it, N·m or N.
        controls: Actuator → its input.
        loops: Closed loops, those of the file first.
        passive_efforts: Joint → effort of tendons along it, without actuators, N·m or N.
        desired_accelerations: Accelerations for which ``inverse-dynamics`` are requested, one per speed; empty if none
            are.
        meshes: Of its shapes.
        missing_mesh_notes: A sentence on every mesh that is not there.
        named_loads: Names of the settings' loads in the FMU; what they are comes first among ``loads``.
        settings_file: What settings stand in; None where there is none.
        arguments: Names of settings that came as arguments.
        gravity: Acceleration, m/s², components in the ground.
        flexible: Links that bend.
    """

    description: RobotDescription
    settings: RobotSettings
    tree: RobotPartTree
    variables: Mapping[int, RobotJointSymbols]
    damping: Mapping[int, sm.Symbol]
    friction: Mapping[str, tuple[str, float]]
    joints_with_stops: tuple[str, ...]
    actuator_efforts: Mapping[str, sm.Expr]
    controls: Mapping[str, sm.Expr]
    passive_efforts: Mapping[str, sm.Expr]
    desired_accelerations: tuple[sm.Expr, ...] = ()
    named_loads: tuple[str, ...] = ()
    settings_file: Path | None = None
    arguments: frozenset[str] = frozenset()
    loops: tuple[RobotLoop, ...]
    meshes: tuple[MeshPlacement, ...]
    missing_mesh_notes: tuple[str, ...] = ()
    gravity: tuple[sm.Expr, sm.Expr, sm.Expr]
    flexible: tuple[FlexibleLink, ...] = ()

    def is_fixed_in_ground(self, frame: str) -> bool:
        """Return whether a link is fixed in the ground."""
        return frame == self.ground or self.tree.location_of_link[frame][0] == 0
