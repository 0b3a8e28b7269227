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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import Assignment
from mb2fmu.mechanics.equations.link_recursion import RecursionQuantity
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, Mechanism, PathwayLoad, VectorTerms
from mb2fmu.mechanics.mechanism.records.plain_symbols import coordinate_rates, total_time_derivative
from mb2fmu.model.functions import NoEvent

T = TypeVar("T")
Partials = dict[int, Components]
"""Index into ``Mechanism.u_all`` → components; zero columns are left out."""

ZERO: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)


def add_components(a: Components, b: Components) -> Components:
    """Return a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def scale_components(factor: sm.Expr, a: Components) -> Components:
    """Return factor · a by components."""
    x, y, z = (sm.S.Zero if component is sm.S.Zero else factor * component for component in a)
    return (x, y, z)


def dot_product(a: Sequence[sm.Expr], b: Components) -> sm.Expr:
    """Return a · b."""
    return sm.Add(*(x * y for x, y in zip(a, b, strict=True) if x is not sm.S.Zero and y is not sm.S.Zero))


def cross_product(a: Components, b: Components) -> Components:
    """Return a × b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def multiply_matrix(matrix: sm.MatrixBase, a: Components) -> Components:
    """Return matrix @ a."""
    entries = matrix.flat()
    return (dot_product(entries[0:3], a), dot_product(entries[3:6], a), dot_product(entries[6:9], a))


