"""x' by the user's own method object: its ``mass_matrix_full`` and ``forcing_full``, in numbers.

SymPy forms the equations on a copy, nothing is expanded or simplified, and ``lambdify`` with common subexpressions
evaluates them. ``Parts`` are handed to SymPy's ``KanesMethod`` as they are. What divides by dependent speeds' matrix is
kept as opaque symbols, solved for in numbers, wherever the equations are formed here.
"""
# ruff: noqa: SLF001 - what KanesMethod was given stands in private attributes only

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

import numpy as np
import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, System

from mb2fmu.model.sources.mechanics_source import Mechanics
from mb2fmu.model.sources.parts_mechanics_source import Parts
from mb2fmu.validation.source_checks.numeric_kane_equations import add_floor_to_scales
from mb2fmu.validation.source_checks.source_kinematics_evaluation import SympySourceKinematicsEvaluator
from mb2fmu.validation.source_checks.source_objects import SympySourceObjects, find_shortest_path_tree
from mb2fmu.validation.source_checks.source_symbol_slots import (
    Floats,
    SympySourceEvaluationError,
    SympySourceSymbolSlots,
    make_unused_symbol,
)

MAX_FORMING_WORK = 2_000
"""Operations up to which SymPy forms the equations, about a second; see :func:`estimate_equation_forming_cost`. Beyond
it the objects are evaluated in numbers alone."""

MAX_PATHWAY_WORK = 5_000
"""Operations of pathways' lengths up to which SymPy composes their loads, see :func:`estimate_pathway_length_cost`."""


_ROW_SAMPLE_SEED, _ROW_SAMPLE_COUNT = 7, 3
"""Of points, on constraints or not, at which rows are compared."""
_DEPENDENT_ROW_FRACTION = 1e-9
"""What other rows leave of a row of unit length that follows from them."""


