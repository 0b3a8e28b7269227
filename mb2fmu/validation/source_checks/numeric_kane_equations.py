"""x' by Kane's equations in numbers, from SymPy's own frames, points, bodies and loads, at several states at once.

Each direction cosine matrix, angular velocity, position and velocity is evaluated where SymPy keeps it, between two
neighbours; nothing is composed symbolically, so that a chain of a hundred bodies costs a hundred times one. Velocities
are those that ``Point.vel`` would take: the one that is set, else that of the nearest point that has one and the
derivative of the position between. They are linear in the speeds, so unit speeds give the partial velocities. The
accelerations at u' = 0 are derivatives along the motion by a complex step, exact to round-off (Squire and Trapp, SIAM
Review 40(1), 1998). Neither the import nor any formulation of mb2fmu is used.
"""
# ruff: noqa: SLF001 - SymPy keeps what frames and points know of their neighbours in private attributes

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sm
from sympy.physics.mechanics import Point, RigidBody
from sympy.physics.vector import Vector

from mb2fmu.validation.source_checks.source_kinematics_evaluation import (
    IndexArray,
    RealOrComplexArray,
    SympySourceKinematicsEvaluator,
)
from mb2fmu.validation.source_checks.source_objects import SympySourceObjects, find_shortest_path_tree
from mb2fmu.validation.source_checks.source_symbol_slots import (
    Floats,
    SympySourceEvaluationError,
    SympySourceSymbolSlots,
)

_COMPLEX_STEP = 1e-30
_RANK_TOLERANCE = 1e-10
_INDEFINITE_EIGENVALUE = 1e-12  # of a mass matrix with a unit diagonal
_COLUMNS_PER_BATCH = 1024
"""So many columns of numbers are evaluated at once: one for each speed at each state. With 300 speeds three states at
once take 1.8 times as long as one; larger batches gain little and take memory."""
SCALE_BLEND_FRACTION = 2.0**-6
"""64 of the 4,096 units of round-off that a bound is."""


@dataclass(frozen=True, slots=True)
class SympySourceMotion:
    """Motion of the objects at one state; bodies in the order given, vectors in the inertial frame.

    Attributes:
        q_dot: Shape (n_q,).
        u_dot: Shape (n_u,).
        rate_scale: Sum of the magnitudes of the terms of each q'.
        scale: Sum of the magnitudes of the terms that each u' is left of.
        velocities: Of the mass centres, shape (n_b, 3), m/s.
        omegas: Angular velocities, shape (n_b, 3), rad/s; zero for particles.
        kinetic: Kinetic energy, J.
        forces: Generalized active forces, shape (n_u,).
        force_scale: Sum of the magnitudes of their terms.
        requested_motion: Of the points and frames that outputs need.
        masses: kg, shape (n_b,).
        centres: Positions of the mass centres, shape (n_b, 3); None where one is not joined to the origin.
        partials: Of velocities and angular velocities per speed, shapes (n_b, 3, n_u); A of the constraints.
        mass_matrix: M over all speeds, unconstrained, shape (n_u, n_u).
    """

    q_dot: Floats
    u_dot: Floats
    rate_scale: Floats
    scale: Floats
    velocities: Floats
    omegas: Floats
    kinetic: float
    forces: Floats
    force_scale: Floats
    requested_motion: PointAndFrameMotion
    masses: Floats
    centres: Floats | None
    partials: tuple[Floats, Floats, Floats]
    mass_matrix: Floats


@dataclass(frozen=True, slots=True)
class SympySourceBodyMotion:
    """A body at one instant; vectors in the inertial frame's components.

    Attributes:
        mass: kg.
        position: Of the mass centre, m, and the sum of the magnitudes of what it is made of; None: not joined to the
            origin.
        velocity: Of the mass centre, m/s.
        spin: Angular momentum about the mass centre, kg·m²/s.
    """

    mass: float
    position: tuple[Floats, float] | None
    velocity: Floats
    spin: Floats


