"""Kinematics and Newton-Euler equations of a Mechanism in plain NumPy, at one state at a time.

Nothing is composed symbolically: the local relations are evaluated by SymPy's ``lambdify``, everything between bodies
is matrix arithmetic. It serves the checks, and as a reference that shares nothing with the formulations.

With the partial velocities J (v_P = J u + v_t) of every mass centre and frame, the projected Newton-Euler equations are

    sum_B [ m Jvᵀ Jv + Jwᵀ I Jw ] u' = sum_B [ Jvᵀ (F - m a0) + Jwᵀ (T - I alpha0 - w × I w) ]

where a0, alpha0 are the accelerations at u' = 0 (Kane and Levinson, Dynamics, 1985, ch. 6; Moore, Learn Multibody
Dynamics, "Unconstrained Equations of Motion with the TMT Method").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanism.records import ForceLoad, Mechanism, PathwayLoad, TorqueActuatorLoad, TorqueLoad, VectorTerms
from mb2fmu.mechanism.symbols import directional_derivative, rates_of, slope

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FrameMotion:
    """Of one frame: ``N_C_B``, angular velocity, partial angular velocities, angular acceleration at u' = 0; in N."""

    rotation: Array
    omega: Array
    partials: Array
    alpha0: Array


@dataclass(frozen=True, slots=True)
class PointMotion:
    """Of one point: position from O, velocity, partial velocities, acceleration at u' = 0; in N's components."""

    position: Array
    velocity: Array
    partials: Array
    acceleration0: Array


@dataclass(frozen=True, slots=True)
class _Term:
    """A vector written in a frame: where its numbers are.

    Attributes:
        frame: Number of the frame.
        columns: Speeds that its partials are not zero for, indices into ``u_all``.
        start: Of 3 rows (partials with respect to these speeds, component, its rate, its second rate).
    """

    frame: int
    columns: npt.NDArray[np.intp]
    start: int


@dataclass(frozen=True, slots=True)
class _Way:
    """How the points hang together.

    Attributes:
        terms: Of all positions, then of all velocities that are given.
        of_position: True for the former, shape (n_terms, 1).
        positions: 1 where a term is on a point's way from O, shape (n_points, n_terms).
        velocities: The same for velocities: from O, or from the last point whose velocity is given.
    """

    terms: tuple[_Term, ...]
    of_position: npt.NDArray[np.bool_]
    positions: Array
    velocities: Array


