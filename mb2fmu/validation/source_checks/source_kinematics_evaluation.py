"""q' = K u + k0 and the constraints in numbers, from the user's own objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.source_checks.source_objects import SympySourceObjects
from mb2fmu.validation.source_checks.source_symbol_slots import (
    Floats,
    SympySourceEvaluationError,
    SympySourceSymbolSlots,
)

IndexArray = npt.NDArray[np.intp]
RealOrComplexArray = npt.NDArray[Any]
"""Floats, or complex numbers where something is differentiated by a complex step."""
_MAX_PROJECTION_STEPS = 60
_CONVERGED_STEP = 1e-13
_POLISHING_STEPS = 2
"""Steps more than are needed, until nothing but round-off is left."""
_RANK_TOLERANCE = 1e-9
_SLOPE_STEP = 1e-6
_PATH_STEPS, _NEWTON_STEPS_PER_PATH_STEP, _PATH_TOLERANCE, _LARGEST_PATH_JUMP = 40, 12, 1e-8, 0.5
"""From the start to a point: steps, Newton's steps in each, how near they come, and the largest change in one."""
_FLAT_LINK_SINE = 0.03
"""Sine of an angle between links, about, below which they lie flat: closed forms end at 0.01."""


class SympySourceKinematicsEvaluator:
    """Evaluates the kinematic equations and the constraints of the user's objects.

    Args:
        parts: The source objects.
        symbols: Slots of their symbols.
        complex_step: True: everything is to be differentiated by a complex step.

    Raises:
        SympySourceEvaluationError: If that cannot be done, or the kinematic equations do not determine q'.
    """

    def __init__(self, parts: SympySourceObjects, symbols: SympySourceSymbolSlots, *, complex_step: bool) -> None:
        self._symbols = symbols
        kinematic = [row for row in parts.kinematic if row != 0]  # a q' that is a speed needs none
        self._kinematic = len(kinematic)
        self.rates = [symbols.slot[qi.diff(symbols.t)] for qi in symbols.q]
        self.speeds = [symbols.slot[ui] for ui in symbols.u]
        self._free = [i for i, k in enumerate(self.rates) if k not in self.speeds]
        if len(self._free) != len(kinematic):
            raise SympySourceEvaluationError(f"{len(kinematic)} kinematic equations for {len(self._free)} coordinates")
        self._evaluate = symbols.compile_array_function([*kinematic, *parts.velocity], complex_step=complex_step)
        self._holonomic = symbols.compile_function(parts.holonomic) if parts.holonomic else None

    def velocity_constraint_rows(self, values: list[Any], *shape: int) -> RealOrComplexArray:
        """Return the velocity constraints' left sides, shape (*states, m, count): see :meth:`_rows`."""
        return self._rows(values, *shape)[..., self._kinematic :, :]

    def _rows(self, values: list[Any], *shape: int) -> RealOrComplexArray:
        """Return kinematic equations, then velocity constraints.

        Args:
            values: Of all slots: numbers, or arrays that broadcast to the shape.
            shape: Number of states, if there are several, and of values at each of them.

        Returns:
            Shape (*states, rows, count).
        """
        row_values = [np.asarray(value) for value in self._evaluate(values)]
        dtype = np.result_type(float, *(value.dtype for value in row_values))
        table = np.empty((*shape[:-1], len(row_values), shape[-1]), dtype=dtype)
        for k, value in enumerate(row_values):
            table[..., k, :] = value
        return table

    def kinematic_matrices(self, values: list[Any]) -> tuple[RealOrComplexArray, RealOrComplexArray]:
        """Return K and k0 of q' = K u + k0 at one state, complex at a complex one.

        Args:
            values: Of all slots at a state; or arrays of shape (n,) of n states, which all matrices then have as first
                axis.
        """
        free, speeds, states = self._free, self.speeds, _count_states(values)
        probed_slots = [*(self.rates[i] for i in free), *speeds]
        K = np.zeros((*states, len(self.rates), len(speeds))) + [[float(k == j) for j in speeds] for k in self.rates]
        k0 = np.zeros((*states, len(self.rates)))
        if not free:
            return K, k0
        batch = _add_axis(values)
        for k, unit_column in zip(probed_slots, np.eye(len(probed_slots) + 1), strict=False):
            batch[k] = unit_column
        rows = self._rows(batch, *states, len(probed_slots) + 1)[..., : self._kinematic, :]
        slopes = rows[..., :-1] - rows[..., -1:]
        right_side = np.concatenate([slopes[..., len(free) :], rows[..., -1:]], axis=-1)
        rate_matrix = slopes[..., : len(free)]
        diagonal = np.diagonal(rate_matrix, axis1=-2, axis2=-1)
        is_diagonal = np.count_nonzero(rate_matrix) == diagonal.size and bool(np.all(diagonal))
        solved = -right_side / diagonal[..., None] if is_diagonal else -np.linalg.solve(rate_matrix, right_side)
        K, k0 = K.astype(solved.dtype), k0.astype(solved.dtype)
        K[..., free, :], k0[..., free] = solved[..., :-1], solved[..., -1]
        return K, k0

    def with_rates(self, values: list[Any]) -> list[Any]:
        """Return the values with q' as it follows from q and u; complex ones at a complex state."""
        return self.set_rates(values, *self.kinematic_matrices(values))

    def set_rates(self, values: list[Any], K: RealOrComplexArray, k0: RealOrComplexArray) -> list[Any]:
        """Return the values with q' = K u + k0; arrays over states where the values are such."""
        u = np.array([values[j] for j in self.speeds])
        rates = (K @ u + k0).tolist() if u.ndim == 1 else ((K @ u.T[..., None])[..., 0] + k0).T
        values_with_rates = list(values)
        for k, rate in zip(self.rates, rates, strict=True):
            values_with_rates[k] = rate
        return values_with_rates

    def values_at_unit_speeds(self, values: list[Any], K: Floats, k0: Floats) -> list[Any]:
        """Return the values with one speed at 1 and the others at 0, then with all at 0; q' accordingly."""
        batch = _add_axis(values)
        unit = np.column_stack([np.eye(len(self.speeds)), np.zeros(len(self.speeds))])
        rates = K @ unit + k0[..., None]
        for i, k in enumerate(self.rates):
            batch[k] = rates[..., i, :]
        for k, row in zip(self.speeds, unit, strict=True):
            batch[k] = row
        return batch

    def compute_linear_rows(self, values: list[Any]) -> tuple[Floats, Floats, Floats, Floats]:
        """Return K, k0, and A, b of the velocity constraints A u + b = 0.

        Args:
            values: Of one state, or of several: see :meth:`kinematic_matrices`.
        """
        K, k0 = self.kinematic_matrices(values)
        batch = self.values_at_unit_speeds(values, K, k0)
        rows = self.velocity_constraint_rows(batch, *_count_states(values), len(self.speeds) + 1)
        return K, k0, rows[..., :-1] - rows[..., -1:], rows[..., -1]

    def residuals_and_scales(
        self, states: Sequence[Sequence[float]], q_scale: Floats, u_scale: Floats
    ) -> tuple[Floats, Floats]:
        """Return the left sides of all declared rows, φ(q, t), then A u + b, and by how much scales change them.

        Args:
            states: Values of all slots at each state, but q'.
            q_scale: How far each coordinate moves, in its own unit.
            u_scale: The same of the speeds.

        Returns:
            Shapes (n, n_phi + m).
        """
        values = np.array(states)
        _, _, A, b = self.compute_linear_rows(list(values.T))
        u = values[:, self.speeds]
        residuals, scales = [(A @ u[:, :, None])[:, :, 0] + b], [np.abs(A) @ u_scale]
        if self._holonomic is not None:
            places = [self._symbols.slot[qi] for qi in self._symbols.q]
            residuals.insert(0, np.array([self._holonomic(state) for state in states]))
            slopes = [self._slopes(list(state), places, q_scale) for state in states]
            scales.insert(0, np.abs(slopes).sum(axis=2))
        return np.concatenate(residuals, axis=1), np.concatenate(scales, axis=1)

    def project_state(
        self, values: list[float], q_scale: Floats, u_scale: Floats, quaternions: Sequence[Sequence[int]] = ()
    ) -> list[float] | None:
        """Return the state on the constraints: Newton's steps for q, of least norm over the scales, then for u.

        Args:
            values: Of all slots.
            q_scale: How far each coordinate moves, in its own unit.
            u_scale: The same of the speeds.
            quaternions: Slots of the components of each; their length is 1 in the end.

        Returns:
            None if there is no such state near by.
        """
        values, places = list(values), [self._symbols.slot[qi] for qi in self._symbols.q]
        converged_count = 0
        for _ in range(_MAX_PROJECTION_STEPS if self._holonomic else 0):
            step = self._position_step(values, places, q_scale, quaternions)
            for k, change in zip(places, (step * q_scale).tolist(), strict=True):
                values[k] -= change
            if np.max(np.abs(step)) <= _CONVERGED_STEP:
                converged_count += 1
            if converged_count > _POLISHING_STEPS:
                break
        else:
            if self._holonomic:
                return None
        K, k0, A, b = self.compute_linear_rows(values)
        u = np.array([values[k] for k in self.speeds])
        for _ in range(1 + _POLISHING_STEPS if len(A) else 0):
            u = u - u_scale * _solve_least_norm(A * u_scale, A @ u + b)
        for k, value in zip(self.speeds, u.tolist(), strict=True):
            values[k] = value
        return self.set_rates(values, K, k0)

    def scaled_rows(self, values: list[float], u_scale: Floats) -> Floats:
        """Return A of the velocity constraints, each speed measured in its scale."""
        return self.compute_linear_rows(values)[2] * u_scale

    def has_start_assembly(
        self, start: list[float], values: list[float], computed: Sequence[int], scale: Mapping[int, float]
    ) -> bool:
        """Return whether a mechanism at a state is assembled as at the start, and not mirrored.

        All slots but the computed ones go from the start to the state in a line, by small steps; the computed ones
        follow by Newton's method. They must come to the state's, without a leap on the way. Where two ways to be put
        together nearly meet, units give up: there it is neither.

        Args:
            start: Of all slots, on the constraints.
            values: Of all slots, on the constraints.
            computed: Slots of the coordinates that the others determine.
            scale: Slot → how far its coordinate moves, in its own unit.
        """
        if self._holonomic is None or not computed:
            return True
        sizes, values_here = np.array([scale[k] for k in computed]), list(start)
        for part in np.linspace(0.0, 1.0, _PATH_STEPS + 1)[1:].tolist():
            start_values = [values_here[k] for k in computed]
            values_here = [a + part * (b - a) for a, b in zip(start, values, strict=True)]
            for k, value in zip(computed, start_values, strict=True):
                values_here[k] = value
            for _ in range(_NEWTON_STEPS_PER_PATH_STEP):
                step = self._position_step(values_here, list(computed), sizes)
                for k, change in zip(computed, (step * sizes).tolist(), strict=True):
                    values_here[k] -= change
                if np.max(np.abs(step)) <= _PATH_TOLERANCE:
                    break
            else:
                return False
            if np.max(np.abs(np.array([values_here[k] for k in computed]) - start_values) / sizes) > _LARGEST_PATH_JUMP:
                return False
        distances = np.abs(np.array([values_here[k] - values[k] for k in computed])) / sizes
        return bool(np.max(distances) <= _PATH_TOLERANCE) and _has_independent_loops(
            self._slopes(values, list(computed), sizes)
        )

    def _position_step(
        self, values: list[float], places: list[int], scale: Floats, quaternions: Sequence[Sequence[int]] = ()
    ) -> Floats:
        """Return Newton's step of least norm over the scales; slopes by central differences are accurate enough."""
        assert self._holonomic is not None
        slopes, residual = self._slopes(values, places, scale), np.array(self._holonomic(values))
        if quaternions:
            components = [[values[k] for k in group] for group in quaternions]
            lengths = np.zeros((len(quaternions), len(places)))
            for row, group, quaternion in zip(lengths, quaternions, components, strict=True):
                columns = [places.index(k) for k in group]
                row[columns] = 2.0 * np.array(quaternion) * scale[columns]
            slopes = np.concatenate([slopes, lengths])
            residual = np.append(residual, np.sum(np.square(components), axis=1) - 1.0)
        return _solve_least_norm(slopes, residual)

    def _slopes(self, values: list[float], places: list[int], scale: Floats) -> Floats:
        """Return the change of the rows by a fraction of each coordinate's scale, shape (m, n)."""
        assert self._holonomic is not None
        columns = []
        for k, size in zip(places, scale.tolist(), strict=True):
            sides = []
            for sign in (1.0, -1.0):
                displaced_values = list(values)
                displaced_values[k] += sign * _SLOPE_STEP * size
                sides.append(np.array(self._holonomic(displaced_values)))
            columns.append((sides[0] - sides[1]) / (2 * _SLOPE_STEP))
        return np.array(columns).T


