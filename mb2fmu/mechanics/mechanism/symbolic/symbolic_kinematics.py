"""Symbolic kinematics of a Mechanism, composed through named intermediates, so that nothing expands.

All vectors are components in the inertial frame N. With R = ``N_C_B`` of a frame B, rho a vector written in B:

    w_B  = w_A + R c                          c: components of the relative angular velocity
    v_P  = v_Q + w_B × rho + R rho'
    a_P  = a_Q + alpha × rho + w × (w × rho) + 2 w × R rho' + R rho''

Partials J (v = J u + v_t) and the accelerations at u' = 0 (``alpha0``, ``acceleration0``) follow from the same
relations.
Auxiliary speeds are zero in all values; they appear in the partials only.

Accelerations with u' in them (``alpha``, ``acceleration``) go from frame to frame and point to point too, so that those
of n bodies cost n steps; they have names of their own, in ``late``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import SymbolAssignment
from mb2fmu.mechanics.equations.link_recursion import RecursionQuantity
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, Mechanism, PathwayLoad, VectorTerms
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    coordinate_rates,
    total_time_derivative,
)
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    ZERO,
    add_vector_components,
    cross_product,
    dot_product,
    multiply_matrix_by_vector,
    scale_components,
    vector_length,
)

T = TypeVar("T")
Partials = dict[int, Components]
"""Index into ``Mechanism.u_all`` → components; zero columns are left out."""


class SymbolicKinematics:
    """Kinematic quantities on demand; each is named once, in ``assignments``, in order of evaluation.

    Expressions of u' or multipliers are named in ``late_assignments``.

    Args:
        mechanism: The mechanism.
        taken_names: Names that something else uses.
    """

    def __init__(self, mechanism: Mechanism, taken_names: Iterable[str] = ()) -> None:
        self._initialize_names(mechanism)
        self._taken_names |= set(taken_names)
        m = mechanism
        rates = coordinate_rates(m.kinematics, m.u)
        self._set_rate_matrix(
            {entry: self.name(expression, "K") for entry, expression in sorted(m.kinematics.matrix.todok().items())}
        )
        self.q_dot = tuple(self.name(expression, f"{q.name}_rate") for q, expression in zip(m.q, rates, strict=True))
        # q'' at u' = 0; the rates differentiate the original expressions, in which no name hides a coordinate
        self._second_rates = tuple(
            total_time_derivative(sm.sympify(expression), m.rates(self.q_dot)) for expression in rates
        )
        self._q_second: tuple[sm.Expr, ...] | None = None
        quantity_functions = {"position": self.position, "velocity": self.velocity, "angular velocity": self.omega}
        for motion_vector in m.motion_vectors:
            for symbol, component in zip(
                motion_vector.symbols, quantity_functions[motion_vector.kind](motion_vector.point_or_frame), strict=True
            ):
                self.assign(symbol, component)

    def _initialize_names(self, mechanism: Mechanism) -> None:
        """Initialize without any names."""
        m = self.mechanism = mechanism
        self.assignments: list[SymbolAssignment] = []
        self.late_assignments: list[SymbolAssignment] = []
        self.quantities: list[RecursionQuantity] = []  # of a recursion: nothing here
        self.acceleration_symbols: set[sm.Symbol] = {*m.u_dot, *m.constraint_forces, *m.multipliers}
        self._symbol_of_expression: dict[sm.Expr, sm.Symbol] = {}
        symbols = (m.t, *m.q, *m.u_all, *m.u_dot, *m.z, *m.p, *m.r, *m.constraint_forces, *m.multipliers)
        self._taken_names = {s.name for s in symbols}
        self._taken_names |= {a.symbol.name for a in m.calculated_parameters}
        self._taken_names |= {symbol.name for motion_vector in m.motion_vectors for symbol in motion_vector.symbols}
        for load in m.loads:
            if isinstance(load, PathwayLoad):
                self._taken_names |= {load.length.name, load.rate.name}
        self._cache: dict[tuple[str, int], object] = {}
        self._auxiliary = dict.fromkeys(m.u_auxiliary, sm.S.Zero)

    def _set_rate_matrix(self, K: Mapping[tuple[int, int], sm.Expr]) -> None:
        """Note the non-zero entries of K by speed, and the speeds that move each coordinate."""
        self.K = sm.SparseMatrix(len(self.mechanism.q), len(self.mechanism.u), dict(K))
        self._coordinates_of_speed: dict[int, list[tuple[sm.Symbol, sm.Expr]]] = {}
        self._speeds_of_coordinate: dict[sm.Symbol, list[int]] = {}
        for (row, column), entry in sorted(K.items()):
            self._coordinates_of_speed.setdefault(column, []).append((self.mechanism.q[row], entry))
            self._speeds_of_coordinate.setdefault(self.mechanism.q[row], []).append(column)

    # ------------------------------------------------------------------ names

    def make_symbol(self, hint: str) -> sm.Symbol:
        """Return a new symbol; its name is an identifier, whatever bodies and actuators are called."""
        hint = re.sub(r"\W+", "_", hint).strip("_")
        name, count = hint, 1
        while name in self._taken_names:
            count += 1
            name = f"{hint}_{count}"
        self._taken_names.add(name)
        return sm.Symbol(name)

    def name(self, expression: sm.Expr, hint: str) -> sm.Expr:
        """Return a symbol for ``expression``; atoms and their negatives stay; equal expressions share a name."""
        if expression.is_Atom or (-expression).is_Atom:
            return expression
        if expression not in self._symbol_of_expression:
            symbol = self.make_symbol(hint)
            self.assign(symbol, expression)
            self._symbol_of_expression[expression] = symbol
        return self._symbol_of_expression[expression]

    def assign(self, symbol: sm.Symbol, expression: sm.Expr) -> None:
        """Assign an expression to a symbol."""
        self.assignments.append(SymbolAssignment(symbol, expression))

    def name_late(self, expression: sm.Expr, hint: str) -> sm.Expr:
        """Name an expression as :meth:`name` does, where it may depend on u' and multipliers."""
        if expression.is_Atom or (-expression).is_Atom:
            return expression
        if expression not in self._symbol_of_expression:
            self._symbol_of_expression[expression] = self.make_symbol(hint)
            self.late_assignments.append(SymbolAssignment(self._symbol_of_expression[expression], expression))
        return self._symbol_of_expression[expression]

    def name_components_late(self, components: Iterable[sm.Expr], hint: str) -> Components:
        """Return three components, each named; they may depend on u' and multipliers."""
        x, y, z = (
            self.name_late(sm.sympify(component), f"{hint}_{axis}")
            for component, axis in zip(components, "xyz", strict=True)
        )
        return (x, y, z)

    def name_components(self, components: Iterable[sm.Expr], hint: str) -> Components:
        """Return three components, each named."""
        x, y, z = (
            self.name(sm.sympify(component), f"{hint}_{axis}")
            for component, axis in zip(components, "xyz", strict=True)
        )
        return (x, y, z)

    @property
    def coordinate_acceleration_bias(self) -> tuple[sm.Expr, ...]:
        """q'' at u' = 0: K' u + k0'."""
        if self._q_second is None:
            coordinates = self.mechanism.q
            self._q_second = tuple(
                self.name(rate, f"{q.name}_second") for q, rate in zip(coordinates, self._second_rates, strict=True)
            )
        return self._q_second

    # ------------------------------------------------------------------ frames

    def rotation(self, i: int) -> sm.ImmutableMatrix:
        """Return ``N_C_B`` of frame i."""
        return self._compute_cached("rotation", i, self._rotation)

    def omega(self, i: int) -> Components:
        """Return the angular velocity of frame i in N, rad/s."""
        return self._compute_cached("omega", i, self._omega)

    def omega_partials(self, i: int) -> Partials:
        """Return the partial angular velocities of frame i."""
        return self._compute_cached("omega_partials", i, self._omega_partials)

    def alpha0(self, i: int) -> Components:
        """Return the angular acceleration of frame i in N at u' = 0, rad/s²."""
        return self._compute_cached("alpha0", i, self._alpha0)

    def compute_once(self, kind: str, compute: Callable[[int], T]) -> T:
        """Return the result of ``compute``, computed once for these kinematics."""
        return self._compute_cached(kind, 0, compute)

    def _compute_cached(self, kind: str, i: int, compute: Callable[[int], T]) -> T:
        """Return what `compute` gives for a frame or point, computed once."""
        key = (kind, i)
        if key not in self._cache:
            self._cache[key] = compute(i)
        return cast("T", self._cache[key])

    def _rotation(self, i: int) -> sm.ImmutableMatrix:
        """Form a frame's 3 × 3 rotation matrix to the inertial frame, with each entry named."""
        frame = self.mechanism.frames[i]
        if frame.parent < 0:
            return sm.ImmutableMatrix.eye(3)
        local = frame.rotation.applyfunc(lambda e: self.name(e, f"C_{frame.name}"))
        if frame.parent == 0:
            return sm.ImmutableMatrix(local)
        product = self.rotation(frame.parent) * local
        return sm.ImmutableMatrix(product).applyfunc(lambda e: self.name(e, f"C_{frame.name}"))

    def _omega(self, i: int) -> Components:
        """Form a frame's angular velocity in inertial components: that of its reference plus its own terms."""
        if i == 0:
            return ZERO
        frame = self.mechanism.frames[i]
        total = self.omega(frame.reference)
        for axes_frame, components in frame.angular_velocity:
            total = add_vector_components(
                total, multiply_matrix_by_vector(self.rotation(axes_frame), self._without_auxiliary_speeds(components))
            )
        return self.name_components(total, f"w_{frame.name}")

    def _omega_partials(self, i: int) -> Partials:
        """Form the partial angular velocities of a frame, by number of the speed; zero columns are left out."""
        if i == 0:
            return {}
        frame = self.mechanism.frames[i]
        partials = dict(self.omega_partials(frame.reference))
        self._add_speed_derivatives(partials, frame.angular_velocity)
        return self._name_partials(partials, f"Jw_{frame.name}")

    def _alpha0(self, i: int) -> Components:
        """Form the angular acceleration of frame i in N without its terms in u', from its reference frame's."""
        if i == 0:
            return ZERO
        frame = self.mechanism.frames[i]
        total = self.alpha0(frame.reference)
        for axes_frame, components in frame.angular_velocity:
            velocity_components = self._without_auxiliary_speeds(components)
            R = self.rotation(axes_frame)
            total = add_vector_components(total, multiply_matrix_by_vector(R, self._differentiate(velocity_components)))
            total = add_vector_components(
                total,
                cross_product(
                    self.omega(axes_frame),
                    self.name_components(multiply_matrix_by_vector(R, velocity_components), f"w_{frame.name}_rel"),
                ),
            )
        return self.name_components(total, f"al_{frame.name}")

    # ------------------------------------------------------------------ points

    def position(self, i: int) -> Components:
        """Return the position of point i from the origin, m; only where ``KinematicPoint.located``."""
        return self._compute_cached("position", i, self._position)

    def velocity(self, i: int) -> Components:
        """Return the velocity of point i in N, m/s."""
        return self._compute_cached("velocity", i, self._velocity)

    def velocity_partials(self, i: int) -> Partials:
        """Return the partial velocities of point i."""
        return self._compute_cached("velocity_partials", i, self._velocity_partials)

    def acceleration0(self, i: int) -> Components:
        """Return the acceleration of point i in N at u' = 0, m/s²."""
        return self._compute_cached("acceleration0", i, self._acceleration0)

    def kinetic_energy(self) -> sm.Expr:
        """Return T of all bodies in J: the sum of m v·v/2 + w·I w/2."""
        return self.compute_once("kinetic energy", self._kinetic_energy)

    def _kinetic_energy(self, _: int) -> sm.Expr:
        """Form the sum."""
        terms = []
        for body in self.mechanism.bodies:
            velocity = self.velocity(body.masscenter)
            terms.append(body.mass * dot_product(velocity, velocity) / 2)
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                angular_velocity = self.name_components(
                    multiply_matrix_by_vector(self.rotation(body.frame).T, self.omega(body.frame)), f"wb_{body.name}"
                )
                terms.append(
                    dot_product(angular_velocity, multiply_matrix_by_vector(body.inertia, angular_velocity)) / 2
                )
        return sm.Add(*terms)

    def speed_dependent_symbols(self) -> set[sm.Symbol]:
        """Return symbols that depend on speeds: the speeds, and the intermediates computed from them."""
        symbols = set(self.mechanism.u)
        for assignment in self.assignments:
            if assignment.expression.free_symbols & symbols:
                symbols.add(assignment.symbol)
        return symbols

    def _position(self, i: int) -> Components:
        """Form a point's position from the origin, in inertial components."""
        point = self.mechanism.points[i]
        if point.parent < 0:
            return ZERO
        total = self.position(point.parent)
        for axes_frame, components in point.position or ():
            total = add_vector_components(total, self._express_position_term(i, axes_frame, components))
        return self.name_components(total, f"r_{point.name}")

    def _express_position_term(self, i: int, axes_frame: int, components: Components) -> Components:
        """Return a term of a position, expressed in N."""
        if axes_frame == 0:
            return components
        return self.name_components(
            multiply_matrix_by_vector(self.rotation(axes_frame), components), f"arm_{self.mechanism.points[i].name}"
        )

    def _velocity(self, i: int) -> Components:
        """Form the velocity of point i in N: as given, or from its parent's velocity and its position to it."""
        point = self.mechanism.points[i]
        if point.velocity is not None:
            total = ZERO
            for axes_frame, components in point.velocity:
                total = add_vector_components(
                    total,
                    multiply_matrix_by_vector(self.rotation(axes_frame), self._without_auxiliary_speeds(components)),
                )
            return self.name_components(total, f"v_{point.name}")
        total = self.velocity(point.parent)
        for axes_frame, components in point.position or ():
            total = add_vector_components(
                total, cross_product(self.omega(axes_frame), self._express_position_term(i, axes_frame, components))
            )
            total = add_vector_components(
                total, multiply_matrix_by_vector(self.rotation(axes_frame), self._differentiate(components))
            )
        return self.name_components(total, f"v_{point.name}")

    def _velocity_partials(self, i: int) -> Partials:
        """Form the derivatives of the velocity of point i with respect to each speed."""
        point = self.mechanism.points[i]
        if point.velocity is not None:
            partials: Partials = {}
            self._add_speed_derivatives(partials, point.velocity)
            return self._name_partials(partials, f"Jv_{point.name}")
        partials = dict(self.velocity_partials(point.parent))
        for axes_frame, components in point.position or ():
            position_term = self._express_position_term(i, axes_frame, components)
            for speed, column in self.omega_partials(axes_frame).items():
                partials[speed] = add_vector_components(partials.get(speed, ZERO), cross_product(column, position_term))
            R = self.rotation(axes_frame)
            for speed in self._find_moving_speeds(components):
                derivative = self._differentiate_by_speed(components, speed)
                if any(derivative):
                    partials[speed] = add_vector_components(
                        partials.get(speed, ZERO), multiply_matrix_by_vector(R, derivative)
                    )
        return self._name_partials(partials, f"Jv_{point.name}")

    def _acceleration0(self, i: int) -> Components:
        """Form the acceleration of point i in N without its terms in u', from its parent's."""
        point = self.mechanism.points[i]
        total = ZERO
        if point.velocity is not None:
            for axes_frame, components in point.velocity:
                velocity_components, R = self._without_auxiliary_speeds(components), self.rotation(axes_frame)
                total = add_vector_components(
                    total, multiply_matrix_by_vector(R, self._differentiate(velocity_components))
                )
                total = add_vector_components(
                    total,
                    cross_product(
                        self.omega(axes_frame),
                        self.name_components(multiply_matrix_by_vector(R, velocity_components), f"v_{point.name}_in"),
                    ),
                )
            return self.name_components(total, f"a_{point.name}")
        total = self.acceleration0(point.parent)
        for axes_frame, components in point.position or ():
            position_term, R, w = (
                self._express_position_term(i, axes_frame, components),
                self.rotation(axes_frame),
                self.omega(axes_frame),
            )
            rate, second_rate = self._differentiate(components), self._differentiate_twice(components)
            if axes_frame != 0:
                transport_velocity = self.name_components(cross_product(w, position_term), f"wxr_{point.name}")
                total = add_vector_components(
                    total,
                    add_vector_components(
                        cross_product(self.alpha0(axes_frame), position_term), cross_product(w, transport_velocity)
                    ),
                )
            if any(rate):
                relative_velocity = self.name_components(multiply_matrix_by_vector(R, rate), f"rr_{point.name}")
                total = add_vector_components(
                    total,
                    add_vector_components(
                        scale_components(sm.Integer(2), cross_product(w, relative_velocity)),
                        multiply_matrix_by_vector(R, second_rate),
                    ),
                )
        return self.name_components(total, f"a_{point.name}")

    # ------------------------------------------------------------------ accelerations

    def alpha(self, i: int) -> Components:
        """Return the angular acceleration of frame i in N, rad/s²; contains u'."""
        return self._compute_cached("alpha", i, self._alpha)

    def acceleration(self, i: int) -> Components:
        """Return the acceleration of point i in N, m/s²; contains u'."""
        return self._compute_cached("acceleration", i, self._acceleration)

    def _alpha(self, i: int) -> Components:
        """Form a frame's angular acceleration in inertial components; it needs u'."""
        if i == 0:
            return ZERO
        frame = self.mechanism.frames[i]
        total = self.alpha(frame.reference)
        for axes_frame, components in frame.angular_velocity:
            total = add_vector_components(
                total, self._differentiate_in_inertial_frame(axes_frame, components, f"w_{frame.name}_rel")
            )
        return self.name_components_late(total, f"alpha_{frame.name}")

    def _acceleration(self, i: int) -> Components:
        """Form the whole acceleration of point i in N, terms in u' included, from its parent's."""
        point, total = self.mechanism.points[i], ZERO
        if point.velocity is not None:
            for axes_frame, components in point.velocity:
                total = add_vector_components(
                    total, self._differentiate_in_inertial_frame(axes_frame, components, f"v_{point.name}_in")
                )
            return self.name_components_late(total, f"acc_{point.name}")
        if point.parent >= 0:
            total = self.acceleration(point.parent)
        for axes_frame, components in point.position or ():
            position_term, R, w = (
                self._express_position_term(i, axes_frame, components),
                self.rotation(axes_frame),
                self.omega(axes_frame),
            )
            rate, second_rate = self._differentiate(components), self._differentiate_twice(components)
            for speed in self._find_moving_speeds(components):
                second_rate = add_vector_components(
                    second_rate,
                    scale_components(self.mechanism.u_dot[speed], self._differentiate_by_speed(components, speed)),
                )
            if axes_frame != 0:
                transport_velocity = self.name_components(cross_product(w, position_term), f"wxr_{point.name}")
                total = add_vector_components(
                    total,
                    add_vector_components(
                        cross_product(self.alpha(axes_frame), position_term), cross_product(w, transport_velocity)
                    ),
                )
            if any(rate) or any(second_rate):
                relative_velocity = self.name_components(multiply_matrix_by_vector(R, rate), f"rr_{point.name}")
                total = add_vector_components(
                    total,
                    add_vector_components(
                        scale_components(sm.Integer(2), cross_product(w, relative_velocity)),
                        multiply_matrix_by_vector(R, second_rate),
                    ),
                )
        return self.name_components_late(total, f"acc_{point.name}")

    def _differentiate_in_inertial_frame(self, axes_frame: int, components: Components, hint: str) -> Components:
        """Return the derivative in N of a vector written in frame k and linear in the speeds."""
        velocity_components, R = self._without_auxiliary_speeds(components), self.rotation(axes_frame)
        rate = self._differentiate(velocity_components)
        for speed, u_dot in zip(self.mechanism.u, self.mechanism.u_dot, strict=True):
            if any(speed in component.free_symbols for component in velocity_components):
                rate = add_vector_components(
                    rate,
                    scale_components(
                        u_dot,
                        (
                            velocity_components[0].diff(speed),
                            velocity_components[1].diff(speed),
                            velocity_components[2].diff(speed),
                        ),
                    ),
                )
        return add_vector_components(
            multiply_matrix_by_vector(R, rate),
            cross_product(
                self.omega(axes_frame), self.name_components(multiply_matrix_by_vector(R, velocity_components), hint)
            ),
        )

    # ------------------------------------------------------------------ pathways

    def assign_pathway(self, load: PathwayLoad) -> list[Components]:
        """Return the unit vectors of the segments; ``load.length`` and ``load.rate`` are assigned."""
        return self._compute_cached("pathway", self.mechanism.loads.index(load), self._pathway)

    def segment_directions(self, load: PathwayLoad) -> list[Components]:
        """Return the unit vectors of a pathway's segments in N."""
        return self.assign_pathway(load)

    def _pathway(self, number: int) -> list[Components]:
        """Assign length and rate of a pathway, summed over its segments; returns the segments' unit vectors in N."""
        load = self.mechanism.loads[number]
        assert isinstance(load, PathwayLoad)
        lengths, rates, directions = [], [], []
        for start_point, end_point in zip(load.points, load.points[1:], strict=False):
            segment = self.name_components(
                add_vector_components(
                    self.position(end_point), scale_components(sm.S.NegativeOne, self.position(start_point))
                ),
                f"d_{load.name}",
            )
            segment_length = self.name(vector_length(dot_product(segment, segment)), f"size_{load.name}")
            direction = self.name_components(scale_components(1 / segment_length, segment), f"e_{load.name}")
            relative_velocity = add_vector_components(
                self.velocity(end_point), scale_components(sm.S.NegativeOne, self.velocity(start_point))
            )
            lengths.append(segment_length)
            rates.append(dot_product(direction, relative_velocity))
            directions.append(direction)
        self.assign(load.length, sm.Add(*lengths))
        self.assign(load.rate, sm.Add(*rates))
        return directions

    # ------------------------------------------------------------------ components

    def _without_auxiliary_speeds(self, components: Components) -> Components:
        """Return components with auxiliary speeds at zero."""
        if not self._auxiliary:
            return components
        x, y, z = (component.xreplace(self._auxiliary) for component in components)
        return (x, y, z)

    def _differentiate(self, components: Components) -> Components:
        """Return the time derivative of components in their own axes, by the chain rule."""
        rates = self.mechanism.rates(self.q_dot)
        x, y, z = (total_time_derivative(component, rates) for component in components)
        return (x, y, z)

    def _differentiate_twice(self, components: Components) -> Components:
        """Return the second derivative at u' = 0."""
        m = self.mechanism
        result = []
        for component in components:
            rate_symbols = [sm.Dummy() for _ in m.q]
            rates = m.rates(rate_symbols)
            if not component.free_symbols & rates.keys():
                result.append(sm.S.Zero)
                continue
            rate = total_time_derivative(component, rates)
            second = total_time_derivative(rate, rates)
            second += sm.Add(
                *(
                    rate.diff(rate_symbol) * second_rate
                    for rate_symbol, second_rate in zip(rate_symbols, self.coordinate_acceleration_bias, strict=True)
                )
            )
            result.append(second.xreplace(dict(zip(rate_symbols, self.q_dot, strict=True))))
        return (result[0], result[1], result[2])

    def _differentiate_by_speed(self, components: Components, speed: int) -> Components:
        """Return d(rate)/du_j of position components: sum over q of their derivative times K."""
        column = self._coordinates_of_speed.get(speed, ())
        x, y, z = (
            sm.Add(
                *(
                    component.diff(coordinate) * entry
                    for coordinate, entry in column
                    if coordinate in component.free_symbols
                )
            )
            for component in map(sm.sympify, components)
        )
        return (x, y, z)

    def _find_moving_speeds(self, components: Components) -> list[int]:
        """Return the numbers of the speeds that move position components."""
        symbols: set[sm.Symbol] = set().union(*(sm.sympify(component).free_symbols for component in components))
        return sorted(
            {
                speed
                for coordinate in symbols & self._speeds_of_coordinate.keys()
                for speed in self._speeds_of_coordinate[coordinate]
            }
        )

    def _add_speed_derivatives(self, partials: Partials, terms: VectorTerms) -> None:
        """Add the slopes of vector terms by each speed that occurs in them, in inertial components."""
        for axes_frame, components in terms:
            R = self.rotation(axes_frame)
            for speed_number, speed in enumerate(self.mechanism.u_all):
                if any(speed in component.free_symbols for component in components):
                    derivative = (components[0].diff(speed), components[1].diff(speed), components[2].diff(speed))
                    partials[speed_number] = add_vector_components(
                        partials.get(speed_number, ZERO), multiply_matrix_by_vector(R, derivative)
                    )

    def _name_partials(self, partials: Partials, hint: str) -> Partials:
        """Name the entries of partial velocities; drop columns that are zero."""
        named = {
            speed: self.name_components(column, f"{hint}_{self.mechanism.u_all[speed].name}")
            for speed, column in partials.items()
        }
        return {speed: column for speed, column in sorted(named.items()) if any(column)}
