"""``CutJointSideMotions``: kinematics of both sides of an opened joint, and states of the flange on the outer one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Components
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model.quantity_declarations import Coordinate, Speed
from mb2fmu.systems.splitting.cut_joint_topology import CutJoint
from mb2fmu.systems.splitting.exchanged_part_forces import AXES
from mb2fmu.systems.splitting.joint_replacement_records import rotation_about_frame_axis, rotation_by_vector
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings

Floats = npt.NDArray[np.float64]
ZERO_COMPONENTS: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)


@dataclass
class _SplitJointSideMotion:
    """Motion of one side of the joint, in components of N."""

    position: Components
    velocity: Components
    omega: Components
    rotation: sm.ImmutableMatrix


@dataclass
class _CutFlangeCoordinates:
    """Coordinates and speeds of the flange."""

    q: list[tuple[sm.Symbol, Coordinate, sm.Expr]] = field(default_factory=list)  # with q'
    u: list[tuple[sm.Symbol, Speed]] = field(default_factory=list)
    quaternion: bool = False


class CutJointSideMotions:
    """Position, velocity, rotation and angular velocity of the joint's inner side and of the flange.

    Args:
        joint: The joint.
        settings: Stiffness, start values, the reaction at the start.

    Attributes:
        flange: Coordinates and speeds of the flange.
        inner: The inner side, in the symbols of the mechanism.
        outer: The flange, in its own symbols.
    """

    def __init__(self, joint: CutJoint, settings: SplittingSettings) -> None:
        self._joint, self._settings = joint, settings
        self._start_values = settings.start_values(joint.mechanism)
        self.flange = _CutFlangeCoordinates()
        self.inner = self._make_inner_side()
        self.outer = self._make_flange_side()

    def _make_inner_side(self) -> _SplitJointSideMotion:
        """Return position, velocity, angular velocity and rotation of the joint's inner side, in N, as expressions."""
        kinematics = SymbolicKinematics(self._joint.mechanism)
        frame = max(self._joint.joint_frame, 0)
        quantities = (
            kinematics.position(self._joint.point),
            kinematics.velocity(self._joint.point),
            kinematics.omega(frame),
            kinematics.rotation(frame),
        )
        substitution: dict[sm.Symbol, sm.Expr] = {}
        for assignment in kinematics.assignments:
            substitution[assignment.symbol] = assignment.expression.xreplace(substitution)
        position, velocity, omega = (
            tuple(sm.sympify(component).xreplace(substitution) for component in quantity) for quantity in quantities[:3]
        )
        return _SplitJointSideMotion(
            position, velocity, omega, sm.ImmutableMatrix(quantities[3]).xreplace(substitution)
        )

    def evaluate_at_start(self, expression: sm.Expr) -> float:
        """Return the value of an expression at the start."""
        return float(sm.sympify(expression).xreplace(self._start_values))

    def _add_flange_state(self, suffix: str, rate: sm.Expr | None, unit: str, start: float) -> sm.Symbol:
        """Return a coordinate with its rate, or (no rate) a speed."""
        symbol = sm.Symbol(f"{self._joint.identifier}_{suffix}")
        fields: dict[str, Any] = {
            "name": symbol.name, "symbol": sm.Function(symbol.name)(self._joint.mechanism.t), "unit": unit,
            "start": start, "description": f"of the flange at {self._joint.name}",
        }  # fmt: skip
        if rate is None:
            self.flange.u.append((symbol, Speed(**fields)))
        else:
            self.flange.q.append((symbol, Coordinate(**fields), rate))
        return symbol

    def _make_flange_side(self) -> _SplitJointSideMotion:
        """Return the flange's coordinates, at the start displaced by the reaction."""
        settings, inner_side = self._settings, self.inner
        reaction = settings.initial_reactions.get(self._joint.name, (0.0,) * 6)
        position, velocity = list(inner_side.position), [sm.S.Zero] * 3
        for axis_index in self._joint.free_translations:
            axis = AXES[axis_index]
            speed = self._add_flange_state(
                f"flange_v{axis}", None, "m/s", self.evaluate_at_start(inner_side.velocity[axis_index])
            )
            start = self.evaluate_at_start(inner_side.position[axis_index]) - reaction[axis_index] / settings.stiffness
            position[axis_index], velocity[axis_index] = (
                self._add_flange_state(f"flange_{axis}", speed, "m", start),
                speed,
            )
        rotation, omega = self._orient_flange(reaction[3:])
        return _SplitJointSideMotion(tuple(position), tuple(velocity), omega, rotation)

    def _orient_flange(self, torque: Sequence[float]) -> tuple[sm.ImmutableMatrix, Components]:
        """Return the flange's start rotation and angular velocity: turned so that the bushing bears the torque."""
        inner_side = self.inner
        if not self._joint.free_rotations:
            return inner_side.rotation, ZERO_COMPONENTS
        present_rotation = np.array(
            [[self.evaluate_at_start(component) for component in row] for row in inner_side.rotation.tolist()]
        )
        angular_velocity = np.array([self.evaluate_at_start(component) for component in inner_side.omega])
        rotation_vector = -np.array(torque) / self._settings.angular_stiffness
        start_rotation = (
            rotation_by_vector(
                np.where([axis in self._joint.free_rotations for axis in range(3)], rotation_vector, 0.0)
            )
            @ present_rotation
        )
        if len(self._joint.free_rotations) == 1:
            return self._add_hinge_angle(start_rotation, angular_velocity)
        return self._add_quaternion(start_rotation, angular_velocity)

    def _add_hinge_angle(
        self, start_rotation: Floats, angular_velocity: Floats
    ) -> tuple[sm.ImmutableMatrix, Components]:
        """Return the flange's rotation and spin by one angle about an axis of N."""
        (axis,) = self._joint.free_rotations
        first_normal, second_normal = (axis + 1) % 3, (axis + 2) % 3
        angle = float(
            np.arctan2(
                start_rotation[second_normal, first_normal] - start_rotation[first_normal, second_normal],
                start_rotation[first_normal, first_normal] + start_rotation[second_normal, second_normal],
            )
        )
        angular_speed = self._add_flange_state("flange_w", None, "rad/s", float(angular_velocity[axis]))
        angle_symbol = self._add_flange_state("flange_angle", angular_speed, "rad", angle)
        rotation = sm.eye(3).as_mutable()
        rotation[first_normal, first_normal] = rotation[second_normal, second_normal] = sm.cos(angle_symbol)
        rotation[second_normal, first_normal], rotation[first_normal, second_normal] = (
            sm.sin(angle_symbol),
            -sm.sin(angle_symbol),
        )
        remaining_rotation = (
            rotation_about_frame_axis(axis, -angle) @ start_rotation
        )  # what the frame is turned by beside the angle
        constant = sm.Matrix(3, 3, [sm.Float(entry) if abs(entry - round(entry)) > 1e-15 else sm.Integer(round(entry))
                                    for entry in remaining_rotation.flat])  # fmt: skip
        omega = [sm.S.Zero] * 3
        omega[axis] = angular_speed
        return sm.ImmutableMatrix(rotation * constant), (omega[0], omega[1], omega[2])

    def _add_quaternion(
        self, start_rotation: Floats, angular_velocity: Floats
    ) -> tuple[sm.ImmutableMatrix, Components]:
        """Add a quaternion: e' = E(e) ω / 2, ω in components of N (Shabana, Dynamics of Multibody Systems, 2013)."""
        from scipy.spatial.transform import Rotation

        x0, y0, z0, w0 = Rotation.from_matrix(start_rotation).as_quat()
        omega = [
            self._add_flange_state(f"flange_w{axis}", None, "rad/s", float(angular_velocity[index]))
            for index, axis in enumerate(AXES)
        ]
        w, x, y, z = (sm.Symbol(f"{self._joint.identifier}_flange_e{index}") for index in range(4))
        # Along N: e' = ½ (0, ω) ∘ e.
        a, b, c = omega
        half = sm.Rational(1, 2)
        rates = (
            half * (-a * x - b * y - c * z), half * (a * w + b * z - c * y), half * (b * w + c * x - a * z),
            half * (c * w + a * y - b * x),
        )  # fmt: skip
        for index, (rate, value) in enumerate(zip(rates, (w0, x0, y0, z0), strict=True)):
            self._add_flange_state(f"flange_e{index}", rate, "1", float(value))
        self.flange.quaternion = True
        rotation = sm.ImmutableMatrix(
            [
                [w**2 + x**2 - y**2 - z**2, 2 * x * y - 2 * w * z, 2 * w * y + 2 * x * z],
                [2 * w * z + 2 * x * y, w**2 - x**2 + y**2 - z**2, 2 * y * z - 2 * w * x],
                [2 * x * z - 2 * w * y, 2 * w * x + 2 * y * z, w**2 - x**2 - y**2 + z**2],
            ]
        )
        return rotation, (a, b, c)
