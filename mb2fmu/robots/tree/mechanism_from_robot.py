"""From ``RobotMechanics`` straight to ``Mechanism`` records, without SymPy's frames and points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations, SymbolAssignment
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    Components,
    ForceLoad,
    Frame,
    KinematicPoint,
    Load,
    Mechanism,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import InverseDynamicsRequest, Joint
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import (
    QuaternionGroup,
    make_rotations_length_independent,
    stabilize_quaternion_length,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    DynamicsymbolMap,
    coordinate_rates,
    plain_symbols,
)
from mb2fmu.mechanics.mechanism.sympy_import.declared_event_import import read_declared_events
from mb2fmu.mechanics.mechanism.sympy_import.output_import import SympySourceObjectRecordNumbers, read_outputs
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.checks.expression_symbols import differentiate_by_time
from mb2fmu.model.model import OutputRequest
from mb2fmu.model.sources.record_based_mechanics import BodyReference, FrameReference, JointReference, NamedFramePoint
from mb2fmu.robots.description.robot_description import Array, Pose
from mb2fmu.robots.flexible_links.flexible_link_record_builder import FlexibleLinkRecordBuilder
from mb2fmu.robots.robot_appearance import FrameAndPointLookup, form_robot_appearance
from mb2fmu.robots.tree.articulated_tree import RigidLinkGroup
from mb2fmu.robots.tree.exact_sympy_components import (
    axis_rotation,
    axis_vector,
    exact_rotation_matrix,
    make_exact_sympy_number,
    read_constant_vector_components,
)
from mb2fmu.robots.tree.link_load_and_motion_records import make_motion_vector_symbols, read_link_loads
from mb2fmu.robots.tree.loop_constraint_rows import (
    LoopConstraintWriter,
    choose_independent_speeds,
    drop_trivial_constraint_rows,
    form_loop_velocity_constraints,
)
from mb2fmu.robots.tree.robot_contacts import add_contacts_and_latches
from mb2fmu.robots.tree.robot_mechanics_records import RobotJointSymbols, RobotMechanics


def make_robot_mechanism(definition: CheckedModel) -> Mechanism:
    """Return the mechanism of a checked model whose mechanics are a robot's."""
    mechanics = definition.mechanics
    assert isinstance(mechanics, RobotMechanics)
    return _RobotMechanismBuilder(definition, mechanics).read()