@dataclass(frozen=True, slots=True)
class PointAndFrameMotion:
    """Points, frames and bodies that outputs need; vectors in the inertial frame's components.

    Attributes:
        positions: Point → from the origin, m, and the sum of the magnitudes of what it is made of.
        velocities: Point → the derivative of its position, m/s.
        omegas: Frame → rad/s.
        rotations: Frame → components in the inertial frame = this @ components in the frame.
        bodies: ``id`` of each body, the ground too → its motion.
    """

    positions: dict[Any, tuple[Floats, float]]
    velocities: dict[Any, Floats]
    omegas: dict[Any, Floats]
    rotations: dict[Any, Floats]
    bodies: dict[int, SympySourceBodyMotion] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _SympySourceVelocities:
    """Velocities of mass centres and of the points of loads, angular velocities of bodies and of frames of loads.

    Each of shape (n, 3, k) for k sets of speeds; ``rotations`` are those of all frames, shape (3, 3, 1 or k).
    """

    velocities: RealOrComplexArray
    angular_velocities: RealOrComplexArray
    rotations: dict[Any, RealOrComplexArray]


_VectorTerms = list[tuple[list[int], Any]]
"""A vector: places of its components, and their frame; one pair for each frame."""


@dataclass(frozen=True, slots=True)
class _PointVelocityRule:
    """How a point gets its velocity: as it is given, or from the point before it.

    Attributes:
        before: Number of the step of the point before; -1: the velocity is given.
        rates: The given velocity, or the rates of the components of the position from the point before.
        arms: That position; none where the velocity is given.
    """

    before: int
    rates: _VectorTerms
    arms: _VectorTerms


@dataclass(frozen=True, slots=True)
class _CentralInertiaTerms:
    """Terms of all bodies' central inertias: a factor times the dyad of two vectors.

    Attributes:
        bodies: Number of the body of each term, shape (n,).
        factors: Place of the factor, shape (n,).
        first: Places of the first vector's components, shape (n, 3).
        second: The same of the second.
        first_frames: The first vector's frame.
        second_frames: The second's.
    """

    bodies: IndexArray
    factors: IndexArray
    first: IndexArray
    second: IndexArray
    first_frames: tuple[Any, ...]
    second_frames: tuple[Any, ...]


