"""Kinematics and Newton-Euler equations of a Mechanism in NumPy, at one state at a time.

Nothing is composed symbolically: only the local relations are evaluated; everything between bodies is matrix
arithmetic. It serves the checks, and as a reference that shares nothing with the formulations.

With the partial velocities J (v_P = J u + v_t) of every mass centre and frame, the projected Newton-Euler equations are

    sum_B [ m Jvᵀ Jv + Jwᵀ I Jw ] u' = sum_B [ Jvᵀ (F - m a0) + Jwᵀ (T - I alpha0 - w × I w) ]

where a0, alpha0 are the accelerations at u' = 0 (Kane and Levinson, Dynamics, 1985, ch. 6; Moore, Learn Multibody
Dynamics, "Unconstrained Equations of Motion with the TMT Method").

Vectors of a ``Mechanism`` as numbers: all terms are evaluated at once, and summed along the paths from the origin.

A term is a vector written in one frame. Its numbers, in that frame, are three rows of (partials with respect to the
speeds it contains, component, rate of the component, second rate).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import make_parameter_completion_function
from mb2fmu.mechanics.mechanism.numeric.numeric_loads import AppliedForceOrTorqueVectors, NumericLoadEvaluator
from mb2fmu.mechanics.mechanism.numeric.same_form_expression_evaluation import make_same_form_expression_evaluator
from mb2fmu.mechanics.mechanism.numeric.vector_term_derivatives import make_term_derivatives
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Mechanism,
    PathwayLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import coordinate_rates

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
_CROSS_PRODUCT_COLUMNS = np.array([[1, 2, 0, 2, 0, 1], [2, 0, 1, 1, 2, 0]], dtype=np.intp)
"""Components of a and b in the products whose differences are those of a × b."""


@dataclass(frozen=True, slots=True)
class VectorTermLocation:
    """Place of the numbers of a vector that is written in a frame.

    Attributes:
        frame: Number of the frame.
        columns: Speeds that its partials are not zero for, indices into ``u_all``.
        start: Position of its three rows.
    """

    frame: int
    columns: Indices
    start: int


@dataclass(frozen=True, slots=True)
class VectorTermsInInertialFrame:
    """Terms in N's components: partials (n_terms, 3, n_u), vector, first and second rate (n_terms, 3)."""

    partials: Array
    vector: Array
    rate: Array
    second_rate: Array


class _VectorTermGroups:
    """Terms that are evaluated together, in groups of the same number of speeds.

    Args:
        terms: Terms, in any order; results are in this order.
        n_u: Number of all speeds.
    """

    def __init__(self, terms: Sequence[VectorTermLocation], n_u: int) -> None:
        self.frames = np.array([term.frame for term in terms], dtype=np.intp)
        self._n_u = n_u
        sizes = [len(term.columns) for term in terms]
        self._groups: list[tuple[Indices, Indices, Indices]] = []  # (numbers of terms, places of values, columns)
        for size in sorted(set(sizes)):
            numbers = np.array(
                [term_number for term_number, term_size in enumerate(sizes) if term_size == size], dtype=np.intp
            )
            starts = np.array([terms[term_number].start for term_number in numbers], dtype=np.intp)
            value_positions = starts[:, None] + np.arange(3 * (size + 3))
            columns = np.array([terms[term_number].columns for term_number in numbers], dtype=np.intp).reshape(
                len(numbers), size
            )
            self._groups.append((numbers, value_positions.reshape(-1, 3, size + 3), columns))

    def express_in_inertial_frame(self, values: Array, rotations: Array) -> VectorTermsInInertialFrame:
        """Return the terms in N.

        Args:
            values: Array that the positions of the terms refer to.
            rotations: ``N_C_B`` of every frame, shape (n_frames, 3, 3).
        """
        partials, remaining_columns = np.zeros((len(self.frames), 3, self._n_u)), np.zeros((len(self.frames), 3, 3))
        for numbers, value_positions, columns in self._groups:
            block = rotations[self.frames[numbers]] @ values[value_positions]
            size = columns.shape[1]
            remaining_columns[numbers] = block[:, :, size:]
            partials[numbers[:, None], :, columns] = block[:, :, :size].transpose(0, 2, 1)
        return VectorTermsInInertialFrame(
            partials, remaining_columns[:, :, 0], remaining_columns[:, :, 1], remaining_columns[:, :, 2]
        )


