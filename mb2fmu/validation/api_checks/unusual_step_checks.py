"""Steps that no experiment makes: from another start time, tiny and long ones, by each solver, along ramps of inputs.

All begin at a state of the reference in the perturbed experiment, at its time, with the inputs of then held; so the
reference needs a few steps of integration only. Without events: what a contact or a latch remembers cannot be set.

How accurate the FMU is at its tolerance is judged along the experiments. Here the ramps, and a step by each solver, are
made twice: with the tolerance and with a thousandth of it, with fixed steps of h/256 and of h/512. The finer one is
judged. A method that converges to the motion is off by less than the difference of both, one that converges to
something else by more; that is measured over all states together, in parts of their bounds. A ramp of an input is
followed by steps with its values in their middles, in ever more parts, extrapolated to zero (Romberg).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.validation.api_checks.labelled_api_calls import ApiCallSequence
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem
from mb2fmu.validation.reference.variable_scales import ERROR_BOUND_FACTOR, MAX_INFORMATIVE_FRACTION
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, InterfaceType

Floats = npt.NDArray[np.float64]

_STEPS, _RAMPS, _FINER_RAMPS = "steps", "ramps", "finer"

TINY_STEPS, TINY_STEP_FRACTION = 60, 1e-3
FIXED_STEP_PARTS = (256, 512)
TOLERANCE_PARTS = (1.0, 1e-3)
_RAMP_PARTS = (8, 16, 32, 64, 128)
_RAMP_STEPS = 3
_FLOW_TOLERANCE = 1e-11
_START_AGREEMENT = 1e-9
_INTEGRATION_FACTOR = 3.0
_MIN_ROWS = 3
"""Communication points up to which the motion must be predictable: the long step is longer than one of the run's."""


@dataclass(frozen=True, slots=True)
class UnusualStepCheckStart:
    """Where the steps begin, and what the reference says of their ends.

    Attributes:
        reference: Of the perturbed experiment.
        row: The communication point at which they begin.
        last_row: At which the long step ends.
        start: States there, shape (n_x,).
        times: Ends of the tiny steps, of one communication step, and of the long step, in s.
        ends: States at these, shape (3, n_x).
        ramps: Rate of each input, per s, shape (n_r,).
        ramp_end: States behind the ramps, shape (n_x,); None without inputs, and where the reference does not know
            them well.
        long_bounds: Of the states behind the long step, shape (n_x,).
    """

    reference: ReferenceRun
    row: int
    last_row: int
    start: Floats
    times: tuple[float, ...]
    ends: Floats
    ramps: Floats
    ramp_end: Floats | None
    long_bounds: Floats

    @property
    def state_names(self) -> list[str]:
        """FMU names of the states."""
        return [self.reference.trajectory.names[c] for c in self.reference.state_columns]

    @property
    def inputs(self) -> list[float]:
        """Held over all steps."""
        return [float(value) for value in self.reference.experiment.inputs[self.row]]

    @property
    def ramp_time(self) -> float:
        """How long the ramps last, in s."""
        return _RAMP_STEPS * self.reference.experiment.step

    def step_bounds(self, end: Floats) -> Floats:
        """Return what a step's end may be off by: as one-step errors of the experiments may be."""
        return np.asarray(ERROR_BOUND_FACTOR * self.reference.experiment.tolerance * self.step_sizes(end))

    def step_sizes(self, end: Floats) -> Floats:
        """Return how far the states move in a step, or their scales, shape (n_x,)."""
        return np.maximum(np.abs(end - self.start), self.reference.state_scales)