class NumericKaneEquations:
    """Evaluates the user's objects. Call it within ``keep_mechanics_untouched``.

    Args:
        parts: The source objects, with bodies.
        symbols: Slots of their symbols.
        points: Those that outputs are about; what no positions join to the origin is left out.
        frames: Likewise; what has no angular velocity is left out.

    Raises:
        SympySourceEvaluationError: If the objects do not give velocities, or not in this way.
    """

    def __init__(
        self,
        parts: SympySourceObjects,
        symbols: SympySourceSymbolSlots,
        points: Sequence[Any] = (),
        frames: Sequence[Any] = (),
    ) -> None:
        if parts.frame is None or not parts.bodies:
            raise SympySourceEvaluationError("there are no bodies")
        self._parts, self._symbols = parts, symbols
        self._expressions: list[sm.Expr] = []
        slot = symbols.slot
        self._moving_slots = [(slot[s], slot.get(s.diff(symbols.t), -1)) for s in (*symbols.q, *symbols.r)]
        N = parts.frame
        self._frames = find_shortest_path_tree(N, lambda frame: frame._dcm_dict)
        self._frame_path_tree = find_shortest_path_tree(N, lambda frame: frame._ang_vel_dict)
        self._rotations = {
            f: self._add_expressions(parent._dcm_dict[f].flat())
            for f, parent in self._frames.items()
            if parent is not None
        }
        self._rigid = [isinstance(b, RigidBody) and getattr(b, "is_rigidbody", True) for b in parts.bodies]
        self._points = [body.masscenter for body in parts.bodies]
        self._points += [place for place, _ in parts.loads if isinstance(place, Point)]
        self._spinning_frames = [b.frame if rigid else N for b, rigid in zip(parts.bodies, self._rigid, strict=True)]
        self._spinning_frames += [place for place, _ in parts.loads if not isinstance(place, Point)]
        self._requested_frames = [frame for frame in frames if frame in self._frame_path_tree]
        self._spinning_frames += self._requested_frames
        self._omegas: dict[Any, _VectorTerms] = {}
        self._steps: list[_PointVelocityRule] = []
        self._stops: list[Any] = []
        self._numbers: dict[tuple[int, Any], int] = {}
        self._rates_of_factors: dict[sm.Expr, sm.Expr] = {}
        self._ends = {point: self._add_path(point) for point in dict.fromkeys(self._points)}
        for frame in self._spinning_frames:
            self._add_omega_path(frame)
        self._masses = self._add_expressions([body.mass for body in parts.bodies])
        self._inertias = self._add_inertias()
        self._places = self._add_positions([*points, *self._points[: len(parts.bodies)]])
        self.constraints = SympySourceKinematicsEvaluator(parts, symbols, complex_step=True)
        self._evaluate = symbols.compile_array_function(self._expressions)
        self._loads = [(place, self._list_components(vector)) for place, vector in parts.loads]
        flat = [e for _, terms in self._loads for components, _ in terms for e in components]
        self._load_values = symbols.compile_function(flat)

    # ------------------------------------------------------------------ collecting expressions

    def _add_expressions(self, expressions: Iterable[Any]) -> list[int]:
        """Add expressions to evaluate and return their places."""
        start = len(self._expressions)
        self._expressions += map(sm.sympify, expressions)
        return list(range(start, len(self._expressions)))

    def _list_components(self, vector: Vector) -> list[tuple[list[Any], Any]]:
        """Return (components, frame) of a vector, which may be written 0."""
        return [(list(components), frame) for components, frame in getattr(vector, "args", ())]

    def _add_terms(self, vector: Vector) -> _VectorTerms:
        """Return a vector as places of its components per frame."""
        return [(self._add_expressions(components), frame) for components, frame in self._list_components(vector)]

    def _add_rates(self, vector: Vector) -> _VectorTerms:
        """Return a vector as places of its components' time derivatives per frame; what is constant has none."""
        component_rates = [
            ([self._differentiate(c) for c in components], frame) for components, frame in self._list_components(vector)
        ]
        return [
            (self._add_expressions(rates), frame)
            for rates, frame in component_rates
            if any(rate != 0 for rate in rates)
        ]

    def _differentiate(self, component: sm.Expr) -> sm.Expr:
        """Return the time derivative by SymPy: of what numbers stand before, as before modes of a body, once."""
        total = []
        for number, factor in (term.as_coeff_Mul() for term in sm.Add.make_args(component)):
            if factor not in self._rates_of_factors:
                self._rates_of_factors[factor] = factor.diff(self._symbols.t)
            total.append(number * self._rates_of_factors[factor])
        return sm.Add(*total)

    def _add_omega_path(self, frame: Any) -> None:
        """Add angular velocities on the path from the inertial frame."""
        while frame not in self._omegas:
            if frame not in self._frame_path_tree:
                raise SympySourceEvaluationError(f"the angular velocity of frame {frame.name} is not known")
            parent = self._frame_path_tree[frame]
            self._omegas[frame] = [] if parent is None else self._add_terms(frame._ang_vel_dict[parent])
            if parent is None:
                return
            frame = parent

    def _add_path(self, point: Any) -> int:
        """Return the number of the step that ends at a point; the way there is shared with other points.

        Raises:
            SympySourceEvaluationError: If no velocity of any point near by is set.
        """
        N = self._parts.frame
        parents: dict[Any, Any] = {point: None}
        queue = deque([point])
        while queue:
            node = queue.popleft()
            if N in node._vel_dict:
                step_number = self._add_step(-1, node)
                while parents[node] is not None:
                    node = parents[node]
                    step_number = self._add_step(step_number, node)
                return step_number
            for neighbour in node._pos_dict:
                if neighbour not in parents:
                    parents[neighbour] = node
                    queue.append(neighbour)
        raise SympySourceEvaluationError(f"the velocity of point {point.name} is not known")

    def _add_step(self, before: int, point: Any) -> int:
        """Return the number of the step from the point of the step before to a point; -1: its velocity is given."""
        key = (before, point)
        if key not in self._numbers:
            if before < 0:
                step = _PointVelocityRule(before, self._add_terms(point._vel_dict[self._parts.frame]), [])
            else:
                position = point._pos_dict[self._stops[before]]
                for _, frame in self._list_components(position):
                    self._add_omega_path(frame)
                step = _PointVelocityRule(before, self._add_rates(position), self._add_terms(position))
            self._numbers[key] = len(self._steps)
            self._steps.append(step)
            self._stops.append(point)
        return self._numbers[key]

    def _add_inertias(self) -> _CentralInertiaTerms:
        """Return the terms of the central inertias of all rigid bodies."""
        factors: list[tuple[int, int]] = []
        dyads: list[tuple[tuple[list[int], Any], tuple[list[int], Any]]] = []
        for i, (body, rigid) in enumerate(zip(self._parts.bodies, self._rigid, strict=True)):
            for factor, first_vector, second_vector in body.central_inertia.args if rigid else ():
                products = itertools.product(self._add_terms(first_vector), self._add_terms(second_vector))
                place = self._add_expressions([factor])[0]
                for product in products:
                    factors.append((i, place))
                    dyads.append(product)
        numbers = np.array(factors, dtype=np.intp).reshape(-1, 2)
        places = np.array([[a, b] for (a, _), (b, _) in dyads], dtype=np.intp).reshape(-1, 2, 3)
        frames = [(frame, other) for (_, frame), (_, other) in dyads]
        return _CentralInertiaTerms(
            bodies=numbers[:, 0], factors=numbers[:, 1], first=places[:, 0], second=places[:, 1],
            first_frames=tuple(frame for frame, _ in frames), second_frames=tuple(frame for _, frame in frames),
        )  # fmt: skip

    def _add_positions(self, points: Sequence[Any]) -> dict[Any, tuple[Any, _VectorTerms]]:
        """Return point → the point before it on the way from the origin, and the position from there; in order."""
        parents = (
            find_shortest_path_tree(self._parts.origin, lambda point: point._pos_dict)
            if self._parts.origin is not None
            else {}
        )
        needed: set[Any] = set()
        for point in points:
            node = point if point in parents else None
            while node is not None and node not in needed:
                needed.add(node)
                node = parents[node]
        return {
            point: (parent, [] if parent is None else self._add_terms(point._pos_dict[parent]))
            for point, parent in parents.items()
            if point in needed
        }

    def _evaluate_requested(
        self, values: RealOrComplexArray, moving: _SympySourceVelocities, spins: Floats
    ) -> list[PointAndFrameMotion]:
        """Return velocities of points and frames at states a complex step along the motion; ``spins``: of bodies."""
        count = values.shape[1]
        totals: dict[Any, tuple[RealOrComplexArray, Floats]] = {
            None: (np.zeros((3, count), dtype=complex), np.zeros(count))
        }
        for point, (parent, terms) in self._places.items():
            total, size = totals[parent]
            for places, frame in terms:
                contribution = np.einsum("ijk,jk->ik", moving.rotations[frame], values[places])
                total, size = total + contribution, size + np.max(np.abs(contribution.real), axis=0)
            totals[point] = total, size
        del totals[None]
        first = len(self._spinning_frames) - len(self._requested_frames)
        omegas = moving.angular_velocities[first:].real
        masses, rotations = values[self._masses].real, {f: R.real for f, R in moving.rotations.items()}
        requested = []
        for k in range(count):
            positions = {point: (total[:, k].real, float(size[k])) for point, (total, size) in totals.items()}
            bodies = {
                id(body): SympySourceBodyMotion(mass, positions.get(point), velocity, spin)
                for body, mass, point, velocity, spin in zip(
                    self._parts.bodies, masses[:, k].tolist(), self._points, moving.velocities[:, :, k].real, spins[k],
                    strict=False,
                )
            }  # fmt: skip
            velocities = {point: total[:, k].imag / _COMPLEX_STEP for point, (total, _) in totals.items()}
            requested.append(
                PointAndFrameMotion(
                    positions, velocities, dict(zip(self._requested_frames, omegas[:, :, k], strict=True)),
                    {frame: R[:, :, k] for frame, R in rotations.items()}, bodies,
                )
            )  # fmt: skip
        return requested

    # ------------------------------------------------------------------ numbers

    def _compute_velocities(self, values: RealOrComplexArray) -> _SympySourceVelocities:
        """Return velocities of points and frames in inertial components, for all columns of numbers at once."""
        count, dtype = values.shape[1], values.dtype

        def expressed(terms: _VectorTerms, rotations: dict[Any, RealOrComplexArray]) -> RealOrComplexArray:
            """Sum vectors of several frames in components of the inertial frame, shape (3, count)."""
            total = np.zeros((3, count), dtype=dtype)
            for places, frame in terms:
                total += np.einsum("ijk,jk->ik", rotations[frame], values[places])
            return total

        R: dict[Any, RealOrComplexArray] = {self._parts.frame: np.eye(3, dtype=dtype)[:, :, None] * np.ones(count)}
        for frame, parent in self._frames.items():
            if parent is not None:
                local = values[self._rotations[frame]].reshape(3, 3, count)
                R[frame] = np.einsum("ijk,jlk->ilk", R[parent], local)
        omegas: dict[Any, RealOrComplexArray] = {}
        for frame, parent in self._frame_path_tree.items():
            if frame in self._omegas:
                own_omega = expressed(self._omegas[frame], R)
                omegas[frame] = own_omega if parent is None else omegas[parent] + own_omega
        moving: list[RealOrComplexArray] = []
        for step in self._steps:
            velocity = expressed(step.rates, R)
            if step.before >= 0:
                velocity += moving[step.before]
            for places, frame in step.arms:
                velocity += _cross(omegas[frame], expressed([(places, frame)], R))
            moving.append(velocity)
        linear = np.array([moving[self._ends[point]] for point in self._points])
        return _SympySourceVelocities(linear, np.array([omegas[frame] for frame in self._spinning_frames]), R)

    def _evaluate_expressions(self, values: list[Any], dtype: Any, *shape: int) -> RealOrComplexArray:
        """Return all expressions, shape (number of expressions, number of columns of values)."""
        results = np.empty((len(self._expressions), *shape), dtype=dtype)
        for k, value in enumerate(self._evaluate(values)):
            results[k] = value
        return results.reshape(len(results), -1)

    def evaluate_second_rates(self, values: list[float], u_dot: Mapping[Any, float]) -> list[float]:
        """Return q'', by the u' of each speed, in the order of the coordinates."""
        stepped = self.step_along_motion([np.array([value]) for value in values], u_dot)
        return [float(stepped[k][0].imag) / _COMPLEX_STEP for k in self.constraints.rates]

    def evaluate_motion(self, values: list[float]) -> SympySourceMotion:
        """Return x' and its parts at one state: see :meth:`evaluate_motions`."""
        return self.evaluate_motions([values])[0]

    def evaluate_motions(self, states: Sequence[Sequence[float]]) -> list[SympySourceMotion]:
        """Return x' and its parts at each state.

        Args:
            states: Values of all slots except q', which follow.

        Raises:
            numpy.linalg.LinAlgError: If the mass matrix is singular at one of them.
        """
        size = max(1, _COLUMNS_PER_BATCH // (len(self._symbols.u) + 1))
        batches = (np.array(states[k : k + size]).T.copy() for k in range(0, len(states), size))
        return [motion for batch in batches for motion in self._evaluate_batch(list(batch))]

    def _evaluate_batch(self, values: list[Floats]) -> list[SympySourceMotion]:
        """Return the motion at each state; ``values`` are arrays over states."""
        n, count, rows = len(self._symbols.u), len(values[0]), self.constraints
        K, k0, A, b = rows.compute_linear_rows(values)
        values = rows.set_rates(values, K, k0)
        unit_speed_velocities = self._compute_velocities(
            self._evaluate_expressions(rows.values_at_unit_speeds(values, K, k0), float, count, n + 1)
        )
        J, W = (
            _list_partials(each, count)
            for each in (unit_speed_velocities.velocities, unit_speed_velocities.angular_velocities)
        )
        stepped_values = self.step_along_motion(values)
        values_along = self._evaluate_expressions(stepped_values, complex, count)
        gamma = rows.velocity_constraint_rows(stepped_values, count).T.imag / _COMPLEX_STEP
        return self._solve_motion(
            values, (K, k0, A, b, gamma), (J, W), values_along, self._compute_velocities(values_along)
        )

    def step_along_motion(
        self, values: list[Floats], u_dot: Mapping[Any, float] = MappingProxyType({})
    ) -> list[RealOrComplexArray]:
        """Return states a complex step further along the motion, with u' zero or as given by speed."""
        s = self._symbols
        stepped: list[RealOrComplexArray] = list(values)
        stepped[0] = values[0] + 1j * _COMPLEX_STEP
        for slot, rate_slot in self._moving_slots:
            stepped[slot] = values[slot] + (1j * _COMPLEX_STEP * values[rate_slot] if rate_slot >= 0 else 0.0)
        for symbol, rate in u_dot.items():
            stepped[s.slot[symbol]] = values[s.slot[symbol]] + 1j * _COMPLEX_STEP * rate
        if s.z:
            rates = np.array([s.z_dot(state) for state in np.column_stack(values).tolist()])
            for z, z_dot in zip(s.z, rates.T, strict=True):
                stepped[s.slot[z]] = values[s.slot[z]] + 1j * _COMPLEX_STEP * z_dot
        return self.constraints.with_rates(stepped)

    def _solve_motion(
        self,
        values: list[Floats],
        rows: tuple[Floats, Floats, Floats, Floats, Floats],
        partials: tuple[Floats, Floats],
        values_along: RealOrComplexArray,
        velocities: _SympySourceVelocities,
    ) -> list[SympySourceMotion]:
        """Return M u' = f of all bodies and loads, solved on the constraints, at each state."""
        (K, k0, A, b, gamma), (J, W) = rows, partials
        count, body_count = len(K), len(self._parts.bodies)
        masses = values_along[self._masses].real.T
        v, a0 = (
            np.moveaxis(part[:body_count], 2, 0)
            for part in (velocities.velocities.real, velocities.velocities.imag / _COMPLEX_STEP)
        )
        w = np.moveaxis(velocities.angular_velocities[:body_count], 2, 0)  # of particles zero
        inertias = self._evaluate_inertias(values_along, velocities)
        momenta = (inertias @ w[..., None])[..., 0]
        linear, angular = (partial[:, :body_count].reshape(count, 3 * body_count, -1) for partial in (J, W))
        weighted = np.repeat(masses, 3, axis=1)[..., None] * linear
        turned = (inertias.real @ W[:, :body_count]).reshape(angular.shape)
        M = _transpose(linear) @ weighted + _transpose(angular) @ turned
        f = -_apply(_transpose(weighted), a0.reshape(count, -1))
        f -= _apply(_transpose(angular), momenta.imag.reshape(count, -1)) / _COMPLEX_STEP
        kinetic = (np.sum(masses * np.sum(v * v, axis=2), axis=1) + np.sum(w.real * momenta.real, axis=(1, 2))) / 2
        # What centripetal terms leave of each other may be nothing: they are as large as this.
        largest_omega = np.max(np.abs(velocities.angular_velocities.real), axis=(0, 1), initial=0.0)[:, None]
        centripetal = largest_omega * np.max(np.abs(v), axis=2)
        gyration = largest_omega * np.max(np.abs(inertias.real), axis=(2, 3)) * np.max(np.abs(w.real), axis=2)
        pulls, turns = np.abs(a0) + centripetal[..., None], np.abs(momenta.imag) / _COMPLEX_STEP + gyration[..., None]
        force_sizes = _apply(_transpose(np.abs(weighted)), pulls.reshape(count, -1))
        force_sizes += _apply(_transpose(np.abs(angular)), turns.reshape(count, -1))
        Q, Q_size = self._forces(values, J[:, body_count:], W[:, body_count:], velocities)
        f, force_sizes = f + Q, force_sizes + Q_size
        solved = list(map(_solve_constrained_accelerations, M, f, force_sizes, A, gamma))
        q_dot, u = (
            np.array([values[k] for k in places]).T for places in (self.constraints.rates, self.constraints.speeds)
        )
        # Speeds that constraints tie to others are known as well as what they are tied to.
        ties = np.array(list(map(_weighted_pseudo_inverse, A, M)))
        constraint_speeds = _apply(np.abs(ties), _apply(np.abs(A), np.abs(u)) + np.abs(b))
        rate_scale = _apply(np.abs(K), np.abs(u) + constraint_speeds) + np.abs(k0)
        requested = self._evaluate_requested(values_along, velocities, momenta.real)
        motions = []
        for k, (u_dot, scale) in enumerate(solved):
            centres = [requested[k].positions.get(point) for point in self._points[:body_count]]
            motions.append(
                SympySourceMotion(
                    q_dot[k], u_dot, rate_scale[k], scale, v[k], w[k].real, float(kinetic[k]), Q[k],
                    add_floor_to_scales(Q_size[k], 1 / _energy_speed_units(M[k])), requested[k], masses[k],
                    np.array([c[0] for c in centres if c is not None]) if all(centres) else None,
                    (J[k, :body_count], W[k, :body_count], A[k]), M[k],
                )
            )  # fmt: skip
        return motions

    def _evaluate_inertias(self, values: RealOrComplexArray, velocities: _SympySourceVelocities) -> RealOrComplexArray:
        """Return the bodies' central inertias along the inertial axes, shape (count, n_b, 3, 3); zero of particles.

        They are complex, since they turn.
        """
        terms, R = self._inertias, velocities.rotations
        inertias = np.zeros((len(self._parts.bodies), 3, 3, values.shape[1]), dtype=complex)
        if len(terms.bodies):
            first, second = (
                np.einsum("nijk,njk->nik", np.array([R[frame] for frame in frames]), values[places])
                for places, frames in ((terms.first, terms.first_frames), (terms.second, terms.second_frames))
            )
            np.add.at(
                inertias, terms.bodies, values[terms.factors][:, None, None] * first[:, :, None] * second[:, None]
            )
        return np.moveaxis(inertias, 3, 0)

    def _forces(
        self, values: list[Floats], J: Floats, W: Floats, velocities: _SympySourceVelocities
    ) -> tuple[Floats, Floats]:
        """Return generalized active forces and the sums of the magnitudes of their terms, loads in order."""
        states = np.column_stack(values).tolist()
        numbers = iter(np.array([self._load_values(state) for state in states]).T)
        Q, sizes = (np.zeros((len(states), len(self._symbols.u))) for _ in range(2))
        points, frames = iter(np.moveaxis(J, 1, 0)), iter(np.moveaxis(W, 1, 0))
        for place, terms in self._loads:
            vector, magnitude = np.zeros((len(states), 3)), np.zeros((len(states), 3))
            for components, frame in terms:
                local = np.array([next(numbers) for _ in components])
                part = np.einsum("ijk,jk->ki", velocities.rotations[frame].real, local)
                vector, magnitude = vector + part, magnitude + np.abs(part)
            partial = _transpose(next(points) if isinstance(place, Point) else next(frames))
            Q += _apply(partial, vector)
            sizes += _apply(np.abs(partial), magnitude)
        return Q, sizes


def _list_partials(velocities: Floats, count: int) -> Floats:
    """Return partial velocities, shape (count, n, 3, n_u), of those at unit speeds, shape (n, 3, count * (n_u + 1))."""
    columns = np.moveaxis(velocities.reshape(*velocities.shape[:2], count, -1), 2, 0)
    return np.ascontiguousarray(columns[..., :-1] - columns[..., -1:])


def _transpose(matrices: Floats) -> Floats:
    """Return the transpose of each matrix of a stack."""
    return np.swapaxes(matrices, -1, -2)


def _apply(matrices: Floats, vectors: Floats) -> Floats:
    """Return the product of each matrix of a stack and its vector."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _cross(a: RealOrComplexArray, b: RealOrComplexArray) -> RealOrComplexArray:
    """Return the cross product of vectors, each of shape (3, k)."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _solve_constrained_accelerations(
    M: Floats, f: Floats, force_sizes: Floats, A: Floats, gamma: Floats
) -> tuple[Floats, Floats]:
    """Return u' of M u' + A^T l = f, A u' + gamma = 0, and the sums of the magnitudes of each one's terms.

    Speeds are scaled by the square roots of M's diagonal, so that ranks do not depend on units.

    Args:
        M: Shape (n, n).
        f: Shape (n,).
        force_sizes: Sums of the magnitudes of the terms of ``f``.
        A: Shape (m, n); rows may be redundant.
        gamma: Shape (m,).
    """
    energy_units = _energy_speed_units(M)
    rows = A / energy_units
    lengths = _row_lengths(rows)
    rows, right_side = rows / lengths[:, None], -gamma / lengths
    U, S, Vt = np.linalg.svd(rows) if len(rows) else (np.eye(0), np.zeros(0), np.eye(len(f)))
    rank = int(np.count_nonzero(_RANK_TOLERANCE * S[0] < S)) if len(S) else 0
    inverse = (Vt[:rank].T / S[:rank]) @ U.T[:rank]
    Z = Vt[rank:].T
    scaled = M / np.outer(energy_units, energy_units)
    G = Z @ np.linalg.solve(Z.T @ scaled @ Z, Z.T)
    particular = inverse @ right_side
    w = particular + G @ (f / energy_units - scaled @ particular)
    bound = np.abs(G) @ (force_sizes / energy_units + np.abs(scaled) @ np.abs(w))
    bound += np.abs(np.eye(len(f)) - G @ scaled) @ np.abs(inverse) @ (np.abs(right_side) + np.abs(rows) @ np.abs(w))
    return w / energy_units, add_floor_to_scales(bound / energy_units, energy_units)


