"""q', M, f, z' and the power of all loads of a mechanism as one C function without loops, of v alone.

What ``bodies.c`` does for any mechanism by tables, written out for one: products with 0 and 1 are left out, and nothing
is gathered. Flexible bodies vibrate so fast that their x' is evaluated some hundred thousand times; x' takes a sixth of
the time. Written out, each body costs as many statements as the mass matrix has entries, so that only small mechanisms
are (:func:`is_worth_unrolling`).

Partial velocities are those of each frame and point in N's components: M_ij = Σ m v_i·v_j + ω_i·(I ω_j), and
f_j = Σ (F − m a)·v_j + (T − I α − ω × I ω)·ω_j with accelerations at u' = 0 (T. R. Kane, D. A. Levinson, Dynamics:
Theory and Applications, McGraw-Hill 1985, chapter 6).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.validation.compiled.c_expressions import CExpressionWriter, LookupTableDefinitions
from mb2fmu.validation.compiled.mass_matrix_column_structure import FrameOrPointTree, FrameVectorTerm

UNROLLED_FUNCTION_NAME = "unrolled_motion_equations"
MAX_UNROLLED_ENTRIES = 2000
"""Bodies times entries of the mass matrix, above which the function would take seconds to compile."""

_Scalar = float | str
_Product = tuple[_Scalar, _Scalar]
_Products = list[_Product]
_Vector = tuple[_Scalar, _Scalar, _Scalar]
_ZERO: _Vector = (0.0, 0.0, 0.0)
_CYCLE = ((1, 2), (2, 0), (0, 1))


def is_worth_unrolling(mechanism: Mechanism) -> bool:
    """Return whether a mechanism with flexible bodies is small, and without what :class:`_MotionWriter` leaves out."""
    m = mechanism
    if not m.flexible_bodies or len(m.bodies) * len(m.u) ** 2 > MAX_UNROLLED_ENTRIES:
        return False
    return not (m.velocity_constraints or m.u_auxiliary or m.constraint_forces or m.motion_vectors)


def write_unrolled_equations(
    mechanism: Mechanism,
    frames: FrameOrPointTree,
    places: FrameOrPointTree,
    points: FrameOrPointTree,
    tables: LookupTableDefinitions,
) -> str:
    """Return the C source of the function; it needs the prelude of ``c_expressions`` and the tables.

    Args:
        mechanism: As :func:`is_worth_unrolling` says.
        frames: Angular velocities.
        places: Positions of points.
        points: Positions, or velocities where these are given.
        tables: Lookup tables that were printed before; those that are met are added.

    Raises:
        NoCExpressionError: If there is no C for some expression.
    """
    lines = _MotionWriter(mechanism, frames, places, points, tables).write()
    head = f"void {UNROLLED_FUNCTION_NAME}(double v[], double results[])"
    body = "\n    ".join(lines)
    return f"EXPORTED {head};\n{head}\n{{\n    (void)v;\n    {body}\n}}\n"


@dataclass(frozen=True, slots=True)
class _Motion:
    """Of a frame: ω, α at u' = 0 and partials of ω by speeds; of a point: velocity, acceleration and partials."""

    velocity: _Vector
    acceleration: _Vector
    partials: Mapping[int, _Vector]


