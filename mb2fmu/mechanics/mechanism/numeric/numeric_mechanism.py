"""Kinematics and Newton-Euler equations of a Mechanism in NumPy, at one state at a time.

Nothing is composed symbolically: the local relations are evaluated as they are (``evaluation``), everything between
bodies is matrix arithmetic. It serves the checks, and as a reference that shares nothing with the formulations.

With the partial velocities J (v_P = J u + v_t) of every mass centre and frame, the projected Newton-Euler equations are

    sum_B [ m Jvᵀ Jv + Jwᵀ I Jw ] u' = sum_B [ Jvᵀ (F - m a0) + Jwᵀ (T - I alpha0 - w × I w) ]

where a0, alpha0 are the accelerations at u' = 0 (Kane and Levinson, Dynamics, 1985, ch. 6; Moore, Learn Multibody
Dynamics, "Unconstrained Equations of Motion with the TMT Method").

Vectors of a ``Mechanism`` as numbers: all terms are evaluated at once, and summed along the paths from the origin.

A term is a vector written in one frame. Its numbers, in that frame, are three rows of (partials with respect to the
speeds it contains, component, rate of the component, second rate).

Loads of a ``Mechanism`` as numbers: forces on points and torques on frames, all expressed in N.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.numeric.grouped_evaluation import GroupedEvaluation
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import make_parameter_function
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.plain_symbols import (
    coordinate_rates,
    directional_derivative,
    partial_derivative,
)

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class TermLocation:
    """Place of the numbers of a vector that is written in a frame.

    Attributes:
        frame: Number of the frame.
        columns: Speeds that its partials are not zero for, indices into ``u_all``.
        start: Of its three rows.
    """

    frame: int
    columns: Indices
    start: int


@dataclass(frozen=True, slots=True)
class ExpressedTerms:
    """Terms in N's components: partials (n_terms, 3, n_u), vector, first and second rate (n_terms, 3)."""

    partials: Array
    vector: Array
    rate: Array
    second: Array


class TermGroups:
    """Terms that are evaluated together, in groups of the same number of speeds.

    Args:
        terms: In any order, which stays.
        n_u: Number of all speeds.
    """

    def __init__(self, terms: Sequence[TermLocation], n_u: int) -> None:
        self.frames = np.array([term.frame for term in terms], dtype=np.intp)
        self._n_u = n_u
        sizes = [len(term.columns) for term in terms]
        self._groups: list[tuple[Indices, Indices, Indices]] = []  # (numbers of terms, places of values, columns)
        for size in sorted(set(sizes)):
            numbers = np.array([k for k, each in enumerate(sizes) if each == size], dtype=np.intp)
            starts = np.array([terms[k].start for k in numbers], dtype=np.intp)
            places = starts[:, None] + np.arange(3 * (size + 3))
            columns = np.array([terms[k].columns for k in numbers], dtype=np.intp).reshape(len(numbers), size)
            self._groups.append((numbers, places.reshape(-1, 3, size + 3), columns))

    def express_in_inertial_frame(self, values: Array, rotations: Array) -> ExpressedTerms:
        """Return the terms in N.

        Args:
            values: Where the places of the terms point to.
            rotations: ``N_C_B`` of every frame, shape (n_frames, 3, 3).
        """
        partials, rest = np.zeros((len(self.frames), 3, self._n_u)), np.zeros((len(self.frames), 3, 3))
        for numbers, places, columns in self._groups:
            block = rotations[self.frames[numbers]] @ values[places]
            size = columns.shape[1]
            rest[numbers] = block[:, :, size:]
            partials[numbers[:, None], :, columns] = block[:, :, :size].transpose(0, 2, 1)
        return ExpressedTerms(partials, rest[:, :, 0], rest[:, :, 1], rest[:, :, 2])


