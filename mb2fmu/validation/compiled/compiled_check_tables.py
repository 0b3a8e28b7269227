"""Write a ``Mechanism`` as the tables of ``bodies.h``: its numbers, and the frame and point of each part.

Read from the records alone, apart from ``numeric_mechanism_evaluation.py``: rates and partial velocities are SymPy's
derivatives.

``_ExpressionValueCode``: many expressions as C; those that differ only in symbols share one loop.

A chain of 300 joints has 300 sines and as many cosines; what is compiled for it is one of each.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    MotionVectorKind,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import differentiate_along_rates
from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_expressions import CExpressionWriter, LookupTableDefinitions
from mb2fmu.validation.compiled.link_tree import SingleSpeedLinkTree, find_articulated_tree
from mb2fmu.validation.compiled.mass_matrix_column_structure import (
    FrameOrPointTree,
    FrameVectorTerm,
    MassMatrixColumnStructure,
    ResultantLocation,
)
from mb2fmu.validation.compiled.unrolled_motion_equations import is_worth_unrolling, write_unrolled_equations
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KINEMATIC_QUANTITY_KINDS, KinematicQuantity

IndexArray = npt.NDArray[np.int64]

MIN_LOOP_EXPRESSIONS = 6
"""Expressions of one kind that are worth a loop."""

MAX_LOOP_NODES = 16
"""Nodes of an expression above which nothing like it is looked for."""


_MOTION_VECTOR_KINDS: tuple[MotionVectorKind, ...] = get_args(MotionVectorKind)
"""``enum sensed`` of bodies.h."""


@dataclass(frozen=True, slots=True)
class _GroupedExpressionFunction:
    """One function: its number, the places of the symbols of each member, where the results go."""

    number: int
    places: IndexArray
    count: int
    first: int


class _ExpressionValueCode:
    """Collects expressions, and gives each a place in an array w of values.

    Args:
        given_symbols: Symbols that the array begins with.
        tables: Lookup tables that were printed before; those that are met are added.
    """

    def __init__(self, given_symbols: Sequence[sm.Symbol], tables: LookupTableDefinitions) -> None:
        self._places: dict[sm.Expr, int] = {symbol: i for i, symbol in enumerate(given_symbols)}
        self._size = len(given_symbols)
        self._constants: dict[int, float] = {}
        self._functions: list[str] = []
        self._tables = tables
        self._referenced_arrays: list[Any] = []

    def write(self, expressions: Sequence[sm.Expr]) -> list[_GroupedExpressionFunction]:
        """Return functions that evaluate expressions, those before them being known; then :meth:`place` knows them all.

        Raises:
            NoCExpressionError: If there is no C for one.
        """
        expressions_by_structure: dict[Any, list[tuple[sm.Expr, list[sm.Symbol]]]] = {}
        new = []
        for expression in dict.fromkeys(map(sm.sympify, expressions)):
            if expression in self._places:
                continue
            if expression.is_Float or expression.is_Rational:
                self._places[expression] = self._reserve_places(1)
                self._constants[self._places[expression]] = float(expression)
                continue
            symbols: dict[sm.Symbol, int] = {}
            kind = _expression_structure(expression, symbols, [MAX_LOOP_NODES])
            expressions_by_structure.setdefault((expression,) if kind is None else kind, []).append(
                (expression, list(symbols))
            )
        loops = []
        for members in expressions_by_structure.values():
            if len(members) < MIN_LOOP_EXPRESSIONS:
                new += [expression for expression, _ in members]
            else:
                loops.append(self._add_loop(members))
        return [*loops, *([self._write_common_function(new)] if new else [])]

    def place(self, expression: sm.Expr) -> int:
        """Return where the value of a written expression is."""
        return self._places[sm.sympify(expression)]

    def places(self, expressions: Sequence[sm.Expr]) -> list[int]:
        """Return where the values of written expressions are."""
        return [self.place(expression) for expression in expressions]

    def values(self) -> npt.NDArray[np.float64]:
        """Return the array w with its constants."""
        w = np.zeros(self._size)
        w[list(self._constants)] = list(self._constants.values())
        return w

    def text(self) -> str:
        """Return the source text; it needs the prelude of ``c_expressions`` and the tables."""
        return "\n".join(self._functions)

    def groups(
        self, loops: Sequence[_GroupedExpressionFunction], library: ctypes.CDLL
    ) -> c_structures.ExpressionGroupsStruct:
        """Return the table of functions, which are in ``library``; it lives as long as this object."""
        table = (c_structures.FunctionCallStruct * max(len(loops), 1))()
        for row, loop in zip(table, loops, strict=False):
            row.function = ctypes.cast(getattr(library, f"values_{loop.number}"), ctypes.c_void_p).value
            row.places, row.count, row.first = c_structures.array_address(loop.places), loop.count, loop.first
            self._referenced_arrays.append(loop)
        self._referenced_arrays += [table, library]
        return c_structures.ExpressionGroupsStruct(ctypes.addressof(table), len(loops))

    def _reserve_places(self, count: int) -> int:
        """Reserve places for values and return the first."""
        self._size += count
        return self._size - count

    def _add_loop(self, members: Sequence[tuple[sm.Expr, list[sm.Symbol]]]) -> _GroupedExpressionFunction:
        """Return a loop over expressions that differ only in symbols, made from the first."""
        first, symbols = members[0]
        places = np.array([[self._places[s] for s in own_symbols] for _, own_symbols in members], dtype=np.int64)
        writer = CExpressionWriter({s: f"w[at[{i}]]" for i, s in enumerate(symbols)}, self._tables)
        writer.lines.append(f"results[i] = {writer.write_atom(first)};")
        body = "\n        ".join(writer.lines)
        number = self._add_function(
            f"    for (int64_t i = 0; i < count; i++) {{\n        const int64_t *at = places + {len(symbols)} * i;\n"
            f"        (void)at;\n        {body}\n    }}\n"
        )
        begin = self._reserve_places(len(members))
        self._places.update((expression, begin + i) for i, (expression, _) in enumerate(members))
        return _GroupedExpressionFunction(number, places, len(members), begin)

    def _write_common_function(self, expressions: Sequence[sm.Expr]) -> _GroupedExpressionFunction:
        """Write one function for all expressions without a common structure."""
        names: Mapping[sm.Symbol, str] = {s: f"w[{i}]" for s, i in self._places.items() if s.is_Symbol}
        writer = CExpressionWriter(names, self._tables)
        for i, expression in enumerate(expressions):
            writer.lines.append(f"results[{i}] = {writer.write_atom(expression)};")
        body = "\n    ".join(writer.lines)
        number = self._add_function(f"    (void)w;\n    (void)places;\n    (void)count;\n    {body}\n")
        begin = self._reserve_places(len(expressions))
        self._places.update((expression, begin + i) for i, expression in enumerate(expressions))
        return _GroupedExpressionFunction(number, np.zeros(1, dtype=np.int64), 1, begin)

    def _add_function(self, body: str) -> int:
        """Add a C function with this body and return its number."""
        number = len(self._functions)
        head = f"void values_{number}(const double w[], const int64_t places[], int64_t count, double results[])"
        self._functions.append(f"EXPORTED {head};\n{head}\n{{\n{body}}}\n")
        return number


def _expression_structure(node: sm.Basic, symbols: dict[sm.Symbol, int], remaining_places: list[int]) -> Any:
    """Return an expression's structure with its symbols numbered; None if it is too long."""
    remaining_places[0] -= 1
    if remaining_places[0] < 0:
        return None
    if node.is_Symbol:
        return symbols.setdefault(node, len(symbols))
    if not node.args:
        return node.func, node
    parts = [_expression_structure(argument, symbols, remaining_places) for argument in node.args]
    return None if None in parts else (node.func, *parts)


