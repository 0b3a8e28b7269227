"""A Pinocchio model out of a Mechanism's records: joints found from rotations and positions alone, loads as wrenches.

Nothing of mb2fmu's kinematics is used: of every frame only its direction cosines in its parent, of every point only its
position from its parent. Angular velocities, velocities and partials of the records stay out of it.
"""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import sympy as sm
from mechanisms import State
from scipy.spatial.transform import Rotation

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, TorqueActuatorLoad, TorqueLoad

Place = tuple[int, int]
"""A point, and up to which term of its position."""


class PinocchioModel:
    """The same mechanism by Pinocchio: trees of revolute and prismatic steps, no constraints.

    Args:
        mechanism: Every coordinate moves one step; a body without mass that turns in N by the angle of a joint (a
            motor's flywheel) becomes armature.
        parameters: Values of the free parameters.
    """

    def __init__(self, mechanism: Mechanism, parameters: np.ndarray) -> None:
        m = self.mechanism = mechanism
        self._values = dict(zip(m.p, map(float, parameters), strict=True))
        for a in m.calculated_parameters:
            self._values[a.symbol] = float(a.expression.xreplace(self._values))
        self.model = pin.Model()
        self.model.gravity.setZero()  # weights are loads, as in the records
        self._joint_of: dict[sm.Symbol, int] = {}
        self._nodes: dict[tuple[Place, int], tuple[int, pin.SE3]] = {((0, 0), 0): (0, pin.SE3.Identity())}
        self._armature: dict[sm.Symbol, float] = {}
        for body in m.bodies:
            self._add_body(body)
        loads = [load.point for load in m.loads if isinstance(load, ForceLoad)]
        self._point_node = {point: self._node(point) for point in loads}
        self.data = self.model.createData()
        self._columns = [self.model.joints[self._joint_of[q]].idx_v for q in m.q]
        for q, inertia in self._armature.items():
            self.model.armature[self.model.joints[self._joint_of[q]].idx_v] = inertia
        self._prepare_speeds()
        self._prepare_loads()

    def accelerations(self, state: State) -> np.ndarray:
        """u' of all speeds, by the articulated-body algorithm."""
        q, q_dot, q_ddot_of = self._speeds(state)
        q_ddot = pin.aba(self.model, self.data, q, q_dot, np.zeros(self.model.nv), self._wrenches(state, q))
        return q_ddot_of(np.array(q_ddot)[self._columns])

    def condition(self, state: State) -> float:
        """Of the mass matrix for q''."""
        q, _, _ = self._speeds(state)
        M = np.triu(pin.crba(self.model, self.data, q))
        M = M + np.triu(M, 1).T + np.diag(self.model.armature)
        return float(np.linalg.cond(M))

    # ------------------------------------------------------------------ the tree

    def _add_body(self, body) -> None:
        mass = self._number(body.mass)
        if body.frame >= 0 and mass == 0 and body.masscenter == 0:
            frame = self.mechanism.frames[body.frame]
            (q,) = frame.rotation.free_symbols & set(self.mechanism.q)
            axis = self._axis(frame.rotation, q)
            inertia = np.array(body.inertia.xreplace(self._values).tolist(), dtype=float)
            self._armature[q] = float(axis @ inertia @ axis)
            return
        joint, place = self._node(body.masscenter, body.frame if body.frame >= 0 else None)
        inertia = np.zeros((3, 3))
        if body.inertia is not None:
            inertia = np.array(body.inertia.xreplace(self._values).tolist(), dtype=float)
        self.model.appendBodyToJoint(joint, pin.Inertia(mass, np.zeros(3), inertia), place)

    def _node(self, point: int, frame: int | None = None) -> tuple[int, pin.SE3]:
        """Joint and placement on it of a point, in the frame that its position is written in, or in a given one."""
        m = self.mechanism
        path = []
        while point > 0:
            path.append(point)
            point = m.points[point].parent
        at, current = (0, 0), 0
        for number in reversed(path):
            # terms of frames nearer to N come first; one that vanishes moves nothing
            for k, (turned, components) in enumerate(sorted(m.points[number].position or (), key=lambda term: term[0])):
                if any(c != 0 for c in components):
                    self._turn(at, current, turned)
                    self._shift(at, (number, k), turned, sm.Matrix(components))
                    at, current = (number, k), turned
        target = current if frame is None else frame
        self._turn(at, current, target)
        return self._nodes[at, target]

    def _turn(self, at: Place, frame: int, target: int) -> None:
        """Adds the steps from one frame to one further out, at a point."""
        m = self.mechanism
        path = []
        while target != frame:
            assert target > 0, "a position goes back to a frame nearer to N"
            path.append(target)
            target = m.frames[target].parent
        for number in reversed(path):
            if (at, number) not in self._nodes:
                joint, place = self._nodes[at, m.frames[number].parent]
                self._nodes[at, number] = self._rotated(joint, place, m.frames[number].rotation)

    def _rotated(self, joint: int, place: pin.SE3, rotation: sm.Matrix) -> tuple[int, pin.SE3]:
        """R(q1, …) as R(0) exp(a1 q1) exp(a2 q2) …, in the order that fits at a random point."""
        moving = sorted(rotation.free_symbols & set(self.mechanism.q), key=str)
        matrix = sm.lambdify(moving, rotation.xreplace(self._values), modules="numpy")
        zero = np.array(matrix(*[0.0] * len(moving)), dtype=float)
        axes = {q: self._axis(rotation, q) for q in moving}
        angles = dict(zip(moving, np.random.default_rng(1).uniform(0.2, 0.9, len(moving)), strict=True))
        wanted = np.array(matrix(*angles.values()), dtype=float)
        for order in itertools.permutations(moving):
            product = zero
            for q in order:
                product = product @ Rotation.from_rotvec(axes[q] * angles[q]).as_matrix()
            if np.allclose(product, wanted, atol=1e-12):
                break
        else:
            raise AssertionError(f"not a sequence of turns: {rotation}")
        place = place * pin.SE3(zero, np.zeros(3))
        for q in order:
            joint, place = self._join(q, pin.JointModelRevoluteUnaligned(axes[q]), joint, place)
        return joint, place

    def _axis(self, rotation: sm.Matrix, q: sm.Symbol) -> np.ndarray:
        """Of the turn by q alone, in the turned frame."""
        still = dict.fromkeys(rotation.free_symbols & set(self.mechanism.q), 0)
        zero, one = (
            np.array(rotation.xreplace(still | {q: angle}).xreplace(self._values).tolist(), dtype=float)
            for angle in (0, 1)
        )
        turn = Rotation.from_matrix(zero.T @ one).as_rotvec()
        assert abs(np.linalg.norm(turn) - 1) < 1e-12, "q is an angle about an axis"
        return turn

    def _shift(self, before: Place, at: Place, frame: int, vector: sm.Matrix) -> None:
        """Adds the steps along a vector in a frame, linear in the coordinates."""
        if (at, frame) in self._nodes:
            return
        joint, place = self._nodes[before, frame]
        moving = sorted(vector.free_symbols & set(self.mechanism.q), key=str)
        for q in moving:
            axis = np.array(vector.diff(q).xreplace(self._values).tolist(), dtype=float).ravel()
            assert abs(np.linalg.norm(axis) - 1) < 1e-12, "q is a distance along an axis"
            joint, place = self._join(q, pin.JointModelPrismaticUnaligned(axis), joint, place)
        offset = vector.xreplace(dict.fromkeys(moving, 0)).xreplace(self._values)
        self._nodes[at, frame] = joint, place * pin.SE3(np.eye(3), np.array(offset.tolist(), dtype=float).ravel())

    def _join(self, q: sm.Symbol, kind, joint: int, place: pin.SE3) -> tuple[int, pin.SE3]:
        assert q not in self._joint_of, f"{q} moves two steps"
        self._joint_of[q] = self.model.addJoint(joint, kind, place, str(q))
        return self._joint_of[q], pin.SE3.Identity()

    def _number(self, expression: sm.Expr) -> float:
        return float(sm.sympify(expression).xreplace(self._values))

    # ------------------------------------------------------------------ speeds and loads

    def _prepare_speeds(self) -> None:
        """q' = K u + k0, and its rate at u' = 0, from the records' kinematic equations."""
        m = self.mechanism
        rates = m.kinematics.matrix * sm.Matrix(m.u) + m.kinematics.offset
        drift = rates.jacobian(list(m.q)) * rates + rates.diff(m.t)
        arguments = [m.t, *m.q, *m.u, *self._values]
        self._evaluate = sm.lambdify(arguments, [m.kinematics.matrix, rates, drift], cse=True)

    def _speeds(self, state: State):
        m, n_q = self.mechanism, len(self.mechanism.q)
        K, rates, drift = self._evaluate(state.t, *state.x[: n_q + len(m.u)], *self._values.values())
        q, v = np.zeros(self.model.nq), np.zeros(self.model.nv)
        q[self._columns], v[self._columns] = state.x[:n_q], np.ravel(rates)
        K, drift = np.array(K, dtype=float), np.ravel(drift).astype(float)
        return q, v, lambda q_ddot: np.linalg.solve(K, q_ddot - drift)

    def _prepare_loads(self) -> None:
        """(frame, components) of every force and torque, as one function; where each acts."""
        m = self.mechanism
        self._acting: list[tuple[int | None, int | None, float, list[int]]] = []
        components: list[sm.Expr] = []
        for load in m.loads:
            if isinstance(load, ForceLoad):
                self._acting.append((load.point, None, 1.0, [frame for frame, _ in load.force]))
                components += [c for _, cs in load.force for c in cs]
            elif isinstance(load, TorqueLoad):
                self._acting.append((None, load.frame, 1.0, [frame for frame, _ in load.torque]))
                components += [c for _, cs in load.torque for c in cs]
            else:
                assert isinstance(load, TorqueActuatorLoad), "no pathways"
                for frame, sign in ((load.frame, 1.0), (load.reaction, -1.0)):
                    if frame > 0:
                        self._acting.append((None, frame, sign, [f for f, _ in load.axis]))
                        components += [load.torque * c for _, cs in load.axis for c in cs]
        self._components = sm.lambdify([m.t, *m.q, *m.u, *m.z, *m.r, *self._values], components, cse=True)

    def _rotation(self, frame: int) -> np.ndarray:
        """``N_C_B`` of a frame, from Pinocchio's placements."""
        joint, place = next((node for (_, number), node in self._nodes.items() if number == frame), (0, None))
        assert place is not None, "a load's frame carries no body"
        return self.data.oMi[joint].rotation @ place.rotation

    def _wrenches(self, state: State, q: np.ndarray) -> pin.StdVec_Force:
        """Of all loads, on each joint in its own frame."""
        pin.forwardKinematics(self.model, self.data, q)
        numbers = list(self._components(state.t, *state.x, *state.r, *self._values.values()))
        wrenches = [pin.Force.Zero() for _ in range(self.model.njoints)]
        at = 0
        for point, frame, sign, written in self._acting:
            vector = np.zeros(3)
            for number in written:
                vector += self._rotation(number) @ np.array(numbers[at : at + 3], dtype=float)
                at += 3
            if point is not None:
                joint, place = self._point_node[point]
                force = self.data.oMi[joint].rotation.T @ vector
                wrenches[joint] += pin.Force(force, np.cross(place.translation, force))
            else:
                joint = next(node for (_, number), node in self._nodes.items() if number == frame)[0]
                wrenches[joint] += pin.Force(np.zeros(3), sign * self.data.oMi[joint].rotation.T @ vector)
        vector = pin.StdVec_Force()
        vector.extend(wrenches)
        return vector