class PathSums:
    """A forest of nodes, each with terms of its own on the path from the node above it.

    Args:
        own: Numbers of the terms of each node.
        above: The node above each, -1 for none.
        count: Of all terms.
    """

    def __init__(self, own: Sequence[Sequence[int]], above: Sequence[int], count: int) -> None:
        from scipy.sparse import csr_array

        rows = [k for k, some in enumerate(own) for _ in some]
        columns = [number for some in own for number in some]
        self._own = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(own), count))
        self._steps = [(k, above[k]) for k in _parents_first_order(above) if above[k] >= 0]

    def sum(self, values: Array) -> Array:
        """Return the terms' values added up along the path to each node; shapes (n_terms, …) and (n_nodes, …)."""
        total = np.asarray(self._own @ values.reshape(len(values), math.prod(values.shape[1:])))
        for k, up in self._steps:
            total[k] += total[up]
        return total.reshape(len(total), *values.shape[1:])


def _parents_first_order(above: Sequence[int]) -> list[int]:
    """Return the numbers of nodes so that each comes after the one above it."""
    depth = [-1] * len(above)
    for k in range(len(above)):
        path = [k]
        while depth[path[-1]] < 0 and above[path[-1]] >= 0:
            path.append(above[path[-1]])
        for node in reversed(path):
            depth[node] = 0 if above[node] < 0 else depth[above[node]] + 1
    return sorted(range(len(above)), key=depth.__getitem__)


def cross_rows(a: Array, b: Array) -> Array:
    """Return a × b, row by row, shape (n, 3)."""
    (a1, a2, a3), (b1, b2, b3) = a.T, b.T
    return np.stack((a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1), axis=1)


def cross_product_matrices(rho: Array) -> Array:
    """Return the matrices of w × rho as linear in w, shape (n, 3, 3)."""
    matrices = np.zeros((len(rho), 3, 3))
    x, y, z = rho.T
    matrices[:, 0, 1], matrices[:, 0, 2], matrices[:, 1, 2] = z, -y, x
    return matrices - matrices.transpose(0, 2, 1)


@dataclass(frozen=True, slots=True)
class AppliedVectors:
    """Forces on points, or torques on frames.

    Attributes:
        nodes: Number of the point or frame of each, shape (n,).
        loads: Number of the load it belongs to, shape (n,).
        vectors: In N's components, N or N·m, shape (n, 3).
    """

    nodes: Indices
    loads: Indices
    vectors: Array

    def over(self, count: int) -> Array:
        """Return their sum at each of ``count`` points or frames, shape (count, 3)."""
        total = np.zeros((count, 3))
        np.add.at(total, self.nodes, self.vectors)
        return total


@dataclass(frozen=True, slots=True)
class _LoadPiece:
    """A vector written in a frame, acting on a point or frame: sign times factor times components."""

    node: int
    load: int
    frame: int
    components: int
    factor: int
    sign: float


class _LoadPieceTable:
    """Pieces as columns."""

    def __init__(self, pieces: Sequence[_LoadPiece]) -> None:
        self._nodes = np.array([p.node for p in pieces], dtype=np.intp)
        self._loads = np.array([p.load for p in pieces], dtype=np.intp)
        self._frames = np.array([p.frame for p in pieces], dtype=np.intp)
        self._components = np.array([p.components for p in pieces], dtype=np.intp)[:, None] + np.arange(3)
        self._factors = np.array([p.factor for p in pieces], dtype=np.intp)
        self._signs = np.array([p.sign for p in pieces])

    def evaluated(self, numbers: Array, rotations: Array) -> AppliedVectors:
        """Return all of them."""
        vectors = (rotations[self._frames] @ numbers[self._components][:, :, None])[:, :, 0]
        return AppliedVectors(self._nodes, self._loads, (self._signs * numbers[self._factors])[:, None] * vectors)