class _MotionWriter:
    """Writes the statements; a scalar is a number that is known, or the name of one that is computed."""

    def __init__(
        self,
        mechanism: Mechanism,
        frames: FrameOrPointTree,
        places: FrameOrPointTree,
        points: FrameOrPointTree,
        tables: LookupTableDefinitions,
    ) -> None:
        m = self._m = mechanism
        self._frames, self._points = frames, points
        given_symbols = [m.t, *m.q, *m.u, *m.z, *m.r, *m.p, *(a.symbol for a in m.calculated_parameters)]
        self._writer = CExpressionWriter({symbol: f"v[{i}]" for i, symbol in enumerate(given_symbols)}, tables)
        self._names: dict[str, str] = {}
        self.rotation = cache(self._write_rotation)
        self.angular_velocity: Callable[[int], _Vector] = cache(
            lambda frame: self._sum_vectors(frames, self.angular_velocity, frame)
        )
        self.turning = cache(self._write_turning)
        self.position: Callable[[int], _Vector] = cache(lambda point: self._sum_vectors(places, self.position, point))
        self.moving = cache(self._write_moving)

    def write(self) -> list[str]:
        """Return the statements."""
        m, n = self._m, len(self._m.u)
        rates: list[_Products] = [[(1.0, self._atom(offset))] for offset in m.kinematics.offset]
        for (row, column), entry in m.kinematics.matrix.todok().items():
            rates[row].append((self._atom(entry), self._atom(m.u[column])))
        forces, torques, power = self._write_loads()
        mass_terms: list[_Products] = [[] for _ in range(n * n)]
        forcing_terms: list[_Products] = [[(1.0, self._atom(force))] for force in m.potential_forces] or [
            [] for _ in range(n)
        ]
        for body in m.bodies:
            self._resist_with_mass(self._atom(body.mass), body.masscenter, forces, mass_terms)
            if body.inertia is not None:
                self._resist_with_inertia(body.inertia, body.frame, torques, mass_terms)
        for acting, motion_of in ((forces, self.moving), (torques, self.turning)):
            for node, vector in acting.items():
                for j, partial in motion_of(node).partials.items():
                    forcing_terms[j] += zip(vector, partial, strict=True)
        mass = [self._sum(terms) for terms in mass_terms]
        results = [*map(self._sum, rates)]
        results += [mass[max(i, j) * n + min(i, j)] for i in range(n) for j in range(n)]
        results += [*map(self._sum, forcing_terms), *map(self._atom, m.z_dot), power]
        return [*self._writer.lines, *(f"results[{i}] = {_format_scalar(value)};" for i, value in enumerate(results))]

    # ------------------------------------------------------------------ bodies and loads

    def _resist_with_mass(
        self, mass: _Scalar, point: int, forces: dict[int, _Vector], mass_terms: list[_Products]
    ) -> None:
        """Add a mass at a point: its entries of M; what accelerates it at u' = 0 is taken off the forces."""
        motion = self.moving(point)
        self._act_on(forces, point, -1, self._scale(_negate(mass), motion.acceleration))
        for j, partial in motion.partials.items():
            momentum = self._scale(mass, partial)
            self._add_products(j, momentum, motion.partials, mass_terms)

    def _resist_with_inertia(
        self,
        inertia: sm.MatrixBase,
        frame: int,
        torques: dict[int, _Vector],
        mass_terms: list[_Products],
    ) -> None:
        """Add an inertia that turns with a frame, as :meth:`_resist_with_mass`."""
        numbers = [self._atom(entry) for entry in inertia]
        if not any(numbers):
            return
        motion, R = self.turning(frame), self.rotation(frame)
        columns = [self._rotate(R, (numbers[j], numbers[3 + j], numbers[6 + j])) for j in range(3)]
        halves = [[columns[j][i] for j in range(3)] for i in range(3)]  # R I
        in_N = [[self._dot(halves[i], R[j]) for j in range(3)] for i in range(3)]
        momentum = self._rotate(in_N, motion.velocity)
        resisting = self._add(self._rotate(in_N, motion.acceleration), self._cross(motion.velocity, momentum))
        self._act_on(torques, frame, -1, self._scale(-1.0, resisting))
        for j, partial in motion.partials.items():
            self._add_products(j, self._rotate(in_N, partial), motion.partials, mass_terms)

    def _add_products(
        self,
        j: int,
        momentum: _Vector,
        partials: Mapping[int, _Vector],
        mass_terms: list[_Products],
    ) -> None:
        """Add the products of a momentum along speed j with partial velocities to the lower half of M."""
        n = len(self._m.u)
        for i, other in partials.items():
            if i >= j:
                mass_terms[i * n + j] += zip(momentum, other, strict=True)

    def _write_loads(self) -> tuple[dict[int, _Vector], dict[int, _Vector], _Scalar]:
        """Return forces by points, torques by frames, in N, and the power of all."""
        forces: dict[int, _Vector] = {}
        torques: dict[int, _Vector] = {}
        pathways = [load for load in self._m.loads if isinstance(load, PathwayLoad)]
        directions = [self._measure_pathway(load) for load in pathways]
        for pathway, segments in zip(pathways, directions, strict=True):
            for (begin, end), direction in zip(itertools.pairwise(pathway.points), segments, strict=True):
                self._act_on(forces, end, begin, self._scale(self._atom(pathway.force), direction))
        for load in self._m.loads:
            if isinstance(load, ForceLoad):
                self._act_on(forces, load.point, -1, self._in_inertial_frame(load.force))
            elif isinstance(load, TorqueLoad):
                self._act_on(torques, load.frame, -1, self._in_inertial_frame(load.torque))
            elif isinstance(load, TorqueActuatorLoad):
                vector = self._scale(self._atom(load.torque), self._in_inertial_frame(load.axis))
                self._act_on(torques, load.frame, load.reaction, vector)
        terms: _Products = []
        for acting, motion_of in ((forces, self.moving), (torques, self.turning)):
            for node, vector in acting.items():
                terms += zip(vector, motion_of(node).velocity, strict=True)
        terms += [
            (self._atom(force), self._atom(speed))
            for force, speed in zip(self._m.potential_forces, self._m.u, strict=False)
        ]
        return forces, torques, self._sum(terms)

    def _act_on(self, acting: dict[int, _Vector], node: int, reaction: int, vector: _Vector) -> None:
        """Add a force or torque on one node, and its reaction on another (-1: none)."""
        for each, sign in ((node, 1.0), (reaction, -1.0)):
            if each >= 0:
                acting[each] = self._add(acting.get(each, _ZERO), self._scale(sign, vector))

    def _measure_pathway(self, load: PathwayLoad) -> list[_Vector]:
        """Compute a pathway's length and rate for expressions that contain them; return directions of its segments."""
        lengths: _Products = []
        rates: _Products = []
        directions = []
        for begin, end in itertools.pairwise(load.points):
            along = self._add(self.position(end), self._scale(-1.0, self.position(begin)))
            size = self._name(f"sqrt({_format_scalar(self._dot(along, along))})")
            directions.append(self._scale(self._name(f"1.0/{size}"), along))
            velocities = (self.moving(end).velocity, self._scale(-1.0, self.moving(begin).velocity))
            lengths.append((1.0, size))
            rates += zip(directions[-1], self._add(*velocities), strict=True)
        self._writer.define(load.length, _format_scalar(self._sum(lengths)))
        self._writer.define(load.rate, _format_scalar(self._sum(rates)))
        return directions

    # ------------------------------------------------------------------ frames and points

    def _write_rotation(self, frame: int) -> list[list[_Scalar]]:
        """Return ``N_C_B`` of a frame B, row by row."""
        record = self._m.frames[frame]
        local = [self._atom(entry) for entry in record.rotation]
        rows = [local[:3], local[3:6], local[6:]]
        if record.parent < 0:
            return rows
        columns = [[row[j] for row in rows] for j in range(3)]
        return [[self._dot(row, column) for column in columns] for row in self.rotation(record.parent)]

    def _sum_vectors(self, tree: FrameOrPointTree, sum_of: Callable[[int], _Vector], node: int) -> _Vector:
        """Return the sum of a tree's vectors from the root to a node: ω of a frame, or where a point is."""
        above = tree.parents[node]
        before = sum_of(above) if above >= 0 else _ZERO
        return self._add(before, *(self._vectors(term)[len(term.speeds)] for term in tree.terms[node]))

    def _write_turning(self, frame: int) -> _Motion:
        """Return how a frame turns."""
        before = self._motion_above(self._frames, self.turning, frame)
        acceleration, all_partials = before.acceleration, dict(before.partials)
        for term in self._frames.terms[frame]:
            *partials, vector, rate, _ = self._vectors(term)
            acceleration = self._add(acceleration, rate, self._cross(self.angular_velocity(term.frame), vector))
            for speed, partial in zip(term.speeds, partials, strict=True):
                all_partials[speed] = self._add(all_partials.get(speed, _ZERO), partial)
        return _Motion(self.angular_velocity(frame), acceleration, all_partials)

    def _write_moving(self, point: int) -> _Motion:
        """Return how a point moves."""
        motion = self._motion_above(self._points, self.moving, point)
        for term in self._points.terms[point]:
            motion = self._add_term(motion, term, is_velocity=self._m.points[point].velocity is not None)
        return motion

    def _add_term(self, motion: _Motion, term: FrameVectorTerm, *, is_velocity: bool) -> _Motion:
        """Return a point's motion with one more term of its position, or of its given velocity."""
        *partials, vector, rate, second_rate = self._vectors(term)
        turning, all_partials = self.turning(term.frame), dict(motion.partials)
        for speed, partial in zip(term.speeds, partials, strict=True):
            all_partials[speed] = self._add(all_partials.get(speed, _ZERO), partial)
        if is_velocity:
            acceleration = self._add(motion.acceleration, rate, self._cross(turning.velocity, vector))
            return _Motion(self._add(motion.velocity, vector), acceleration, all_partials)
        for speed, partial in turning.partials.items():
            all_partials[speed] = self._add(all_partials.get(speed, _ZERO), self._cross(partial, vector))
        around = self._cross(turning.velocity, vector)
        inner = self._add(self._scale(2.0, rate), around)
        return _Motion(
            self._add(motion.velocity, rate, around),
            self._add(
                motion.acceleration,
                second_rate,
                self._cross(turning.acceleration, vector),
                self._cross(turning.velocity, inner),
            ),
            all_partials,
        )

    @staticmethod
    def _motion_above(tree: FrameOrPointTree, motion_of: Callable[[int], _Motion], node: int) -> _Motion:
        """Return the motion of the node above one, or rest."""
        above = tree.parents[node]
        return motion_of(above) if above >= 0 else _Motion(_ZERO, _ZERO, {})

    def _vectors(self, term: FrameVectorTerm) -> list[_Vector]:
        """Return the vectors of a term in N: partials by its speeds, vector, rate, second rate."""
        return [
            self._vector_in_inertial_frame(term.frame, term.numbers[i : i + 3]) for i in range(0, len(term.numbers), 3)
        ]

    def _in_inertial_frame(self, terms: VectorTerms) -> _Vector:
        """Return components in N of a vector written in several frames."""
        return self._add(*(self._vector_in_inertial_frame(frame, components) for frame, components in terms))

    def _vector_in_inertial_frame(self, frame: int, components: Iterable[sm.Expr]) -> _Vector:
        """Return components in N of a vector written in one frame."""
        x, y, z = (self._atom(component) for component in components)
        return self._rotate(self.rotation(frame), (x, y, z)) if frame else (x, y, z)

    # ------------------------------------------------------------------ scalars and vectors

    def _atom(self, expression: sm.Expr) -> _Scalar:
        """Return an expression as a scalar."""
        expression = sm.sympify(expression)
        return (
            float(expression) if expression.is_Float or expression.is_Rational else self._writer.write_atom(expression)
        )

    def _sum(self, products: Iterable[_Product]) -> _Scalar:
        """Return a sum of products; where it is no number and no single scalar, a statement computes it."""
        number, text, single = 0.0, "", None
        for one, other in products:
            known, factor = (one, other) if isinstance(one, float) else (other, one)
            if isinstance(factor, float):
                assert isinstance(known, float)
                number += known * factor
            elif known in {1.0, -1.0}:
                single = factor if not text and known == 1.0 else None
                text += f" {'+' if known == 1.0 else '-'} {factor}"
            elif known:
                single = None
                text += f" + {_format_scalar(known)}*{factor}"
        if not text:
            return number
        if number:
            return self._name(f"{_format_scalar(number)}{text}")
        return single if single is not None else self._name(text.removeprefix(" + ").strip())

    def _name(self, text: str) -> str:
        """Return the name of what a C expression gives; the same one is computed once."""
        if text not in self._names:
            self._names[text] = self._writer.name_constant(text, text)
        return self._names[text]

    def _add(self, *vectors: _Vector) -> _Vector:
        """Return the sum of vectors."""
        x, y, z = (self._sum((1.0, vector[i]) for vector in vectors) for i in range(3))
        return x, y, z

    def _scale(self, factor: _Scalar, vector: _Vector) -> _Vector:
        """Return a multiple of a vector."""
        x, y, z = (self._sum([(factor, component)]) for component in vector)
        return x, y, z

    def _dot(self, one: Iterable[_Scalar], other: Iterable[_Scalar]) -> _Scalar:
        """Return a scalar product."""
        return self._sum(zip(one, other, strict=True))

    def _cross(self, one: _Vector, other: _Vector) -> _Vector:
        """Return a vector product."""
        x, y, z = (self._sum([(one[j], other[k]), (_negate(one[k]), other[j])]) for j, k in _CYCLE)
        return x, y, z

    def _rotate(self, R: Sequence[Sequence[_Scalar]], vector: _Vector) -> _Vector:
        """Return the components of R a."""
        x, y, z = (self._dot(row, vector) for row in R)
        return x, y, z


def _negate(scalar: _Scalar) -> _Scalar:
    """Return a scalar with the other sign."""
    return -scalar if isinstance(scalar, float) else f"(-{scalar})"


def _format_scalar(scalar: _Scalar) -> str:
    """Return a scalar in C."""
    if isinstance(scalar, str):
        return scalar
    return repr(scalar) if scalar >= 0 else f"({scalar!r})"