def choose_unusual_step_check_start(
    definition: DeclaredModelContent, reference: ReferenceRun, row: int, limits: ErrorBounds, settable: frozenset[str]
) -> UnusualStepCheckStart | None:
    """Choose where steps begin: long before the point of the API checks; None with events, or without settable states.

    Args:
        definition: The checked model: bounds of the inputs.
        reference: Of the perturbed experiment.
        row: The point of the API checks, which the motion can be predicted up to.
        limits: Bounds of the perturbed experiment.
        settable: FMU names that can be set before a run.
    """
    columns = list(reference.state_columns)
    names = [reference.trajectory.names[c] for c in columns]
    if is_hybrid(reference.numeric) or row < _MIN_ROWS or not names or not settable.issuperset(names):
        return None
    run, first = reference.experiment, max(1, row // 4)
    start, begin = reference.states[first], float(run.time[first])
    times = (begin, begin + TINY_STEPS * TINY_STEP_FRACTION * run.step, begin + run.step, float(run.time[row]))
    inputs = run.inputs[first]
    ramps = _choose_ramps(definition, run.inputs, inputs, _RAMP_STEPS * run.step)
    try:
        step_ends = _plan_following_steps(reference, times, np.repeat(inputs[None, :], 3, axis=0), start)[1:]
    except (ValidationError, ArithmeticError, ValueError):
        return None
    if not np.all(np.isfinite(step_ends)):
        return None
    step_start = UnusualStepCheckStart(
        reference=reference,
        row=first,
        last_row=row,
        start=start,
        times=times[1:],
        ends=step_ends,
        ramps=ramps,
        ramp_end=None,
        long_bounds=limits.values[row, columns],
    )
    return replace(step_start, ramp_end=_find_ramp_end(step_start)) if len(ramps) else step_start


def _find_ramp_end(step_start: UnusualStepCheckStart) -> Floats | None:
    """Return the states behind the ramps, extrapolated; None where they do not converge to within their bounds."""
    coarse: Floats | None = None
    for parts in _RAMP_PARTS:
        try:
            fine_end = _follow_ramp(step_start, parts)
        except (ValidationError, ArithmeticError, ValueError):
            return None
        if coarse is not None and np.all(np.abs(fine_end - coarse) <= step_start.step_bounds(fine_end)):
            return np.asarray(fine_end + (fine_end - coarse) / 3.0)
        coarse = fine_end
    return None


def _choose_ramps(definition: DeclaredModelContent, signals: Floats, inputs: Floats, duration: float) -> Floats:
    """Return a rate for each input: over the duration each goes by its own size, or half-way to the farther bound."""
    rates = []
    for k, record in enumerate(definition.inputs):
        change = float(np.max(np.abs(signals[:, k]))) or 1.0
        distance_to_maximum = np.inf if record.maximum is None else 0.5 * (record.maximum - inputs[k])
        distance_to_minimum = np.inf if record.minimum is None else 0.5 * (inputs[k] - record.minimum)
        upwards = (
            distance_to_maximum >= distance_to_minimum
            if record.maximum is not None or record.minimum is not None
            else k % 2 == 0
        )
        rates.append(
            min(change, distance_to_maximum) / duration if upwards else -min(change, distance_to_minimum) / duration
        )
    return np.array(rates)


def _plan_following_steps(reference: ReferenceRun, times: Sequence[float], inputs: Floats, start: Floats) -> Floats:
    """Return the states at times, shape (n, n_x), with the inputs of each part held."""
    numeric, run = reference.numeric, reference.experiment
    problem = TrajectoryIntegrationProblem(
        numeric, np.array(times), inputs, numeric.prepare(run.parameters), stiff=run.stiff
    )
    motion = problem.integrate_trajectory(
        np.append(start, 0.0), _FLOW_TOLERANCE, reference.error_scales(_FLOW_TOLERANCE),
        projected=numeric.has_state_constraints,
    )  # fmt: skip
    return np.asarray(motion[:, :-1])


def _follow_ramp(step_start: UnusualStepCheckStart, parts: int) -> Floats:
    """Return the states behind the ramps, which are followed in equal parts with the inputs of their middles."""
    run = step_start.reference.experiment
    shares = np.arange(parts + 1) / parts * step_start.ramp_time
    middles = 0.5 * (shares[1:] + shares[:-1])
    inputs = run.inputs[step_start.row] + middles[:, None] * step_start.ramps
    times = (float(run.time[step_start.row]) + shares).tolist()
    return np.asarray(_plan_following_steps(step_start.reference, times, inputs, step_start.start)[-1])


class UnusualStepPlanner:
    """Forms the calls.

    Args:
        step_start: Where the steps begin.
        definition: The checked model.
        description: Of the FMU.
        settable: FMU names that can be set before a run.
        kind: How the FMU is run.
    """

    def __init__(
        self,
        step_start: UnusualStepCheckStart,
        definition: DeclaredModelContent,
        description: FmuDescription,
        settable: frozenset[str],
        kind: InterfaceType,
    ) -> None:
        self._step_start, run = step_start, step_start.reference.experiment
        self._description, self._kind = description, kind
        self._references = {name: variable.reference for name, variable in description.variables.items()}
        free = [p.name for p in definition.parameters if not p.calculated]
        starts = dict(zip(free, run.parameters, strict=True))
        starts |= dict(zip(step_start.state_names, step_start.start.tolist(), strict=True))
        self._start_settings = {name: value for name, value in starts.items() if name in settable}
        self._state_references = [self._references[name] for name in step_start.state_names]
        self._inputs = [self._references[name] for name in run.input_names]
        self._begin, self._step = float(run.time[step_start.row]), run.step
        self._stop = self._begin + 2.0 * float(run.time[-1])

    def _plan_opening(self, tolerance_part: float = 1.0, **further: float) -> list[Any]:
        """Return the call that begins at the state where the steps begin, with further parameters."""
        settings = {**self._start_settings, **further}
        experiment = {
            "begin": self._begin,
            "stop": self._stop,
            "tolerance": tolerance_part * self._step_start.reference.experiment.tolerance,
            "starts": {"references": [self._references[name] for name in settings], "values": list(settings.values())},
            "inputs": self._inputs,
        }
        return ["open", experiment, self._step_start.inputs]

    def _plan_following_steps(self, times: Sequence[float], rows: Sequence[int], *, ramped: bool = False) -> list[Any]:
        """Return the call that steps from time to time; along ramps no input is set."""
        inputs: list[float] = [] if ramped else self._step_start.inputs
        points = [[time, *inputs] for time in times]
        return [
            "follow",
            [] if ramped else self._inputs,
            points,
            [inputs] * (len(points) - 1),
            list(rows),
            self._state_references,
        ]

    def plan_steps(self) -> ApiCallSequence:
        """Return tiny steps, one to the next communication point, and a long one."""
        tiny = [self._begin + k * TINY_STEP_FRACTION * self._step for k in range(TINY_STEPS)]
        times = [*tiny, *self._step_start.times]
        follow = self._plan_following_steps(times, [0, *range(len(tiny), len(times))])
        return ApiCallSequence().with_operation(*self._plan_opening()).with_operation(*follow, label=_STEPS)

    def plan_solvers(self) -> ApiCallSequence | None:
        """Return a step by each solver, coarse and fine; any may be refused. None where an FMU offers no choice."""
        choice = _find_solver_selection_parameter(self._description) if self._kind == "CoSimulation" else None
        if choice is None:
            return None
        calls = ApiCallSequence()
        for number, name in zip(choice.numbers, choice.names, strict=True):
            operations: list[Any] = []
            for parts, tolerance_part in zip(FIXED_STEP_PARTS, TOLERANCE_PARTS, strict=True):
                operations += [["new"], ["put", choice.kind, [choice.reference], [number]]]
                operations += [self._plan_opening(tolerance_part, **{choice.step_name: self._step / parts})]
                operations += [self._plan_following_steps([self._begin, self._begin + self._step], [0, 1])]
            calls = calls.with_operation("attempt", operations, label=name)
        return calls

    def plan_ramps(self) -> ApiCallSequence | None:
        """Return a step along ramps, the same from a state that was restored or read from bytes, and a finer one.

        None where the FMU takes no rates of inputs, or the reference does not know the end well.
        """
        can_ramp = self._kind == "CoSimulation" and self._description.version == 2
        can_ramp = can_ramp and self._description.model.flag(self._kind, "canInterpolateInputs")
        if not can_ramp or self._step_start.ramp_end is None:
            return None
        capabilities = self._description.capabilities[self._kind]
        ramp = ["ramp", self._inputs, self._step_start.ramps.tolist()]
        flat = ["ramp", self._inputs, [0.0] * len(self._inputs)]
        step = self._plan_following_steps([self._begin, self._begin + self._step_start.ramp_time], [0, 1], ramped=True)
        calls = (
            ApiCallSequence()
            .with_operation(*self._plan_opening())
            .with_operation(*ramp)
            .with_operation(*step, label=_RAMPS)
        )
        transfers: tuple[tuple[str, bool, list[list[Any]]], ...] = (
            ("restored", capabilities.states, [flat, ["restore"]]),
            ("read from bytes", capabilities.bytes, [["write"], ["elsewhere", 0]]),
        )
        for label, is_supported, transfer_calls in transfers:
            if is_supported:
                for call in (["new"], self._plan_opening(), ramp, ["save"], *transfer_calls):
                    calls = calls.with_operation(*call)
                calls = calls.with_operation(*step, label=label)
        for call in (["new"], self._plan_opening(TOLERANCE_PARTS[-1]), ramp):
            calls = calls.with_operation(*call)
        return calls.with_operation(*step, label=_FINER_RAMPS)


@dataclass(frozen=True, slots=True)
class _SolverSelectionParameter:
    """The parameter by which an FMU that was made here chooses its solver.

    Attributes:
        kind: Type of the parameter.
        reference: Of the parameter.
        numbers: Of the solvers.
        names: Of the solvers.
        step_name: Name of the parameter for the longest internal step of fixed steps.
    """

    kind: str
    reference: int
    numbers: tuple[int, ...]
    names: tuple[str, ...]
    step_name: str


def _find_solver_selection_parameter(description: FmuDescription) -> _SolverSelectionParameter | None:
    """Return the choice of solvers; None where an FMU offers none."""
    solver_variables = [
        v for v in description.model.variables if v.type == "Enumeration" and v.name.rstrip("_") == "solver"
    ]
    steps = [name for name, v in description.variables.items() if v.is_double and name.rstrip("_") == "solver_step"]
    if not solver_variables or not steps or solver_variables[-1].reference is None:
        return None
    declared_type = solver_variables[-1].written.get("declaredType")
    items = next((t.items for t in description.model.types if t.name == declared_type), ())
    numbers = tuple(int(item.get("value", "0")) for item in items)
    names = tuple(item.get("name", "") for item in items)
    return _SolverSelectionParameter("Enumeration", solver_variables[-1].reference, numbers, names, steps[-1])


class UnusualStepComparison:
    """Compares recorded states with the reference's."""

    def __init__(self, step_start: UnusualStepCheckStart, error_table: BoundedDifferences) -> None:
        self._step_start, self._table = step_start, error_table

    def compare_steps(self, recorded: Mapping[str, Any]) -> None:
        """Compare the states behind tiny steps, a communication step and a long step."""
        start, *step_ends = np.array(recorded[_STEPS])
        if not self._has_expected_start(start):
            return
        step_start = self._step_start
        texts = (f"{TINY_STEPS} steps of {TINY_STEP_FRACTION:g} of the step size", "one step", "one long step")
        for end, expected, text in zip(step_ends, step_start.ends, texts, strict=True):
            allowed = step_start.step_bounds(expected)
            if text == texts[-1]:
                allowed = np.maximum(allowed, step_start.long_bounds)
            self._add(end, expected, allowed, text)

    def compare_solvers(self, recorded: Mapping[str, Any]) -> None:
        """Compare one step by each solver."""
        expected = self._step_start.ends[1]
        for name, answers in recorded.items():
            if isinstance(answers, str):
                self._table.left_out_count += 1
                continue
            (start, coarse_end), (_, fine_end) = (np.array(answers[3]), np.array(answers[7]))
            if self._has_expected_start(start):
                bounds = self._step_start.step_bounds(expected)
                self._compare_finer_end(coarse_end, fine_end, expected, bounds, f"one step by {name}")

    def compare_ramps(self, recorded: Mapping[str, Any]) -> None:
        """Compare a step along ramps; what was saved and restored before it, to the bit."""
        (start, end), (_, fine_end) = np.array(recorded[_RAMPS]), np.array(recorded[_FINER_RAMPS])
        step_start = self._step_start
        if step_start.ramp_end is not None and self._has_expected_start(start):
            bounds = 2.0 * step_start.step_bounds(step_start.ramp_end)
            self._compare_finer_end(end, fine_end, step_start.ramp_end, bounds, "one step along ramps of the inputs")
        for label in ("restored", "read from bytes"):
            if label in recorded:
                for name, value, before in zip(
                    step_start.state_names, recorded[label][-1], recorded[_RAMPS][-1], strict=True
                ):
                    self._table.add_identical(value, before, f"{name} after ramps, {label}")

    def _has_expected_start(self, start: Floats) -> bool:
        """Return whether the FMU began where the reference does; it may put loops together in another way."""
        scales = np.maximum(np.abs(self._step_start.start), self._step_start.reference.state_scales)
        if np.all(np.abs(start - self._step_start.start) <= _START_AGREEMENT * scales):
            return True
        self._table.left_out_count += 1
        return False

    def _compare_finer_end(
        self, coarse_end: Floats, fine_end: Floats, expected: Floats, bounds: Floats, text: str
    ) -> None:
        """Compare the finer of two ends; none that is too coarse for such a motion."""
        difference = np.max(np.abs(fine_end - coarse_end) / bounds)
        allowed = (1.0 + _INTEGRATION_FACTOR * difference) * bounds
        if np.any(allowed > MAX_INFORMATIVE_FRACTION * self._step_start.step_sizes(expected)):
            self._table.left_out_count += 1
            return
        self._add(fine_end, expected, allowed, text)

    def _add(self, values: Floats, expected: Floats, allowed: Floats, text: str) -> None:
        """Compare the states at one point."""
        names = self._step_start.state_names
        for name, difference, bound in zip(names, np.abs(values - expected).tolist(), allowed.tolist(), strict=True):
            self._table.add(difference, bound, f"{name} behind {text}", is_integrated=True)