class LoadTables:
    """Where the numbers of all loads are; those along pathways need the points' motion and are left to the caller.

    Args:
        loads: Of the mechanism.
        add: Takes three components that depend on the motion only, gives the place of their values.

    Attributes:
        scalars: Expressions of all loads, in order: components by frame, or a magnitude.
        magnitudes: Of loads along pathways: number of the load, and place of its magnitude among ``scalars``.
    """

    def __init__(self, loads: Sequence[Load], add: Callable[[Sequence[sm.Expr]], int]) -> None:
        scalars = [_load_scalars(load) for load in loads]
        self.scalars = [sm.sympify(e) for some in scalars for e in some]
        starts = np.cumsum([0, *map(len, scalars)]).tolist()
        one = len(self.scalars)  # the place of 1, after which the values come: see ``evaluated``
        on_points: list[_LoadPiece] = []
        on_frames: list[_LoadPiece] = []
        self.magnitudes: list[tuple[int, int]] = []
        for number, (load, at) in enumerate(zip(loads, starts, strict=False)):
            if isinstance(load, ForceLoad):
                pieces = enumerate(load.force)
                on_points += [_LoadPiece(load.point, number, frame, at + 3 * i, one, 1.0) for i, (frame, _) in pieces]
            elif isinstance(load, TorqueLoad):
                pieces = enumerate(load.torque)
                on_frames += [_LoadPiece(load.frame, number, frame, at + 3 * i, one, 1.0) for i, (frame, _) in pieces]
            elif isinstance(load, TorqueActuatorLoad):
                axis = [(frame, one + 1 + add(components)) for frame, components in load.axis]
                ends = [(node, sign) for node, sign in ((load.frame, 1.0), (load.reaction, -1.0)) if node >= 0]
                on_frames += [_LoadPiece(node, number, k, place, at, sign) for node, sign in ends for k, place in axis]
            else:
                self.magnitudes.append((number, at))
        self._on_points, self._on_frames = _LoadPieceTable(on_points), _LoadPieceTable(on_frames)

    def evaluated(self, scalars: Array, values: Array, rotations: Array) -> tuple[AppliedVectors, AppliedVectors]:
        """Return forces on points and torques on frames, those along pathways left out.

        Args:
            scalars: Values of ``self.scalars``.
            values: Where the places that ``add`` gave point to.
            rotations: ``N_C_B`` of every frame, shape (n_frames, 3, 3).
        """
        numbers = np.concatenate([scalars, [1.0], values])
        return self._on_points.evaluated(numbers, rotations), self._on_frames.evaluated(numbers, rotations)


def _load_scalars(load: Load) -> list[sm.Expr]:
    """Return all expressions that a load needs evaluated: three per vector term, or the one of an actuator."""
    if isinstance(load, ForceLoad):
        return [c for _, components in load.force for c in components]
    if isinstance(load, TorqueLoad):
        return [c for _, components in load.torque for c in components]
    return [load.torque if isinstance(load, TorqueActuatorLoad) else load.force]


@dataclass(frozen=True, slots=True)
class FrameMotion:
    """Motion of a frame in N: ``N_C_B``, angular velocity and its partials, angular acceleration at u' = 0."""

    rotation: Array
    omega: Array
    partials: Array
    alpha0: Array


@dataclass(frozen=True, slots=True)
class PointMotion:
    """Motion of a point in N: position from O, velocity and its partials, acceleration at u' = 0."""

    position: Array
    velocity: Array
    partials: Array
    acceleration0: Array


