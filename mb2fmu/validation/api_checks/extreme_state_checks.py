"""Points far beyond both experiments: x' and outputs there, against the reference's at the FMU's own state.

From one state of the perturbed experiment single quantities are set to what no experiment reaches: parameters and
inputs to zero, to the other sign and to ten times their value, or to their bounds where they have any; coordinates
beyond a quarter, half and whole turn; others to ten times the largest; each of them to exactly zero; the time to
before zero and far behind the end. An FMU with |k| for k, or with an input that saturates, has no other x' elsewhere.

Points at which the mechanism has no motion (the reference has no finite value, or a negative kinetic energy) are left
out: FMUs refuse them. Where there are many quantities, several are moved in one point.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import DeclaredVariable
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.experiment.perturbed_experiment import compute_constraint_row_scales
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference_equations.numeric_equations import DEPENDENT_ROW_FRACTION, InstantMotion

if TYPE_CHECKING:
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations

Floats = npt.NDArray[np.float64]

_LARGE_FACTOR, _SMALL_FACTOR = 10.0, 0.1
_FAR_ANGLES_RAD = (2.4, -7.3, -2.4, 7.3)
_FAR_STATE_FACTORS = (10.0, -10.0)
_MIXED_POINTS = 32
"""Points at which all quantities are moved at once, to either side: some faults need two quantities together."""
_MIXED_ANGLE_RAD, _MIXED_STATE_FACTOR, _MIXED_PARAMETER_FACTORS = 3.0, 2.0, (0.5, 2.0)
_FAR_TIMES = (-1.7, 3.3, 170.0)
"""Of the experiment's stop time."""
_POINTS_PER_ROUND = 32
_SPEED_DRAWS = 6
"""Random speeds at which the kinetic energy must not be negative."""
_RELATIVE_CHANGE = 1e-9
_ROUND_OFF_FRACTION = 1e-3
"""Of the change by that relative change of all numbers: a relative change of 1e-12, thousands of units of round-off."""
_AGREEMENT = 1e-6
_NOISE_FRACTION = 1e-8
_LARGEST_CONDITION_FRACTION = 1e-3
"""Points where the relative change above changes x' by more than this part of itself show nothing."""
_WILD_FACTOR = 1e4
"""Times the largest x' of the experiment: where a length or mass all but vanishes, neither side knows x' well."""
_SINGULAR_FRACTION = 0.7
"""Of the least singular value of the constraints in the experiment: nearer to a singularity neither side knows x'."""
_RESIDUAL_FRACTION = 1e-12
"""Of the scale of each constraint row: where more is left, Newton's method came to a place where loops branch."""
_RANDOM_SEED = 5

Slot = tuple[str, int]
"""Role (``parameter``, ``input``, ``state``) and number of a quantity."""


@dataclass(frozen=True, slots=True)
class ReferenceValuesAtPoint:
    """The reference at a point: the state on the constraints, x' and outputs, and how well they are known.

    Attributes:
        x: Shape (n_x,).
        values: x', then outputs.
        round_off: What a relative change of 1e-12 of all numbers changes of these.
        residual: Magnitude of what is left of each constraint row.
    """

    x: Floats
    values: Floats
    round_off: Floats
    residual: Floats


@dataclass(frozen=True, slots=True)
class ExtremeEvaluationPoint:
    """A state, inputs and parameters far beyond both experiments, and the reference there.

    Attributes:
        moved: Name of each moved quantity → its value there.
        time: In s.
        inputs: Of the reference.
        parameters: Free ones.
        expected: What the reference says.
    """

    moved: Mapping[str, float]
    time: float
    inputs: tuple[float, ...]
    parameters: tuple[float, ...]
    expected: ReferenceValuesAtPoint

    @property
    def text(self) -> str:
        """The moved quantities, for people."""
        return ", ".join(f"{name} = {value:.6g}" for name, value in list(self.moved.items())[:3])