class CompiledCheckTables:
    """A mechanism for ``bodies.c``; write it, compile :attr:`values`' text, then request :meth:`structure`.

    Args:
        mechanism: With bodies.
        tables: Lookup tables that were printed before; those that are met are added.

    Attributes:
        values: Expressions of the tables.
        unrolled_text: Source of the mechanism's equations without tables; empty where that is not worth it.
    """

    def __init__(self, mechanism: Mechanism, tables: LookupTableDefinitions) -> None:
        m = self._m = mechanism
        self._columns = {ui: k for k, ui in enumerate(m.u_all)}
        self._rates = m.rates(_coordinate_rates(m))
        parameters = [*m.p, *(a.symbol for a in m.calculated_parameters)]
        given_symbols = [m.t, *m.q, *m.u, *m.z, *m.r, *parameters]
        self._pathways = [load for load in m.loads if isinstance(load, PathwayLoad)]
        lengths = [s for load in self._pathways for s in (load.length, load.rate)]
        lengths += [s for motion_vector in m.motion_vectors for s in motion_vector.symbols]
        self.values = _ExpressionValueCode([*given_symbols, *m.u_auxiliary, *m.constraint_forces, *lengths], tables)
        self._given_count = len(given_symbols)
        self._referenced_arrays: list[Any] = []
        self._frames = FrameOrPointTree(
            tuple(tuple(self._terms(f.angular_velocity, with_second_rates=False)) for f in m.frames),
            (-1, *(f.reference for f in m.frames[1:])),
        )
        positions = tuple(tuple(self._terms(p.position or (), with_second_rates=True)) for p in m.points)
        velocities = tuple(tuple(self._terms(p.velocity or (), with_second_rates=False)) for p in m.points)
        terms_of_points = tuple(
            v if p.velocity is not None else x for p, v, x in zip(m.points, velocities, positions, strict=True)
        )
        self._places = FrameOrPointTree(positions, tuple(p.parent for p in m.points))
        self._moving = FrameOrPointTree(
            terms_of_points, tuple(p.parent if p.velocity is None else -1 for p in m.points)
        )
        self._first_terms = [*itertools.accumulate(map(len, terms_of_points), initial=0)]
        self._motion = self.values.write(self._expressions_of_motion())
        self._load_groups = self.values.write([*self._expressions_of_loads(), *m.potential_forces, *m.z_dot])
        self.unrolled_text = (
            write_unrolled_equations(m, self._frames, self._places, self._moving, tables)
            if is_worth_unrolling(m)
            else ""
        )

    def structure(
        self, library: ctypes.CDLL, quantities: Sequence[KinematicQuantity], first: int
    ) -> c_structures.MechanismStruct:
        """Return the filled structure, which lives as long as this object.

        Args:
            library: Has the functions of :attr:`values`.
            quantities: Quantities that are evaluated when a motion is requested as a whole.
            first: The slot of their first number.
        """
        m, values = self._m, self.values
        s = c_structures.MechanismStruct()
        w = values.values()
        s.w, s.n_v, s.n_w, s.n_q, s.n_u = self._array(w), self._given_count, len(w), len(m.q), len(m.u)
        s.n_all, s.n_z = len(m.u_all), len(m.z)
        s.motion, s.acting = values.groups(self._motion, library), values.groups(self._load_groups, library)
        self._add_vectors(s)
        self._add_bodies(s)
        self._add_loads(s)
        self._add_constraints(s)
        self._add_columns(s)
        counts = [len(quantity.symbols) for quantity in quantities]
        s.n_quantities = len(quantities)
        s.quantity_kind = self._store_integers(KINEMATIC_QUANTITY_KINDS.index(quantity.kind) for quantity in quantities)
        s.quantity_node = self._store_integers(quantity.node for quantity in quantities)
        s.quantity_slot = self._store_integers([*itertools.accumulate(counts, initial=first)][: len(quantities)])
        return s

    # ------------------------------------------------------------------ expressions

    def _terms(self, vector: VectorTerms, *, with_second_rates: bool) -> list[FrameVectorTerm]:
        """Return terms of a position (``with_second_rates``: partial velocities of its rate), or of a velocity."""
        terms = []
        for frame, components in vector:
            expressions = [sm.sympify(c) for c in components]
            rate = [differentiate_along_rates(c, self._rates) for c in expressions]
            linear = rate if with_second_rates else expressions
            second = [differentiate_along_rates(c, self._rates) for c in rate] if with_second_rates else [sm.S.Zero] * 3
            free = set().union(*(c.free_symbols for c in linear))
            speeds = sorted(free & self._columns.keys(), key=self._columns.__getitem__)
            partials = [differentiate_along_rates(c, {speed: sm.S.One}) for speed in speeds for c in linear]
            indices = tuple(self._columns[speed] for speed in speeds)
            terms.append(FrameVectorTerm(frame, indices, (*partials, *expressions, *rate, *second)))
        return terms

    def _expressions_of_motion(self) -> list[sm.Expr]:
        """Return the expressions of the motion: kinematics, inertias, constraints."""
        m = self._m
        expressions = [e for f in m.frames for e in f.rotation]
        for nodes in (self._frames, self._places, self._moving):
            expressions += [e for terms in nodes.terms for term in terms for e in term.numbers]
        for body in m.bodies:
            expressions += [body.mass, *(body.inertia if body.inertia is not None else ())]
        expressions += [*m.kinematics.matrix.todok().values(), *m.kinematics.offset]
        if m.velocity_constraints:
            c = m.velocity_constraints
            expressions += [*c.jacobian.todok().values(), *c.offset, *c.bias]
        return expressions

    def _expressions_of_loads(self) -> list[sm.Expr]:
        """Return the expressions of the loads; of pathways their force only."""
        expressions: list[sm.Expr] = []
        for load in self._m.loads:
            if isinstance(load, ForceLoad):
                expressions += [c for _, components in load.force for c in components]
            elif isinstance(load, TorqueLoad):
                expressions += [c for _, components in load.torque for c in components]
            elif isinstance(load, TorqueActuatorLoad):
                expressions += [load.torque, *(c for _, components in load.axis for c in components)]
            else:
                expressions.append(load.force)
        return expressions

    # ------------------------------------------------------------------ tables

    def _array(self, numbers: Any, kind: type = np.float64) -> int:
        """Return the address of an array, which is kept alive."""
        array: npt.NDArray[Any] = np.ascontiguousarray(numbers, dtype=kind)
        self._referenced_arrays.append(array)
        return c_structures.array_address(array)

    def _store_integers(self, numbers: Iterable[int]) -> int:
        """Keep an array of 64-bit integers, and return its address."""
        return self._array([*numbers, 0], np.int64)  # never empty

    def _add_vectors(self, s: c_structures.MechanismStruct) -> None:
        """Add frames, points, and the terms of both, whose numbers are gathered one after the other."""
        m = self._m
        gathered_numbers: list[int] = []
        rotation = []
        for frame in m.frames:
            rotation.append(len(gathered_numbers))
            gathered_numbers += self.values.places(list(frame.rotation))
        s.n_frames, s.rotation = len(m.frames), self._store_integers(rotation)
        s.frame_parent = self._store_integers(f.parent for f in m.frames)
        s.frame_terms, (s.turning,) = self._collect_vector_terms([self._frames], gathered_numbers)
        s.point_terms, (s.moving,) = self._collect_vector_terms([self._moving], gathered_numbers)
        s.place_terms, (s.places_of_points,) = self._collect_vector_terms([self._places], gathered_numbers)
        s.given = self._store_integers(int(p.velocity is not None) for p in m.points)
        s.n_gathered, s.gathered = len(gathered_numbers), self._store_integers(gathered_numbers)

    def _collect_vector_terms(
        self, nodes: Sequence[FrameOrPointTree], gathered_numbers: list[int]
    ) -> tuple[c_structures.FrameVectorTermsStruct, list[c_structures.PathSumsStruct]]:
        """Return terms of some sets of nodes, whose places join ``gathered_numbers``, and the paths of each set."""
        terms: list[FrameVectorTerm] = []
        paths = []
        for each in nodes:
            first = []
            for terms_of_node in each.terms:
                first.append(len(terms))
                terms += terms_of_node
            counts = [len(terms_of_node) for terms_of_node in each.terms]
            arrays = map(self._store_integers, (each.ordered_nodes, each.parents, first, counts))
            paths.append(c_structures.PathSumsStruct(len(each.parents), *arrays))
        numbers = []
        for term in terms:
            numbers.append(len(gathered_numbers))
            gathered_numbers += self.values.places(term.numbers)
        speeds = [len(term.speeds) for term in terms]
        begin = [0, *itertools.accumulate(speeds)][: len(terms)]
        columns = [column for term in terms for column in term.speeds]
        arrays = map(self._store_integers, ([term.frame for term in terms], numbers, speeds, columns, begin))
        return c_structures.FrameVectorTermsStruct(len(terms), *arrays), paths

    def _add_bodies(self, s: c_structures.MechanismStruct) -> None:
        """Fill the tables of bodies: mass centre, frame (−1 for a particle), mass, inertia, row by row."""
        bodies = self._m.bodies
        s.n_bodies = len(bodies)
        s.masscenter = self._store_integers(b.masscenter for b in bodies)
        s.body_frame = self._store_integers(b.frame if b.inertia is not None else -1 for b in bodies)
        s.mass = self._store_integers(self.values.place(b.mass) for b in bodies)
        inertias = [self.values.places(list(b.inertia)) if b.inertia is not None else [0] * 9 for b in bodies]
        s.inertia = self._store_integers(itertools.chain(*inertias))
        s.n_potential = len(self._m.potential_forces)
        s.potential = self._store_integers(self.values.places(self._m.potential_forces))

    def _add_loads(self, s: c_structures.MechanismStruct) -> None:
        """Fill the tables of forces, torques and pathways; a torque actuator gives two torques of opposite sign."""
        place, places = self.values.place, self.values.places
        forces: list[tuple[int, int, list[int], int, float]] = []  # node, frame, vector, factor, sign
        torques: list[tuple[int, int, list[int], int, float]] = []
        for load in self._m.loads:
            if isinstance(load, ForceLoad):
                forces += [(load.point, frame, places(c), -1, 1.0) for frame, c in load.force]
            elif isinstance(load, TorqueLoad):
                torques += [(load.frame, frame, places(c), -1, 1.0) for frame, c in load.torque]
            elif isinstance(load, TorqueActuatorLoad):
                for node, sign in ((load.frame, 1.0), (load.reaction, -1.0)):
                    if node >= 0:
                        torques += [(node, frame, places(c), place(load.torque), sign) for frame, c in load.axis]
        s.forces, s.torques = self._tabulate_load_terms(forces), self._tabulate_load_terms(torques)
        paths = [load.points for load in self._pathways]
        s.pathways = c_structures.LoadPathwaysStruct(
            len(paths),
            self._store_integers(itertools.accumulate(map(len, paths), initial=0)),
            self._store_integers(itertools.chain(*paths)),
            self._store_integers(place(load.length) for load in self._pathways),
            self._store_integers(place(load.force) for load in self._pathways),
        )
        motion_vectors = self._m.motion_vectors
        s.sensed = c_structures.MotionSensorTableStruct(
            len(motion_vectors),
            self._store_integers(_MOTION_VECTOR_KINDS.index(each.kind) for each in motion_vectors),
            self._store_integers(each.point_or_frame for each in motion_vectors),
            self._store_integers(place(each.symbols[0]) for each in motion_vectors),
        )

    def _tabulate_load_terms(
        self, rows: Sequence[tuple[int, int, list[int], int, float]]
    ) -> c_structures.LoadTermsStruct:
        """Return rows (node, frame, vector, factor, sign) as one array per column; factor −1 means 1."""
        nodes, frames, vectors, factors, signs = zip(*rows, strict=True) if rows else ((),) * 5
        integer_arrays = map(self._store_integers, (nodes, frames, itertools.chain(*vectors), factors))
        return c_structures.LoadTermsStruct(len(rows), *integer_arrays, self._array([*signs, 0.0]))

    def _add_constraints(self, s: c_structures.MechanismStruct) -> None:
        """Fill the tables of K, k0, z', and A, b, γ where there are constraints."""
        m, c, places = self._m, self._m.velocity_constraints, self.values.places
        s.K, s.k0 = self._entries(m.kinematics.matrix), self._store_integers(places(list(m.kinematics.offset)))
        s.z_dot = self._store_integers(places(m.z_dot))
        s.m = len(c.names) if c else 0
        s.A = self._entries(c.jacobian) if c else self._entries(sm.zeros(0, 0))
        s.b, s.gamma = (self._store_integers(places(list(part))) for part in ((c.offset, c.bias) if c else ((), ())))

    def _entries(self, matrix: sm.MatrixBase) -> c_structures.MatrixEntriesStruct:
        """Return a matrix as rows, columns and places of the entries that are not zero."""
        entries = matrix.todok()
        rows, columns = ([position[k] for position in entries] for k in (0, 1))
        places = self.values.places(list(entries.values()))
        return c_structures.MatrixEntriesStruct(len(entries), *map(self._store_integers, (rows, columns, places)))

    def _add_columns(self, s: c_structures.MechanismStruct) -> None:
        """Add what each column of the mass matrix comes from."""
        columns = MassMatrixColumnStructure(self._m, self._frames, self._moving)
        paths = [columns.paths(speed) for speed in range(len(self._m.u))]
        s.frames_begin, s.frames_of = self._store_lists([frames for frames, _ in paths])
        s.points_begin, s.points_of = self._store_lists([points for _, points in paths])
        s.bodies_begin, s.bodies_of = self._store_lists([columns.single_bodies(j) for j in range(len(self._m.u))])
        self._add_particle_groups(s, columns)
        pieces = [piece for composite in columns.composites for piece in composite.pieces]
        s.composites.count = len(columns.composites)
        s.composites.begin, s.composites.piece = self._store_lists(
            [[piece for piece, _ in composite.pieces] for composite in columns.composites]
        )
        s.composites.path_begin, s.composites.path = self._store_lists([self._terms_of(path) for _, path in pieces])
        branches = [branch or ResultantLocation(-1, turns=False, point=-1, frame=-1) for branch in columns.branches]
        s.rigid.node, s.rigid.point, s.rigid.frame, s.rigid.turns = (
            self._store_integers(getattr(branch, name) for branch in branches)
            for name in ("node", "point", "frame", "turns")
        )
        s.rigid.composite = self._store_integers(columns.numbers)
        s.rigid.rows_begin, s.rigid.rows = self._store_lists(columns.rows)
        self._add_articulated(s, find_articulated_tree(self._m, columns, self._frames, self._moving))

    def _add_particle_groups(self, s: c_structures.MechanismStruct, columns: MassMatrixColumnStructure) -> None:
        """Add the groups of displaced particles, and which of them each column moves."""
        groups, table, bodies = columns.particle_groups, s.particle_groups, self._m.bodies
        terms_of_groups = [[self._first_terms[bodies[k].masscenter] for k in group.bodies] for group in groups]
        speeds_of_term = [term.speeds for terms in self._moving.terms for term in terms]
        local: list[list[int]] = [[0] * len(speeds) for speeds in speeds_of_term]
        for group, terms in zip(groups, terms_of_groups, strict=True):
            for term in terms:
                local[term] = [group.speeds.index(speed) for speed in speeds_of_term[term]]
        sizes = [c_structures.COMPOSITE_SIZE + len(group.speeds) * (6 + len(group.speeds)) for group in groups]
        table.count = len(groups)
        table.point = self._store_integers(group.point for group in groups)
        table.frame = self._store_integers(group.frame for group in groups)
        table.begin, table.body = self._store_lists([group.bodies for group in groups])
        table.term = self._store_integers(itertools.chain(*terms_of_groups))
        table.speeds_begin, table.speeds = self._store_lists([group.speeds for group in groups])
        table.local = self._store_integers(itertools.chain(*local))
        table.numbers_begin = self._store_integers(itertools.accumulate(sizes, initial=0))
        moved = [columns.groups_moved(speed) for speed in range(len(self._m.u))]
        table.groups_begin, table.groups_of = self._store_lists(moved)

    def _add_articulated(self, s: c_structures.MechanismStruct, tree: SingleSpeedLinkTree | None) -> None:
        """Add the tree of links, if the mechanism is one."""
        if tree is None:
            return
        s.articulated.count = len(tree.order)
        s.articulated.order, s.articulated.parent = self._store_integers(tree.order), self._store_integers(tree.parents)
        s.articulated.path_begin, s.articulated.path = self._store_lists(
            [self._terms_of(path) for path in tree.link_offset_paths]
        )
        s.articulated.sign = self._store_integers(tree.signs)
        for name in ("bodies", "points", "frames"):
            places = getattr(tree, name)
            begin, path = self._store_lists([self._terms_of(place.path) for place in places])
            node, link = (
                self._store_integers(place.node for place in places),
                self._store_integers(place.speed for place in places),
            )
            setattr(s.articulated, name, c_structures.NodesOnLinksStruct(len(places), node, link, begin, path))

    def _terms_of(self, path: Sequence[int]) -> list[int]:
        """Return the numbers of the terms of some points."""
        first = self._first_terms
        return [term for point in path for term in range(first[point], first[point + 1])]

    def _store_lists(self, lists: Sequence[Sequence[int]]) -> tuple[int, int]:
        """Return where each of some lists begins, and the end, and all their numbers one after the other."""
        begin = itertools.accumulate(map(len, lists), initial=0)
        return self._store_integers(begin), self._store_integers(itertools.chain(*lists))


def _coordinate_rates(m: Mechanism) -> list[sm.Expr]:
    """Return K u + k0, one by one."""
    rates = list(m.kinematics.offset)
    for (row, column), entry in m.kinematics.matrix.todok().items():
        rates[row] += entry * m.u[column]
    return rates
