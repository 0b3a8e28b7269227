"""``open_joint``: open a joint: the outer side floats, and a bushing or a transmission line holds it.

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
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations, VelocityConstraints
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    Components,
    ForceLoad,
    Frame,
    KinematicPoint,
    Load,
    Mechanism,
    TorqueLoad,
)
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import (
    QuaternionGroup,
    normalize_frames,
    stabilize_unit_length,
)
from mb2fmu.mechanics.mechanism.records.requested_quantities import ExpressionOutput
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import NamedKinematics
from mb2fmu.model.quantity_declarations import Coordinate, Parameter, Speed
from mb2fmu.systems.splitting.exchanged_forces import AXES, find_free_axes, make_identifier
from mb2fmu.systems.splitting.joint_cut_records import (
    CutJointMechanism,
    LineWave,
    RenumberedRecords,
    rotation_about_frame_axis,
    rotation_by_vector,
)
from mb2fmu.systems.splitting.moving_states import MovingStates, list_load_frames, list_load_points, list_turned_frames
from mb2fmu.systems.splitting.splitting_settings import SplittingSettings
from mb2fmu.systems.wired_system import CouplingError

Floats = npt.NDArray[np.float64]
Compliance = Literal["bushing", "line"]
ZERO: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)


def open_joint(
    m: Mechanism, name: str, bodies: Sequence[int], point: int, way: Compliance, settings: SplittingSettings
) -> CutJointMechanism:
    """Open a joint.

    Args:
        m: The mechanism.
        name: Of the joint.
        bodies: 1 for each body that hangs on it, 0 for the others.
        point: Number of the joint's point.
        way: What holds the flange.
        settings: Numbers, start values, the reaction at the start.

    Raises:
        CouplingError: If what hangs on the joint is not counted from one point and one frame.
    """
    return _JointCutBuilder(m, name, bodies, point, way, settings).opened()


@dataclass
class _CutSide:
    """Velocity and axes of one side along the free axes, in N."""

    position: Components
    velocity: Components
    omega: Components
    rotation: sm.ImmutableMatrix


@dataclass
class _CutFlange:
    """Variables of the flange and its records."""

    q: list[tuple[sm.Symbol, Coordinate, sm.Expr]] = field(default_factory=list)  # with q'
    u: list[tuple[sm.Symbol, Speed]] = field(default_factory=list)
    quaternion: bool = False


class _JointCutBuilder:
    def __init__(
        self, m: Mechanism, name: str, bodies: Sequence[int], point: int, way: Compliance, settings: SplittingSettings
    ) -> None:
        self.m, self.name, self.point, self.way, self.settings = m, name, point, way, settings
        self.stem = make_identifier(name)
        self.bodies = bodies
        self.movement = MovingStates(m)
        far = [self.movement.of_body(b) for b, k in zip(m.bodies, bodies, strict=True) if k]
        near = [self.movement.of_body(b) for b, k in zip(m.bodies, bodies, strict=True) if not k]
        self.inner = frozenset().union(*near)
        self.outer = frozenset().union(*far) - self.inner
        self.points = {k for k in range(len(m.points)) if k != point and point in list(self.movement.above(k))}
        self.frames = {k for k, states in enumerate(self.movement.frames) if states & self.outer}
        self.faults: list[Fault] = []
        self.frame = self._frame()
        self._check_loads()
        if self.faults:
            raise CouplingError(f"{m.declared.name} cannot be opened at {name}:", self.faults)
        translation, rotation = find_free_axes(m, point, max(self.frame, 0))
        self.moves = [k for k in range(3) if translation[k]]
        self.turns = [k for k in range(3) if rotation[k]] if self.frame > 0 else []
        self.values = settings.start_of(m)
        self.before = self._inner_side()
        self.flange = _CutFlange()
        self.after = self._flange_side()
        self.inner_state = min(self.inner, key=str)
        self.flange_state = self.flange.q[0][0] if self.flange.q else min(self.outer, key=str)
        self.parameters: list[Parameter] = []

    # --- what hangs on the joint

    def _tell(self, what: str) -> None:
        """Add a fault of the joint that is to be opened."""
        remedy = "write frames and points beyond the joint relative to its frame and point"
        self.faults.append(Fault(what, self.name, remedy))

    def _frame(self) -> int:
        """Return the inner frame from which outer ones are counted; -1 if none is."""
        m, hangs = self.m, set()
        for k in sorted(self.frames):
            frame = m.frames[k]
            used = {frame.parent, frame.reference, *(n for n, _ in frame.angular_velocity)}
            hangs |= {n for n in used - self.frames if self.movement.frames[n]}
            if self.movement.of(frame.rotation, *(c for _, cs in frame.angular_velocity for c in cs)) & self.inner:
                self._tell(f"the frame {frame.name} turns with states before the joint by itself")
        for k in sorted(self.points):
            for terms in (m.points[k].position, m.points[k].velocity):
                for n, components in terms or ():
                    if any(components) and n not in self.frames and self.movement.frames[n]:
                        hangs.add(n)
                    if self.movement.of(*components) & self.inner:
                        self._tell(f"the point {m.points[k].name} moves with states before the joint by itself")
        if len(hangs) > 1:
            names = ", ".join(m.frames[k].name for k in sorted(hangs))
            self._tell(f"what hangs on it is written in several frames before it: {names}")
        return min(hangs, default=-1)

    def _check_loads(self) -> None:
        """Add a fault for each load on the outer side that also needs another inner body than the joint's."""
        for load in self.m.loads:
            if self._is_outer(load):
                strange = [k for k in list_load_frames(load) if k not in {0, self.frame, *self.frames}]
                if any(self.movement.frames[k] for k in strange) or any(
                    k not in {0, self.point, *self.points} for k in list_load_points(load)
                ):
                    self._tell(f"{load.name} acts across the joint on another body than the one that holds it")

    def _is_outer(self, load: Load) -> bool:
        """Return whether a load acts on anything beyond the joint."""
        return bool({*list_load_points(load)} & self.points or {*list_turned_frames(load)} & self.frames)

    # --- both sides

    def _inner_side(self) -> _CutSide:
        """Return position, velocity, angular velocity and rotation of the joint's inner side, in N, as expressions."""
        kinematics = NamedKinematics(self.m)
        frame = max(self.frame, 0)
        found = (
            kinematics.position(self.point),
            kinematics.velocity(self.point),
            kinematics.omega(frame),
            kinematics.rotation(frame),
        )
        flat: dict[sm.Symbol, sm.Expr] = {}
        for assignment in kinematics.assignments:
            flat[assignment.symbol] = assignment.expression.xreplace(flat)
        position, velocity, omega = (tuple(sm.sympify(c).xreplace(flat) for c in each) for each in found[:3])
        return _CutSide(position, velocity, omega, sm.ImmutableMatrix(found[3]).xreplace(flat))

    def _number(self, expression: sm.Expr) -> float:
        """Return the value of an expression at the start."""
        return float(sm.sympify(expression).xreplace(self.values))

    def _variable(self, stem: str, rate: sm.Expr | None, unit: str, start: float) -> sm.Symbol:
        """Return a coordinate with its rate, or (no rate) a speed."""
        symbol = sm.Symbol(f"{self.stem}_{stem}")
        known: dict[str, Any] = {
            "name": symbol.name, "symbol": sm.Function(symbol.name)(self.m.t), "unit": unit, "start": start,
            "description": f"of the flange at {self.name}",
        }  # fmt: skip
        if rate is None:
            self.flange.u.append((symbol, Speed(**known)))
        else:
            self.flange.q.append((symbol, Coordinate(**known), rate))
        return symbol

    def _flange_side(self) -> _CutSide:
        """Return the flange's coordinates, at the start displaced by the reaction."""
        s, before = self.settings, self.before
        reaction = s.reactions.get(self.name, (0.0,) * 6)
        place, velocity = list(before.position), [sm.S.Zero] * 3
        for k in self.moves:
            axis = AXES[k]
            u = self._variable(f"flange_v{axis}", None, "m/s", self._number(before.velocity[k]))
            start = self._number(before.position[k]) - reaction[k] / s.stiffness
            place[k], velocity[k] = self._variable(f"flange_{axis}", u, "m", start), u
        rotation, omega = self._turned(reaction[3:])
        return _CutSide(tuple(place), tuple(velocity), omega, rotation)

    def _turned(self, torque: Sequence[float]) -> tuple[sm.ImmutableMatrix, Components]:
        """Return the flange's start rotation and angular velocity: turned so that the bushing bears the torque."""
        before = self.before
        if not self.turns:
            return before.rotation, ZERO
        now = np.array([[self._number(c) for c in row] for row in before.rotation.tolist()])
        spin = np.array([self._number(c) for c in before.omega])
        small = -np.array(torque) / self.settings.angular_stiffness
        start = rotation_by_vector(np.where([k in self.turns for k in range(3)], small, 0.0)) @ now
        if len(self.turns) == 1:
            return self._hinge(start, spin)
        return self._free(start, spin)

    def _hinge(self, start: Floats, spin: Floats) -> tuple[sm.ImmutableMatrix, Components]:
        """Return the flange's rotation and spin by one angle about an axis of N."""
        (k,) = self.turns
        i, j = (k + 1) % 3, (k + 2) % 3
        angle = float(np.arctan2(start[j, i] - start[i, j], start[i, i] + start[j, j]))
        w = self._variable("flange_w", None, "rad/s", float(spin[k]))
        phi = self._variable("flange_angle", w, "rad", angle)
        rotation = sm.eye(3).as_mutable()
        rotation[i, i] = rotation[j, j] = sm.cos(phi)
        rotation[j, i], rotation[i, j] = sm.sin(phi), -sm.sin(phi)
        still = rotation_about_frame_axis(k, -angle) @ start  # what the frame is turned by beside the angle
        constant = sm.Matrix(3, 3, [sm.Float(c) if abs(c - round(c)) > 1e-15 else sm.Integer(round(c))
                                    for c in still.flat])  # fmt: skip
        omega = [sm.S.Zero] * 3
        omega[k] = w
        return sm.ImmutableMatrix(rotation * constant), (omega[0], omega[1], omega[2])

    def _free(self, start: Floats, spin: Floats) -> tuple[sm.ImmutableMatrix, Components]:
        """Add a quaternion: e' = E(e) ω / 2, ω in components of N (Shabana, Dynamics of Multibody Systems, 2013)."""
        from scipy.spatial.transform import Rotation

        x0, y0, z0, w0 = Rotation.from_matrix(start).as_quat()
        omega = [self._variable(f"flange_w{axis}", None, "rad/s", float(spin[k])) for k, axis in enumerate(AXES)]
        w, x, y, z = (sm.Symbol(f"{self.stem}_flange_e{k}") for k in range(4))
        # Along N: e' = ½ (0, ω) ∘ e.
        a, b, c = omega
        half = sm.Rational(1, 2)
        rates = (
            half * (-a * x - b * y - c * z), half * (a * w + b * z - c * y), half * (b * w + c * x - a * z),
            half * (c * w + a * y - b * x),
        )  # fmt: skip
        for k, (rate, value) in enumerate(zip(rates, (w0, x0, y0, z0), strict=True)):
            self._variable(f"flange_e{k}", rate, "1", float(value))
        self.flange.quaternion = True
        rotation = sm.ImmutableMatrix(
            [
                [w**2 + x**2 - y**2 - z**2, 2 * x * y - 2 * w * z, 2 * w * y + 2 * x * z],
                [2 * w * z + 2 * x * y, w**2 - x**2 + y**2 - z**2, 2 * y * z - 2 * w * x],
                [2 * x * z - 2 * w * y, 2 * w * x + 2 * y * z, w**2 - x**2 - y**2 + z**2],
            ]
        )
        return rotation, (a, b, c)

    # --- what holds the flange

    def _parameter(self, stem: str, value: float, unit: str, description: str) -> sm.Symbol:
        """Add a parameter named after the joint, not below 0, and return its symbol."""
        symbol = sm.Symbol(f"{self.stem}_{stem}")
        made = Parameter(name=symbol.name, symbol=symbol, value=value, unit=unit, description=description, minimum=0.0)
        self.parameters.append(made)
        return symbol

    def _bushing(self) -> tuple[list[sm.Expr], list[sm.Expr], list[sm.Expr], list[sm.Expr]]:
        """Return force and torque of the bushing on the inner side, then on the flange, by components in N."""
        s, a, b = self.settings, self.before, self.after
        k, d = (self._parameter("stiffness", s.stiffness, "N/m", "along each axis"),
                self._parameter("damping", s.damping, "N.s/m", "along each axis"))  # fmt: skip
        force = [-k * (b.position[i] - a.position[i]) - d * (b.velocity[i] - a.velocity[i]) if i in self.moves
                 else sm.S.Zero for i in range(3)]  # fmt: skip
        torque = [sm.S.Zero] * 3
        if self.turns:
            k, d = (self._parameter("angular_stiffness", s.angular_stiffness, "N.m/rad", "about each axis"),
                    self._parameter("angular_damping", s.angular_damping, "N.m.s/rad", "about each axis"))  # fmt: skip
            turned = sum((a.rotation.col(i).cross(b.rotation.col(i)) for i in range(3)), sm.zeros(3, 1)) / 2
            torque = [
                -k * turned[i] - d * (b.omega[i] - a.omega[i]) if i in self.turns else sm.S.Zero for i in range(3)
            ]
        return [-f for f in force], [-t for t in torque], force, torque

    def _line(self, waves: list[LineWave]) -> tuple[list[sm.Expr], list[sm.Expr], list[sm.Expr], list[sm.Expr]]:
        """Hold the joint by a transmission line in place of a bushing."""
        s, a, b = self.settings, self.before, self.after
        reaction = s.reactions.get(self.name, (0.0,) * 6)
        found: list[list[sm.Expr]] = [[sm.S.Zero] * 3 for _ in range(4)]
        kinds = [("f", "N", self.moves, a.velocity, b.velocity, s.stiffness, "impedance", "N.s/m", 0)]
        if self.turns:
            kinds.append(("m", "N.m", self.turns, a.omega, b.omega, s.angular_stiffness, "angular_impedance",
                          "N.m.s/rad", 3))  # fmt: skip
        for letter, unit, axes, v, w, stiffness, word, unit_z, place in kinds:
            Z = self._parameter(word, stiffness * s.delay, unit_z, "of the line")
            number = stiffness * s.delay
            for i in axes:
                near, far = (sm.Symbol(f"{self.stem}_to_{side}_{letter}{AXES[i]}") for side in ("inner", "outer"))
                load = reaction[place + i]
                found[place // 3][i] = -(Z * v[i] + near)
                found[2 + place // 3][i] = far - Z * w[i]
                begin = self._number(v[i])
                waves.append(LineWave(near.name, near, unit, load - number * begin, far - 2 * Z * w[i],
                                  self.inner_state, self.flange_state))  # fmt: skip
                waves.append(LineWave(far.name, far, unit, load + number * begin, near + 2 * Z * v[i],
                                  self.flange_state, self.inner_state))  # fmt: skip
        return found[0], found[1], found[2], found[3]

    # --- the opened mechanism

    def opened(self) -> CutJointMechanism:
        """Return the records with the flange, renumbered: new ones come right after the ground's."""
        m = self.m
        waves: list[LineWave] = []
        acting = self._bushing() if self.way == "bushing" else self._line(waves)
        inner = RenumberedRecords(m, {}, {})
        outer = RenumberedRecords(m, {self.frame: 1} if self.turns else {}, {self.point: 1})
        held = list(self._loads(inner, acting))
        loads = [(outer if self._is_outer(load) else inner).load(load) for load in m.loads] + held
        bodies = [(outer if k else inner).body(b) for b, k in zip(m.bodies, self.bodies, strict=True)]
        made = self._replaced(inner, outer, loads, [*bodies, *self._flange_body()])
        outputs, told, powers = self._outputs(acting)
        written = tuple(o for o in m.outputs if isinstance(o, ExpressionOutput))
        made = replace(made, outputs=(*written, *outputs))
        after = MovingStates(made)
        spans = [after.of_place(load) | after.of_magnitude(load) for load in loads]
        ours = {*(s for s, _, _ in self.flange.q), *(s for s, _ in self.flange.u), *self.outer}
        between = [
            load.name for load, states in zip(loads, spans, strict=True) if states & self.inner and states & ours
        ]
        holding = [load.name for load in held] if self.way == "bushing" else []
        return CutJointMechanism(made, frozenset(holding), frozenset(between), tuple(waves), told, powers)

    def _loads(self, inner: RenumberedRecords, acting: tuple[list[sm.Expr], ...]) -> Iterator[Load]:
        """Yield forces and torques of the bushing or line, in N."""
        at = ((self.name, inner.point(self.point), inner.frame(max(self.frame, 0))), (f"{self.name} flange", 1, 1))
        for (name, point, frame), force, torque in zip(at, acting[::2], acting[1::2], strict=True):
            if any(force):
                yield ForceLoad(f"force at {name}", point, ((0, (force[0], force[1], force[2])),))
            if any(torque):
                yield TorqueLoad(f"torque at {name}", frame, ((0, (torque[0], torque[1], torque[2])),))

    def _flange_body(self) -> Iterator[Body]:
        """Yield the flange's small mass and inertia, if the settings want one."""
        s = self.settings
        if not s.flange_mass and not (self.turns and s.flange_inertia):
            return
        mass = self._parameter("flange_mass", s.flange_mass, "kg", "parasitic") if s.flange_mass else sm.S.Zero
        if not self.turns:
            yield Body(f"{self.name} flange", 1, -1, mass, None)
            return
        J = self._parameter("flange_inertia", s.flange_inertia, "kg.m2", "parasitic, about each axis")
        about = [J if len(self.turns) > 1 or k == self.turns[0] else sm.S.Zero for k in range(3)]
        yield Body(f"{self.name} flange", 1, 1, mass, sm.ImmutableMatrix(sm.diag(*about)))

    def _replaced(
        self, inner: RenumberedRecords, outer: RenumberedRecords, loads: list[Load], bodies: list[Body]
    ) -> Mechanism:
        """Return the mechanism with the flange as frame 1 and point 1, its states last, and the outer side on it."""
        m, f = self.m, self.flange
        a = self.after
        frames = [m.frames[0]]
        frames.append(Frame(f"{self.stem}_flange", 0, a.rotation if self.turns else sm.ImmutableMatrix.eye(3), 0,
                            ((0, a.omega),) if self.turns else ()))  # fmt: skip
        frames += [(outer if k in self.frames else inner).a_frame(m.frames[k]) for k in range(1, len(m.frames))]
        points = [m.points[0], KinematicPoint(f"{self.stem}_flange", 0, ((0, a.position),), None, located=True)]
        points += [(outer if k in self.points else inner).a_point(m.points[k]) for k in range(1, len(m.points))]
        q, u = (*m.q, *(s for s, _, _ in f.q)), (*m.u, *(s for s, _ in f.u))
        u_dot = (*m.u_dot, *(sm.Symbol(f"{s.name}_d") for s, _ in f.u))
        n = len(q)
        group: QuaternionGroup | None = (n - 4, n - 3, n - 2, n - 1) if f.quaternion else None
        quaternions = (*m.quaternions, group) if group else m.quaternions
        kinematics = self._kinematics(q, u, group)
        if group:
            frames[1] = normalize_frames([frames[1]], [group], q)[0]
        new = (*q[len(m.q) :], *u[len(m.u) :], *u_dot[len(m.u) :])
        d = m.declared
        declared = replace(
            d, parameters=(*d.parameters, *self.parameters), coordinates=(*d.coordinates, *(c for _, c, _ in f.q)),
            speeds=(*d.speeds, *(c for _, c in f.u)),
        )  # fmt: skip
        return replace(
            m, declared=declared, q=q, u=u, u_dot=u_dot, p=(*m.p, *(p.symbol for p in self.parameters)),
            u_independent=(*m.u_independent, *range(len(m.u), len(u))), quaternions=quaternions, kinematics=kinematics,
            dynamic={**m.dynamic, **{s: sm.Function(s.name)(m.t) for s in new}}, frames=tuple(frames),
            points=tuple(points), bodies=tuple(bodies), loads=tuple(loads),
            joints=tuple(replace(j, point=inner.point(j.point), axis=None) for j in m.joints),
            potential_forces=(*m.potential_forces, *[sm.S.Zero] * len(f.u)) if m.potential_forces else (),
            velocity_constraints=self._constraints(len(f.u)),
            acts=tuple(tuple((outer if self._behind(a) else inner).application(a) for a in row) for row in m.acts),
            outputs=(), loops=(), scenery=None,
        )  # fmt: skip

    def _behind(self, act: Any) -> bool:
        """Return whether a force application is beyond the joint."""
        return act.at in (self.frames if act.torque else self.points)

    def _constraints(self, added: int) -> VelocityConstraints | None:
        """Return the velocity constraints with zero columns for the flange's speeds."""
        whole = self.m.velocity_constraints
        if whole is None:
            return None
        wider = sm.ImmutableMatrix(sm.Matrix(whole.jacobian).row_join(sm.zeros(len(whole.names), added)))
        return replace(whole, jacobian=wider)

    def _kinematics(
        self, q: Sequence[sm.Symbol], u: Sequence[sm.Symbol], group: QuaternionGroup | None
    ) -> KinematicEquations:
        """Return K and k0 with the flange's rows and columns added; a quaternion is kept at unit length."""
        m, f = self.m, self.flange
        speeds = [s for s, _ in f.u]
        block = sm.Matrix([[sm.diff(rate, s) for s in speeds] for _, _, rate in f.q]) if f.q else sm.zeros(0, 0)
        matrix = sm.ImmutableMatrix(sm.diag(sm.Matrix(m.kinematics.matrix), block))
        offset = sm.ImmutableMatrix(sm.Matrix(m.kinematics.offset).col_join(sm.zeros(len(f.q), 1)))
        projection = m.kinematics.projection
        if projection is not None:
            projection = (*projection, *(s for s, _, _ in f.q))
        made = KinematicEquations(matrix, offset, projection)
        return stabilize_unit_length(made, [group], q, u) if group else made

    def _outputs(
        self, acting: tuple[list[sm.Expr], ...]
    ) -> tuple[list[ExpressionOutput], dict[str, sm.Symbol], tuple[tuple[str, ...], ...]]:
        """Return force and velocity of both sides along each axis: the power over the joint."""
        made: list[ExpressionOutput] = []
        told: dict[str, sm.Symbol] = {}
        powers: list[tuple[str, ...]] = []
        sides = (("inner", self.before, self.inner_state), ("outer", self.after, self.flange_state))
        for place, letters, units, axes in (
            (0, "fv", ("N", "m/s"), self.moves),
            (1, "mw", ("N.m", "rad/s"), self.turns),
        ):
            for i in axes:
                names = []
                for number, (side, values, state) in enumerate(sides):
                    effort = acting[2 * number + place][i]
                    flow = (values.omega if place else values.velocity)[i]
                    for letter, unit, expression in zip(letters, units, (effort, flow), strict=True):
                        name = f"{self.stem}_{side}_{letter}{AXES[i]}"
                        made.append(ExpressionOutput(name=name, unit=unit, expression=expression))
                        told[name] = state
                        names.append(name)
                powers.append((f"{self.name}, {letters[0]}{AXES[i]}", *names))
        return made, told, tuple(powers)