class NamedKinematics:
    """Kinematic quantities on demand; each is named once, in ``assignments``, in order of evaluation.

    What depends on u' or on multipliers is named in ``late``.

    Args:
        mechanism: Whose kinematics.
        taken: Names that something else uses.
    """

    def __init__(self, mechanism: Mechanism, taken: Iterable[str] = ()) -> None:
        self._start(mechanism)
        self._taken |= set(taken)
        m = mechanism
        rates = coordinate_rates(m.kinematics, m.u)
        self._use_rates({place: self.name(e, "K") for place, e in sorted(m.kinematics.matrix.todok().items())})
        self.q_dot = tuple(self.name(e, f"{q.name}_rate") for q, e in zip(m.q, rates, strict=True))
        # q'' at u' = 0; the rates differentiate the original expressions, in which no name hides a coordinate
        self._second = tuple(total_time_derivative(sm.sympify(e), m.rates(self.q_dot)) for e in rates)
        self._q_second: tuple[sm.Expr, ...] | None = None
        of = {"position": self.position, "velocity": self.velocity, "angular velocity": self.omega}
        for sensed in m.sensed:
            for symbol, component in zip(sensed.symbols, of[sensed.kind](sensed.number), strict=True):
                self.assign(symbol, component)

    def _start(self, mechanism: Mechanism) -> None:
        """Begin without any names."""
        m = self.mechanism = mechanism
        self.assignments: list[Assignment] = []
        self.late: list[Assignment] = []
        self.quantities: list[RecursionQuantity] = []  # of a recursion: nothing here
        self.accelerated: set[sm.Symbol] = {*m.u_dot, *m.constraint_forces, *m.multipliers}
        self._names: dict[sm.Expr, sm.Symbol] = {}
        given = (m.t, *m.q, *m.u_all, *m.u_dot, *m.z, *m.p, *m.r, *m.constraint_forces, *m.multipliers)
        self._taken = {s.name for s in given}
        self._taken |= {a.symbol.name for a in m.calculated_parameters}
        self._taken |= {symbol.name for sensed in m.sensed for symbol in sensed.symbols}
        for load in m.loads:
            if isinstance(load, PathwayLoad):
                self._taken |= {load.length.name, load.rate.name}
        self._cache: dict[tuple[str, int], object] = {}
        self._auxiliary = dict.fromkeys(m.u_auxiliary, sm.S.Zero)

    def _use_rates(self, K: Mapping[tuple[int, int], sm.Expr]) -> None:
        """Note the non-zero entries of K by speed, and the speeds that move each coordinate."""
        self.K = sm.SparseMatrix(len(self.mechanism.q), len(self.mechanism.u), dict(K))
        self._columns: dict[int, list[tuple[sm.Symbol, sm.Expr]]] = {}
        self._moves: dict[sm.Symbol, list[int]] = {}
        for (k, j), entry in sorted(K.items()):
            self._columns.setdefault(j, []).append((self.mechanism.q[k], entry))
            self._moves.setdefault(self.mechanism.q[k], []).append(j)

    # ------------------------------------------------------------------ names

    def symbol(self, hint: str) -> sm.Symbol:
        """Return a new symbol; its name is an identifier, whatever bodies and actuators are called."""
        hint = re.sub(r"\W+", "_", hint).strip("_")
        name, count = hint, 1
        while name in self._taken:
            count += 1
            name = f"{hint}_{count}"
        self._taken.add(name)
        return sm.Symbol(name)

    def name(self, expression: sm.Expr, hint: str) -> sm.Expr:
        """Return a symbol for ``expression``; atoms and their negatives stay; equal expressions share a name."""
        if expression.is_Atom or (-expression).is_Atom:
            return expression
        if expression not in self._names:
            symbol = self.symbol(hint)
            self.assign(symbol, expression)
            self._names[expression] = symbol
        return self._names[expression]

    def assign(self, symbol: sm.Symbol, expression: sm.Expr) -> None:
        """Assign an expression to a symbol."""
        self.assignments.append(Assignment(symbol, expression))

    def name_late(self, expression: sm.Expr, hint: str) -> sm.Expr:
        """Name an expression as :meth:`name` does, where it may depend on u' and multipliers."""
        if expression.is_Atom or (-expression).is_Atom:
            return expression
        if expression not in self._names:
            self._names[expression] = self.symbol(hint)
            self.late.append(Assignment(self._names[expression], expression))
        return self._names[expression]

    def named_late(self, components: Iterable[sm.Expr], hint: str) -> Components:
        """Return three components, each named; they may depend on u' and multipliers."""
        x, y, z = (self.name_late(sm.sympify(c), f"{hint}_{axis}") for c, axis in zip(components, "xyz", strict=True))
        return (x, y, z)

    def named(self, components: Iterable[sm.Expr], hint: str) -> Components:
        """Return three components, each named."""
        x, y, z = (self.name(sm.sympify(c), f"{hint}_{axis}") for c, axis in zip(components, "xyz", strict=True))
        return (x, y, z)

    @property
    def q_second(self) -> tuple[sm.Expr, ...]:
        """q'' at u' = 0: K' u + k0'."""
        if self._q_second is None:
            names = self.mechanism.q
            self._q_second = tuple(self.name(e, f"{q.name}_second") for q, e in zip(names, self._second, strict=True))
        return self._q_second

    # ------------------------------------------------------------------ frames

    def rotation(self, i: int) -> sm.ImmutableMatrix:
        """Return ``N_C_B`` of frame i."""
        return self._remember("rotation", i, self._rotation)

    def omega(self, i: int) -> Components:
        """Return the angular velocity of frame i in N, rad/s."""
        return self._remember("omega", i, self._omega)

    def omega_partials(self, i: int) -> Partials:
        """Return the partial angular velocities of frame i."""
        return self._remember("omega_partials", i, self._omega_partials)

    def alpha0(self, i: int) -> Components:
        """Return the angular acceleration of frame i in N at u' = 0, rad/s²."""
        return self._remember("alpha0", i, self._alpha0)

    def once(self, kind: str, compute: Callable[[int], T]) -> T:
        """Return the result of ``compute``, computed once for these kinematics."""
        return self._remember(kind, 0, compute)

    def _remember(self, kind: str, i: int, compute: Callable[[int], T]) -> T:
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
        for k, components in frame.angular_velocity:
            total = add_components(total, multiply_matrix(self.rotation(k), self._still(components)))
        return self.named(total, f"w_{frame.name}")

    def _omega_partials(self, i: int) -> Partials:
        """Form the partial angular velocities of a frame, by number of the speed; zero columns are left out."""
        if i == 0:
            return {}
        frame = self.mechanism.frames[i]
        partials = dict(self.omega_partials(frame.reference))
        self._add_partials(partials, frame.angular_velocity)
        return self._named_partials(partials, f"Jw_{frame.name}")

    def _alpha0(self, i: int) -> Components:
        """Form the angular acceleration of frame i in N without its terms in u', from its reference frame's."""
        if i == 0:
            return ZERO
        frame = self.mechanism.frames[i]
        total = self.alpha0(frame.reference)
        for k, components in frame.angular_velocity:
            still = self._still(components)
            R = self.rotation(k)
            total = add_components(total, multiply_matrix(R, self._rate(still)))
            total = add_components(
                total, cross_product(self.omega(k), self.named(multiply_matrix(R, still), f"w_{frame.name}_rel"))
            )
        return self.named(total, f"al_{frame.name}")

    # ------------------------------------------------------------------ points

    def position(self, i: int) -> Components:
        """Return the position of point i from the origin, m; only where ``KinematicPoint.located``."""
        return self._remember("position", i, self._position)

    def velocity(self, i: int) -> Components:
        """Return the velocity of point i in N, m/s."""
        return self._remember("velocity", i, self._velocity)

    def velocity_partials(self, i: int) -> Partials:
        """Return the partial velocities of point i."""
        return self._remember("velocity_partials", i, self._velocity_partials)

    def acceleration0(self, i: int) -> Components:
        """Return the acceleration of point i in N at u' = 0, m/s²."""
        return self._remember("acceleration0", i, self._acceleration0)

    def kinetic_energy(self) -> sm.Expr:
        """Return T of all bodies in J: the sum of m v·v/2 + w·I w/2."""
        return self.once("kinetic energy", self._kinetic_energy)

    def _kinetic_energy(self, _: int) -> sm.Expr:
        """Form the sum."""
        terms = []
        for body in self.mechanism.bodies:
            v = self.velocity(body.masscenter)
            terms.append(body.mass * dot_product(v, v) / 2)
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                w = self.named(multiply_matrix(self.rotation(body.frame).T, self.omega(body.frame)), f"wb_{body.name}")
                terms.append(dot_product(w, multiply_matrix(body.inertia, w)) / 2)
        return sm.Add(*terms)

    def moving(self) -> set[sm.Symbol]:
        """Return symbols that depend on speeds: the speeds, and the intermediates computed from them."""
        found = set(self.mechanism.u)
        for assignment in self.assignments:
            if assignment.expression.free_symbols & found:
                found.add(assignment.symbol)
        return found

    def _position(self, i: int) -> Components:
        """Form a point's position from the origin, in inertial components."""
        place = self.mechanism.points[i]
        if place.parent < 0:
            return ZERO
        total = self.position(place.parent)
        for k, components in place.position or ():
            total = add_components(total, self._arm(i, k, components))
        return self.named(total, f"r_{place.name}")

    def _arm(self, i: int, k: int, components: Components) -> Components:
        """Return a term of a position, expressed in N."""
        if k == 0:
            return components
        return self.named(multiply_matrix(self.rotation(k), components), f"arm_{self.mechanism.points[i].name}")

    def _velocity(self, i: int) -> Components:
        """Form the velocity of point i in N: as given, or from its parent's velocity and its position to it."""
        place = self.mechanism.points[i]
        if place.velocity is not None:
            total = ZERO
            for k, components in place.velocity:
                total = add_components(total, multiply_matrix(self.rotation(k), self._still(components)))
            return self.named(total, f"v_{place.name}")
        total = self.velocity(place.parent)
        for k, components in place.position or ():
            total = add_components(total, cross_product(self.omega(k), self._arm(i, k, components)))
            total = add_components(total, multiply_matrix(self.rotation(k), self._rate(components)))
        return self.named(total, f"v_{place.name}")

    def _velocity_partials(self, i: int) -> Partials:
        """Form the derivatives of the velocity of point i with respect to each speed."""
        place = self.mechanism.points[i]
        if place.velocity is not None:
            partials: Partials = {}
            self._add_partials(partials, place.velocity)
            return self._named_partials(partials, f"Jv_{place.name}")
        partials = dict(self.velocity_partials(place.parent))
        for k, components in place.position or ():
            arm = self._arm(i, k, components)
            for j, column in self.omega_partials(k).items():
                partials[j] = add_components(partials.get(j, ZERO), cross_product(column, arm))
            R = self.rotation(k)
            for j in self._movers(components):
                slope = self._slope(components, j)
                if any(slope):
                    partials[j] = add_components(partials.get(j, ZERO), multiply_matrix(R, slope))
        return self._named_partials(partials, f"Jv_{place.name}")

    def _acceleration0(self, i: int) -> Components:
        """Form the acceleration of point i in N without its terms in u', from its parent's."""
        place = self.mechanism.points[i]
        total = ZERO
        if place.velocity is not None:
            for k, components in place.velocity:
                still, R = self._still(components), self.rotation(k)
                total = add_components(total, multiply_matrix(R, self._rate(still)))
                total = add_components(
                    total, cross_product(self.omega(k), self.named(multiply_matrix(R, still), f"v_{place.name}_in"))
                )
            return self.named(total, f"a_{place.name}")
        total = self.acceleration0(place.parent)
        for k, components in place.position or ():
            arm, R, w = self._arm(i, k, components), self.rotation(k), self.omega(k)
            rate, second = self._rate(components), self._rate_of_rate(components)
            if k != 0:
                swing = self.named(cross_product(w, arm), f"wxr_{place.name}")
                total = add_components(
                    total, add_components(cross_product(self.alpha0(k), arm), cross_product(w, swing))
                )
            if any(rate):
                moving = self.named(multiply_matrix(R, rate), f"rr_{place.name}")
                total = add_components(
                    total,
                    add_components(
                        scale_components(sm.Integer(2), cross_product(w, moving)), multiply_matrix(R, second)
                    ),
                )
        return self.named(total, f"a_{place.name}")

    # ------------------------------------------------------------------ accelerations

    def alpha(self, i: int) -> Components:
        """Return the angular acceleration of frame i in N, rad/s²; contains u'."""
        return self._remember("alpha", i, self._alpha)

    def acceleration(self, i: int) -> Components:
        """Return the acceleration of point i in N, m/s²; contains u'."""
        return self._remember("acceleration", i, self._acceleration)

    def _alpha(self, i: int) -> Components:
        """Form a frame's angular acceleration in inertial components; it needs u'."""
        if i == 0:
            return ZERO
        frame = self.mechanism.frames[i]
        total = self.alpha(frame.reference)
        for k, components in frame.angular_velocity:
            total = add_components(total, self._accelerated(k, components, f"w_{frame.name}_rel"))
        return self.named_late(total, f"alpha_{frame.name}")

    def _acceleration(self, i: int) -> Components:
        """Form the whole acceleration of point i in N, terms in u' included, from its parent's."""
        place, total = self.mechanism.points[i], ZERO
        if place.velocity is not None:
            for k, components in place.velocity:
                total = add_components(total, self._accelerated(k, components, f"v_{place.name}_in"))
            return self.named_late(total, f"acc_{place.name}")
        if place.parent >= 0:
            total = self.acceleration(place.parent)
        for k, components in place.position or ():
            arm, R, w = self._arm(i, k, components), self.rotation(k), self.omega(k)
            rate, second = self._rate(components), self._rate_of_rate(components)
            for j in self._movers(components):
                second = add_components(second, scale_components(self.mechanism.u_dot[j], self._slope(components, j)))
            if k != 0:
                swing = self.named(cross_product(w, arm), f"wxr_{place.name}")
                total = add_components(
                    total, add_components(cross_product(self.alpha(k), arm), cross_product(w, swing))
                )
            if any(rate) or any(second):
                moving = self.named(multiply_matrix(R, rate), f"rr_{place.name}")
                total = add_components(
                    total,
                    add_components(
                        scale_components(sm.Integer(2), cross_product(w, moving)), multiply_matrix(R, second)
                    ),
                )
        return self.named_late(total, f"acc_{place.name}")

    def _accelerated(self, k: int, components: Components, hint: str) -> Components:
        """Return the derivative in N of a vector written in frame k and linear in the speeds."""
        still, R = self._still(components), self.rotation(k)
        rate = self._rate(still)
        for u, u_dot in zip(self.mechanism.u, self.mechanism.u_dot, strict=True):
            if any(u in c.free_symbols for c in still):
                rate = add_components(
                    rate, scale_components(u_dot, (still[0].diff(u), still[1].diff(u), still[2].diff(u)))
                )
        return add_components(
            multiply_matrix(R, rate), cross_product(self.omega(k), self.named(multiply_matrix(R, still), hint))
        )

    # ------------------------------------------------------------------ pathways

    def pathway(self, load: PathwayLoad) -> list[Components]:
        """Return the unit vectors of the segments; ``load.length`` and ``load.rate`` are assigned."""
        return self._remember("pathway", self.mechanism.loads.index(load), self._pathway)

    def segments(self, load: PathwayLoad) -> list[Components]:
        """Return the unit vectors of a pathway's segments in N."""
        return self.pathway(load)

    def _pathway(self, number: int) -> list[Components]:
        """Assign length and rate of a pathway, summed over its segments; returns the segments' unit vectors in N."""
        load = self.mechanism.loads[number]
        assert isinstance(load, PathwayLoad)
        lengths, rates, directions = [], [], []
        for a, b in zip(load.points, load.points[1:], strict=False):
            d = self.named(
                add_components(self.position(b), scale_components(sm.S.NegativeOne, self.position(a))), f"d_{load.name}"
            )
            size = self.name(vector_length(dot_product(d, d)), f"size_{load.name}")
            e = self.named(scale_components(1 / size, d), f"e_{load.name}")
            gap = add_components(self.velocity(b), scale_components(sm.S.NegativeOne, self.velocity(a)))
            lengths.append(size)
            rates.append(dot_product(e, gap))
            directions.append(e)
        self.assign(load.length, sm.Add(*lengths))
        self.assign(load.rate, sm.Add(*rates))
        return directions

    # ------------------------------------------------------------------ components

    def _still(self, components: Components) -> Components:
        """Return components with auxiliary speeds at zero."""
        if not self._auxiliary:
            return components
        x, y, z = (c.xreplace(self._auxiliary) for c in components)
        return (x, y, z)

    def _rate(self, components: Components) -> Components:
        """Return the time derivative of components in their own axes, by the chain rule."""
        rates = self.mechanism.rates(self.q_dot)
        x, y, z = (total_time_derivative(c, rates) for c in components)
        return (x, y, z)

    def _rate_of_rate(self, components: Components) -> Components:
        """Return the second derivative at u' = 0."""
        m = self.mechanism
        result = []
        for c in components:
            dots = [sm.Dummy() for _ in m.q]
            rates = m.rates(dots)
            if not c.free_symbols & rates.keys():
                result.append(sm.S.Zero)
                continue
            rate = total_time_derivative(c, rates)
            second = total_time_derivative(rate, rates)
            second += sm.Add(*(rate.diff(d) * s for d, s in zip(dots, self.q_second, strict=True)))
            result.append(second.xreplace(dict(zip(dots, self.q_dot, strict=True))))
        return (result[0], result[1], result[2])

    def _slope(self, components: Components, j: int) -> Components:
        """Return d(rate)/du_j of position components: sum over q of their derivative times K."""
        column = self._columns.get(j, ())
        x, y, z = (
            sm.Add(*(c.diff(q) * entry for q, entry in column if q in c.free_symbols))
            for c in map(sm.sympify, components)
        )
        return (x, y, z)

    def _movers(self, components: Components) -> list[int]:
        """Return the numbers of the speeds that move position components."""
        free: set[sm.Symbol] = set().union(*(sm.sympify(c).free_symbols for c in components))
        return sorted({j for q in free & self._moves.keys() for j in self._moves[q]})

    def _add_partials(self, partials: Partials, terms: VectorTerms) -> None:
        """Add the slopes of vector terms by each speed that occurs in them, in inertial components."""
        for k, components in terms:
            R = self.rotation(k)
            for j, speed in enumerate(self.mechanism.u_all):
                if any(speed in c.free_symbols for c in components):
                    slope = (components[0].diff(speed), components[1].diff(speed), components[2].diff(speed))
                    partials[j] = add_components(partials.get(j, ZERO), multiply_matrix(R, slope))

    def _named_partials(self, partials: Partials, hint: str) -> Partials:
        """Name the entries of partial velocities; drop columns that are zero."""
        named = {j: self.named(column, f"{hint}_{self.mechanism.u_all[j].name}") for j, column in partials.items()}
        return {j: column for j, column in sorted(named.items()) if any(column)}


def vector_length(square: sm.Expr) -> sm.Expr:
    """Return the root of a sum of squares; of a single square without Abs, whose kink would be an event."""
    length = sm.sqrt(square)
    return NoEvent(length) if length.has(sm.Abs) else length