def has_negative_eigenvalue(M: Floats) -> bool:
    """Return whether a mass matrix has a negative eigenvalue beyond round-off, whatever the units of its speeds."""
    units = _energy_speed_units(M)
    return bool(len(M) and np.min(np.linalg.eigvalsh(M / np.outer(units, units))) < -_INDEFINITE_EIGENVALUE)


def _row_lengths(rows: Floats) -> Floats:
    """Return the length of each row; 1 for rows that vanish: they constrain nothing."""
    lengths = np.linalg.norm(rows, axis=1)
    return np.where(lengths > 0, lengths, 1.0)


def add_floor_to_scales(scale: Floats, unit: Floats) -> Floats:
    """Return the scales, with a small part of the largest one of all, in terms of energy.

    A linear solve that is stable in norm leaves in each unknown some round-off of the largest one; what constraints
    hold at zero has no terms of its own.

    Args:
        scale: Of each u'.
        unit: Square roots of the mass matrix's diagonal: unit times u' is of one unit for all.
    """
    positive = unit > 0
    largest = float(np.max(scale[positive] * unit[positive], initial=0.0))
    return scale + SCALE_BLEND_FRACTION * largest * np.divide(1.0, unit, out=np.zeros_like(unit), where=positive)


def _energy_speed_units(M: Floats) -> Floats:
    """Return square roots of the diagonal: speeds times these have the unit of the square root of an energy."""
    unit = np.sqrt(np.abs(np.diag(M)))
    unit[unit == 0.0] = float(np.max(unit, initial=0.0)) or 1.0
    return np.asarray(unit)


def _weighted_pseudo_inverse(A: Floats, M: Floats) -> Floats:
    """Return the pseudo-inverse of the constraints' rows, least in kinetic energy by M's diagonal."""
    if not len(A):
        return np.zeros((A.shape[1], 0))
    unit = _energy_speed_units(M)
    rows = A / unit
    lengths = _row_lengths(rows)
    return np.asarray(np.linalg.pinv(rows / lengths[:, None], rcond=_RANK_TOLERANCE) / unit[:, None] / lengths)