class NumericMechanism:
    """Evaluates a Mechanism.

    Args:
        mechanism: With bodies; velocities are taken as its records say.
        rates: True: rates of the direction cosines are evaluated too (:meth:`omega_from_rotation`).
    """

    def __init__(self, mechanism: Mechanism, *, rates: bool = False) -> None:
        self.mechanism = mechanism
        self._order = _references_first(mechanism)
        self._slots: dict[sm.Expr, int] = {}
        self._places: list[int] = []
        self._known_rates: dict[sm.Expr, sm.Expr] = {}
        m = mechanism
        self._column = {ui: k for k, ui in enumerate(m.u_all)}
        self._rates = m.rates(rates_of(m.kinematics, m.u))
        self._rotations = [
            (self._add(f.rotation), self._add(self._rate(f.rotation)) if rates else -1) for f in m.frames
        ]
        self._omegas = [self._add_terms(f.angular_velocity) for f in m.frames]
        self._positions = [None if p.position is None else self._add_terms(p.position, twice=True) for p in m.points]
        self._velocities = [None if p.velocity is None else self._add_terms(p.velocity) for p in m.points]
        self._way = _way(mechanism, self._positions, self._velocities)
        self._bodies = [(self._add([b.mass]), None if b.inertia is None else self._add(b.inertia)) for b in m.bodies]
        self._loads = [self._add_load(load) for load in m.loads]
        self._acts = {act.vector: [self._add(c) for _, c in act.vector] for acts in m.acts for act in acts}
        self._potential = self._add(m.potential_forces)
        entries = m.kinematics.matrix.todok()
        self._K_places = tuple(np.array(list(entries), dtype=np.intp).reshape(-1, 2).T)
        self._kinematics = (self._add(list(entries.values())), self._add(m.kinematics.offset))
        constraints = m.velocity_constraints
        self._constraints = (
            None
            if constraints is None
            else tuple(map(self._add, (constraints.jacobian, constraints.offset, constraints.bias)))
        )
        self._pathway_symbols = [
            s for load in m.loads if isinstance(load, PathwayLoad) for s in (load.length, load.rate)
        ]
        self._arguments = [m.t, *m.q, *m.u_all, *m.z, *m.r, *m.p, *(a.symbol for a in m.calculated_parameters)]
        self._evaluate = sm.lambdify(self._arguments, list(self._slots), modules=["scipy", "numpy"], cse=True)
        self._gather = np.array(self._places, dtype=np.intp)
        forces = [sm.sympify(f) for f in self._forces()]
        self._evaluate_forces = sm.lambdify(
            [*self._arguments, *self._pathway_symbols, *m.constraint_forces],
            forces,
            modules=["scipy", "numpy"],
            cse=True,
        )
        self._evaluate_z = sm.lambdify(
            [*self._arguments, *self._pathway_symbols], list(m.z_dot), modules=["scipy", "numpy"], cse=True
        )
        self._prepare = sm.lambdify(m.p, _substituted(m), modules=["scipy", "numpy"])

    def parameters(self, p: Sequence[float] | Array) -> Array:
        """Free and calculated parameters, in this order."""
        return np.array([*p, *self._prepare(*p)], dtype=float)

    def set(self, t: float, q: Array, u_all: Array, z: Array, r: Array, parameters: Array) -> None:
        """Moves the mechanism to a state; ``u_all`` includes auxiliary speeds, ``parameters`` calculated ones."""
        self._point = (t, *q, *u_all, *z, *r, *parameters)
        self._values = np.array(self._evaluate(*self._point), dtype=float)[self._gather]
        self._n_u = len(u_all)
        self._known_forces: dict[tuple[float, ...], list[tuple[Array, Array, Array]]] = {}
        self._known_pathways: dict[tuple[int, ...], tuple[float, float, list[Array]]] = {}
        self._frame_motion()
        self.__dict__.pop("points", None)

    def kinematics(self) -> tuple[Array, Array]:
        """K and k0."""
        m = self.mechanism
        K, k0 = self._kinematics
        matrix = np.zeros((len(m.q), len(m.u)))
        matrix[self._K_places] = self._take(K, self._K_places[0].shape)
        return matrix, self._take(k0, (len(m.q),))

    def constraints(self) -> tuple[Array, Array, Array]:
        """A, b, gamma; with no rows if there are none."""
        n = len(self.mechanism.u)
        if self._constraints is None:
            return np.zeros((0, n)), np.zeros(0), np.zeros(0)
        A, b, gamma = self._constraints
        rows = len(self.mechanism.velocity_constraints.names) if self.mechanism.velocity_constraints else 0
        return self._take(A, (rows, n)), self._take(b, (rows,)), self._take(gamma, (rows,))

    def dynamics(self, constraint_forces: Sequence[float] = ()) -> tuple[Array, Array]:
        """M (n_u + n_aux square) and f of M u' = f, unconstrained; the motion of ``set``."""
        n, f = self._n_u, self.generalized_forces(constraint_forces)
        momentum, weighted = [np.zeros((0, n))], [np.zeros((0, n))]
        for body, (mass_at, inertia_at) in zip(self.mechanism.bodies, self._bodies, strict=True):
            mass = float(self._values[mass_at])
            point = self.points[body.masscenter]
            momentum.append(mass * point.partials)
            weighted.append(point.partials)
            f -= point.partials.T @ (mass * point.acceleration0)
            if inertia_at is None:
                continue
            frame = self.frames[body.frame]
            inertia = frame.rotation @ self._take(inertia_at, (3, 3)) @ frame.rotation.T
            momentum.append(inertia @ frame.partials)
            weighted.append(frame.partials)
            f -= frame.partials.T @ (inertia @ frame.alpha0 + cross(frame.omega, inertia @ frame.omega))
        return np.concatenate(weighted).T @ np.concatenate(momentum), f

    def generalized_forces(self, constraint_forces: Sequence[float] = ()) -> Array:
        """Generalized active forces, shape (n_u + n_aux,)."""
        Q = np.zeros(self._n_u)
        count = len(self.mechanism.potential_forces)
        Q[:count] = self._take(self._potential, (count,))
        applied = self._applied(constraint_forces)
        if applied:
            Q += np.concatenate([vector for *_, vector in applied]) @ np.concatenate(
                [partials for partials, *_ in applied]
            )
        return Q

    def powers(self) -> list[float]:
        """Power in W of each load (pathways and actuators count once)."""
        power = dict.fromkeys(range(len(self.mechanism.loads)), 0.0)
        for number, (_, velocity, vector) in zip(self._applied_numbers(), self._applied(()), strict=True):
            power[number] += float(velocity @ vector)
        return list(power.values())

    def kinetic_energy(self) -> float:
        """In J, relative to N."""
        total = 0.0
        for body, (mass_at, inertia_at) in zip(self.mechanism.bodies, self._bodies, strict=True):
            v = self.points[body.masscenter].velocity
            total += 0.5 * float(self._values[mass_at]) * float(v @ v)
            if inertia_at is not None:
                frame = self.frames[body.frame]
                w = frame.rotation.T @ frame.omega
                total += 0.5 * float(w @ self._take(inertia_at, (3, 3)) @ w)
        return total

    def vector(self, terms: VectorTerms) -> Array:
        """A vector that was written when :class:`NumericMechanism` was made (``acts``), components in N."""
        parts = zip(terms, self._acts[terms], strict=True)
        return sum((self.frames[k].rotation @ self._take(at, (3,)) for (k, _), at in parts), np.zeros(3))

    def z_dot(self) -> Array:
        """Derivatives of the auxiliary states."""
        return np.array(self._evaluate_z(*self._point, *self._pathway_values()), dtype=float)

    # ------------------------------------------------------------------ collecting expressions

    def _add(self, expressions: sm.MatrixBase | Sequence[sm.Expr]) -> int:
        """Where the values of some expressions begin; equal ones are evaluated once."""
        start = len(self._places)
        self._places += [self._slots.setdefault(sm.sympify(e), len(self._slots)) for e in expressions]
        return start

    def _rate(self, expressions: sm.MatrixBase | Sequence[sm.Expr]) -> list[sm.Expr]:
        known = self._known_rates
        for e in map(sm.sympify, expressions):
            if e not in known:
                known[e] = directional_derivative(e, self._rates)
        return [known[sm.sympify(e)] for e in expressions]

    def _add_terms(self, terms: VectorTerms, *, twice: bool = False) -> list[_Term]:
        """Where the numbers of each term are; ``twice``: the components are positions, partials are of their rates."""
        result = []
        for frame, components in terms:
            rate = self._rate(components)
            linear = rate if twice else [sm.sympify(c) for c in components]
            free = set().union(*(e.free_symbols for e in linear))
            speeds = sorted(free & self._column.keys(), key=self._column.__getitem__)
            second = self._rate(rate) if twice else [sm.S.Zero] * 3
            rows = [[*(slope(linear[i], ui) for ui in speeds), components[i], rate[i], second[i]] for i in range(3)]
            columns = np.array([self._column[ui] for ui in speeds], dtype=np.intp)
            result.append(_Term(frame, columns, self._add([e for row in rows for e in row])))
        return result

    def _add_load(self, load: object) -> list[tuple[int, int]]:
        if isinstance(load, ForceLoad):
            return [(frame, -1) for frame, _ in load.force]
        if isinstance(load, TorqueLoad):
            return [(frame, -1) for frame, _ in load.torque]
        if isinstance(load, TorqueActuatorLoad):
            return [(frame, self._add(components)) for frame, components in load.axis]
        return []

    def _forces(self) -> list[sm.Expr]:
        """Scalars of all loads, in order: components by frame, or a magnitude."""
        scalars: list[sm.Expr] = []
        for load in self.mechanism.loads:
            if isinstance(load, ForceLoad):
                scalars += [c for _, components in load.force for c in components]
            elif isinstance(load, TorqueLoad):
                scalars += [c for _, components in load.torque for c in components]
            elif isinstance(load, TorqueActuatorLoad):
                scalars.append(load.torque)
            else:
                scalars.append(load.force)
        return scalars

    # ------------------------------------------------------------------ evaluating

    def _take(self, start: int, shape: tuple[int, ...]) -> Array:
        return self._values[start : start + math.prod(shape)].reshape(shape)

    def _expressed(self, term: _Term, rotation: Array) -> tuple[Array, Array, Array, Array]:
        """Partials with respect to the term's speeds, the vector, its first and second rate, in N's components."""
        count = len(term.columns)
        block = rotation @ self._take(term.start, (3, count + 3))
        return block[:, :count], block[:, count], block[:, count + 1], block[:, count + 2]

    def _frame_motion(self) -> None:
        """Rotations from the parents, then angular velocities from the references, then accelerations."""
        n, records = self._n_u, self.mechanism.frames
        rotations: list[Array] = []
        for i, frame in enumerate(records):
            local = self._take(self._rotations[i][0], (3, 3))
            rotations.append(local if frame.parent < 0 else rotations[frame.parent] @ local)
        omegas, alphas = [np.zeros(3)] * len(records), [np.zeros(3)] * len(records)
        partials = [np.zeros((3, n))] * len(records)
        rates: list[list[tuple[int, Array, Array]]] = [[] for _ in records]
        for i in self._order:
            base = records[i].reference
            omegas[i], partials[i] = omegas[base].copy(), partials[base].copy()
            for term in self._omegas[i]:
                J, omega, rate, _ = self._expressed(term, rotations[term.frame])
                omegas[i] += omega
                partials[i][:, term.columns] += J
                rates[i].append((term.frame, omega, rate))
        for i in self._order:
            alphas[i] = alphas[records[i].reference].copy()
            for k, omega, rate in rates[i]:
                alphas[i] += rate + cross(omegas[k], omega)
        self.frames = [FrameMotion(*m) for m in zip(rotations, omegas, partials, alphas, strict=True)]

    def omega_from_rotation(self, i: int) -> Array:
        """Angular velocity of frame i in its parent, in its own components, from the direction cosines' rates."""
        start, rate_at = self._rotations[i]
        if rate_at < 0:
            raise ValueError("made without rates of the rotations")
        skew = self._take(start, (3, 3)).T @ self._take(rate_at, (3, 3))
        return np.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]]) / 2

    @cached_property
    def points(self) -> list[PointMotion]:
        """All terms at once; the motion of a point is the sum over the terms on its way from O, or is given."""
        terms, n = self._way.terms, self._n_u
        rho, v, a = np.zeros((len(terms), 3)), np.zeros((len(terms), 3)), np.zeros((len(terms), 3))
        rate, second = np.zeros_like(rho), np.zeros_like(rho)
        J = np.zeros((len(terms), 3, n))
        for i, term in enumerate(terms):
            local, rho[i], rate[i], second[i] = self._expressed(term, self.frames[term.frame].rotation)
            J[i][:, term.columns] = local
        if terms:
            frames = [self.frames[term.frame] for term in terms]
            omega, alpha0 = np.array([f.omega for f in frames]), np.array([f.alpha0 for f in frames])
            fixed = self._way.of_position
            turned = _crossed(omega, rho)
            v = np.where(fixed, turned + rate, rho)
            inner = turned + 2 * rate
            a = np.where(fixed, _crossed(alpha0, rho) + _crossed(omega, inner) + second, rate + turned)
            J += _levers(rho * fixed) @ np.array([f.partials for f in frames])
        positions, moving = self._way.positions, self._way.velocities
        return [
            PointMotion(*motion)
            for motion in zip(
                positions @ rho,
                moving @ v,
                (moving @ J.reshape(len(terms), 3 * n)).reshape(-1, 3, n),
                moving @ a,
                strict=True,
            )
        ]

    # ------------------------------------------------------------------ loads

    def pathway(self, load: PathwayLoad) -> tuple[float, float, list[Array]]:
        """Length, rate, and the unit vectors of the segments from first to last point."""
        if load.points not in self._known_pathways:
            self._known_pathways[load.points] = self._find_pathway(load)
        return self._known_pathways[load.points]

    def _find_pathway(self, load: PathwayLoad) -> tuple[float, float, list[Array]]:
        length = rate = 0.0
        directions = []
        for a, b in zip(load.points, load.points[1:], strict=False):
            d = self.points[b].position - self.points[a].position
            size = float(np.linalg.norm(d))
            e = d / size
            length += size
            rate += float(e @ (self.points[b].velocity - self.points[a].velocity))
            directions.append(e)
        return length, rate, directions

    def _pathway_values(self) -> list[float]:
        values: list[float] = []
        for load in self.mechanism.loads:
            if isinstance(load, PathwayLoad):
                values += self.pathway(load)[:2]
        return values

    def _applied(self, constraint_forces: Sequence[float]) -> list[tuple[Array, Array, Array]]:
        """(partials, velocity or angular velocity, force or torque in N) of everything that acts."""
        key = tuple(constraint_forces)
        if key not in self._known_forces:
            self._known_forces[key] = self._find_applied(key)
        return self._known_forces[key]

    def _find_applied(self, constraint_forces: Sequence[float]) -> list[tuple[Array, Array, Array]]:
        m = self.mechanism
        padded = [*constraint_forces, *[0.0] * (len(m.constraint_forces) - len(constraint_forces))]
        scalars = [float(s) for s in self._evaluate_forces(*self._point, *self._pathway_values(), *padded)]
        result: list[tuple[Array, Array, Array]] = []
        at = 0
        for load, places in zip(m.loads, self._loads, strict=True):
            if isinstance(load, (ForceLoad, TorqueLoad)):
                vector = np.zeros(3)
                for frame, _ in places:
                    vector += self.frames[frame].rotation @ np.array(scalars[at : at + 3])
                    at += 3
                result.append((*self._moving(load), vector))
            elif isinstance(load, TorqueActuatorLoad):
                axis = sum((self.frames[f].rotation @ self._take(s, (3,)) for f, s in places), np.zeros(3))
                for frame, sign in ((load.frame, 1.0), (load.reaction, -1.0)):
                    if frame >= 0:
                        result.append(
                            (self.frames[frame].partials, self.frames[frame].omega, sign * scalars[at] * axis)
                        )
                at += 1
            else:
                result += self._segments(load, scalars[at])
                at += 1
        return result

    def _moving(self, load: ForceLoad | TorqueLoad) -> tuple[Array, Array]:
        if isinstance(load, ForceLoad):
            return self.points[load.point].partials, self.points[load.point].velocity
        return self.frames[load.frame].partials, self.frames[load.frame].omega

    def _segments(self, load: PathwayLoad, force: float) -> list[tuple[Array, Array, Array]]:
        """Expansile positive: each segment pushes its two ends apart."""
        result = []
        for (a, b), e in zip(zip(load.points, load.points[1:], strict=False), self.pathway(load)[2], strict=True):
            result.append((self.points[a].partials, self.points[a].velocity, -force * e))
            result.append((self.points[b].partials, self.points[b].velocity, force * e))
        return result

    def _applied_numbers(self) -> list[int]:
        numbers: list[int] = []
        for i, load in enumerate(self.mechanism.loads):
            if isinstance(load, (ForceLoad, TorqueLoad)):
                numbers.append(i)
            elif isinstance(load, TorqueActuatorLoad):
                numbers += [i] * (1 if load.reaction < 0 else 2)
            else:
                numbers += [i] * (2 * (len(load.points) - 1))
        return numbers