def _count_states(values: Sequence[Any]) -> tuple[int, ...]:
    """Return (n,) of arrays over n states; () of the numbers of one state."""
    return next((value.shape for value in values if isinstance(value, np.ndarray)), ())


def _add_axis(values: list[Any]) -> list[Any]:
    """Return a copy of the values, where arrays over states have one more axis."""
    return [value[:, None] if isinstance(value, np.ndarray) else value for value in values]


def _has_independent_loops(slopes: Floats) -> bool:
    """Return whether the row changes by computed coordinates are well independent, loop by loop."""
    for rows, columns in _iterate_triangular_blocks(slopes):
        block = slopes[np.ix_(rows, columns)]
        lengths = np.linalg.norm(block, axis=0)
        if not lengths.all() or np.linalg.svd(block / lengths, compute_uv=False)[-1] <= _FLAT_LINK_SINE:
            return False
    return True


def _iterate_triangular_blocks(slopes: Floats) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield rows and columns of the blocks of the block triangular form, solved one after the other.

    Only rows of one loop have a unit in common: a coupling in rad behind one in mm would look flat beside it. Where
    there are more rows than coordinates, or a row has none of its own, all are one block.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    count, width = slopes.shape
    nonzero_slopes = csr_array(slopes != 0.0)
    matched_columns = maximum_bipartite_matching(nonzero_slopes, perm_type="column").astype(np.intp)
    if count != width or (matched_columns < 0).any():
        yield np.arange(count), np.arange(width)
        return
    blocks, labels = connected_components(nonzero_slopes[:, matched_columns], directed=True, connection="strong")
    for block in range(blocks):
        rows = np.flatnonzero(labels == block)
        yield rows, matched_columns[rows]


def singular_values_of_unit_rows(rows: Floats) -> Floats:
    """Return the singular values of rows that are brought to one length, largest first."""
    lengths = np.linalg.norm(rows, axis=1)
    lengths[lengths == 0] = 1.0
    return np.asarray(np.linalg.svd(rows / lengths[:, None], compute_uv=False)) if len(rows) else np.ones(0)


def _solve_least_norm(J: Floats, residual: Floats) -> Floats:
    """Return the least step with J step = residual; rows are brought to one length, redundant ones are allowed."""
    lengths = np.linalg.norm(J, axis=1)
    lengths[lengths == 0] = 1.0
    return np.asarray(np.linalg.lstsq(J / lengths[:, None], residual / lengths, rcond=_RANK_TOLERANCE)[0])