class _KinematicPathSums:
    """A forest of nodes, each with terms on the path from its parent.

    Args:
        own_terms: Numbers of the terms of each node.
        parents: The parent of each node, -1 for none.
    """

    def __init__(self, own_terms: Sequence[Sequence[int]], parents: Sequence[int]) -> None:
        self._node_count = len(own_terms)
        self._nodes = [node for node, node_terms in enumerate(own_terms) if node_terms]
        self._terms = np.array([number for node_terms in own_terms for number in node_terms], dtype=np.intp)
        counts = [len(own_terms[node]) for node in self._nodes]
        self._first_terms = np.cumsum([0, *counts[:-1]]) if counts else np.zeros(0, dtype=np.intp)
        self._steps = [(node, parents[node]) for node in _parents_first_order(parents) if parents[node] >= 0]

    def sum(self, values: Array) -> Array:
        """Return the terms' values added up along the path to each node; shapes (n_terms, …) and (n_nodes, …)."""
        total = np.zeros((self._node_count, *values.shape[1:]))
        if self._nodes:
            total[self._nodes] = np.add.reduceat(values[self._terms], self._first_terms, axis=0)
        for node, parent in self._steps:
            total[node] += total[parent]
        return total


def _parents_first_order(parents: Sequence[int]) -> list[int]:
    """Return the numbers of nodes such that each comes after its parent."""
    depth = [-1] * len(parents)
    for index in range(len(parents)):
        path = [index]
        while depth[path[-1]] < 0 and parents[path[-1]] >= 0:
            path.append(parents[path[-1]])
        for node in reversed(path):
            depth[node] = 0 if parents[node] < 0 else depth[parents[node]] + 1
    return sorted(range(len(parents)), key=depth.__getitem__)


def _cross_product_by_rows(a: Array, b: Array) -> Array:
    """Return a × b, row by row, shape (n, 3)."""
    products = a[:, _CROSS_PRODUCT_COLUMNS[0]] * b[:, _CROSS_PRODUCT_COLUMNS[1]]
    return np.asarray(products[:, :3] - products[:, 3:])


def _cross_product_matrices(rho: Array) -> Array:
    """Return the matrices of w × rho as linear in w, shape (n, 3, 3)."""
    matrices = np.zeros((len(rho), 3, 3))
    x, y, z = rho.T
    matrices[:, 0, 1], matrices[:, 0, 2], matrices[:, 1, 2] = z, -y, x
    return matrices - matrices.transpose(0, 2, 1)


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