def _references_first(mechanism: Mechanism) -> list[int]:
    """The frames but N, each after the frame its angular velocity is relative to."""
    frames = mechanism.frames
    depth = [0] * len(frames)
    for i in range(1, len(frames)):
        chain = [i]
        while (above := frames[chain[-1]].reference) and not depth[above]:
            chain.append(above)
        for j in reversed(chain):
            depth[j] = depth[frames[j].reference] + 1
    return sorted(range(1, len(frames)), key=depth.__getitem__)


def _way(
    mechanism: Mechanism, positions: Sequence[list[_Term] | None], velocities: Sequence[list[_Term] | None]
) -> _Way:
    terms = [(k, term) for part in (positions, velocities) for k, some in enumerate(part) for term in some or ()]
    count = sum(len(some or ()) for some in positions)
    own = np.array([[float(k == point) for k, _ in terms] for point in range(len(positions))])
    own = own.reshape(len(positions), len(terms))
    of_position = np.arange(len(terms)) < count
    place, motion = own * of_position, own * of_position
    for k, point in enumerate(mechanism.points):
        if point.parent >= 0:
            place[k] += place[point.parent]
            motion[k] += motion[point.parent]
        if velocities[k] is not None:
            motion[k] = own[k] * ~of_position
    return _Way(tuple(term for _, term in terms), of_position[:, None], place, motion)


def _levers(rho: Array) -> Array:
    """L with L w = w × rho, for each row of ``rho``, shape (n, 3, 3)."""
    L = np.zeros((len(rho), 3, 3))
    x, y, z = rho.T
    L[:, 0, 1], L[:, 0, 2], L[:, 1, 2] = z, -y, x
    L[:, 1, 0], L[:, 2, 0], L[:, 2, 1] = -z, y, -x
    return L


def _crossed(a: Array, b: Array) -> Array:
    """a × b, row by row, shape (n, 3)."""
    (a1, a2, a3), (b1, b2, b3) = a.T, b.T
    return np.stack((a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1), axis=1)


def cross(a: Array, b: Array) -> Array:
    """a × b of two vectors of three, shape (3,); NumPy's own takes ten times as long for so few."""
    a1, a2, a3 = a.tolist()
    b1, b2, b3 = b.tolist()
    return np.array((a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1))


def _substituted(mechanism: Mechanism) -> list[sm.Expr]:
    """Calculated parameters as expressions of free ones."""
    known: dict[sm.Symbol, sm.Expr] = {}
    for assignment in mechanism.calculated_parameters:
        known[assignment.symbol] = assignment.expression.xreplace(known)
    return list(known.values())
