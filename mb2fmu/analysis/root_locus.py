"""Eigenvalues over a quantity that is varied: a root locus, with the values at which stability changes.

At each value an operating point is found, beginning at the one before, and the equations are linearized there. Cyclic
coordinates, on which no rate depends, are taken out first: with the columns of A that vanish at every value their rows
go too, again and again, which leaves a block of A without their zero eigenvalues, exactly. What is left is followed
from value to value: each eigenvalue is extrapolated by its last two, and paired with the nearest of the next ones, all
at once (a linear assignment).

Critical values are where the real part of a followed eigenvalue passes zero. They are refined by Brent's method on the
real part at operating points of their own, to a relative 1e-12 of the swept range.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, linear_sum_assignment

from mb2fmu.analysis.linearization import Linearization
from mb2fmu.analysis.linearization_with_dry_friction import OperatingPointLinearizer
from mb2fmu.analysis.operating_point_start import OperatingPointStart
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion

Floats = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

_NO_INFLUENCE_RATIO = 1e-10  # of the largest entry of A: a column below that depends on nothing
_CROSSING_TOLERANCE = 1e-12
_ROUND_OFF_RATIO = 1e-9  # of the largest eigenvalue: a real part below that is round-off, as of an undamped oscillation
StartFunction = Callable[[float], OperatingPointStart]


@dataclass(frozen=True, slots=True)
class StabilityCrossing:
    """A value at which an eigenvalue crosses the imaginary axis.

    Attributes:
        value: Of the swept quantity, in its unit.
        frequency: Imaginary part there in rad/s, >= 0; 0: the motion diverges without oscillating.
        becomes: What the eigenvalue is for larger values.
    """

    value: float
    frequency: float
    becomes: Literal["stable", "unstable"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RootLocus:
    """Eigenvalues over one quantity.

    Attributes:
        name: FMU name of what is varied.
        unit: Its unit.
        values: Shape (n,), increasing.
        eigenvalues: In 1/s, shape (n, m); column k is one eigenvalue followed over the values.
        states: Names of the m states without the cyclic ones.
        cyclic: Names of coordinates on which no rate depends; their eigenvalues are zero and stand in no column.
        critical: Where stability changes, by value.
    """

    name: str
    unit: str
    values: Floats
    eigenvalues: ComplexArray
    states: tuple[str, ...]
    cyclic: tuple[str, ...]
    critical: tuple[StabilityCrossing, ...]

    def __repr__(self) -> str:
        """Return a line: over what, and where stability changes."""
        changes = ", ".join(f"{each.value:.6g} (then {each.becomes})" for each in self.critical) or "none"
        ends = f"{self.values[0]:g} to {self.values[-1]:g} {self.unit}"
        return f"<Sweep of {self.name} from {ends}: critical values {changes}>"

    @property
    def stable(self) -> npt.NDArray[np.bool_]:
        """Whether every real part is negative, shape (n,)."""
        return np.asarray(np.all(self.eigenvalues.real < 0, axis=1))

    def to_json(self) -> str:
        """Return everything as JSON; complex numbers as [re, im]."""
        content = {
            "name": self.name,
            "unit": self.unit,
            "values": self.values.tolist(),
            "states": self.states,
            "cyclic": self.cyclic,
            "eigenvalues": [[[value.real, value.imag] for value in row] for row in self.eigenvalues.tolist()],
            "critical": [{"value": c.value, "frequency": c.frequency, "becomes": c.becomes} for c in self.critical],
        }
        return json.dumps(content, indent=2) + "\n"


def compute_root_locus(
    equations: EquationsOfMotion,
    program: ScalarProgram,
    start_for: StartFunction,
    values: Sequence[float],
    name: str,
    unit: str,
) -> RootLocus:
    """Follow the eigenvalues over a quantity.

    Args:
        equations: Of any formulation.
        program: The same lowered.
        start_for: Where to look for the operating point at a value.
        values: Increasing, in the quantity's unit, at least two.
        name: FMU name of the quantity.
        unit: Its unit.

    Raises:
        AnalysisError: If there is no operating point at a value, naming it; or fewer than two values.
    """
    if len(values) < 2 or bool(np.any(np.diff(values) <= 0)):
        raise AnalysisError(
            f"{name} cannot be swept:", [Fault("the values do not increase", remedy="write FIRST:LAST:STEP")]
        )
    points = _OperatingPointSequence(OperatingPointLinearizer(equations, program), start_for, name)
    found = [points.linearize_at_value(value) for value in values]
    kept = _remove_cyclic_states(found)
    short = next((k for k, point in enumerate(found) if not set(kept) <= set(point.states)), None)
    if short is not None:
        what = f"at {values[short]:.6g} other states are independent, or grow, than at other values"
        remedy = "hold more states by --at, so that all operating points are of one kind"
        remedy += ", or sweep a part of the range that leaves this value out"
        raise AnalysisError(f"{name} cannot be swept:", [Fault(what, remedy=remedy)])
    rows = _match_eigenvalues([np.linalg.eigvals(_state_matrix_block(point, kept)).astype(complex) for point in found])
    grid = np.array(values, dtype=float)
    return RootLocus(
        name=name,
        unit=unit,
        values=grid,
        eigenvalues=rows,
        states=kept,
        cyclic=tuple(dict.fromkeys(state for point in found for state in point.states if state not in kept)),
        critical=_find_stability_crossings(points, kept, grid, rows),
    )


class _OperatingPointSequence:
    """Operating points along a sweep, each search beginning at the point before."""

    def __init__(self, linearizer: OperatingPointLinearizer, start_for: StartFunction, name: str) -> None:
        self._linearizer, self._start_for, self._name = linearizer, start_for, name
        self._before: Linearization | None = None

    def linearize_at_value(self, value: float) -> Linearization:
        """Return the linearization at a value.

        Raises:
            AnalysisError: Naming the value.
        """
        start = self._start_for(value)
        if self._before is not None:
            x = self._before.point.x.copy()
            x[list(start.held)] = start.x[list(start.held)]
            r = start.r.copy()
            r[list(start.free_inputs)] = self._before.point.r[list(start.free_inputs)]
            start = replace(start, x=x, r=r)
        try:
            self._before = self._linearizer.linearize(start)
        except AnalysisError as error:
            raise AnalysisError(f"at {self._name} = {value:.6g}: {error.headline}", error.faults) from error
        return self._before


def _remove_cyclic_states(points: Sequence[Linearization]) -> tuple[str, ...]:
    """Return names of states that remain when states without influence on the others are removed."""
    found: dict[str, None] = {}
    for point in points:
        kept = list(range(len(point.states)))
        least = _NO_INFLUENCE_RATIO * float(np.max(np.abs(point.A), initial=0.0))
        while kept:
            largest = np.abs(point.A[np.ix_(kept, kept)]).max(axis=0)
            left = [i for i, size in zip(kept, largest.tolist(), strict=True) if size > least]
            if len(left) == len(kept):
                break
            kept = left
        found |= dict.fromkeys(point.states[i] for i in kept)
    return tuple(found)


def _state_matrix_block(point: Linearization, kept: Sequence[str]) -> Floats:
    """Return a of these states alone."""
    rows = [point.states.index(name) for name in kept]
    return point.A[np.ix_(rows, rows)]


def _match_eigenvalues(rows: Sequence[ComplexArray]) -> ComplexArray:
    """Return eigenvalues matched from row to row, shape (n, m)."""
    first = rows[0]
    result = [first[np.lexsort((first.imag, -first.real.round(12)))]]
    for row in rows[1:]:
        expected = result[-1] if len(result) < 2 else 2 * result[-1] - result[-2]
        result.append(row[_pair_eigenvalues(expected, result[-1], row)])
    return np.array(result).reshape(len(rows), -1)


def _pair_eigenvalues(expected: ComplexArray, before: ComplexArray, row: ComplexArray) -> npt.NDArray[np.intp]:
    """Return the entry of ``row`` that continues each of ``before``, by extrapolation and (less) by distance."""
    cost = np.abs(expected[:, None] - row[None, :]) + 0.2 * np.abs(before[:, None] - row[None, :])
    return np.asarray(linear_sum_assignment(cost)[1])


def _find_stability_crossings(
    points: _OperatingPointSequence, kept: Sequence[str], values: Floats, rows: ComplexArray
) -> tuple[StabilityCrossing, ...]:
    """Return every crossing between two neighbours, refined; of a complex pair the one above the real axis."""
    found = []
    least = _ROUND_OFF_RATIO * float(np.max(np.abs(rows), initial=0.0))
    for column in rows.T:
        sides = np.where(np.abs(column.real) <= least, 0, np.sign(column.real))
        off = np.flatnonzero(sides)
        for k, after in pairwise(off.tolist()):
            mirrored = column[k].imag < 0 and column[after].imag < 0  # its conjugate is another column
            if sides[k] != sides[after] and not mirrored:
                found.append(_refine_crossing(points, kept, (values[k], values[after]), (column[k], column[after])))
    apart = 1e-9 * float(values[-1] - values[0])
    found.sort(key=lambda each: (each.value, each.frequency))
    first = [k for k, each in enumerate(found) if k == 0 or not _is_conjugate_pair(found[k - 1], each, apart)]
    return tuple(found[k] for k in first)


def _is_conjugate_pair(one: StabilityCrossing, other: StabilityCrossing, apart: float) -> bool:
    """Return whether two crossings are of one conjugate pair."""
    alike = abs(one.frequency - other.frequency) <= 1e-6 * (one.frequency + other.frequency)
    return abs(one.value - other.value) <= apart and alike


def _refine_crossing(
    points: _OperatingPointSequence,
    kept: Sequence[str],
    ends: tuple[float, float],
    eigenvalues: tuple[complex, complex],
) -> StabilityCrossing:
    """Return the value between two at which the real part vanishes."""
    (low, high), (first, last) = ends, eigenvalues
    nearest = [first]

    def real_part(value: float) -> float:
        """Return the real part of the followed eigenvalue at a parameter value, and remember the eigenvalue."""
        share = (value - low) / (high - low)
        expected = first + share * (last - first)
        candidates = np.linalg.eigvals(_state_matrix_block(points.linearize_at_value(value), kept))
        nearest[0] = complex(candidates[np.argmin(np.abs(candidates - expected))])
        return nearest[0].real

    value = float(brentq(real_part, low, high, xtol=_CROSSING_TOLERANCE * (abs(low) + abs(high)), rtol=4e-15))
    real_part(value)
    frequency = abs(nearest[0].imag)
    still = frequency <= 1e-6 * (abs(first) + abs(last))
    return StabilityCrossing(value, 0.0 if still else frequency, "unstable" if last.real > 0 else "stable")