def choose_extreme_state_points(
    definition: DeclaredModelContent, reference: ReferenceRun, row: int, settable: Collection[str], rates: Floats
) -> tuple[ExtremeEvaluationPoint, ...]:
    """Choose the points around a row of the perturbed experiment; none where something is always held or due.

    Args:
        definition: The checked model: bounds.
        reference: Of the perturbed experiment.
        row: From which the other quantities are taken; with events an earlier one, at which nothing holds or is due.
        settable: FMU names that can be set before a run.
        rates: The largest |x'| of the experiment, shape (n_x,).
    """
    numeric = reference.numeric
    if is_hybrid(numeric):
        row = next((k for k in range(row, 0, -1) if _moves_freely(reference, numeric, k)), 0)
        if not row:
            return ()
    return tuple(_ExtremePointChooser(definition, reference, row, settable, rates).points())


def _moves_freely(reference: ReferenceRun, numeric: HybridEquations, row: int) -> bool:
    """Return whether nothing is held or due at a communication point of the experiment."""
    run = reference.experiment
    return numeric.moves_freely(
        float(run.time[row]), reference.states[row], run.inputs_at(row).tolist(), numeric.prepare(run.parameters),
        reference.modes[row],
    )  # fmt: skip


class _ExtremePointChooser:
    """Forms candidates and keeps those at which the reference has values."""

    def __init__(
        self,
        definition: DeclaredModelContent,
        reference: ReferenceRun,
        row: int,
        settable: Collection[str],
        rates: Floats,
    ) -> None:
        self._reference, run, self._rates = reference, reference.experiment, rates
        self._time, self._x = float(run.time[row]), reference.states[row]
        self._inputs, self._parameters = run.inputs_at(row), np.array(run.parameters)
        self._stop, self._rows = float(run.time[-1]), compute_constraint_row_scales(reference)
        singular_values = reference.numeric.row_singular_values(
            self._time, self._x, self._inputs, reference.numeric.prepare(run.parameters)
        )
        self._independent_rows = int(np.sum(singular_values > DEPENDENT_ROW_FRACTION))
        self._least_singular_value = float(np.min(singular_values[: self._independent_rows], initial=1.0))
        free = [p for p in definition.parameters if not p.calculated]
        speeds = definition.speeds
        states: list[DeclaredVariable] = [
            *definition.coordinates, *(speeds[i] for i in reference.numeric.equations.u_independent),
            *definition.auxiliary_states,
        ]  # fmt: skip
        largest_inputs = np.max(np.abs(run.inputs), axis=0)
        self._quantities: dict[Slot, tuple[DeclaredVariable, list[float]]] = {}
        for k, parameter in enumerate(free):
            if parameter.name in settable:
                values = _choose_values(parameter, float(self._parameters[k]), abs(float(self._parameters[k])) or 1.0)
                self._quantities["parameter", k] = parameter, values
        for k, record in enumerate(definition.inputs):
            values = _choose_values(record, float(self._inputs[k]), float(largest_inputs[k]) or 1.0)
            self._quantities["input", k] = record, values
        for k, state in enumerate(states):
            if state.name in settable:
                self._quantities["state", k] = state, self._choose_state_values(state, k)
        if is_hybrid(reference.numeric):  # what acts at events, or while something is held, only
            self._quantities = {slot: it for slot, it in self._quantities.items() if self._has_effect(slot, it[1])}

    def _has_effect(self, slot: Slot, values: Sequence[float]) -> bool:
        """Return whether any of a quantity's values changes x' or an output; a state is itself what is shown."""
        if slot[0] == "state":
            return True
        unmoved = self._point({}, self._time)
        moved = (self._point({slot: value}, self._time) for value in values)
        return unmoved is not None and any(
            point is not None and not np.array_equal(point.expected.values, unmoved.expected.values) for point in moved
        )

    def _choose_state_values(self, state: DeclaredVariable, index: int) -> list[float]:
        """Return values of a state far from where it was."""
        if state.unit == "rad":
            values = [float(self._x[index]) + angle for angle in _FAR_ANGLES_RAD]
        else:
            size = max(
                float(np.max(np.abs(self._reference.states[:, index]))), float(self._reference.state_scales[index])
            )
            values = [factor * size for factor in _FAR_STATE_FACTORS]
        return [_within_bounds(state, value) for value in [*values, 0.0]]

    def points(self) -> Iterator[ExtremeEvaluationPoint]:
        """Yield the points: of times, of all moved at once, of all first values, of all second ones, and so on."""
        for fraction in _FAR_TIMES:
            point = self._point({}, fraction * self._stop)
            if point is not None:
                yield replace(point, moved={"time": point.time})
        yield from self._mixed_points()
        by_round = zip_longest(*([(slot, v) for v in values] for slot, (_, values) in self._quantities.items()))
        for candidates in by_round:
            moves = [candidate for candidate in candidates if candidate is not None]
            group_count = min(len(moves), _POINTS_PER_ROUND)
            for first in range(group_count):
                yield from self._split_points(dict(moves[first::group_count]))

    def _mixed_points(self) -> Iterator[ExtremeEvaluationPoint]:
        """Yield points at which all quantities are elsewhere; those that do not go together are left out."""
        random = np.random.default_rng(_RANDOM_SEED)
        for _ in range(_MIXED_POINTS):
            moves = {}
            for slot, (quantity, values) in self._quantities.items():
                part = float(random.uniform(-1.0, 1.0))
                if slot[0] == "parameter":
                    low, high = (math.log(factor) for factor in _MIXED_PARAMETER_FACTORS)
                    value = float(self._parameters[slot[1]]) * math.exp(low + (high - low) * (part + 1.0) / 2.0)
                elif quantity.unit == "rad":
                    value = float(self._x[slot[1]]) + _MIXED_ANGLE_RAD * part if slot[0] == "state" else part
                else:
                    value = _MIXED_STATE_FACTOR * part * max(map(abs, values)) / _LARGE_FACTOR
                moves[slot] = _within_bounds(quantity, value)
            point = self._point(moves, self._time) if moves else None
            if point is not None:
                yield point

    def _split_points(self, moves: dict[Slot, float]) -> Iterator[ExtremeEvaluationPoint]:
        """Yield a point; where the mechanism has no motion there, those of either half of its moves."""
        point = self._point(moves, self._time)
        if point is not None:
            yield point
        elif len(moves) > 1:
            pairs, half = list(moves.items()), len(moves) // 2
            yield from self._split_points(dict(pairs[:half]))
            yield from self._split_points(dict(pairs[half:]))

    def _point(self, moves: Mapping[Slot, float], time: float) -> ExtremeEvaluationPoint | None:
        """Return a point; None where the reference has no values."""
        numbers = {"parameter": self._parameters.copy(), "input": self._inputs.copy(), "state": self._x.copy()}
        for (role, index), value in moves.items():
            numbers[role][index] = value
        inputs, parameters = tuple(numbers["input"].tolist()), tuple(numbers["parameter"].tolist())
        expected = _evaluate_reference_at_point(self._reference, time, numbers["state"], inputs, parameters)
        if expected is None or self._is_wild(expected) or np.any(expected.residual > _RESIDUAL_FRACTION * self._rows):
            return None
        at_point = (time, expected.x, inputs, parameters)
        if self._nears_singularity(*at_point):
            return None
        may_be_impossible = any(role == "parameter" and value <= 0.0 for (role, _), value in moves.items())
        if may_be_impossible and self._has_negative_energy(*at_point):
            return None
        names = {self._quantities[slot][0].name: value for slot, value in moves.items()}
        return ExtremeEvaluationPoint(names, time, inputs, parameters, expected)

    def _is_wild(self, expected: ReferenceValuesAtPoint) -> bool:
        """Return whether x' is beyond all that the experiment has."""
        return bool(np.any(np.abs(expected.values[: len(self._rates)]) > _WILD_FACTOR * self._rates))

    def _nears_singularity(self, time: float, x: Floats, r: Sequence[float], parameters: Sequence[float]) -> bool:
        """Return whether the constraints hold the speeds much worse than in the experiment, or fewer of them."""
        numeric = self._reference.numeric
        singular_values = numeric.row_singular_values(time, x, r, numeric.prepare(parameters), usual_x=self._x)
        return bool(np.any(singular_values[: self._independent_rows] < _SINGULAR_FRACTION * self._least_singular_value))

    def _has_negative_energy(self, time: float, x: Floats, r: Sequence[float], parameters: Sequence[float]) -> bool:
        """Return whether the kinetic energy is negative at some speeds: FMUs refuse such masses."""
        numeric, random = self._reference.numeric, np.random.default_rng(_RANDOM_SEED)
        prepared, independent = numeric.prepare(parameters), slice(numeric.n_q, numeric.n_x - numeric.n_z)
        scales = self._reference.state_scales[independent]
        directions = [*np.eye(len(scales))[:_SPEED_DRAWS], *random.uniform(-1.0, 1.0, (_SPEED_DRAWS, len(scales)))]
        for direction in directions:
            other = x.copy()
            other[independent] = scales * direction
            if _kinetic_energy(self._reference, time, other, r, prepared) < 0.0:
                return True
        return False