@dataclass
class _RobotMechanismBuilder:
    definition: CheckedModel
    robot: RobotMechanics
    frames: list[Frame] = field(default_factory=list)
    points: list[KinematicPoint] = field(default_factory=list)
    part_frame: list[int] = field(default_factory=list)  # part → number of the frame of its axes
    part_origin: list[int] = field(default_factory=list)  # part → number of its origin
    quaternions: list[QuaternionGroup] = field(default_factory=list)
    frame_of: dict[Any, int] = field(default_factory=dict)
    point_of: dict[Any, int] = field(default_factory=dict)
    body_of: dict[int, int] = field(default_factory=dict)  # part → number of its body
    K: dict[tuple[int, int], sm.Expr] = field(default_factory=dict)
    bending: FlexibleLinkRecordBuilder = field(init=False)
    inverse: bool = False  # the efforts along prescribed joints are requested

    def __post_init__(self) -> None:
        self.inverse = self.robot.settings.role == "inverse-dynamics"

    def read(self) -> Mechanism:
        """Return all records of the robot."""
        self._declare_symbols()
        self._read_parts()
        kinematics = self._form_kinematics()
        sensed = make_motion_vector_symbols(self.robot, self.find_number, self.plain)
        self._translate_rates(kinematics)
        if self.quaternions:
            self.frames = list(make_rotations_length_independent(self.frames, self.quaternions, self.q))
        bodies, loads = self._read_bodies()
        self._read_requests()
        loads += read_link_loads(self.robot, self.find_number, self.plain, self.body_of)
        scenery = form_robot_appearance(
            self.robot,
            FrameAndPointLookup(
                self._find_shape_frame, self.part_frame, self.part_origin, read_constant_vector_components
            ),
        )
        scenery = replace(
            scenery,
            bendings=tuple(self.bending.form_bendings(self.definition.appearance_items)),
            hidden_bodies=tuple(each.name for link in self.robot.flexible for each in link.body.particles),
        )
        d = self.definition
        records = replace(self._form_tree_records(kinematics, bodies, loads), motion_vectors=sensed, appearance=scenery)
        records = add_contacts_and_latches(self._add_loop_rows(records), d, self.plain)
        joints = [JointReference(part.moving_joint.name) for part in self.robot.tree.parts[1:]] if self.inverse else []
        named = _requested_bodies(d, {body.name: k for k, body in enumerate(bodies)})
        numbers = SympySourceObjectRecordNumbers(
            frames=self.frame_of, points=self.point_of, bodies=named, joints=joints
        )
        return replace(records, outputs=read_outputs(d, records, self.plain, numbers))

    def _form_tree_records(
        self, kinematics: KinematicEquations, bodies: Sequence[Body], loads: Sequence[Load]
    ) -> Mechanism:
        """Return the records of the tree alone, without loops, contacts and outputs."""
        d = self.definition
        return Mechanism(
            declared=d.declarations((), self.robot.kind),
            t=self.t,
            q=self.q,
            u=self.u,
            u_dot=self.u_dot,
            u_auxiliary=(),
            z=self.z,
            p=tuple(p.symbol for p in d.parameters if not p.calculated),
            r=self.r,
            calculated_parameters=tuple(SymbolAssignment(p.symbol, p.value) for p in d.parameters if p.calculated),
            constraint_forces=(),
            u_independent=tuple(range(len(self.u))),
            kinematics=kinematics,
            z_dot=tuple(self.plain(state.derivative) for state in d.auxiliary_states),
            frames=tuple(self.frames),
            points=tuple(self.points),
            bodies=tuple(bodies),
            loads=tuple(loads),
            given_potential=None if d.potential_energy is None else self.plain(d.potential_energy),
            spring_potential=self._form_spring_potential(),
            drive_forces=tuple(self._form_drive_forces()),
            known_potentials=tuple(self._list_strain_energies()),
            inputs_with_rates=self._list_inputs_with_rates(),
            prescribed=bool(self._list_inputs_with_rates()),
            potential_forces=tuple(self._form_generalized_forces()),
            quaternions=tuple(self.quaternions),
            events=read_declared_events(d, self.plain, {*self.q, *self.u, *self.z}),
            joints=self._form_joint_records() if self.inverse else (),
            inverse_dynamics=self._request_inverse_dynamics(),
        )

    def _add_loop_rows(self, records: Mechanism) -> Mechanism:
        """Return the records with the rows of all loops."""
        writer = LoopConstraintWriter(self.robot.tree, self.frames, self.points, self.part_frame, self.part_origin)
        rows = drop_trivial_constraint_rows([row for loop in self.robot.loops for row in writer.form_rows(loop)])
        if not rows:
            return records
        velocity = form_loop_velocity_constraints(rows, records.kinematics, self.q, self.u)
        start = {own: float(c.start) for own, c in zip(self.q, self.definition.coordinates, strict=True)}
        return replace(
            records,
            holonomic=tuple(rows),
            velocity_constraints=velocity,
            multipliers=tuple(sm.Symbol(f"lambda_{name.replace('.', '_')}") for name, _ in rows),
            force_applications=((),) * len(rows),
            u_independent=choose_independent_speeds(velocity, start),
        )

    # --- symbols -----------------------------------------------------------------------------------------------------

    def _declare_symbols(self) -> None:
        """Make a plain symbol for each function of time, and maps between both."""
        d = self.definition
        self.t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        taken = {p.symbol.name for p in d.parameters} | {str(self.t)}
        groups: list[Sequence[Any]] = [d.coordinates, d.speeds, d.auxiliary_states, d.inputs]
        users = [[item.symbol for item in group] for group in groups]
        self.q, self.u, self.z, self.r = (plain_symbols(group, taken) for group in users)
        self.u_dot = plain_symbols([sm.Symbol(f"{u.name}_d") for u in self.u], taken)
        pairs = [
            pair
            for user, own in zip(users, (self.q, self.u, self.z, self.r), strict=True)
            for pair in zip(user, own, strict=True)
        ]
        self.to_plain: dict[sm.Basic, sm.Expr] = dict(pairs)
        self.to_dynamic: dict[sm.Basic, sm.Expr] = {own: user for user, own in pairs}
        forces = d.unilateral_forces
        self.to_plain.update(zip(forces, plain_symbols(forces, taken), strict=True))
        self.to_dynamic |= {self.to_plain[force]: force for force in forces}
        self.plain = DynamicsymbolMap(self.to_plain, self.to_dynamic)
        self._of_q = {q: k for k, q in enumerate(self.q)}
        self._of_u = {u: j for j, u in enumerate(self.u)}

    def _translate_rates(self, kinematics: KinematicEquations) -> None:
        """Translate q', q'', u' and z' to plain symbols."""
        d, u_dot = self.definition, dict(zip(self.u, self.u_dot, strict=True))
        simple = not self.quaternions
        for c, rate in zip(d.coordinates, coordinate_rates(kinematics, self.u), strict=True):
            self.to_plain[differentiate_by_time(c.symbol)] = rate
            if rate in u_dot or simple:
                self.to_plain[differentiate_by_time(c.symbol, 2)] = rate.xreplace(u_dot)
        for s, dot in zip(d.speeds, self.u_dot, strict=True):
            self.to_plain[differentiate_by_time(s.symbol)] = dot
        rates = {differentiate_by_time(s.symbol): s.derivative for s in d.auxiliary_states}
        for _ in rates:
            rates = {user: rate.xreplace(rates) for user, rate in rates.items()}
        self.to_plain |= {user: rate.xreplace(self.to_plain) for user, rate in rates.items()}

    def _list_inputs_with_rates(self) -> tuple[tuple[sm.Symbol, sm.Symbol], ...]:
        """Return prescribed coordinates and speeds, each with its time derivative."""
        pairs = []
        for variables in self.robot.variables.values():
            if variables.prescribed is not None:
                a, v, w = (self.to_plain[symbol] for symbol in variables.prescribed)
                pairs += [(a, v), (v, w)]
        return tuple(pairs)

    # --- parts -------------------------------------------------------------------------------------------------------

    def _read_parts(self) -> None:
        """Make frames and points of all parts, from the ground outwards."""
        ground = self.robot.ground
        self.frames = [Frame(ground, -1, sm.ImmutableMatrix.eye(3), 0, ())]
        self.points = [KinematicPoint(ground, -1, None, (), located=True)]
        self.part_frame, self.part_origin = [0], [0]
        self.bending = FlexibleLinkRecordBuilder(self.frames, self.points, self.plain)
        self._place_flexible_links(0)
        for i, part in enumerate(self.robot.tree.parts[1:], 1):
            if part.section:
                link = next(each for each in self.robot.flexible if each.name == part.section[0])
                frame, origin = self.bending.add_section(link, part.section[1])
                self.part_frame.append(frame)
                self.part_origin.append(origin)
                continue
            before = self._make_fixed_frame(
                f"{part.name} before {part.moving_joint.name}", self.part_frame[part.parent], part.parent_rotation
            )
            start = self._add_fixed_point(part.moving_joint.name, part.parent, part.parent_rotation.position)
            self._read_joint(i, part, before, start)
            self._place_flexible_links(i)

    def _place_flexible_links(self, i: int) -> None:
        """Place the frames of links of a part that bend."""
        for link in self.robot.flexible:
            part, pose = self.robot.tree.location_of_link[link.name]
            if part == i:
                at = pose @ link.pose
                frame = self._make_fixed_frame(link.body.frame().name, self.part_frame[i], at)
                self.bending.place_link(link, frame, self._add_fixed_point(link.name, i, at.position))

    def _make_fixed_frame(self, name: str, parent: int, pose: Pose) -> int:
        """Return a frame that never turns against its parent; the parent itself where it has the same axes."""
        if np.array_equal(pose.rotation, np.eye(3)):
            return parent
        self.frames.append(Frame(name, parent, exact_rotation_matrix(pose.rotation), parent, ()))
        return len(self.frames) - 1

    def _find_shape_frame(self, part: int, pose: Pose) -> int:
        """Return the frame of a shape that is fixed on a part."""
        return self._make_fixed_frame(f"shape {len(self.frames)}", self.part_frame[part], pose)

    def _add_fixed_point(self, name: str, part: int, position: Array) -> int:
        """Add a point that is fixed on a part, and return its number."""
        terms: VectorTerms = (
            ((self.part_frame[part], read_constant_vector_components(position)),) if np.any(position) else ()
        )
        self.points.append(KinematicPoint(name, self.part_origin[part], terms, None, located=True))
        return len(self.points) - 1

    def _read_joint(self, i: int, part: RigidLinkGroup, before: int, start: int) -> None:
        """Make the frame and point behind a joint, by its kind."""
        match part.moving_joint.kind:
            case "revolute":
                self._add_hinge_frame(part, before, *self._express_joint_motion(part))
                self.part_origin.append(start)
            case "prismatic":
                position, _ = self._express_joint_motion(part)
                self.part_frame.append(before)
                self._add_displaced_point(
                    part, before, start, axis_vector(part.axis, position if part.sign > 0 else -position)
                )
            case "planar":
                x, y, angle = map(self.plain, self.robot.variables[i].q)
                self._add_hinge_frame(part, before, angle, self.plain(self.robot.variables[i].u[2]))
                self._add_displaced_point(part, before, start, (x, y, sm.S.Zero))
            case "floating":
                variables = self.robot.variables[i]
                self._add_quaternion(part, before, variables, 3)
                self._add_floating_origin(part, before, start, variables)
            case "ball":
                self._add_quaternion(part, before, self.robot.variables[i], 0)
                self.part_origin.append(start)

    def _express_joint_motion(self, part: RigidLinkGroup) -> tuple[sm.Expr, sm.Expr]:
        """Return position and speed of a joint with one coordinate, perhaps another joint's."""
        assert part.coordinate is not None
        owner, factor, offset = part.coordinate
        variables = self.robot.variables[owner]
        if variables.prescribed is not None:
            q, u = map(self.plain, variables.prescribed[:2])
        else:
            q, u = self.plain(variables.q[0]), self.plain(variables.u[0])
        return make_exact_sympy_number(factor) * q + make_exact_sympy_number(offset), make_exact_sympy_number(
            factor
        ) * u

    def _add_hinge_frame(self, part: RigidLinkGroup, before: int, angle: sm.Expr, rate: sm.Expr) -> None:
        """Add a frame that turns about one coordinate axis, by an angle in rad."""
        c, s = sm.cos(angle), sm.sin(angle) if part.sign > 0 else -sm.sin(angle)
        rotation = axis_rotation(part.axis, c, s)
        omega = axis_vector(part.axis, rate if part.sign > 0 else -rate)
        number_ = len(self.frames)
        self.frames.append(Frame(part.name, before, rotation, before, ((number_, omega),)))
        self.part_frame.append(number_)

    def _add_displaced_point(self, part: RigidLinkGroup, before: int, start: int, by: Components) -> None:
        """Add a point displaced along the axes of a frame, in m."""
        self.points.append(KinematicPoint(part.name, start, ((before, by),), None, located=True))
        self.part_origin.append(len(self.points) - 1)

    def _add_quaternion(self, part: RigidLinkGroup, before: int, variables: RobotJointSymbols, first: int) -> None:
        """Add a quaternion: e' = E(e) ω / 2 (A. A. Shabana, Dynamics of Multibody Systems, 2013, ch. 2)."""
        w, x, y, z = e = [self.plain(q) for q in variables.q[first : first + 4]]
        omega = [self.plain(u) for u in variables.u[first : first + 3]]
        rotation = sm.ImmutableMatrix(
            [
                [w**2 + x**2 - y**2 - z**2, 2 * x * y - 2 * w * z, 2 * w * y + 2 * x * z],
                [2 * w * z + 2 * x * y, w**2 - x**2 + y**2 - z**2, 2 * y * z - 2 * w * x],
                [2 * x * z - 2 * w * y, 2 * w * x + 2 * y * z, w**2 - x**2 - y**2 + z**2],
            ]
        )
        number_ = len(self.frames)
        turn: Components = (omega[0], omega[1], omega[2])
        self.frames.append(Frame(part.name, before, rotation, before, ((number_, turn),)))
        self.part_frame.append(number_)
        rows = [self._of_q[c] for c in e]
        self.quaternions.append((rows[0], rows[1], rows[2], rows[3]))
        half = sm.Rational(1, 2)
        E = ((-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w))
        for k, row in zip(rows, E, strict=True):
            for entry, speed in zip(row, omega, strict=True):
                self.K[k, self._of_u[speed]] = half * entry

    def _add_floating_origin(self, part: RigidLinkGroup, before: int, start: int, variables: RobotJointSymbols) -> None:
        """Add the origin of a floating part; its velocity is written along the part's own axes."""
        frame = self.part_frame[-1]
        x, y, z = map(self.plain, variables.q[:3])
        velocity = [self.plain(u) for u in variables.u[:3]]
        square = sm.Add(*(self.plain(c) ** 2 for c in variables.q[3:]))
        rotation = self.frames[frame].rotation / square
        for i, coordinate in enumerate((x, y, z)):
            for j, speed in enumerate(velocity):
                self.K[self._of_q[coordinate], self._of_u[speed]] = rotation[i, j]
        given: VectorTerms = ((frame, (velocity[0], velocity[1], velocity[2])),)
        free = part.parent == 0
        self.points.append(
            KinematicPoint(part.name, start, ((before, (x, y, z)),), given if free else None, located=True)
        )
        self.part_origin.append(len(self.points) - 1)

    def _form_kinematics(self) -> KinematicEquations:
        """Return q' = K u + k0; quaternions are stabilized at unit length."""
        for variables in self.robot.variables.values():
            for q, u in zip(variables.q, variables.u, strict=False):
                row = self._of_q[self.to_plain[q]]
                if len(variables.q) == len(variables.u):
                    self.K[row, self._of_u[self.to_plain[u]]] = sm.S.One
        for body in (link.body for link in self.robot.flexible):
            for q, u in zip(body.q, body.u, strict=True):
                self.K[self._of_q[self.to_plain[q]], self._of_u[self.to_plain[u]]] = sm.S.One
        n_q, n_u = len(self.q), len(self.u)
        K = sm.ImmutableMatrix(sm.SparseMatrix(n_q, n_u, self.K))
        kinematics = KinematicEquations(K, sm.ImmutableMatrix.zeros(n_q, 1))
        if not self.quaternions:
            return kinematics
        return stabilize_quaternion_length(kinematics, self.quaternions, self.q, self.u)

    # --- bodies and loads --------------------------------------------------------------------------------------------

    def _read_bodies(self) -> tuple[list[Body], list[Load]]:
        """Return bodies, their weights, and the rotors that are geared to joints."""
        bodies: list[Body] = []
        loads: list[Load] = []
        for i, part in enumerate(self.robot.tree.parts[1:], 1):
            inertial = part.body_inertia
            if inertial is None:
                if self.inverse:  # efforts are passed from body to body
                    self.body_of[i] = len(bodies)
                    bodies.append(
                        Body(part.name, self.part_origin[i], self.part_frame[i], sm.S.Zero, sm.zeros(3).as_immutable())
                    )
                continue
            center = self._add_fixed_point(f"mass centre of {part.name}", i, inertial.center)
            mass = sm.Rational(inertial.mass)  # exact: the weight divided by it is gravity again
            self.body_of[i] = len(bodies)
            bodies.append(Body(part.name, center, self.part_frame[i], mass, exact_rotation_matrix(inertial.inertia)))
            if any(g != 0 for g in self.robot.gravity):
                loads.append(self._form_weight(bodies[-1]))
        if self.inverse:
            return bodies, loads
        for link in self.robot.flexible:
            own, first = list(self.bending.form_bodies(link)), len(bodies)
            bodies += own
            loads += [self._form_weight(body) for body in own if any(g != 0 for g in self.robot.gravity)]
            loads += self.bending.form_loads(link, first)
            for i, part in enumerate(self.robot.tree.parts):
                if (part.section or ("", 0))[0] == link.name or link.name in dict(part.links):
                    self.body_of.setdefault(i, first)
        bodies += [
            rotor for i in range(1, len(self.robot.tree.parts)) if (rotor := self._form_geared_rotor(i)) is not None
        ]
        return bodies, loads

    def _form_weight(self, body: Body) -> ForceLoad:
        """Return the weight of a body."""
        x, y, z = (body.mass * g for g in self.robot.gravity)
        return ForceLoad(f"weight of {body.name}", body.masscenter, ((0, (x, y, z)),))

    def _form_geared_rotor(self, i: int) -> Body | None:
        """Return a joint's rotor as felt at the joint: it turns about the ground's z axis with the joint's speed."""
        part = self.robot.tree.parts[i]
        joint = part.moving_joint
        if not joint.armature:
            return None
        inertia = sm.ImmutableMatrix(sm.diag(*[joint.armature] * 3))
        if part.coordinate is None:
            return self._form_ball_rotors(i, inertia)
        if part.coordinate[0] in self.robot.variables and self.robot.variables[part.coordinate[0]].prescribed:
            return None
        position, rate = self._express_joint_motion(part)
        rotation = axis_rotation(2, sm.cos(position), sm.sin(position))
        frame = len(self.frames)
        self.frames.append(Frame(f"rotor of {joint.name}", 0, rotation, 0, ((frame, axis_vector(2, rate)),)))
        return Body(f"rotor of {joint.name}", 0, frame, sm.S.Zero, inertia)

    def _form_ball_rotors(self, i: int, inertia: sm.ImmutableMatrix) -> Body:
        """Return the rotors of a ball joint: equal inertias about all axes turn with the child against its parent."""
        name, own = f"rotors of {self.robot.tree.parts[i].moving_joint.name}", self.frames[self.part_frame[i]]
        _, omega = own.angular_velocity[0]
        frame = len(self.frames)
        self.frames.append(Frame(name, 0, own.rotation, 0, ((frame, omega),)))
        return Body(name, 0, frame, sm.S.Zero, inertia)

    def _form_joint_records(self) -> tuple[Joint, ...]:
        """Return every joint between two bodies (part i is body i − 1), with efforts of springs, damper and rotor."""
        found = []
        for i, part in enumerate(self.robot.tree.parts[1:], 1):
            assert part.coordinate is not None, "inverse dynamics refuse joints with several"
            owner, factor, _ = part.coordinate
            joint, prescribed = part.moving_joint, self.robot.variables[owner].prescribed
            assert prescribed is not None
            position, speed = self._express_joint_motion(part)
            passive = make_exact_sympy_number(joint.armature * factor) * self.plain(prescribed[2])
            passive += make_exact_sympy_number(joint.stiffness) * (
                position - make_exact_sympy_number(joint.spring_reference)
            )
            if i in self.robot.damping:
                passive += self.robot.damping[i] * speed
            passive -= self.plain(self.robot.actuator_efforts.get(joint.name, sm.S.Zero))
            axis = (self.part_frame[i], axis_vector(part.axis, sm.Integer(1 if part.sign > 0 else -1)))
            turns = joint.kind == "revolute"
            at = (joint.name, part.parent - 1, i - 1, self.part_origin[i])
            found.append(Joint(*at, axis, turns, make_exact_sympy_number(factor), passive))
        return tuple(found)

    def _request_inverse_dynamics(self) -> InverseDynamicsRequest | None:
        """Return the request of ``inverse_effort``."""
        desired = self.robot.desired_accelerations
        return (
            InverseDynamicsRequest(tuple(map(self.plain, desired)), tuple(self._form_generalized_forces(drives=False)))
            if desired
            else None
        )

    def _form_generalized_forces(self, *, drives: bool = True) -> list[sm.Expr]:
        """Return generalized forces along the speeds: efforts, dampers and springs, followers included."""
        rows: list[list[sm.Expr]] = [[] for _ in self.u]
        for i, part in enumerate(self.robot.tree.parts[1:], 1):
            joint = part.moving_joint
            if part.section:
                continue
            if part.coordinate is None:
                self._add_free_efforts(i, rows)
                continue
            owner, factor, _ = part.coordinate
            variables = self.robot.variables[owner]
            if variables.prescribed is not None:
                continue
            row = rows[self._of_u[self.to_plain[variables.u[0]]]]
            position, speed = self._express_joint_motion(part)
            own = self.robot.variables.get(i)
            forces = [-self.robot.damping[i] * speed] if i in self.robot.damping else []
            if joint.stiffness:
                forces.append(
                    -make_exact_sympy_number(joint.stiffness)
                    * (position - make_exact_sympy_number(joint.spring_reference))
                )
            if drives and own and own.effort is not None:
                forces.append(self.plain(own.effort))
            laws = self.robot.actuator_efforts if drives else self.robot.passive_efforts
            added = [*(self.robot.efforts.get(joint.name, ()) if drives else ()), laws.get(joint.name, sm.S.Zero)]
            forces += [self.plain(e) for e in added]
            row += [make_exact_sympy_number(factor) * force for force in forces]
        return [sm.Add(*row) for row in rows]

    def _form_drive_forces(self) -> list[sm.Expr]:
        """Return what actuators add to the generalized forces: all of them less those of springs and dampers."""
        actuators, passive, rows = self.robot.actuator_efforts, self.robot.passive_efforts, [sm.S.Zero for _ in self.u]
        for part in self.robot.tree.parts[1:]:
            if part.coordinate is not None and self.robot.variables[part.coordinate[0]].prescribed is None:
                name, (owner, factor, _) = part.moving_joint.name, part.coordinate
                effort = self.plain(actuators.get(name, sm.S.Zero) - passive.get(name, sm.S.Zero))
                row = self._of_u[self.to_plain[self.robot.variables[owner].u[0]]]
                rows[row] += make_exact_sympy_number(factor) * effort
        return rows

    def _form_spring_potential(self) -> sm.Expr:
        """Return the potential energy of the springs along joints and fixed tendons, J.

        A spring k about q0: k (q − q0)²/2. A tendon that is slack between two lengths stores nothing there. Springs of
        joints that move as prescribed act on no speed, and are left out.
        """
        positions, energies = {}, []
        for part in self.robot.tree.parts[1:]:
            joint = part.moving_joint
            if part.coordinate is None or self.robot.variables[part.coordinate[0]].prescribed is not None:
                continue
            positions[joint.name] = self._express_joint_motion(part)[0]
            stretch = positions[joint.name] - make_exact_sympy_number(joint.spring_reference)
            energies.append(make_exact_sympy_number(joint.stiffness) * stretch**2 / 2)
        for tendon in self.robot.description.tendons:
            if not tendon.stiffness or not all(name in positions for name, _ in tendon.terms):
                continue
            length = sm.Add(*(make_exact_sympy_number(factor) * positions[name] for name, factor in tendon.terms))
            short, long = map(make_exact_sympy_number, tendon.rest)
            stretches = [length - short] if short == long else [sm.Max(0, length - long), sm.Min(0, length - short)]
            energies += [make_exact_sympy_number(tendon.stiffness) * stretch**2 / 2 for stretch in stretches]
        return sm.Add(*energies)

    def _list_strain_energies(self) -> Iterator[tuple[frozenset[str], sm.Expr]]:
        """Yield names of the elastic loads of each link that bends, and its strain energy, J."""
        for link in self.robot.flexible:
            names = {load.name for load in self.bending.form_loads(link, -1)}
            yield frozenset(names), self.plain(link.body.strain_energy)

    def _add_free_efforts(self, i: int, rows: Sequence[list[sm.Expr]]) -> None:
        """Add damping of joints with several speeds."""
        variables = self.robot.variables[i]
        for u in variables.u if i in self.robot.damping else ():
            speed = self.to_plain[u]
            rows[self._of_u[speed]].append(-self.robot.damping[i] * speed)

    # --- what outputs request ----------------------------------------------------------------------------------------

    def _read_requests(self) -> None:
        """Number all frames and points that outputs request, so that they are kept."""
        for request in self.definition.outputs:
            if isinstance(request, OutputRequest):
                for item in (*request.subject, request.relative_to, request.expressed_in):
                    self.find_number(item)

    def find_number(self, item: object) -> int:
        """Return the number of a requested frame or point, which is made at the first request; -1: neither."""
        if isinstance(item, FrameReference) and item not in self.frame_of:
            part, pose = self._locate_on_part(item.name)
            self.frame_of[item] = self._make_fixed_frame(item.name, self.part_frame[part], pose)
        elif isinstance(item, NamedFramePoint) and item not in self.point_of:
            part, pose = self._locate_on_part(item.frame)
            position = pose.position + pose.rotation @ np.array(item.offset)
            self.point_of[item] = self._add_fixed_point(item.name, part, position)
        return self.frame_of.get(item, self.point_of.get(item, -1))

    def _locate_on_part(self, name: str) -> tuple[int, Pose]:
        """Return the part that carries a link or the ground, and the link's pose on it."""
        return (0, Pose()) if name == self.robot.ground else self.robot.tree.location_of_link[name]


def _requested_bodies(definition: CheckedModel, numbers: Mapping[str, int]) -> dict[int, int]:
    """Return the id of each body that an output names → its number."""
    requests = [item for item in definition.outputs if isinstance(item, OutputRequest)]
    return {id(body): numbers[body.name] for r in requests for body in r.subject if isinstance(body, BodyReference)}