class NumericMechanism:
    """Evaluates a Mechanism.

    Args:
        mechanism: With bodies; velocities are taken as its records say.
        rates: True: rates of the direction cosines are evaluated too (:meth:`omega_from_rotation`).
    """

    def __init__(self, mechanism: Mechanism, *, rates: bool = False) -> None:
        self.mechanism = mechanism
        self._slots: dict[sm.Expr, int] = {}
        self._places: list[int] = []
        self._known_rates: dict[sm.Expr, sm.Expr] = {}
        m = mechanism
        self._column = {ui: k for k, ui in enumerate(m.u_all)}
        self._rates = m.rates(coordinate_rates(m.kinematics, m.u))
        self._rotations = [
            (self._add(f.rotation), self._add(self._rate(f.rotation)) if rates else -1) for f in m.frames
        ]
        self._set_up_frames()
        self._set_up_points()
        self._set_up_bodies()
        self._loads = LoadTables(m.loads, self._add)
        self._acts = {act.vector: [self._add(c) for _, c in act.vector] for acts in m.acts for act in acts}
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
        self._evaluate = GroupedEvaluation(self._arguments, list(self._slots))
        self._gather = np.array(self._places, dtype=np.intp)
        known = [*self._arguments, *self._pathway_symbols, *(s for sensed in m.sensed for s in sensed.symbols)]
        self._evaluate_forces = GroupedEvaluation([*known, *m.constraint_forces], self._loads.scalars)
        self._evaluate_potential = GroupedEvaluation(known, list(map(sm.sympify, m.potential_forces)))
        self._evaluate_z = GroupedEvaluation(known, list(map(sm.sympify, m.z_dot)))
        self.parameters = make_parameter_function(m)
        """Free and calculated parameters, in this order, from the free ones."""

    def set(self, t: float, q: Array, u_all: Array, z: Array, r: Array, parameters: Array) -> None:
        """Move the mechanism to a state; ``u_all`` includes auxiliary speeds, ``parameters`` calculated ones."""
        self._point = (t, *q, *u_all, *z, *r, *parameters)
        self._values = self._evaluate(*self._point)[self._gather]
        self._n_u = len(u_all)
        self._known_forces: dict[tuple[float, ...], tuple[AppliedVectors, AppliedVectors]] = {}
        self._known_pathways: dict[tuple[int, ...], tuple[float, float, list[Array]]] = {}
        self._frame_motion()
        for known in ("frames", "points", "_point_motion"):
            self.__dict__.pop(known, None)

    def kinematics(self) -> tuple[Array, Array]:
        """Return K and k0."""
        m = self.mechanism
        K, k0 = self._kinematics
        matrix = np.zeros((len(m.q), len(m.u)))
        matrix[self._K_places] = self._take(K, self._K_places[0].shape)
        return matrix, self._take(k0, (len(m.q),))

    def constraints(self) -> tuple[Array, Array, Array]:
        """Return A, b and gamma; without rows if there are no constraints."""
        n = len(self.mechanism.u)
        if self._constraints is None:
            return np.zeros((0, n)), np.zeros(0), np.zeros(0)
        A, b, gamma = self._constraints
        rows = len(self.mechanism.velocity_constraints.names) if self.mechanism.velocity_constraints else 0
        return self._take(A, (rows, n)), self._take(b, (rows,)), self._take(gamma, (rows,))

    def dynamics(self, constraint_forces: Sequence[float] = ()) -> tuple[Array, Array]:
        """Return M (n_u + n_aux square) and f of M u' = f, unconstrained, at the state of ``set``."""
        n, f = self._n_u, self.generalized_forces(constraint_forces)
        _, _, partials, a0 = self._point_motion
        mass, J = self._values[self._masses][:, None, None], partials[self._masscenters]
        R, omega = self._rotation[self._turning], self._omega[self._turning]
        W, inertia = self._omega_partials[self._turning], R @ self._values[self._inertias] @ R.transpose(0, 2, 1)
        momentum = (inertia @ omega[:, :, None])[:, :, 0]
        moment = (inertia @ self._alpha0[self._turning][:, :, None])[:, :, 0] + cross_rows(omega, momentum)
        J, W, left = J.reshape(-1, n), W.reshape(-1, n), (mass * J).reshape(-1, n)
        f -= left.T @ a0[self._masscenters].ravel() + W.T @ moment.ravel()
        return J.T @ left + W.T @ (inertia @ W.reshape(-1, 3, n)).reshape(-1, n), f

    def generalized_forces(self, constraint_forces: Sequence[float] = ()) -> Array:
        """Return the generalized active forces, shape (n_u + n_aux,)."""
        Q = np.zeros(self._n_u)
        count = len(self.mechanism.potential_forces)
        Q[:count] = self._potential_forces()
        forces, torques = self._applied(constraint_forces)
        for actions, partials in ((forces, self._point_motion[2]), (torques, self._omega_partials)):
            Q += actions.over(len(partials)).ravel() @ partials.reshape(-1, self._n_u)
        return Q

    def force_sizes(self, constraint_forces: Sequence[float] = ()) -> Array:
        """Return the sums of the magnitudes of each single force's and torque's part of the generalized forces."""
        sizes = np.zeros(self._n_u)
        count = len(self.mechanism.potential_forces)
        sizes[:count] = np.abs(self._potential_forces())
        forces, torques = self._applied(constraint_forces)
        for actions, partials in ((forces, self._point_motion[2]), (torques, self._omega_partials)):
            sizes += np.abs(np.einsum("ni,nij->nj", actions.vectors, partials[actions.nodes])).sum(axis=0)
        return sizes

    def powers(self) -> list[float]:
        """Return the power in W of each load (pathways and actuators count once)."""
        power = np.zeros(len(self.mechanism.loads))
        forces, torques = self._applied(())
        for actions, velocities in ((forces, self._point_motion[1]), (torques, self._omega)):
            np.add.at(power, actions.loads, np.sum(velocities[actions.nodes] * actions.vectors, axis=1))
        return power.tolist()

    def potential_power(self, u: Array) -> float:
        """Return the power in W of the potential forces of a Lagrangian at the speeds u."""
        return float(self._potential_forces() @ u)

    def _potential_forces(self) -> Array:
        """Return the potential forces along the speeds at the present state."""
        return self._evaluate_potential(*self._point, *self._pathway_values())

    def kinetic_energy(self) -> float:
        """Return the kinetic energy in N, J."""
        v = self._point_motion[1][self._masscenters]
        w = (self._rotation[self._turning].transpose(0, 2, 1) @ self._omega[self._turning][:, :, None])[:, :, 0]
        spin = np.einsum("ki,kij,kj->", w, self._values[self._inertias], w)
        return float(self._values[self._masses] @ np.sum(v * v, axis=1) + spin) / 2

    def momenta(self) -> Array:
        """dT/du of all speeds, auxiliary ones included: sum of m v · v_r + H · w_r."""
        _, v, J, _ = self._point_motion
        R, at = self._rotation[self._turning], self._turning
        spin = R @ (self._values[self._inertias] @ (R.transpose(0, 2, 1) @ self._omega[at][:, :, None]))
        linear = self._values[self._masses][:, None] * v[self._masscenters]
        total = np.einsum("ki,kij->j", linear, J[self._masscenters])
        return np.asarray(total + np.einsum("ki,kij->j", spin[:, :, 0], self._omega_partials[at]))

    def vector(self, terms: VectorTerms) -> Array:
        """Return a vector that was registered when the object was made (``acts``), components in N."""
        parts = zip(terms, self._acts[terms], strict=True)
        return sum((self.frames[k].rotation @ self._take(at, (3,)) for (k, _), at in parts), np.zeros(3))

    def z_dot(self) -> Array:
        """Return derivatives of the auxiliary states."""
        return self._evaluate_z(*self._point, *self._pathway_values())

    # ------------------------------------------------------------------ collecting expressions

    def _set_up_frames(self) -> None:
        """Number the expressions of rotations and angular velocities, and the chain of frames above each."""
        frames, terms = self.mechanism.frames, [self._add_terms(f.angular_velocity) for f in self.mechanism.frames]
        starts = np.array([start for start, _ in self._rotations], dtype=np.intp)  # none of a Lagrangian alone
        self._rotation_places = (starts[:, None] + np.arange(9)).reshape(-1, 3, 3)
        self._parents = [(i, frame.parent) for i, frame in enumerate(frames) if frame.parent >= 0]
        self._frame_terms = TermGroups([term for some in terms for term in some], len(self._column))
        above = [-1, *(frame.reference for frame in frames[1:])]
        self._frame_paths = PathSums(_number_terms(terms), above, sum(map(len, terms)))

    def _set_up_points(self) -> None:
        """Number the terms of all positions, then of all given velocities, from which velocity sums start."""
        points = self.mechanism.points
        positions = [self._add_terms(p.position or (), twice=True) for p in points]
        velocities = [self._add_terms(p.velocity or ()) for p in points]
        terms = [term for some in (*positions, *velocities) for term in some]
        count = sum(map(len, positions))
        self._of_position = (np.arange(len(terms)) < count)[:, None]
        self._point_terms = TermGroups(terms, len(self._column))
        numbers = _number_terms([*positions, *velocities])
        places, given = numbers[: len(points)], numbers[len(points) :]
        above = [p.parent for p in points]
        self._position_paths = PathSums(places, above, len(terms))
        own = [given[k] if p.velocity is not None else places[k] for k, p in enumerate(points)]
        above = [p.parent if p.velocity is None else -1 for p in points]
        self._velocity_paths = PathSums(own, above, len(terms))

    def _set_up_bodies(self) -> None:
        """Number the expressions of masses and inertias; particles have a mass only."""
        bodies = self.mechanism.bodies
        self._masscenters = np.array([body.masscenter for body in bodies], dtype=np.intp)
        self._masses = np.array([self._add([body.mass]) for body in bodies], dtype=np.intp)
        rigid = [(body.frame, self._add(body.inertia)) for body in bodies if body.inertia is not None]
        self._turning = np.array([frame for frame, _ in rigid], dtype=np.intp)
        self._inertias = (np.array([at for _, at in rigid], dtype=np.intp)[:, None] + np.arange(9)).reshape(-1, 3, 3)

    def _add(self, expressions: sm.MatrixBase | Sequence[sm.Expr]) -> int:
        """Return the place where values of expressions begin; equal ones are evaluated once."""
        start = len(self._places)
        self._places += [self._slots.setdefault(sm.sympify(e), len(self._slots)) for e in expressions]
        return start

    def _rate(self, expressions: sm.MatrixBase | Sequence[sm.Expr]) -> list[sm.Expr]:
        """Return the time derivatives of expressions, each formed once."""
        known = self._known_rates
        for e in map(sm.sympify, expressions):
            if e not in known:
                known[e] = directional_derivative(e, self._rates)
        return [known[sm.sympify(e)] for e in expressions]

    def _add_terms(self, terms: VectorTerms, *, twice: bool = False) -> list[TermLocation]:
        """Note where the numbers of each term are; ``twice``: components are positions, partials are of their rates."""
        result = []
        for frame, components in terms:
            rate = self._rate(components)
            linear = rate if twice else [sm.sympify(c) for c in components]
            free = set().union(*(e.free_symbols for e in linear))
            speeds = sorted(free & self._column.keys(), key=self._column.__getitem__)
            second = self._rate(rate) if twice else [sm.S.Zero] * 3
            rows = [
                [*(partial_derivative(linear[i], ui) for ui in speeds), components[i], rate[i], second[i]]
                for i in range(3)
            ]
            columns = np.array([self._column[ui] for ui in speeds], dtype=np.intp)
            result.append(TermLocation(frame, columns, self._add([e for row in rows for e in row])))
        return result

    # ------------------------------------------------------------------ evaluating

    def _take(self, start: int, shape: tuple[int, ...]) -> Array:
        """Return evaluated values from a place on, as an array of this shape."""
        return self._values[start : start + math.prod(shape)].reshape(shape)

    def _frame_motion(self) -> None:
        """Compute rotations from the parents, then angular velocities from the references, then accelerations."""
        local = self._values[self._rotation_places]
        for i, parent in self._parents:
            local[i] = local[parent] @ local[i]
        self._rotation = local
        terms = self._frame_terms.express_in_inertial_frame(self._values, local)
        self._omega = self._frame_paths.sum(terms.vector)
        self._omega_partials = self._frame_paths.sum(terms.partials)
        turned = cross_rows(self._omega[self._frame_terms.frames], terms.vector)
        self._alpha0 = self._frame_paths.sum(terms.rate + turned)

    @cached_property
    def frames(self) -> list[FrameMotion]:
        """The motion of each frame."""
        motions = zip(self._rotation, self._omega, self._omega_partials, self._alpha0, strict=True)
        return [FrameMotion(*motion) for motion in motions]

    def omega_from_rotation(self, i: int) -> Array:
        """Return the angular velocity of frame i in its parent, in its own axes, from the direction cosines' rates."""
        start, rate_at = self._rotations[i]
        if rate_at < 0:
            raise ValueError("it was built without the rates of the rotations")
        skew = self._take(start, (3, 3)).T @ self._take(rate_at, (3, 3))
        return np.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]]) / 2

    @cached_property
    def points(self) -> list[PointMotion]:
        """The motion of each point."""
        return [PointMotion(*motion) for motion in zip(*self._point_motion, strict=True)]

    @cached_property
    def _point_motion(self) -> tuple[Array, Array, Array, Array]:
        """Compute position, velocity, partial velocities, acceleration: sums over terms from O or a given velocity."""
        terms = self._point_terms.express_in_inertial_frame(self._values, self._rotation)
        frames, fixed = self._point_terms.frames, self._of_position
        omega, rho = self._omega[frames], terms.vector
        turned = cross_rows(omega, rho)
        v = np.where(fixed, turned + terms.rate, rho)
        inner = turned + 2 * terms.rate
        a = np.where(
            fixed, cross_rows(self._alpha0[frames], rho) + cross_rows(omega, inner) + terms.second, terms.rate + turned
        )
        J = terms.partials + cross_product_matrices(rho * fixed) @ self._omega_partials[frames]
        moving = self._velocity_paths
        return self._position_paths.sum(rho), moving.sum(v), moving.sum(J), moving.sum(a)

    # ------------------------------------------------------------------ loads

    def pathway(self, load: PathwayLoad) -> tuple[float, float, list[Array]]:
        """Length, rate, and the unit vectors of the segments from first to last point."""
        if load.points not in self._known_pathways:
            self._known_pathways[load.points] = self._find_pathway(load)
        return self._known_pathways[load.points]

    def _find_pathway(self, load: PathwayLoad) -> tuple[float, float, list[Array]]:
        """Compute length in m, rate in m/s, and the unit vector of each segment in N."""
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
        """Return length and rate of each pathway load, in order."""
        values: list[float] = []
        for load in self.mechanism.loads:
            if isinstance(load, PathwayLoad):
                values += self.pathway(load)[:2]
        return values + self._sensed_values()

    def _sensed_values(self) -> list[float]:
        """Return the components of what expressions name of the motion, in order."""
        found: list[float] = []
        for sensed in self.mechanism.sensed:
            if sensed.kind == "angular velocity":
                found += self.frames[sensed.number].omega.tolist()
            else:
                point = self.points[sensed.number]
                found += (point.position if sensed.kind == "position" else point.velocity).tolist()
        return found

    def _applied(self, constraint_forces: Sequence[float]) -> tuple[AppliedVectors, AppliedVectors]:
        """Return all forces on points and torques on frames."""
        key = tuple(constraint_forces)
        if key not in self._known_forces:
            self._known_forces[key] = self._find_applied(key)
        return self._known_forces[key]

    def _find_applied(self, constraint_forces: Sequence[float]) -> tuple[AppliedVectors, AppliedVectors]:
        """Evaluate all forces in N and torques in N m at the present state, forces along pathways included."""
        padded = [*constraint_forces, *[0.0] * (len(self.mechanism.constraint_forces) - len(constraint_forces))]
        scalars = self._evaluate_forces(*self._point, *self._pathway_values(), *padded)
        forces, torques = self._loads.evaluated(scalars, self._values, self._rotation)
        along = [piece for number, at in self._loads.magnitudes for piece in self._segments(number, scalars[at])]
        if not along:
            return forces, torques
        points, loads, vectors = zip(*along, strict=True)
        together = AppliedVectors(
            np.concatenate([forces.nodes, points]),
            np.concatenate([forces.loads, loads]),
            np.concatenate([forces.vectors, vectors]),
        )
        return together, torques

    def _segments(self, number: int, force: float) -> list[tuple[int, int, Array]]:
        """(point, number of the load, force); expansile positive: each segment pushes its two ends apart."""
        load = self.mechanism.loads[number]
        assert isinstance(load, PathwayLoad)
        result = []
        for (a, b), e in zip(itertools.pairwise(load.points), self.pathway(load)[2], strict=True):
            result += [(a, number, -force * e), (b, number, force * e)]
        return result


def _number_terms(parts: Sequence[Sequence[TermLocation]]) -> list[list[int]]:
    """Return the numbers of the terms of each part, counted through all."""
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return [list(range(start, end)) for start, end in itertools.pairwise(ends)]