class SympySourceEquations:
    """Equations of the user's object. Call it within ``keep_mechanics_untouched``.

    Args:
        mechanics: As the model has it; a shallow copy of it is used.
        parts: The source objects.
        symbols: Slots of their symbols.

    Raises:
        SympySourceEvaluationError: If SymPy cannot form them.
    """

    def __init__(self, mechanics: Mechanics, parts: SympySourceObjects, symbols: SympySourceSymbolSlots) -> None:
        self._symbols = symbols
        self._linear_solves: list[tuple[list[sm.Symbol], sm.Matrix, sm.Matrix]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of SymPy, about points that several others could give a velocity
            try:
                method = self._form_method(mechanics, parts)
            except (ValueError, TypeError, AttributeError, NotImplementedError, IndexError) as error:
                raise SympySourceEvaluationError(f"SymPy does not form them: {' '.join(str(error).split())}") from error
            M, f = method.mass_matrix_full, method.forcing_full
        is_kane = isinstance(method, KanesMethod)
        if is_kane:
            M, f = self._move_accelerations(method, M, f)
        self.q, self.u = tuple(method.q), tuple(method.u) if is_kane else tuple(method._qdots)
        self._is_lagrange = not is_kane
        rates = dict(method._qdot_u_map or {}) if is_kane else {}
        self._rate_places = [symbols.slot[rate] for rate in rates if rate not in symbols.u]
        self._rates = symbols.compile_function([value for rate, value in rates.items() if rate not in symbols.u])
        self._ratios = [
            (len(unknowns), right.shape, symbols.compile_function([*matrix, *right]))
            for unknowns, matrix, right in self._linear_solves
        ]
        unknown_ratios = [symbol for unknowns, _, _ in self._linear_solves for symbol in unknowns]
        terms = [sm.Add.make_args(entry) for entry in f]
        self._counts = [len(of_entry) for of_entry in terms]
        self._size = M.rows
        self._numbers = symbols.compile_function(
            [*M, *(term for of_entry in terms for term in of_entry)], unknown_ratios
        )

    def _form_method(self, mechanics: Mechanics, parts: SympySourceObjects) -> Any:
        """Return the method with its equations, on a copy if they have not been formed yet."""
        if isinstance(mechanics, System):
            if isinstance(mechanics.eom_method, KanesMethod):
                return mechanics.eom_method
            system = copy.copy(mechanics)
            system.form_eoms(constraint_solver=self._solve_numerically)
            return system.eom_method
        if isinstance(mechanics, LagrangesMethod):
            lagrange = copy.copy(mechanics)
            lagrange.form_lagranges_equations()
            return lagrange
        if isinstance(mechanics, KanesMethod):
            method = copy.copy(mechanics)
            if method._fr is None or method._frstar is None:
                method.kanes_equations()
            return method
        count, n_free_q = len(parts.u) - len(parts.dependent), len(parts.q) - len(parts.holonomic)
        method = KanesMethod(
            parts.frame, list(parts.q[:n_free_q]), list(parts.u[:count]), kd_eqs=list(parts.kinematic),
            q_dependent=list(parts.q[n_free_q:]) or None, configuration_constraints=list(parts.holonomic) or None,
            u_dependent=list(parts.dependent) or None,
            velocity_constraints=_select_independent_rows(parts, self._symbols) or None,
            u_auxiliary=list(parts.auxiliary) or None,
            constraint_solver=self._solve_numerically, explicit_kinematics=False,
        )  # fmt: skip
        method.kanes_equations(list(parts.bodies), list(parts.loads) or None)
        return method

    def _solve_numerically(self, matrix: sm.Matrix, right: sm.Matrix) -> sm.Matrix:
        """Return stand-ins for ``matrix``⁻¹ ``right``, which are solved for in numbers."""
        first = sum(len(known) for known, _, _ in self._linear_solves)
        unknowns = [make_unused_symbol(first + k, "ratio") for k in range(right.rows * right.cols)]
        self._linear_solves.append((unknowns, sm.Matrix(matrix), sm.Matrix(right)))
        return sm.Matrix(right.rows, right.cols, unknowns)

    def _move_accelerations(self, method: Any, M: sm.Matrix, f: sm.Matrix) -> tuple[sm.Matrix, sm.Matrix]:
        """Return M and f without u' in f: SymPy leaves there what loads are proportional to."""
        rates = {u.diff(self._symbols.t): make_unused_symbol(k, "rate") for k, u in enumerate(method.u)}
        if not f.has(*rates):
            return M, f
        plain = f.xreplace(rates)
        slopes = plain.jacobian(list(rates.values()))
        first = M.cols - len(rates)
        mass_matrix = sm.Matrix(M)
        mass_matrix[:, first:] = mass_matrix[:, first:] - slopes
        return mass_matrix, plain.xreplace(dict.fromkeys(rates.values(), sm.S.Zero))

    def mass_matrix(self, values: list[float]) -> Floats:
        """Return M of the object over its speeds, not reduced by constraints of a Lagrangian, shape (n_u, n_u)."""
        speeds = slice(len(self.q), len(self.q) + len(self.u))
        return self._evaluate_matrices(values)[0][speeds, speeds]

    def _evaluate_matrices(self, values: list[float]) -> tuple[Floats, Floats]:
        """Return ``mass_matrix_full``, and the terms of all entries of ``forcing_full``."""
        values = list(values)
        for place, rate in zip(self._rate_places, self._rates(values), strict=True):
            values[place] = rate
        for _, shape, function in self._ratios:
            matrix_values = np.array(function(values[: len(self._symbols.slot)]))
            matrix_size = shape[0] ** 2
            matrix, right = (
                matrix_values[:matrix_size].reshape(shape[0], shape[0]),
                matrix_values[matrix_size:].reshape(shape),
            )
            values += np.linalg.solve(matrix, right).ravel().tolist()
        matrix_values = np.array(self._numbers(values))
        M = matrix_values[: self._size**2].reshape(self._size, self._size)
        return M, matrix_values[self._size**2 :]

    def x_dot(self, values: list[float]) -> tuple[Floats, Floats]:
        """Return (q', u') in the order of ``q`` and ``u``, and the sums of the magnitudes of their terms.

        Args:
            values: Of all slots but q', which follow.

        Raises:
            numpy.linalg.LinAlgError: If a matrix is singular.
        """
        solution, scale = self._solve(values)
        count = len(self.q) + len(self.u)
        return solution[:count], scale[:count]

    def multipliers(self, values: list[float]) -> tuple[Floats, Floats]:
        """Return λ of a Lagrangian's rows, M u' + Aᵀ λ = f, and its scale as of :meth:`x_dot`; empty for Kane's.

        SymPy has the other sign.
        """
        solution, scale = self._solve(values)
        count = len(self.q) + len(self.u)
        return -solution[count:], scale[count:]

    def _solve(self, values: list[float]) -> tuple[Floats, Floats]:
        """Return what ``mass_matrix_full`` and ``forcing_full`` give, and the sums of the magnitudes of its terms."""
        M, force_terms = self._evaluate_matrices(values)
        terms = np.split(force_terms, np.cumsum(self._counts)[:-1])
        f, size = (
            np.array([np.sum(row_terms) for row_terms in terms]),
            np.array([np.sum(np.abs(row_terms)) for row_terms in terms]),
        )
        inverse = np.linalg.inv(M)
        solution = np.linalg.solve(M, f)
        scale = np.abs(inverse) @ (size + np.abs(M) @ np.abs(solution))
        n, count = len(self.q), len(self.q) + len(self.u)
        if self._is_lagrange:
            scale[n:count] = add_floor_to_scales(scale[n:count], np.sqrt(np.abs(np.diag(M)[n:count])))
        return solution, scale


def _select_independent_rows(parts: SympySourceObjects, symbols: SympySourceSymbolSlots) -> list[sm.Expr]:
    """Return as many velocity constraints as there are dependent speeds, where the others follow from them.

    Rates of a loop that stand among the velocity constraints, too, are given twice; SymPy takes them once.
    """
    rows = list(parts.velocity)
    if len(rows) <= len(parts.dependent):
        return rows
    constraints = SympySourceKinematicsEvaluator(parts, symbols, complex_step=False)
    random, samples = np.random.default_rng(_ROW_SAMPLE_SEED), []
    for _ in range(_ROW_SAMPLE_COUNT):
        values = symbols.complete_values(random.uniform(0.2, 1.2, len(symbols.slot)).tolist())
        samples.append(constraints.compute_linear_rows(values)[2])
    A = np.hstack(samples)
    A = A / np.maximum(np.linalg.norm(A, axis=1), np.finfo(float).tiny)[:, None]
    independent_rows: list[int] = []
    for number in range(len(rows)):
        if np.linalg.matrix_rank(A[[*independent_rows, number]], tol=_DEPENDENT_ROW_FRACTION) > len(independent_rows):
            independent_rows.append(number)
    return [rows[number] for number in independent_rows] if len(independent_rows) == len(parts.dependent) else rows


def estimate_equation_forming_cost(mechanics: Mechanics, parts: SympySourceObjects) -> float:
    """Estimate the operations that SymPy will compose to form the equations, up to ``MAX_FORMING_WORK``.

    SymPy multiplies vectors of different frames by the direction cosines between those, composed without expanding:
    three terms per entry and frame on the way, so that their size grows exponentially with the length of a chain.
    Counted are the operations of the direction cosines between all frames on the way to each body's, once per speed
    that moves there (about one per frame) and once per operation of the body's position (many where bodies bend), and
    those of the velocities that are set, once per speed. A Lagrangian is formed by a formulation, too, and what is
    formed already costs nothing.
    """
    method = mechanics.eom_method if isinstance(mechanics, System) else mechanics
    if parts.lagrangian or parts.frame is None or (isinstance(method, KanesMethod) and method._frstar is not None):
        return 0.0
    paths = _list_frame_paths(parts)
    velocities = [body.masscenter._vel_dict.get(parts.frame, 0) for body in parts.bodies]
    sizes = [
        _count_entry_operations(c) for vector in velocities for part, _ in getattr(vector, "args", ()) for c in part
    ]
    total = len(parts.u) * sum(size for size in sizes if size > 0)
    for path, position_operations in zip(paths, _count_position_operations(parts), strict=True):
        if total > MAX_FORMING_WORK:
            break
        total += _count_successive_product_operations(path) * (len(path) + position_operations)
    return total


def _count_position_operations(parts: SympySourceObjects) -> list[float]:
    """Return for each body the operations of the components of its position; 0 where none joins it to the origin."""
    points = {} if parts.origin is None else find_shortest_path_tree(parts.origin, lambda point: point._pos_dict)
    counts: dict[Any, float] = {}

    def count(point: Any) -> float:
        """Return the operations on the way from the origin to a point."""
        before = points.get(point)
        if before is not None and point not in counts:
            sizes = [_count_entry_operations(c) for part, _ in before._pos_dict[point].args for c in part]
            counts[point] = count(before) + sum(size + 1 for size in sizes)
        return counts.get(point, 0.0)

    return [count(body.masscenter) for body in parts.bodies]


def _list_frame_paths(parts: SympySourceObjects) -> list[list[sm.Matrix]]:
    """Return for each body the direction cosines of neighbours, from the inertial frame to its own."""
    parents = find_shortest_path_tree(parts.frame, lambda frame: frame._dcm_dict)
    paths = []
    for body in parts.bodies:
        frame, path = getattr(body, "frame", None), []
        if frame is None:  # of a particle: the frames that its position is written in
            frames = {f for position in body.masscenter._pos_dict.values() for _, f in position.args} & parents.keys()
            frame = max(frames, key=lambda f: _frame_depth(f, parents), default=None)
        while frame in parents and parents[frame] is not None:
            path.append(parents[frame]._dcm_dict[frame])
            frame = parents[frame]
        paths.append(path[::-1])
    return paths


def estimate_pathway_length_cost(mechanics: Mechanics) -> float:
    """Estimate the operations of pathways' lengths, before SymPy composes them for the actuators' loads.

    The square of a segment's length has the direction cosines between all frames in which the way between its ends
    is written.
    """
    actuators = mechanics.actuators if isinstance(mechanics, System | Parts) else ()
    if not actuators:
        return 0.0
    parents = find_shortest_path_tree(mechanics.frame, lambda frame: frame._dcm_dict)
    total = 0.0
    for actuator in actuators:
        attachments = getattr(getattr(actuator, "pathway", None), "attachments", ())
        for start, end in itertools.pairwise(attachments):
            paths = find_shortest_path_tree(start, lambda point: point._pos_dict)
            frames: dict[Any, None] = {}
            node = end
            while paths.get(node) is not None:
                frames |= dict.fromkeys(frame for _, frame in node._pos_dict[paths[node]].args if frame in parents)
                node = paths[node]
            total += sum(_count_path_operations(a, b, parents) for a, b in itertools.combinations(frames, 2))
    return total


def _count_path_operations(a: Any, b: Any, parents: dict[Any, Any]) -> float:
    """Return the operations of the direction cosines between two frames."""
    entries_above: list[list[Any]] = []
    for frame in (a, b):
        entries_above.append([frame])
        while parents[entries_above[-1][-1]] is not None:
            entries_above[-1].append(parents[entries_above[-1][-1]])
    path = [f for f in entries_above[0] if f not in entries_above[1]] + [
        f for f in entries_above[1] if f not in entries_above[0]
    ]
    product: Floats | None = None
    for frame in path:
        sizes = np.array([_count_entry_operations(entry) for entry in parents[frame]._dcm_dict[frame]]).reshape(3, 3)
        product = sizes if product is None else _count_product_operations(product, sizes)
    return 0.0 if product is None else float(np.sum(product[product >= 0]))


def _frame_depth(frame: Any, parents: dict[Any, Any]) -> int:
    """Return how many frames lie between a frame and the root."""
    depth = 0
    while parents[frame] is not None:
        frame, depth = parents[frame], depth + 1
    return depth


def _count_successive_product_operations(path: list[sm.Matrix]) -> float:
    """Return the operations of the products of all successive matrices of a path, as far as ``MAX_FORMING_WORK``."""
    sizes = [np.array([_count_entry_operations(entry) for entry in matrix]).reshape(3, 3) for matrix in path]
    total = 0.0
    for first in range(len(sizes)):
        if total > MAX_FORMING_WORK:
            break
        product = sizes[first]
        total += float(np.sum(product[product >= 0]))
        for matrix in sizes[first + 1 :]:
            product = _count_product_operations(product, matrix)
            total += float(np.sum(product[product >= 0]))
    return total


def _count_entry_operations(entry: sm.Expr) -> float:
    """Count the operations of an entry, as a tree visits them; −1 for zero."""
    if entry == 0:
        return -1.0
    count_of_node: dict[sm.Basic, float] = {}
    stack = [entry]
    while stack:
        node = stack[-1]
        missing = [a for a in node.args if a not in count_of_node]
        if missing and not isinstance(node, AppliedUndef | sm.Derivative):
            stack += missing
        else:
            inner_count = (
                0.0 if isinstance(node, AppliedUndef | sm.Derivative) else sum(count_of_node[a] for a in node.args)
            )
            count_of_node[stack.pop()] = inner_count + max(len(node.args) - 1, 0)
    return count_of_node[entry]


def _count_product_operations(a: Floats, b: Floats) -> Floats:
    """Return the operations of the entries of a product, unexpanded."""
    result = -np.ones((3, 3))
    for i in range(3):
        for j in range(3):
            terms = [a[i, k] + b[k, j] + 2 for k in range(3) if a[i, k] >= 0 and b[k, j] >= 0]
            if terms:
                result[i, j] = sum(terms)
    return result