class MechanismEvaluator:
    """Evaluates a Mechanism.

    Args:
        mechanism: A mechanism with bodies; velocities are those of its records.
        rates: True: rates of the direction cosines are evaluated too (:meth:`omega_from_rotation`).
    """

    def __init__(self, mechanism: Mechanism, *, rates: bool = False) -> None:
        self.mechanism = mechanism
        self._expression_indices: dict[sm.Expr, int] = {}
        self._value_indices: list[int] = []
        m = mechanism
        self._speed_column = {speed: k for k, speed in enumerate(m.u_all)}
        rate_of_symbol = m.rates(coordinate_rates(m.kinematics, m.u))
        self._derivatives = make_term_derivatives(tuple(rate_of_symbol.items()), m.u_all)
        self._rotations = [
            (
                self._register_expressions(frame.rotation),
                self._register_expressions(self._derivatives.differentiate(frame.rotation)) if rates else -1,
            )
            for frame in m.frames
        ]
        self._set_up_frames()
        self._set_up_points()
        self._set_up_bodies()
        self._load_tables = NumericLoadEvaluator(m.loads, self._register_expressions)
        self._set_up_relations()
        self._compile_functions()
        self.parameters = make_parameter_completion_function(m)
        """Free and calculated parameters, in this order, from the free ones."""

    def set_state(self, t: float, q: Array, u_all: Array, z: Array, r: Array, parameters: Array) -> None:
        """Move the mechanism to a state; ``u_all`` includes auxiliary speeds, ``parameters`` calculated ones."""
        self._state_values = (t, *q, *u_all, *z, *r, *parameters)
        self._values = self._evaluate(*self._state_values)[self._value_gather]
        self._n_u = len(u_all)
        self._known_forces: dict[
            tuple[float, ...], tuple[AppliedForceOrTorqueVectors, AppliedForceOrTorqueVectors]
        ] = {}
        self._known_pathways: dict[tuple[int, ...], tuple[float, float, list[Array]]] = {}
        self._compute_frame_motion()
        for cached_name in ("frames", "points", "_point_arrays", "_alpha0", "_acceleration0"):
            self.__dict__.pop(cached_name, None)

    def kinematic_matrices(self) -> tuple[Array, Array]:
        """Return K and k0."""
        m = self.mechanism
        K, k0 = self._kinematics
        matrix = np.zeros((len(m.q), len(m.u)))
        matrix[self._K_positions] = self._read_values(K, self._K_positions[0].shape)
        return matrix, self._read_values(k0, (len(m.q),))

    def velocity_constraint_terms(self) -> tuple[Array, Array, Array]:
        """Return A, b and gamma; without rows if there are no constraints."""
        n = len(self.mechanism.u)
        if self._constraints is None:
            return np.zeros((0, n)), np.zeros(0), np.zeros(0)
        A, b, gamma = self._constraints
        rows = len(self.mechanism.velocity_constraints.names) if self.mechanism.velocity_constraints else 0
        return self._read_values(A, (rows, n)), self._read_values(b, (rows,)), self._read_values(gamma, (rows,))

    def unconstrained_mass_and_forcing(self, constraint_forces: Sequence[float] = ()) -> tuple[Array, Array]:
        """Return M (n_u + n_aux square) and f of M u' = f, unconstrained, at the state of ``set``."""
        n, f = self._n_u, self.generalized_forces(constraint_forces)
        partials, a0 = self._point_arrays[2], self._acceleration0
        mass, J = self._values[self._masses][:, None, None], partials[self._masscenters]
        R, omega = self._rotation[self._rigid_frames], self._omega[self._rigid_frames]
        W, inertia = self._omega_partials[self._rigid_frames], R @ self._values[self._inertias] @ R.transpose(0, 2, 1)
        momentum = (inertia @ omega[:, :, None])[:, :, 0]
        moment = (inertia @ self._alpha0[self._rigid_frames][:, :, None])[:, :, 0] + _cross_product_by_rows(
            omega, momentum
        )
        J, W, mass_times_partials = J.reshape(-1, n), W.reshape(-1, n), (mass * J).reshape(-1, n)
        f -= mass_times_partials.T @ a0[self._masscenters].ravel() + W.T @ moment.ravel()
        return J.T @ mass_times_partials + W.T @ (inertia @ W.reshape(-1, 3, n)).reshape(-1, n), f

    def generalized_forces(self, constraint_forces: Sequence[float] = ()) -> Array:
        """Return the generalized active forces, shape (n_u + n_aux,)."""
        Q = np.zeros(self._n_u)
        count = len(self.mechanism.potential_forces)
        Q[:count] = self._potential_forces()
        forces, torques = self._get_applied_vectors(constraint_forces)
        for actions, partials in ((forces, self._point_arrays[2]), (torques, self._omega_partials)):
            Q += actions.sum_by_node(len(partials)).ravel() @ partials.reshape(-1, self._n_u)
        return Q

    def force_magnitude_sums(self, constraint_forces: Sequence[float] = ()) -> Array:
        """Return the sums of the magnitudes of each single force's and torque's part of the generalized forces."""
        sizes = np.zeros(self._n_u)
        count = len(self.mechanism.potential_forces)
        sizes[:count] = np.abs(self._potential_forces())
        forces, torques = self._get_applied_vectors(constraint_forces)
        for actions, partials in ((forces, self._point_arrays[2]), (torques, self._omega_partials)):
            sizes += np.abs(np.einsum("ni,nij->nj", actions.vectors, partials[actions.nodes])).sum(axis=0)
        return sizes

    def powers(self) -> list[float]:
        """Return the power in W of each load (pathways and actuators count once)."""
        power = np.zeros(len(self.mechanism.loads))
        forces, torques = self._get_applied_vectors(())
        for actions, velocities in ((forces, self._point_arrays[1]), (torques, self._omega)):
            np.add.at(power, actions.loads, np.sum(velocities[actions.nodes] * actions.vectors, axis=1))
        return power.tolist()

    def potential_power(self, u: Array) -> float:
        """Return the power in W of the potential forces of a Lagrangian at the speeds u."""
        return float(self._potential_forces() @ u)

    def _potential_forces(self) -> Array:
        """Return the potential forces along the speeds at the present state."""
        return self._evaluate_potential(*self._state_values, *self._list_pathway_values())

    def kinetic_energy(self) -> float:
        """Return the kinetic energy in N, J."""
        v = self._point_arrays[1][self._masscenters]
        w = (self._rotation[self._rigid_frames].transpose(0, 2, 1) @ self._omega[self._rigid_frames][:, :, None])[
            :, :, 0
        ]
        rotational_energy = np.einsum("ki,kij,kj->", w, self._values[self._inertias], w)
        return float(self._values[self._masses] @ np.sum(v * v, axis=1) + rotational_energy) / 2

    def momenta(self) -> Array:
        """Return dT/du of all speeds, auxiliary ones included: sum of m v · v_r + H · w_r."""
        _, v, J = self._point_arrays
        R, rigid_frames = self._rotation[self._rigid_frames], self._rigid_frames
        rotational_momentum = R @ (
            self._values[self._inertias] @ (R.transpose(0, 2, 1) @ self._omega[rigid_frames][:, :, None])
        )
        linear = self._values[self._masses][:, None] * v[self._masscenters]
        total = np.einsum("ki,kij->j", linear, J[self._masscenters])
        return np.asarray(
            total + np.einsum("ki,kij->j", rotational_momentum[:, :, 0], self._omega_partials[rigid_frames])
        )

    def evaluate_vector(self, terms: VectorTerms) -> Array:
        """Return a vector of a force application, components in N."""
        terms_and_positions = zip(terms, self._application_values[terms], strict=True)
        return sum(
            (self.frames[k].rotation @ self._read_values(position, (3,)) for (k, _), position in terms_and_positions),
            np.zeros(3),
        )

    def mass_matrix_scale(self) -> Array:
        """Return the diagonal that M would have if nothing cancelled in its partial velocities, shape (n_u + n_aux,).

        An entry of M's diagonal that is smaller than this by the square of round-off is zero: the speed moves no mass.
        """
        terms = self._frame_terms.express_in_inertial_frame(self._values, self._rotation)
        turning = self._frame_paths.sum(np.linalg.norm(terms.partials, axis=1))
        terms, frames = (
            self._point_terms.express_in_inertial_frame(self._values, self._rotation),
            self._point_terms.frames,
        )
        arms = np.linalg.norm(terms.vector, axis=1, keepdims=True) * self._is_position_term
        moving = self._velocity_paths.sum(np.linalg.norm(terms.partials, axis=1) + arms * turning[frames])
        masses = np.abs(self._values[self._masses])
        inertias = np.linalg.norm(self._values[self._inertias], axis=(1, 2))
        return np.asarray(masses @ moving[self._masscenters] ** 2 + inertias @ turning[self._rigid_frames] ** 2)

    def z_dot(self) -> Array:
        """Return derivatives of the auxiliary states."""
        return self._evaluate_z(*self._state_values, *self._list_pathway_values())

    # ------------------------------------------------------------------ collecting expressions

    def _set_up_frames(self) -> None:
        """Number the expressions of rotations and angular velocities, and the chain of frames above each."""
        frames, terms = self.mechanism.frames, [self._register_terms(f.angular_velocity) for f in self.mechanism.frames]
        starts = np.array([start for start, _ in self._rotations], dtype=np.intp)  # none of a Lagrangian alone
        self._rotation_positions = (starts[:, None] + np.arange(9)).reshape(-1, 3, 3)
        self._parents = [(i, frame.parent) for i, frame in enumerate(frames) if frame.parent >= 0]
        self._frame_terms = _VectorTermGroups(
            [term for frame_terms in terms for term in frame_terms], len(self._speed_column)
        )
        reference_numbers = [-1, *(frame.reference for frame in frames[1:])]
        self._frame_paths = _KinematicPathSums(_number_terms(terms), reference_numbers)

    def _set_up_points(self) -> None:
        """Number the terms of all positions, then of all given velocities, from which velocity sums start."""
        points = self.mechanism.points
        positions = [self._register_terms(point.position or (), is_position=True) for point in points]
        velocities = [self._register_terms(point.velocity or ()) for point in points]
        terms = [term for point_terms in (*positions, *velocities) for term in point_terms]
        count = sum(map(len, positions))
        self._is_position_term = (np.arange(len(terms)) < count)[:, None]
        self._point_terms = _VectorTermGroups(terms, len(self._speed_column))
        term_numbers = _number_terms([*positions, *velocities])
        position_terms, velocity_terms = term_numbers[: len(points)], term_numbers[len(points) :]
        parent_numbers = [point.parent for point in points]
        self._position_paths = _KinematicPathSums(position_terms, parent_numbers)
        own_terms = [
            velocity_terms[k] if point.velocity is not None else position_terms[k] for k, point in enumerate(points)
        ]
        parent_numbers = [point.parent if point.velocity is None else -1 for point in points]
        self._velocity_paths = _KinematicPathSums(own_terms, parent_numbers)

    def _set_up_bodies(self) -> None:
        """Number the expressions of masses and inertias; particles have a mass only."""
        bodies = self.mechanism.bodies
        self._masscenters = np.array([body.masscenter for body in bodies], dtype=np.intp)
        self._masses = np.array([self._register_expressions([body.mass]) for body in bodies], dtype=np.intp)
        rigid = [(body.frame, self._register_expressions(body.inertia)) for body in bodies if body.inertia is not None]
        self._rigid_frames = np.array([frame for frame, _ in rigid], dtype=np.intp)
        self._body_frames = np.array([max(body.frame, 0) for body in bodies], dtype=np.intp)
        self._inertias = (np.array([position for _, position in rigid], dtype=np.intp)[:, None] + np.arange(9)).reshape(
            -1, 3, 3
        )

    def _set_up_relations(self) -> None:
        """Number the expressions of q' = K u + k0, of the constraints, and of where constraint forces act."""
        m, register = self.mechanism, self._register_expressions
        self._application_values = {
            application.vector: [register(components) for _, components in application.vector]
            for applications in m.force_applications
            for application in applications
        }
        entries = m.kinematics.matrix.todok()
        self._K_positions = tuple(np.array(list(entries), dtype=np.intp).reshape(-1, 2).T)
        self._kinematics = (register(list(entries.values())), register(m.kinematics.offset))
        rows = m.velocity_constraints
        self._constraints = None if rows is None else tuple(map(register, (rows.jacobian, rows.offset, rows.bias)))

    def _compile_functions(self) -> None:
        """Compile functions of a state: all registered expressions, forces, potential forces, z'."""
        m = self.mechanism
        calculated = [assignment.symbol for assignment in m.calculated_parameters]
        arguments = [m.t, *m.q, *m.u_all, *m.z, *m.r, *m.p, *calculated]
        self._evaluate = make_same_form_expression_evaluator(tuple(arguments), tuple(self._expression_indices))
        self._value_gather = np.array(self._value_indices, dtype=np.intp)
        pathways = [load for load in m.loads if isinstance(load, PathwayLoad)]
        known_symbols = [*arguments, *(symbol for load in pathways for symbol in (load.length, load.rate))]
        known_symbols += [symbol for vector in m.motion_vectors for symbol in vector.symbols]
        self._evaluate_forces = make_same_form_expression_evaluator(
            (*known_symbols, *m.constraint_forces), tuple(self._load_tables.scalars)
        )
        self._evaluate_potential = make_same_form_expression_evaluator(
            tuple(known_symbols), tuple(map(sm.sympify, m.potential_forces))
        )
        self._evaluate_z = make_same_form_expression_evaluator(tuple(known_symbols), tuple(map(sm.sympify, m.z_dot)))

    def _register_expressions(self, expressions: sm.MatrixBase | Sequence[sm.Expr]) -> int:
        """Return the position at which values of these expressions begin; equal ones are evaluated once."""
        start = len(self._value_indices)
        self._value_indices += [
            self._expression_indices.setdefault(sm.sympify(expression), len(self._expression_indices))
            for expression in expressions
        ]
        return start

    def _register_terms(self, terms: VectorTerms, *, is_position: bool = False) -> list[VectorTermLocation]:
        """Register each term's expressions; ``is_position``: components are positions, partials are of their rates."""
        result = []
        for frame, components in terms:
            speeds, numbers = self._derivatives.form_rows(tuple(components), is_position=is_position)
            columns = np.array([self._speed_column[speed] for speed in speeds], dtype=np.intp)
            result.append(VectorTermLocation(frame, columns, self._register_expressions(numbers)))
        return result

    # ------------------------------------------------------------------ evaluating

    def _read_values(self, start: int, shape: tuple[int, ...]) -> Array:
        """Return evaluated values from a place on, as an array of this shape."""
        return self._values[start : start + math.prod(shape)].reshape(shape)

    def _compute_frame_motion(self) -> None:
        """Compute rotations from the parents, then angular velocities from the references."""
        local = self._values[self._rotation_positions]
        for i, parent in self._parents:
            local[i] = local[parent] @ local[i]
        self._rotation = local
        self._rotated_frame_terms = self._frame_terms.express_in_inertial_frame(self._values, local)
        self._omega = self._frame_paths.sum(self._rotated_frame_terms.vector)
        self._omega_partials = self._frame_paths.sum(self._rotated_frame_terms.partials)

    @cached_property
    def _alpha0(self) -> Array:
        """The angular acceleration of each frame at u' = 0: who asks for velocities alone does not need it."""
        terms = self._rotated_frame_terms
        rotated = _cross_product_by_rows(self._omega[self._frame_terms.frames], terms.vector)
        return self._frame_paths.sum(terms.rate + rotated)

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
        skew = self._read_values(start, (3, 3)).T @ self._read_values(rate_at, (3, 3))
        return np.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]]) / 2

    @cached_property
    def points(self) -> list[PointMotion]:
        """The motion of each point."""
        motions = zip(*self._point_arrays, self._acceleration0, strict=True)
        return [PointMotion(*motion) for motion in motions]

    def stack_body_velocities(self) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
        """Return the motion of all mass centres and of all bodies' frames but for their accelerations.

        Position, velocity and its partials of the mass centres; rotation, angular velocity and its partials of the
        frames; one body after the other in each array. A particle has the frame N.
        """
        position, velocity, partials = (array[self._masscenters] for array in self._point_arrays)
        rotation, omega, omega_partials = (
            array[self._body_frames] for array in (self._rotation, self._omega, self._omega_partials)
        )
        return (position, velocity, partials), (rotation, omega, omega_partials)

    def stack_body_accelerations(self) -> tuple[Array, Array]:
        """Return accelerations of all mass centres, and angular accelerations of all bodies' frames, at u' = 0."""
        return self._acceleration0[self._masscenters], self._alpha0[self._body_frames]

    @cached_property
    def _point_arrays(self) -> tuple[Array, Array, Array]:
        """Compute position, velocity and partial velocities: sums over terms from O or a given velocity."""
        self._rotated_point_terms = self._point_terms.express_in_inertial_frame(self._values, self._rotation)
        terms, frames, is_position = self._rotated_point_terms, self._point_terms.frames, self._is_position_term
        self._transport_velocity = _cross_product_by_rows(self._omega[frames], terms.vector)
        v = np.where(is_position, self._transport_velocity + terms.rate, terms.vector)
        J = terms.partials + _cross_product_matrices(terms.vector * is_position) @ self._omega_partials[frames]
        return self._position_paths.sum(terms.vector), self._velocity_paths.sum(v), self._velocity_paths.sum(J)

    @cached_property
    def _acceleration0(self) -> Array:
        """The acceleration of each point at u' = 0."""
        _ = self._point_arrays  # which gives the terms in N
        terms, frames = self._rotated_point_terms, self._point_terms.frames
        inner_velocity = self._transport_velocity + 2 * terms.rate
        a = np.where(
            self._is_position_term,
            _cross_product_by_rows(self._alpha0[frames], terms.vector)
            + _cross_product_by_rows(self._omega[frames], inner_velocity)
            + terms.second_rate,
            terms.rate + self._transport_velocity,
        )
        return self._velocity_paths.sum(a)

    # ------------------------------------------------------------------ loads

    def pathway(self, load: PathwayLoad) -> tuple[float, float, list[Array]]:
        """Return length, rate, and the unit vectors of the segments from first to last point."""
        if load.points not in self._known_pathways:
            self._known_pathways[load.points] = self._compute_pathway(load)
        return self._known_pathways[load.points]

    def _compute_pathway(self, load: PathwayLoad) -> tuple[float, float, list[Array]]:
        """Compute length in m, rate in m/s, and the unit vector of each segment in N."""
        length = rate = 0.0
        directions = []
        for start_point, end_point in zip(load.points, load.points[1:], strict=False):
            segment = self.points[end_point].position - self.points[start_point].position
            segment_length = float(np.linalg.norm(segment))
            direction = segment / segment_length
            length += segment_length
            rate += float(direction @ (self.points[end_point].velocity - self.points[start_point].velocity))
            directions.append(direction)
        return length, rate, directions

    def _list_pathway_values(self) -> list[float]:
        """Return length and rate of each pathway load, in order."""
        values: list[float] = []
        for load in self.mechanism.loads:
            if isinstance(load, PathwayLoad):
                values += self.pathway(load)[:2]
        return values + self._list_motion_vector_values()

    def _list_motion_vector_values(self) -> list[float]:
        """Return the components of all motion vectors, in order."""
        values: list[float] = []
        for motion_vector in self.mechanism.motion_vectors:
            if motion_vector.kind == "angular velocity":
                values += self.frames[motion_vector.point_or_frame].omega.tolist()
            else:
                point = self.points[motion_vector.point_or_frame]
                values += (point.position if motion_vector.kind == "position" else point.velocity).tolist()
        return values

    def _get_applied_vectors(
        self, constraint_forces: Sequence[float]
    ) -> tuple[AppliedForceOrTorqueVectors, AppliedForceOrTorqueVectors]:
        """Return all forces on points and torques on frames."""
        key = tuple(constraint_forces)
        if key not in self._known_forces:
            self._known_forces[key] = self._evaluate_applied_vectors(key)
        return self._known_forces[key]

    def _evaluate_applied_vectors(
        self, constraint_forces: Sequence[float]
    ) -> tuple[AppliedForceOrTorqueVectors, AppliedForceOrTorqueVectors]:
        """Evaluate all forces in N and torques in N m at the present state, forces along pathways included."""
        all_constraint_forces = [
            *constraint_forces,
            *[0.0] * (len(self.mechanism.constraint_forces) - len(constraint_forces)),
        ]
        scalars = self._evaluate_forces(*self._state_values, *self._list_pathway_values(), *all_constraint_forces)
        forces, torques = self._load_tables.evaluate(scalars, self._values, self._rotation)
        segment_forces = [
            segment_force
            for number, position in self._load_tables.pathway_magnitudes
            for segment_force in self._list_segment_forces(number, scalars[position])
        ]
        if not segment_forces:
            return forces, torques
        points, loads, vectors = zip(*segment_forces, strict=True)
        all_forces = AppliedForceOrTorqueVectors(
            np.concatenate([forces.nodes, points]),
            np.concatenate([forces.loads, loads]),
            np.concatenate([forces.vectors, vectors]),
        )
        return all_forces, torques

    def _list_segment_forces(self, number: int, force: float) -> list[tuple[int, int, Array]]:
        """Return (point, number of the load, force) of each segment's ends; a positive force pushes them apart."""
        load = self.mechanism.loads[number]
        assert isinstance(load, PathwayLoad)
        result = []
        for (start_point, end_point), direction in zip(
            itertools.pairwise(load.points), self.pathway(load)[2], strict=True
        ):
            result += [(start_point, number, -force * direction), (end_point, number, force * direction)]
        return result


def _number_terms(term_lists: Sequence[Sequence[VectorTermLocation]]) -> list[list[int]]:
    """Return the numbers of the terms of each part, counted through all."""
    ends = np.cumsum([0, *map(len, term_lists)]).tolist()
    return [list(range(start, end)) for start, end in itertools.pairwise(ends)]
