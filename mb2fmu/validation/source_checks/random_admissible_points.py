"""Random admissible points: states on the constraints, with random inputs, parameters and times."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import sympy as sm

from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.quantity_declarations import Coordinate, DeclaredVariable, Input, Speed
from mb2fmu.validation.source_checks.source_kinematics_evaluation import (
    SympySourceKinematicsEvaluator,
    singular_values_of_unit_rows,
)
from mb2fmu.validation.source_checks.source_objects import SympySourceObjects
from mb2fmu.validation.source_checks.source_symbol_slots import Floats, SympySourceSymbolSlots

RANDOM_SEED = 11
_PARAMETER_SPREADS = (0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.03, 0.03)
"""Of parameters, relative to their values, attempt after attempt; then those of the geometry keep theirs."""
_CLEAR_POINT_COUNT, _MAX_TRIED_POINTS = (
    3,
    9,
)  # points that show how many constraints follow from others, and how many are tried for them
_VANISHING_ROW_FRACTION = 1e-2
"""Of its longest: a row that is shorter has no direction that is known well enough to show whether it is redundant."""
_DEPENDENT_ROW_FRACTIONS = (1e-4, 1e-2)
"""What other rows leave of a row, as a part of it: below the first it follows from them, below the second nearly."""
_ROUND_OFF_ROW_FRACTION = (
    1e-9  # the same, of a row that follows from others to round-off; what is more holds the speeds
)

_ANGLE_RANGE_RAD = 0.6
"""How far angles and numbers without a unit go from their start values."""
_RANGE_BESIDE_RUN = 0.1  # of that, from where an experiment goes
SPEED_RANGE_FACTOR = 2.0
"""Times the largest speeds of both experiments, up to which speeds of points go."""
_NEGLIGIBLE_START_FRACTION = 1e-9
"""Start values that are smaller than this part of what has their unit say nothing of a scale."""
_RANGES_PER_EXPERIMENT = 10.0
"""Speeds that are not known better go through the scale of their coordinate so often in an experiment."""


@dataclass(frozen=True, slots=True)
class RandomAdmissibleState:
    """One admissible point.

    Attributes:
        time: In s.
        values: Of all slots of ``SympySourceSymbolSlots``, q' included.
    """

    time: float
    values: tuple[float, ...]


class RandomAdmissibleStateGenerator:
    """Draws random points; reproducible.

    Args:
        definition: The checked model: start values, bounds, units.
        parts: The source objects.
        symbols: Slots of their symbols.
        constraints: Constraints of the states.
        quaternions: Numbers of coordinates (in the definition's order) that form unit quaternions.
        largest_speeds: FMU name of a speed → its largest magnitude in the experiments; points go beyond it.
        computed_coordinates: FMU names of coordinates that the FMU computes from the others, in the way in which the
            mechanism is put together at the start: points are put together so.
        visited_coordinates: FMU name of a coordinate → its value, at instants of the experiments: every second point is
            near one.
    """

    def __init__(
        self,
        definition: CheckedModel,
        parts: SympySourceObjects,
        symbols: SympySourceSymbolSlots,
        constraints: SympySourceKinematicsEvaluator,
        quaternions: Sequence[Sequence[int]] = (),
        largest_speeds: Mapping[str, float] = MappingProxyType({}),
        computed_coordinates: Collection[str] = (),
        visited_coordinates: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self._largest_speeds, self._visited_coordinates, self._drawn_count = largest_speeds, visited_coordinates, 0
        self._computed = [symbols.slot[c.symbol] for c in definition.coordinates if c.name in computed_coordinates]
        self._definition, self._symbols, self._constraints = definition, symbols, constraints
        names = {c.symbol: c for c in definition.coordinates}
        self._quaternions = [[symbols.slot[definition.coordinates[i].symbol] for i in group] for group in quaternions]
        self.q_scale = np.array([self._coordinate_range(names[qi]) for qi in symbols.q])
        speeds = {s.symbol: s for s in definition.speeds}
        self.u_scale = np.array([self._speed_range(speeds[ui]) for ui in symbols.u])
        geometry = set().union(*(sm.sympify(row).free_symbols for row in parts.holonomic)) if parts.holonomic else set()
        self._geometry = geometry | {
            other
            for p in definition.parameters
            if p.calculated and p.symbol in geometry
            for other in sm.sympify(p.value).free_symbols
        }
        self._input_ranges = [self._input_range(r) for r in definition.inputs]
        self._random = np.random.default_rng(RANDOM_SEED)
        self._longest_rows: Floats = np.zeros(())
        """The longest that each row of the velocity constraints was."""
        self._independent = self._count_independent_rows()

    def draw_points(self) -> Iterator[RandomAdmissibleState]:
        """Yield points without end; points that the constraints exclude are skipped."""
        attempt = 0
        while True:
            values = self._draw_values(attempt)
            admissible = self._project(values)
            if (
                admissible is None
                or not self._has_default_freedom(admissible)
                or not self._is_on_start_branch(admissible)
            ):
                attempt += 1
                if attempt > 40 * len(_PARAMETER_SPREADS):
                    return
                continue
            attempt = max(attempt - 1, 0)
            yield RandomAdmissibleState(admissible[0], tuple(admissible))

    def _project(self, values: list[float]) -> list[float] | None:
        """Return random values moved onto the constraints; None where Newton's method fails or overflows."""
        u_scale = self._speed_scale(values)
        try:
            projected = self._constraints.project_state(values, self.q_scale, u_scale, self._quaternions)
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            return None
        return projected if projected is not None and np.all(np.isfinite(projected)) else None

    def _count_independent_rows(self) -> dict[float, int]:
        """Return how many constraints follow from no others, at most, where lengths have their values.

        By what is left of one that follows from others. Three equal cranks carry a platform, which one that is longer
        would lock. Empty if nothing is known.
        """
        if not self._geometry:
            return {}
        singular_values = [singular_values_of_unit_rows(rows) for rows in self._draw_clear_rows()]
        if not singular_values:
            return {}
        counts = {part: max(int(np.sum(each > part)) for each in singular_values) for part in _DEPENDENT_ROW_FRACTIONS}
        independent_count = counts[_DEPENDENT_ROW_FRACTIONS[0]]
        # Near a place where still more constraints follow from others, those that do are known badly.
        if independent_count == len(singular_values[0]) or len(set(counts.values())) > 1:
            counts = {_DEPENDENT_ROW_FRACTIONS[0]: independent_count}
        # Lengths that nearly fit leave next to nothing of a row, which would hold the speeds all the same.
        if all(int(np.sum(each > _ROUND_OFF_ROW_FRACTION)) <= independent_count for each in singular_values):
            counts[_ROUND_OFF_ROW_FRACTION] = independent_count
        return counts

    def _draw_clear_rows(self) -> list[Floats]:
        """Return the rows of points where none of them vanishes, lengths having their values.

        Newton's method is drawn to places where rows vanish, such as all cranks in line with what they carry; the
        round-off that is left of a row there has any direction, and would follow from no others.
        """
        saved_random, self._random = self._random, np.random.default_rng(RANDOM_SEED + 1)
        drawn_rows: list[Floats] = []
        clear_rows: list[Floats] = []
        for _ in range(_MAX_TRIED_POINTS):
            projected = self._project(self._draw_values(len(_PARAMETER_SPREADS)))
            if projected is not None:
                drawn_rows.append(self._constraints.scaled_rows(projected, self._speed_scale(projected)))
                self._longest_rows = np.maximum(self._longest_rows, np.linalg.norm(drawn_rows[-1], axis=1))
                clear_rows = [rows for rows in drawn_rows if self._is_clear(rows)]
            if len(clear_rows) == _CLEAR_POINT_COUNT:
                break
        self._random = saved_random
        return clear_rows

    def _is_clear(self, rows: Floats) -> bool:
        """Return whether no row vanishes."""
        return bool(np.all(np.linalg.norm(rows, axis=1) >= _VANISHING_ROW_FRACTION * self._longest_rows))

    def _has_default_freedom(self, point_values: list[float]) -> bool:
        """Return whether the constraints at a point leave as many degrees of freedom as with the lengths by default.

        There may be more of them, too: where all cranks lie in line with what they carry, it can move in two ways.
        """
        if not self._independent:
            return True
        rows = self._constraints.scaled_rows(point_values, self._speed_scale(point_values))
        singular_values = singular_values_of_unit_rows(rows)
        redundant = min(self._independent.values()) < len(rows)
        has_same_counts = all(int(np.sum(singular_values > part)) == count for part, count in self._independent.items())
        return has_same_counts and (not redundant or self._is_clear(rows))

    def _is_on_start_branch(self, point_values: list[float]) -> bool:
        """Return whether the coordinates that the FMU computes are on the branch of the start."""
        if not self._computed:
            return True
        d, slot = self._definition, self._symbols.slot
        start = [0.0] * len(slot)
        for p in d.parameters:
            if not p.calculated:
                start[slot[p.symbol]] = float(p.value)
        for c in d.coordinates:
            start[slot[c.symbol]] = c.start
        for r in d.inputs:
            start[slot[r.symbol]] = r.start
        scale = {slot[qi]: size for qi, size in zip(self._symbols.q, self.q_scale.tolist(), strict=True)}
        complete_start = self._symbols.complete_values(start)
        return self._constraints.has_start_assembly(complete_start, point_values, self._computed, scale)

    def _speed_scale(self, values: list[float]) -> Floats:
        """Return how far each speed may move in the search for the constraints."""
        speeds = np.abs([values[self._symbols.slot[u]] for u in self._symbols.u])
        return np.asarray(np.maximum(speeds, self.u_scale))

    def _draw_values(self, attempt: int) -> list[float]:
        """Return values of all slots, not yet on the constraints."""
        d, slot, random = self._definition, self._symbols.slot, self._random
        values = [0.0] * len(slot)
        values[0] = float(random.uniform(0.0, d.experiment.stop))
        parameter_spread = _PARAMETER_SPREADS[min(attempt, len(_PARAMETER_SPREADS) - 1)]
        keeps_geometry = attempt >= len(_PARAMETER_SPREADS)
        for p in d.parameters:
            if not p.calculated:
                change = parameter_spread * random.uniform(-1.0, 1.0)
                keeps_value = keeps_geometry and p.symbol in self._geometry
                value = float(p.value)
                size = abs(value) or self._typical_of_unit(p)
                values[slot[p.symbol]] = (
                    value
                    if keeps_value
                    else _mirror_into_bounds(p, value + (0.3 if keeps_geometry else 1.0) * change * size)
                )
        self._drawn_count += 1
        centre, range_fraction = self._choose_centre()
        for c in d.coordinates:
            middle = centre.get(c.name, c.start)
            values[slot[c.symbol]] = _mirror_into_bounds(
                c, middle + range_fraction * self._coordinate_range(c) * random.uniform(-1.0, 1.0)
            )
        for s in d.speeds:
            values[slot[s.symbol]] = _mirror_into_bounds(s, s.start + self._speed_range(s) * random.uniform(-1.0, 1.0))
        for z in d.auxiliary_states:
            values[slot[z.symbol]] = _mirror_into_bounds(
                z, z.start + 0.3 * (abs(z.start) or self._typical_of_unit(z)) * random.uniform(-1, 1)
            )
        for r, input_range in zip(d.inputs, self._input_ranges, strict=True):
            values[slot[r.symbol]] = _mirror_into_bounds(r, (abs(r.start) + input_range) * random.uniform(-1.0, 1.0))
        for places in self._quaternions:
            length = np.linalg.norm([values[k] for k in places])
            for k in places:
                values[k] = float(values[k] / length)
        return self._symbols.complete_values(values)

    def _choose_centre(self) -> tuple[Mapping[str, float], float]:
        """Return what coordinates are drawn about, and part of their scale: the start, or a place of an experiment."""
        if not self._visited_coordinates or self._drawn_count % 2:
            return {}, 1.0
        return self._visited_coordinates[self._drawn_count // 2 % len(self._visited_coordinates)], _RANGE_BESIDE_RUN

    def _coordinate_range(self, c: Coordinate) -> float:
        """Return how far a coordinate may move from its start."""
        if c.unit in {"rad", "1", "deg"}:
            return _ANGLE_RANGE_RAD
        typical_values = self._typical_of_unit(c)
        # Where loops were closed, a start value of zero is round-off: no scale.
        return c.nominal or 0.3 * (
            abs(c.start) if abs(c.start) > _NEGLIGIBLE_START_FRACTION * typical_values else typical_values
        )

    def _speed_range(self, s: Speed) -> float:
        """Return how far a speed may move from its start: at least its coordinates' scale in part of the experiment."""
        rate = _RANGES_PER_EXPERIMENT / self._definition.experiment.stop
        lengths = [self._coordinate_range(c) for c in self._definition.coordinates if f"{c.unit}/s" == s.unit]
        size = max(lengths, default=_ANGLE_RANGE_RAD if s.unit in {"rad/s", "1/s"} else 0.0) * rate
        start = abs(s.start)
        return max(
            s.nominal or max(size, 0.3 * start) or self._typical_of_unit(s),
            SPEED_RANGE_FACTOR * self._largest_speeds.get(s.name, 0.0),
        )

    def _input_range(self, r: Input) -> float:
        """Return how far an input may move from its start: its signal's range, or quantities of its unit."""
        signal = self._definition.experiment.signals.get(r.symbol)
        size = 0.0
        if signal is not None:
            stop = self._definition.experiment.stop
            times = [sm.Float(part * stop) for part in (0.1, 0.37, 0.61, 0.89)]
            size = max(abs(float(sm.sympify(signal).xreplace({self._symbols.t: time}))) for time in times)
        return r.nominal or size or self._typical_of_unit(r)

    def _typical_of_unit(self, item: DeclaredVariable) -> float:
        """Return a magnitude from quantities of the same unit, free parameters first; 1 if there are none."""
        d = self._definition
        if item.nominal:
            return item.nominal
        if item.minimum is not None and item.maximum is not None:
            return (item.maximum - item.minimum) / 2
        same_unit_values = [
            abs(float(p.value)) for p in d.parameters if not p.calculated and p.unit == item.unit and p.value
        ]
        starts: list[Coordinate | Speed | Input] = [*d.coordinates, *d.speeds, *d.inputs]
        if not same_unit_values:
            start_magnitudes = [abs(x.start) for x in starts if x.unit == item.unit and x.start]
            same_unit_values = [
                size for size in start_magnitudes if size > _NEGLIGIBLE_START_FRACTION * max(start_magnitudes)
            ]
        return float(np.median(same_unit_values)) if same_unit_values else 1.0


def _mirror_into_bounds(item: DeclaredVariable, value: float) -> float:
    """Return the value, mirrored at the bounds that it exceeds, and never cut to zero there."""
    low, high = item.minimum, item.maximum
    if low is not None and value < low:
        value = 2 * low - value
    if high is not None and value > high:
        value = 2 * high - value
        if low is not None and value < low:
            value = (low + high) / 2
    return value