def _kinetic_energy(
    reference: ReferenceRun, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]
) -> float:
    """Return T in J at a state; nan where it is not known."""
    numeric = reference.numeric
    try:
        with np.errstate(all="ignore"):
            return numeric.kinetic_energy(t, numeric.project(t, x, r, prepared), r, prepared)
    except (ValidationError, ArithmeticError, ValueError, np.linalg.LinAlgError):
        return math.nan


def _choose_values(quantity: DeclaredVariable, value: float, size: float) -> list[float]:
    """Return the values of a parameter or input: zero, the other sign and large, or bounds."""
    proposed_values = [
        _LARGE_FACTOR * (value or size),
        -(value or size),
        0.0,
        _SMALL_FACTOR * (value or size),
        -_LARGE_FACTOR * size,
    ]
    values = [_within_bounds(quantity, each) for each in proposed_values]
    return [each for each in dict.fromkeys(values) if each != value]


def _within_bounds(quantity: DeclaredVariable, value: float) -> float:
    """Return the value, or the bound that it is beyond."""
    low = -math.inf if quantity.minimum is None else quantity.minimum
    high = math.inf if quantity.maximum is None else quantity.maximum
    return min(max(value, low), high)


def _evaluate_reference_at_point(
    reference: ReferenceRun, t: float, x: Floats, r: Sequence[float], parameters: Sequence[float]
) -> ReferenceValuesAtPoint | None:
    """Return the reference's values at a point; None where they do not exist or are not accurate."""
    numeric = reference.numeric
    of_parameters, of_states, of_inputs = _draw_relative_changes(len(parameters), len(x), len(r))
    try:
        prepared = numeric.prepare(list(parameters))
        other_prepared = numeric.prepare((np.array(parameters) * of_parameters).tolist())
        with np.errstate(all="ignore"):
            x = numeric.project(t, x, r, prepared)
            other_r = (np.array(r) * of_inputs).tolist()
            other_x = numeric.project(t, x * of_states, other_r, other_prepared)
            if is_hybrid(numeric) and not numeric.moves_freely(t, x, r, prepared):
                return None  # round-off of a speed or gap that is zero decides whether an FMU holds it
            motion = numeric.motion(t, x, r, prepared)
            other = numeric.motion(t, other_x, other_r, other_prepared)
    except (ValidationError, ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    values, other_values = _join(motion), _join(other)
    if not np.all(np.isfinite([values, other_values])):
        return None
    change = np.abs(other_values - values)
    if np.max(change, initial=0.0) > _LARGEST_CONDITION_FRACTION * np.max(np.abs(values), initial=0.0):
        return None
    return ReferenceValuesAtPoint(x, values, _ROUND_OFF_FRACTION * change, np.abs(motion.residual))


@cache
def _draw_relative_changes(*counts: int) -> tuple[Floats, ...]:
    """Return factors beside 1, of either sign, for groups of so many numbers: the same at all points."""
    random = np.random.default_rng(_RANDOM_SEED)
    return tuple(1.0 + _RELATIVE_CHANGE * random.choice([-1.0, 1.0], count) for count in counts)


def _join(motion: InstantMotion) -> Floats:
    """Return x', then outputs."""
    return np.concatenate([motion.x_dot, motion.outputs])


def form_point_experiment(
    run: ExperimentValues, time: float, starts: Mapping[str, float], references: Mapping[str, int]
) -> dict[str, Any]:
    """Return an experiment for the driver that begins at a point.

    Args:
        run: Its inputs, tolerance and duration.
        time: In s.
        starts: FMU name of what is set before → its value.
        references: FMU name → value reference.
    """
    return {
        "begin": time,
        "stop": time + float(run.time[-1]),
        "tolerance": run.tolerance,
        "starts": {"references": [references[name] for name in starts], "values": list(starts.values())},
        "inputs": [references[name] for name in run.input_names],
    }


def make_extreme_state_points_operation(
    points: Sequence[ExtremeEvaluationPoint],
    reference: ReferenceRun,
    references: Mapping[str, int],
    settable: Collection[str],
    parameter_names: Sequence[str],
    read: Sequence[int],
) -> list[Any]:
    """Return the driver's operation that sets an instance to each point and reads variables.

    Args:
        points: As chosen.
        reference: Of the perturbed experiment.
        references: FMU name → value reference.
        settable: FMU names that can be set before a run.
        parameter_names: Of the free parameters.
        read: Value references.
    """
    run, states = reference.experiment, [reference.trajectory.names[c] for c in reference.state_columns]
    calls = []
    for point in points:
        starts = dict(zip(parameter_names, point.parameters, strict=True))
        starts |= dict(zip(states, point.expected.x.tolist(), strict=True))
        starts = {name: value for name, value in starts.items() if name in settable}
        calls.append([form_point_experiment(run, point.time, starts, references), list(point.inputs)])
    return ["points", calls, list(read)]


def compare_values_at_extreme_states(
    points: Sequence[ExtremeEvaluationPoint],
    recorded: Sequence[Mapping[str, float] | str],
    reference: ReferenceRun,
    rates: Mapping[str, str],
    sizes: Floats,
    error_table: BoundedDifferences,
) -> None:
    """Compare what an FMU gave at the points; what it refused is left out.

    Args:
        points: As chosen.
        recorded: For each point the values of all variables by name, or why there are none.
        reference: Of the perturbed experiment.
        rates: FMU name of a state → that of its derivative.
        sizes: Of x', then of outputs, in the perturbed experiment, > 0.
        error_table: Takes the comparisons.
    """
    states = [reference.trajectory.names[c] for c in reference.state_columns]
    outputs = [v.name for v in reference.variables if v.kind == "output"]
    names = [rates.get(state, "") for state in states] + outputs
    numeric, e = reference.numeric, reference.numeric.equations
    is_free = not (numeric.has_state_constraints or e.position_rows)
    for point, values in zip(points, recorded, strict=True):
        if isinstance(values, str):
            error_table.left_out_count += 1
            continue
        expected, x = point.expected, np.array([values[name] for name in states])
        if np.any(x != expected.x):
            reference_point = _evaluate_reference_at_point(reference, point.time, x, point.inputs, point.parameters)
            if reference_point is None:
                error_table.left_out_count += 1
                continue
            if is_free:
                for name, value, set_value in zip(states, x.tolist(), expected.x.tolist(), strict=True):
                    if name in point.moved:  # others may not let themselves be set
                        error_table.add_identical(value, set_value, f"{name} set where {point.text}")
            expected = reference_point
        where = f"where {point.text}"
        allowed = _AGREEMENT * np.abs(expected.values) + expected.round_off + _NOISE_FRACTION * sizes
        for name, value, bound in zip(names, expected.values.tolist(), allowed.tolist(), strict=True):
            if name in values:
                error_table.add(abs(values[name] - value), bound, f"{name} {where}")
