"""``replace_joint_by_coupling``: replace a joint by a bushing or a transmission line; the outer side moves freely.

The outer side hangs on a flange, a point and (where outer frames are counted from inner ones) a frame with coordinates
of their own, where the joint's point and the inner frame are. The flange may have a mass and an inertia: parasitic, and
needed where a joint leaves it free. Between the joint's point P and the flange's F, along the axes in which P moves:

- bushing: force on the flange = -k (r_F - r_P) - d (v_F - v_P), torque on its frame = -κ e - δ (ω_F - ω_P), with
  e = ½ Σ a_i × b_i over the axes a_i before and b_i behind the joint (sin θ about the axis of the turn);
- line of impedance Z = k T: force at either end = Z w + c, w the velocity into the line there, c what arrives of what
  the other end gave T ago, c + 2 Z w. It is a bushing of stiffness k without damping whose parasitic inertia is k T²
  (P. Krus, Robust system modelling using bi-lateral delay lines, SIMS 2005; the same for the torque).

The start is that of the whole: displaced by the joint's reaction divided by the stiffness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations, VelocityConstraints
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    ConstraintForceApplication,
    ForceLoad,
    Frame,
    KinematicPoint,
    Load,
    Mechanism,
    TorqueLoad,
)
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import (
    QuaternionGroup,
    make_rotations_length_independent,
    stabilize_quaternion_length,
)
from mb2fmu.model.quantity_declarations import Parameter
from mb2fmu.systems.splitting.body_motion_states import MechanismStateDependencies
from mb2fmu.systems.splitting.cut_joint_topology import CutJoint, find_cut_joint
from mb2fmu.systems.splitting.exchanged_part_forces import AXES
from mb2fmu.systems.splitting.joint_replacement_records import (
    MechanismWithOpenedJoint,
    RenumberedFramesAndPoints,
    TransmissionLineWave,
)
from mb2fmu.systems.splitting.opened_joint_kinematics import CutJointSideMotions
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings

JointCompliance = Literal["bushing", "line"]


def replace_joint_by_coupling(
    mechanism: Mechanism,
    name: str,
    is_outer_body: Sequence[int],
    point: int,
    method: JointCompliance,
    settings: SplittingSettings,
) -> MechanismWithOpenedJoint:
    """Open a joint.

    Args:
        mechanism: The mechanism.
        name: Name of the joint.
        is_outer_body: 1 for each body beyond the joint, 0 for the others.
        point: Number of the joint's point.
        method: Element that connects the flange.
        settings: Stiffness, start values, the reaction at the start.

    Raises:
        CouplingError: If the outer side is not located relative to one point and one frame of the inner side.
    """
    joint = find_cut_joint(mechanism, name, is_outer_body, point)
    return _JointCutBuilder(joint, method, settings).build()


class _JointCutBuilder:
    """Builds the mechanism with the flange.

    ``build`` makes the wrenches, which declare parameters, before the flange's body, which declares its own.
    """

    def __init__(self, joint: CutJoint, method: JointCompliance, settings: SplittingSettings) -> None:
        self.joint, self.method, self.settings = joint, method, settings
        self.sides = CutJointSideMotions(joint, settings)
        self.flange, self.inner_side, self.flange_side = self.sides.flange, self.sides.inner, self.sides.outer
        self.inner_state = min(joint.inner_states, key=str)
        self.flange_state = self.flange.q[0][0] if self.flange.q else min(joint.outer_states, key=str)
        self.parameters: list[Parameter] = []

    # --- the bushing or line

    def _add_parameter(self, suffix: str, value: float, unit: str, description: str) -> sm.Symbol:
        """Add a parameter named after the joint, not below 0, and return its symbol."""
        symbol = sm.Symbol(f"{self.joint.identifier}_{suffix}")
        parameter = Parameter(
            name=symbol.name, symbol=symbol, value=value, unit=unit, description=description, minimum=0.0
        )
        self.parameters.append(parameter)
        return symbol

    def _make_bushing_wrenches(self) -> tuple[list[sm.Expr], list[sm.Expr], list[sm.Expr], list[sm.Expr]]:
        """Return force and torque of the bushing on the inner side, then on the flange, by components in N."""
        settings, inner_side, flange_side = self.settings, self.inner_side, self.flange_side
        stiffness, damping = (self._add_parameter("stiffness", settings.stiffness, "N/m", "along each axis"),
                self._add_parameter("damping", settings.damping, "N.s/m", "along each axis"))  # fmt: skip
        force = [
            -stiffness * (flange_side.position[axis] - inner_side.position[axis])
            - damping * (flange_side.velocity[axis] - inner_side.velocity[axis])
            if axis in self.joint.free_translations
            else sm.S.Zero
            for axis in range(3)
        ]
        torque = [sm.S.Zero] * 3
        if self.joint.free_rotations:
            stiffness, damping = (
                self._add_parameter("angular_stiffness", settings.angular_stiffness, "N.m/rad", "about each axis"),
                self._add_parameter("angular_damping", settings.angular_damping, "N.m.s/rad", "about each axis"),
            )
            rotation_vector = (
                sum(
                    (inner_side.rotation.col(axis).cross(flange_side.rotation.col(axis)) for axis in range(3)),
                    sm.zeros(3, 1),
                )
                / 2
            )
            torque = [
                -stiffness * rotation_vector[axis] - damping * (flange_side.omega[axis] - inner_side.omega[axis])
                if axis in self.joint.free_rotations
                else sm.S.Zero
                for axis in range(3)
            ]
        return (
            [-force_component for force_component in force],
            [-torque_component for torque_component in torque],
            force,
            torque,
        )

    def _make_line_wrenches(
        self, line_waves: list[TransmissionLineWave]
    ) -> tuple[list[sm.Expr], list[sm.Expr], list[sm.Expr], list[sm.Expr]]:
        """Return force and torque of the line, as for a bushing; add the line's wave variables."""
        settings, inner_side, flange_side = self.settings, self.inner_side, self.flange_side
        reaction = settings.initial_reactions.get(self.joint.name, (0.0,) * 6)
        wrenches: list[list[sm.Expr]] = [[sm.S.Zero] * 3 for _ in range(4)]
        parts = [("f", "N", self.joint.free_translations, inner_side.velocity, flange_side.velocity, settings.stiffness,
                  "impedance", "N.s/m")]  # fmt: skip
        if self.joint.free_rotations:
            parts.append(("m", "N.m", self.joint.free_rotations, inner_side.omega, flange_side.omega,
                          settings.angular_stiffness, "angular_impedance", "N.m.s/rad"))  # fmt: skip
        for part, (letter, unit, axes, inner_rate, flange_rate, stiffness, name, impedance_unit) in enumerate(parts):
            impedance_value = stiffness * settings.delay
            impedance = self._add_parameter(name, impedance_value, impedance_unit, "of the line")
            for axis in axes:
                wave_to_inner, wave_to_outer = (
                    sm.Symbol(f"{self.joint.identifier}_to_{side}_{letter}{AXES[axis]}") for side in ("inner", "outer")
                )
                start_load = reaction[3 * part + axis]
                wrenches[part][axis] = -(impedance * inner_rate[axis] + wave_to_inner)
                wrenches[2 + part][axis] = wave_to_outer - impedance * flange_rate[axis]
                start_change = impedance_value * self.sides.evaluate_at_start(inner_rate[axis])
                from_flange = wave_to_outer - 2 * impedance * flange_rate[axis]
                wave_from_inner = wave_to_inner + 2 * impedance * inner_rate[axis]
                line_waves.append(TransmissionLineWave(
                    wave_to_inner.name, wave_to_inner, unit, start_load - start_change, from_flange,
                    self.inner_state, self.flange_state,
                ))  # fmt: skip
                line_waves.append(TransmissionLineWave(
                    wave_to_outer.name, wave_to_outer, unit, start_load + start_change, wave_from_inner,
                    self.flange_state, self.inner_state,
                ))  # fmt: skip
        return wrenches[0], wrenches[1], wrenches[2], wrenches[3]

    # --- the opened mechanism

    def build(self) -> MechanismWithOpenedJoint:
        """Return the records with the flange, renumbered: new ones come right after the ground's."""
        mechanism = self.joint.mechanism
        line_waves: list[TransmissionLineWave] = []
        wrenches = self._make_bushing_wrenches() if self.method == "bushing" else self._make_line_wrenches(line_waves)
        inner = RenumberedFramesAndPoints(mechanism, {}, {})
        outer = RenumberedFramesAndPoints(
            mechanism, {self.joint.joint_frame: 1} if self.joint.free_rotations else {}, {self.joint.point: 1}
        )
        compliance_loads = list(self._list_compliance_loads(inner, wrenches))
        loads = [
            (outer if self.joint.acts_on_outer_side(load) else inner).renumber_load(load) for load in mechanism.loads
        ] + compliance_loads
        bodies = [
            (outer if is_outer else inner).renumber_body(body)
            for body, is_outer in zip(mechanism.bodies, self.joint.is_outer_body, strict=True)
        ]
        cut_mechanism = self._assemble_mechanism(inner, outer, loads, [*bodies, *self._list_flange_bodies()])
        outputs, output_states, joint_powers = self._list_power_outputs(wrenches)
        expression_outputs = tuple(output for output in mechanism.outputs if isinstance(output, ExpressionOutput))
        cut_mechanism = replace(cut_mechanism, outputs=(*expression_outputs, *outputs))
        dependencies = MechanismStateDependencies(cut_mechanism)
        load_states = [dependencies.location_states(load) | dependencies.magnitude_states(load) for load in loads]
        outer_states = {
            *(state for state, _, _ in self.flange.q),
            *(state for state, _ in self.flange.u),
            *self.joint.outer_states,
        }
        loads_of_both_sides = [
            load.name
            for load, states in zip(loads, load_states, strict=True)
            if states & self.joint.inner_states and states & outer_states
        ]
        bushing_loads = [load.name for load in compliance_loads] if self.method == "bushing" else []
        return MechanismWithOpenedJoint(
            cut_mechanism,
            frozenset(bushing_loads),
            frozenset(loads_of_both_sides),
            tuple(line_waves),
            output_states,
            joint_powers,
        )

    def _list_compliance_loads(
        self, inner: RenumberedFramesAndPoints, wrenches: tuple[list[sm.Expr], ...]
    ) -> Iterator[Load]:
        """Yield forces and torques of the bushing or line, in N."""
        places = (
            (
                self.joint.name,
                inner.new_point_number(self.joint.point),
                inner.new_frame_number(max(self.joint.joint_frame, 0)),
            ),
            (f"{self.joint.name} flange", 1, 1),
        )
        for (name, point, frame), force, torque in zip(places, wrenches[::2], wrenches[1::2], strict=True):
            if any(force):
                yield ForceLoad(f"force at {name}", point, ((0, (force[0], force[1], force[2])),))
            if any(torque):
                yield TorqueLoad(f"torque at {name}", frame, ((0, (torque[0], torque[1], torque[2])),))

    def _list_flange_bodies(self) -> Iterator[Body]:
        """Yield the flange's small mass and inertia, if the settings want one."""
        settings = self.settings
        if not settings.flange_mass and not (self.joint.free_rotations and settings.flange_inertia):
            return
        mass = (
            self._add_parameter("flange_mass", settings.flange_mass, "kg", "parasitic")
            if settings.flange_mass
            else sm.S.Zero
        )
        if not self.joint.free_rotations:
            yield Body(f"{self.joint.name} flange", 1, -1, mass, None)
            return
        moment_of_inertia = self._add_parameter(
            "flange_inertia", settings.flange_inertia or 0.0, "kg.m2", "parasitic, about each axis"
        )
        free_rotations = self.joint.free_rotations
        moments = [
            moment_of_inertia if len(free_rotations) > 1 or axis == free_rotations[0] else sm.S.Zero
            for axis in range(3)
        ]
        yield Body(f"{self.joint.name} flange", 1, 1, mass, sm.ImmutableMatrix(sm.diag(*moments)))

    def _assemble_mechanism(
        self, inner: RenumberedFramesAndPoints, outer: RenumberedFramesAndPoints, loads: list[Load], bodies: list[Body]
    ) -> Mechanism:
        """Return the mechanism with the flange as frame 1 and point 1, its states last, and the outer side on it."""
        mechanism, flange = self.joint.mechanism, self.flange
        frames, points = self._list_frames(inner, outer), self._list_points(inner, outer)
        coordinates, speeds = (*mechanism.q, *(s for s, _, _ in flange.q)), (*mechanism.u, *(s for s, _ in flange.u))
        accelerations = (*mechanism.u_dot, *(sm.Symbol(f"{s.name}_d") for s, _ in flange.u))
        count = len(coordinates)
        group: QuaternionGroup | None = (count - 4, count - 3, count - 2, count - 1) if flange.quaternion else None
        quaternions = (*mechanism.quaternions, group) if group else mechanism.quaternions
        kinematics = self._extend_kinematics(coordinates, speeds, group)
        if group:
            frames[1] = make_rotations_length_independent([frames[1]], [group], coordinates)[0]
        added = (*coordinates[len(mechanism.q) :], *speeds[len(mechanism.u) :], *accelerations[len(mechanism.u) :])
        declarations = mechanism.declared
        declared = replace(
            declarations,
            parameters=(*declarations.parameters, *self.parameters),
            coordinates=(*declarations.coordinates, *(declaration for _, declaration, _ in flange.q)),
            speeds=(*declarations.speeds, *(declaration for _, declaration in flange.u)),
        )
        forces = (*mechanism.potential_forces, *[sm.S.Zero] * len(flange.u)) if mechanism.potential_forces else ()
        time_functions = {symbol: sm.Function(symbol.name)(mechanism.t) for symbol in added}
        return replace(
            mechanism, declared=declared, q=coordinates, u=speeds, u_dot=accelerations,
            p=(*mechanism.p, *(parameter.symbol for parameter in self.parameters)),
            u_independent=(*mechanism.u_independent, *range(len(mechanism.u), len(speeds))), quaternions=quaternions,
            kinematics=kinematics, dynamic={**mechanism.dynamic, **time_functions}, frames=tuple(frames),
            points=tuple(points), bodies=tuple(bodies), loads=tuple(loads),
            joints=tuple(replace(joint, point=inner.new_point_number(joint.point), axis=None)
                         for joint in mechanism.joints),
            potential_forces=forces, velocity_constraints=self._widen_constraints(len(flange.u)),
            force_applications=tuple(tuple(self._renumber_application(inner, outer, application) for application in row)
                       for row in mechanism.force_applications),
            outputs=(), loop_closed_forms=(), appearance=None, flexible_bodies=(),
        )  # fmt: skip

    def _list_frames(self, inner: RenumberedFramesAndPoints, outer: RenumberedFramesAndPoints) -> list[Frame]:
        """Return the ground's frame, the flange's, and the others with new numbers."""
        frames, has_free_rotations = self.joint.mechanism.frames, bool(self.joint.free_rotations)
        rotation = self.flange_side.rotation if has_free_rotations else sm.ImmutableMatrix.eye(3)
        angular_velocity = ((0, self.flange_side.omega),) if has_free_rotations else ()
        flange_frame = Frame(f"{self.joint.identifier}_flange", 0, rotation, 0, angular_velocity)
        renumbered_frames = [(outer if number in self.joint.outer_frames else inner).renumber_frame(frames[number])
                      for number in range(1, len(frames))]  # fmt: skip
        return [frames[0], flange_frame, *renumbered_frames]

    def _list_points(self, inner: RenumberedFramesAndPoints, outer: RenumberedFramesAndPoints) -> list[KinematicPoint]:
        """Return the origin, the flange's point, and the others with new numbers."""
        points, position = self.joint.mechanism.points, ((0, self.flange_side.position),)
        flange_point = KinematicPoint(f"{self.joint.identifier}_flange", 0, position, None, located=True)
        renumbered_points = [(outer if number in self.joint.outer_points else inner).renumber_point(points[number])
                      for number in range(1, len(points))]  # fmt: skip
        return [points[0], flange_point, *renumbered_points]

    def _renumber_application(
        self,
        inner: RenumberedFramesAndPoints,
        outer: RenumberedFramesAndPoints,
        application: ConstraintForceApplication,
    ) -> ConstraintForceApplication:
        """Return a force application with new numbers: those of the side of the joint that it is on."""
        is_outer = application.point_or_frame in (
            self.joint.outer_frames if application.is_torque else self.joint.outer_points
        )
        return (outer if is_outer else inner).renumber_application(application)

    def _widen_constraints(self, added_columns: int) -> VelocityConstraints | None:
        """Return the velocity constraints with zero columns for the flange's speeds."""
        constraints = self.joint.mechanism.velocity_constraints
        if constraints is None:
            return None
        widened_jacobian = sm.ImmutableMatrix(
            sm.Matrix(constraints.jacobian).row_join(sm.zeros(len(constraints.names), added_columns))
        )
        return replace(constraints, jacobian=widened_jacobian)

    def _extend_kinematics(
        self, coordinates: Sequence[sm.Symbol], all_speeds: Sequence[sm.Symbol], group: QuaternionGroup | None
    ) -> KinematicEquations:
        """Return K and k0 with the flange's rows and columns added; a quaternion is kept at unit length."""
        mechanism, flange = self.joint.mechanism, self.flange
        speeds = [speed for speed, _ in flange.u]
        block = (
            sm.Matrix([[sm.diff(rate, speed) for speed in speeds] for _, _, rate in flange.q])
            if flange.q
            else sm.zeros(0, 0)
        )
        matrix = sm.ImmutableMatrix(sm.diag(sm.Matrix(mechanism.kinematics.matrix), block))
        offset = sm.ImmutableMatrix(sm.Matrix(mechanism.kinematics.offset).col_join(sm.zeros(len(flange.q), 1)))
        kinematics = KinematicEquations(matrix, offset)
        return stabilize_quaternion_length(kinematics, [group], coordinates, all_speeds) if group else kinematics

    def _list_power_outputs(
        self, wrenches: tuple[list[sm.Expr], ...]
    ) -> tuple[list[ExpressionOutput], dict[str, sm.Symbol], tuple[tuple[str, ...], ...]]:
        """Return force and velocity of both sides along each axis: the power over the joint."""
        outputs: list[ExpressionOutput] = []
        output_states: dict[str, sm.Symbol] = {}
        joint_powers: list[tuple[str, ...]] = []
        sides = (("inner", self.inner_side, self.inner_state), ("outer", self.flange_side, self.flange_state))
        for is_rotation, letters, units, axes in (
            (0, "fv", ("N", "m/s"), self.joint.free_translations),
            (1, "mw", ("N.m", "rad/s"), self.joint.free_rotations),
        ):
            for axis in axes:
                names = []
                for side_index, (side, joint_side, state) in enumerate(sides):
                    effort = wrenches[2 * side_index + is_rotation][axis]
                    flow = (joint_side.omega if is_rotation else joint_side.velocity)[axis]
                    for letter, unit, expression in zip(letters, units, (effort, flow), strict=True):
                        name = f"{self.joint.identifier}_{side}_{letter}{AXES[axis]}"
                        outputs.append(ExpressionOutput(name=name, unit=unit, expression=expression))
                        output_states[name] = state
                        names.append(name)
                joint_powers.append((f"{self.joint.name}, {letters[0]}{AXES[axis]}", *names))
        return outputs, output_states, tuple(joint_powers)
