"""Random admissible points: states on the constraints, with random inputs, parameters and times."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import sympy as sm

from mb2fmu.model.model_definition import ModelDefinition
from mb2fmu.model.quantity_declarations import Coordinate, Input, Quantity, Speed
from mb2fmu.validation.source_checks.source_constraints import SourceConstraints, normalized_singular_values
from mb2fmu.validation.source_checks.source_objects import SourceObjects
from mb2fmu.validation.source_checks.source_symbols import Floats, SourceSymbols

RANDOM_SEED = 11
_PARAMETER_SPREADS = (0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.03, 0.03)
"""Of parameters, relative to their values, attempt after attempt; then those of the geometry keep theirs."""
_CLEAR_POINT_COUNT, _MAX_TRIED_POINTS = (
    3,
    9,
)  # points that tell how many constraints follow from others, and how many are tried for them
_VANISHING_ROW_FRACTION = 1e-2
"""Of its longest: a row that is shorter has no direction that is known well enough to tell whether it is redundant."""
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
class RandomPoint:
    """One admissible point.

    Attributes:
        time: In s.
        values: Of all slots of ``SourceSymbols``, q' included.
    """

    time: float
    values: tuple[float, ...]


class RandomPointGenerator:
    """Draws random points; reproducible.

    Args:
        definition: The checked model: start values, bounds, units.
        parts: What was handed over.
        symbols: Slots of their symbols.
        constraints: What holds the states.
        quaternions: Numbers of coordinates (in the definition's order) that form unit quaternions.
        reach: FMU name of a speed → its largest magnitude in the experiments; points go beyond it.
        computed: FMU names of coordinates that the FMU computes from the others, in the way in which the mechanism is
            put together at the start: points are put together so.
        visited: FMU name of a coordinate → its value, at instants of the experiments: every second point is near one.
    """

    def __init__(
        self,
        definition: ModelDefinition,
        parts: SourceObjects,
        symbols: SourceSymbols,
        constraints: SourceConstraints,
        quaternions: Sequence[Sequence[int]] = (),
        reach: Mapping[str, float] = MappingProxyType({}),
        computed: Collection[str] = (),
        visited: Sequence[Mapping[str, float]] = (),
    ) -> None:
        self._reach, self._visited, self._number = reach, visited, 0
        self._computed = [symbols.slot[c.symbol] for c in definition.coordinates if c.name in computed]
        self._definition, self._symbols, self._constraints = definition, symbols, constraints
        names = {c.symbol: c for c in definition.coordinates}
        self._quaternions = [[symbols.slot[definition.coordinates[i].symbol] for i in group] for group in quaternions]
        self.q_scale = np.array([self._scale(names[qi]) for qi in symbols.q])
        speeds = {s.symbol: s for s in definition.speeds}
        self.u_scale = np.array([self._of_speed(speeds[ui]) for ui in symbols.u])
        geometry = set().union(*(sm.sympify(row).free_symbols for row in parts.holonomic)) if parts.holonomic else set()
        self._geometry = geometry | {
            other
            for p in definition.parameters
            if p.calculated and p.symbol in geometry
            for other in sm.sympify(p.value).free_symbols
        }
        self._random = np.random.default_rng(RANDOM_SEED)
        self._lengths: Floats = np.zeros(())
        """The longest that each row of the velocity constraints was."""
        self._independent = self._count_independent_rows()

    def draw_points(self) -> Iterator[RandomPoint]:
        """Yield points without end; points that the constraints exclude are skipped."""
        attempt = 0
        while True:
            values = self._drawn(attempt)
            found = self._projected(values)
            if found is None or not self._has_default_freedom(found) or not self._is_on_start_branch(found):
                attempt += 1
                if attempt > 40 * len(_PARAMETER_SPREADS):
                    return
                continue
            attempt = max(attempt - 1, 0)
            yield RandomPoint(found[0], tuple(found))

    def _projected(self, values: list[float]) -> list[float] | None:
        """Return random values moved onto the constraints; None where Newton's method fails or overflows."""
        u_scale = self._speed_scale(values)
        try:
            found = self._constraints.project_state(values, self.q_scale, u_scale)
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            return None
        return found if found is not None and np.all(np.isfinite(found)) else None

    def _count_independent_rows(self) -> dict[float, int]:
        """Return how many constraints follow from no others, at most, where lengths have their values.

        By what is left of one that follows from others. Three equal cranks carry a platform, which one that is longer
        would lock. Empty if nothing is known.
        """
        if not self._geometry:
            return {}
        seen = [normalized_singular_values(rows) for rows in self._clear_rows()]
        if not seen:
            return {}
        counts = {part: max(int(np.sum(each > part)) for each in seen) for part in _DEPENDENT_ROW_FRACTIONS}
        follow = counts[_DEPENDENT_ROW_FRACTIONS[0]]
        # Near a place where still more constraints follow from others, those that do are known badly.
        if follow == len(seen[0]) or len(set(counts.values())) > 1:
            counts = {_DEPENDENT_ROW_FRACTIONS[0]: follow}
        # Lengths that nearly fit leave next to nothing of a row, which would hold the speeds all the same.
        if all(int(np.sum(each > _ROUND_OFF_ROW_FRACTION)) <= follow for each in seen):
            counts[_ROUND_OFF_ROW_FRACTION] = follow
        return counts

    def _clear_rows(self) -> list[Floats]:
        """Return the rows of points where none of them vanishes, lengths having their values.

        Newton's method is drawn to places where rows vanish, such as all cranks in line with what they carry; the
        round-off that is left of a row there has any direction, and would follow from no others.
        """
        kept, self._random = self._random, np.random.default_rng(RANDOM_SEED + 1)
        drawn: list[Floats] = []
        clear: list[Floats] = []
        for _ in range(_MAX_TRIED_POINTS):
            found = self._projected(self._drawn(len(_PARAMETER_SPREADS)))
            if found is not None:
                drawn.append(self._constraints.scaled_rows(found, self._speed_scale(found)))
                self._lengths = np.maximum(self._lengths, np.linalg.norm(drawn[-1], axis=1))
                clear = [rows for rows in drawn if self._is_clear(rows)]
            if len(clear) == _CLEAR_POINT_COUNT:
                break
        self._random = kept
        return clear

    def _is_clear(self, rows: Floats) -> bool:
        """Return whether no row vanishes."""
        return bool(np.all(np.linalg.norm(rows, axis=1) >= _VANISHING_ROW_FRACTION * self._lengths))

    def _has_default_freedom(self, found: list[float]) -> bool:
        """Return whether the constraints at a point leave as many degrees of freedom as with the lengths by default.

        There may be more of them, too: where all cranks lie in line with what they carry, it can move in two ways.
        """
        if not self._independent:
            return True
        rows = self._constraints.scaled_rows(found, self._speed_scale(found))
        here = normalized_singular_values(rows)
        redundant = min(self._independent.values()) < len(rows)
        as_many = all(int(np.sum(here > part)) == count for part, count in self._independent.items())
        return as_many and (not redundant or self._is_clear(rows))

    def _is_on_start_branch(self, found: list[float]) -> bool:
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
        whole = self._symbols.complete_values(start)
        return self._constraints.has_start_assembly(whole, found, self._computed, scale)

    def _speed_scale(self, values: list[float]) -> Floats:
        """Return how far each speed may move in the search for the constraints."""
        here = np.abs([values[self._symbols.slot[u]] for u in self._symbols.u])
        return np.asarray(np.maximum(here, self.u_scale))

    def _drawn(self, attempt: int) -> list[float]:
        """Return values of all slots, not yet on the constraints."""
        d, slot, random = self._definition, self._symbols.slot, self._random
        values = [0.0] * len(slot)
        values[0] = float(random.uniform(0.0, d.experiment.stop))
        spread = _PARAMETER_SPREADS[min(attempt, len(_PARAMETER_SPREADS) - 1)]
        rigid = attempt >= len(_PARAMETER_SPREADS)
        for p in d.parameters:
            if not p.calculated:
                change = spread * random.uniform(-1.0, 1.0)
                kept = rigid and p.symbol in self._geometry
                value = float(p.value)
                size = abs(value) or self._alike(p)
                values[slot[p.symbol]] = (
                    value if kept else _mirror_into_bounds(p, value + (0.3 if rigid else 1.0) * change * size)
                )
        self._number += 1
        there, way = self._near()
        for c in d.coordinates:
            middle = there.get(c.name, c.start)
            values[slot[c.symbol]] = _mirror_into_bounds(c, middle + way * self._scale(c) * random.uniform(-1.0, 1.0))
        for s in d.speeds:
            values[slot[s.symbol]] = _mirror_into_bounds(s, s.start + self._of_speed(s) * random.uniform(-1.0, 1.0))
        for z in d.auxiliary_states:
            values[slot[z.symbol]] = _mirror_into_bounds(
                z, z.start + 0.3 * (abs(z.start) or self._alike(z)) * random.uniform(-1, 1)
            )
        for r in d.inputs:
            values[slot[r.symbol]] = _mirror_into_bounds(
                r, (abs(r.start) + self._of_input(r)) * random.uniform(-1.0, 1.0)
            )
        for places in self._quaternions:
            length = np.linalg.norm([values[k] for k in places])
            for k in places:
                values[k] = float(values[k] / length)
        return self._symbols.complete_values(values)

    def _near(self) -> tuple[Mapping[str, float], float]:
        """Return what coordinates are drawn about, and part of their scale: the start, or a place of an experiment."""
        if not self._visited or self._number % 2:
            return {}, 1.0
        return self._visited[self._number // 2 % len(self._visited)], _RANGE_BESIDE_RUN

    def _scale(self, c: Coordinate) -> float:
        """Return how far a coordinate may move from its start."""
        if c.unit in {"rad", "1", "deg"}:
            return _ANGLE_RANGE_RAD
        alike = self._alike(c)
        # Where loops were closed, a start value of zero is round-off: no scale.
        return c.nominal or 0.3 * (abs(c.start) if abs(c.start) > _NEGLIGIBLE_START_FRACTION * alike else alike)

    def _of_speed(self, s: Speed) -> float:
        """Return how far a speed may move from its start: at least its coordinates' scale in part of the experiment."""
        rate = _RANGES_PER_EXPERIMENT / self._definition.experiment.stop
        lengths = [self._scale(c) for c in self._definition.coordinates if f"{c.unit}/s" == s.unit]
        size = max(lengths, default=_ANGLE_RANGE_RAD if s.unit in {"rad/s", "1/s"} else 0.0) * rate
        start = abs(s.start)
        return max(
            s.nominal or max(size, 0.3 * start) or self._alike(s), SPEED_RANGE_FACTOR * self._reach.get(s.name, 0.0)
        )

    def _of_input(self, r: Input) -> float:
        """Return how far an input may move from its start: its signal's range, or quantities of its unit."""
        signal = self._definition.experiment.signals.get(r.symbol)
        size = 0.0
        if signal is not None:
            stop = self._definition.experiment.stop
            at = [float(sm.sympify(signal).subs(self._symbols.t, part * stop)) for part in (0.1, 0.37, 0.61, 0.89)]
            size = max(map(abs, at))
        return r.nominal or size or self._alike(r)

    def _alike(self, item: Quantity) -> float:
        """Return a magnitude from quantities of the same unit, free parameters first; 1 if there are none."""
        d = self._definition
        if item.nominal:
            return item.nominal
        if item.minimum is not None and item.maximum is not None:
            return (item.maximum - item.minimum) / 2
        same = [abs(float(p.value)) for p in d.parameters if not p.calculated and p.unit == item.unit and p.value]
        starts: list[Coordinate | Speed | Input] = [*d.coordinates, *d.speeds, *d.inputs]
        if not same:
            others = [abs(x.start) for x in starts if x.unit == item.unit and x.start]
            same = [size for size in others if size > _NEGLIGIBLE_START_FRACTION * max(others)]
        return float(np.median(same)) if same else 1.0


def _mirror_into_bounds(item: Quantity, value: float) -> float:
    """Return the value, mirrored at the bounds that it exceeds, and never cut to zero there."""
    low, high = item.minimum, item.maximum
    if low is not None and value < low:
        value = 2 * low - value
    if high is not None and value > high:
        value = 2 * high - value
        if low is not None and value < low:
            value = (low + high) / 2
    return value
