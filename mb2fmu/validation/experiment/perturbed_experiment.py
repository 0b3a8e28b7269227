"""The perturbed experiment: every free parameter, start value and input moved as far as the mechanism permits.

The intended one (``perturbation_and_excitation_sizes``) is tried on the reference's equations, never on the FMU:
the loops must close with the changed lengths and leave as many degrees of freedom as by default, x' must be finite, a
rough integration must reach the end, and the reference must be able to judge it. Where it does not, all moves are
halved, down to a sixteenth. Where even that is impossible, what cannot be moved by itself is moved by one factor: three
equal cranks carry a platform at any length that is all of theirs, and are a rigid frame if one is longer; if that does
not help it keeps its default. Then the experiment is made shorter, to a quarter and a sixteenth, and the moves smaller,
to 1/64 and 1/256, and at last all start values, or all parameters, keep their defaults. What keeps its default is not
exercised, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import DeclaredVariable
from mb2fmu.validation.bounds.perturbation_and_excitation_sizes import (
    InputExcitationSignal,
    PerturbationEffects,
    choose_parameter_perturbations,
    choose_start_perturbations,
    make_excitation_signals,
    round_to_significant_digits,
)
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.experiment_values import ExperimentValues, evaluate_calculated_parameters
from mb2fmu.validation.reference.perturbed_contact_starts import (
    ContactGaps,
    find_resting_contacts_without_impact,
    find_switch_mode_state_indices,
)
from mb2fmu.validation.reference.reference_run import ReferenceRun, choose_rough_tolerance, compute_constraint_scales
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription
from mb2fmu.validation.validation_result import PerturbedExperimentValue, PerturbedRole

Floats = npt.NDArray[np.float64]

PERTURBATION_PARTS = (1.0, 0.5, 0.25, 0.125, 0.0625)
_SHORT_PARTS, _SMALL_PARTS = (1.0, 0.25, 0.0625), (1.0 / 64.0, 1.0 / 256.0)
_FURTHER_ATTEMPTS: tuple[tuple[float, tuple[float, ...]], ...] = (
    (1.0 / 4.0, _SHORT_PARTS),
    (1.0 / 16.0, _SHORT_PARTS),
    (1.0, _SMALL_PARTS),
    (1.0 / 4.0, _SMALL_PARTS),
    (1.0 / 16.0, _SMALL_PARTS),
)
"""Duration as a part of the intended one, and parts of the moves, where no experiment of full duration can be used."""
_MIN_STEP_COUNT = 10
TARGET_STEP_COUNT = 60
_SAMPLED_STATE_COUNT = 8  # states of the default experiment
COVERED_TIME_FRACTION = 0.25
_FIRST_EVENT_FACTOR = 2.0  # times the first event's instant
_CLOSURE_TOLERANCE = 1e-9
_ROUGH_RUN_BUDGET = 200_000  # evaluations of a rough integration: what needs more comes near a singularity, or is wild
_NO_EXPERIMENT_TEXT = "there is no perturbed experiment"
_NOT_SETTABLE_TEXT = "the FMU does not let it be set"
_NOT_STARTABLE_TEXT = "the mechanism cannot be started with another value"
_WILD_MOTION_FACTOR = (
    1e3  # times the magnitudes of the default experiment: such a motion cannot be judged within its bounds
)


@dataclass(frozen=True, slots=True)
class PerturbedExperiment:
    """The perturbed experiment, or the reason why there is none.

    Attributes:
        experiment: None where the mechanism allows none.
        perturbations: One per free parameter, fixed start value and input.
        part: Part of the intended moves that is used; 0 if there is no experiment.
        text: How it was made, in one sentence, or what stands against it.
    """

    experiment: ExperimentValues | None
    perturbations: tuple[PerturbedExperimentValue, ...]
    part: float
    text: str


@dataclass(frozen=True, slots=True)
class _IntendedPerturbation:
    """Intended moves; ``part`` of them is used.

    Attributes:
        definition: The checked model.
        reference: The default experiment.
        time: Communication points, in s.
        step: Communication step of the default experiment, in s.
        parameters: Moves, shape (n_p,).
        starts: Moves of x, shape (n_x,).
        signals: One per input.
        rows: Scale of each constraint row, shape (n_phi + m,).
        dependent_speeds: Speeds that the FMU solves for; it goes no further than they follow from its states.
        contact_gaps: Of contacts: the experiment starts where none is negative.
        independent: Rows of the velocity constraints that follow from no others in the default experiment.
        opened_contacts: Numbers of contacts that rest at the start and are to strike first.
    """

    definition: DeclaredModelContent
    reference: ReferenceRun
    time: Floats
    step: float
    parameters: Floats
    starts: Floats
    signals: tuple[InputExcitationSignal, ...]
    rows: Floats
    dependent_speeds: tuple[int, ...]
    contact_gaps: ContactGaps
    independent: int
    opened_contacts: tuple[int, ...] = ()

    def without_parameters(self, blocked: Collection[int]) -> _IntendedPerturbation:
        """Return the experiment with some parameters at their defaults."""
        parameters = self.parameters.copy()
        parameters[list(blocked)] = 0.0
        return replace(self, parameters=parameters)

    def with_common_factor(self, blocked: Collection[int]) -> _IntendedPerturbation:
        """Return the experiment with some parameters moved by one factor, the first one's."""
        parameters, values = self.parameters.copy(), np.array(self.reference.experiment.parameters)
        nonzero = [k for k in sorted(blocked) if values[k]]
        factor = parameters[nonzero[0]] / values[nonzero[0]] if nonzero else 0.0
        parameters[list(blocked)] = 0.0
        parameters[nonzero] = factor * values[nonzero]
        return replace(self, parameters=parameters)

    def with_single_perturbation(self, index: int) -> _IntendedPerturbation:
        """Return the experiment with one parameter moved, and nothing else."""
        parameters = np.zeros_like(self.parameters)
        parameters[index] = self.parameters[index]
        return replace(self, parameters=parameters, starts=np.zeros_like(self.starts))

    def without_starts(self) -> _IntendedPerturbation:
        """Return the experiment with all start values at their defaults."""
        return replace(self, starts=np.zeros_like(self.starts))

    def shorten(self, duration: float) -> _IntendedPerturbation | None:
        """Return the experiment of a part of the duration, in shorter steps where these are long; None: not shorter.

        Signals of inputs stay as they are: the same experiment ends earlier.
        """
        count = len(self.time) - 1
        stride = round(float(self.time[1] - self.time[0]) / self.step)
        shorter_stride = max(1, round(duration * stride))
        shorter_count = max(min(count, _MIN_STEP_COUNT), round(duration * count * stride / shorter_stride))
        if shorter_count * shorter_stride >= count * stride:
            return None
        return replace(self, time=np.arange(shorter_count + 1, dtype=np.float64) * (self.step * shorter_stride))


@dataclass(frozen=True, slots=True)
class _ReducedPerturbation:
    """Some of the intended moves.

    Attributes:
        intention: With zeros where a default is kept.
        kept_parameters: Indices of parameters that keep their defaults, since the mechanism allows no others.
        keeps_starts: All start values keep theirs.
    """

    intention: _IntendedPerturbation
    kept_parameters: frozenset[int] = frozenset()
    keeps_starts: bool = False


def list_perturbed_experiments(
    definition: DeclaredModelContent,
    reference: ReferenceRun,
    *,
    settable: Collection[str] | None = None,
    any_step: bool = True,
    states: Collection[str] | None = None,
) -> Iterator[PerturbedExperiment]:
    """Yield experiments that the mechanism allows, the one that exercises most first, and at last the lack of one.

    Args:
        definition: The checked model.
        reference: The default experiment.
        settable: FMU names of parameters, start values and inputs that the FMU lets one set; None: all.
        any_step: The FMU can make communication steps of another size than the default.
        states: FMU names of the FMU's continuous states; None: unknown.
    """
    intention = _form_intended_perturbation(
        definition, reference, settable, any_step, find_speeds_outside_fmu_states(definition, reference, states)
    )
    obstacle = ""
    for variant, part in _list_attempts(intention):
        run = _start_experiment(variant.intention, part)
        if run is None:
            obstacle = obstacle or "the mechanism cannot be started with other values"
            continue
        found_obstacle = _find_obstacle_on_the_way(reference, run, intention.dependent_speeds)
        if found_obstacle:
            obstacle = found_obstacle
            continue
        perturbations = _list_perturbations(variant, run, settable)
        text = _describe_experiment(run, part, perturbations, in_chart=bool(intention.dependent_speeds))
        yield PerturbedExperiment(run, perturbations, part, text)
    perturbations = _list_perturbations(_ReducedPerturbation(intention), None, settable)
    yield make_missing_perturbed_experiment_record(PerturbedExperiment(None, perturbations, 0.0, ""), obstacle)


def _list_attempts(intention: _IntendedPerturbation) -> Iterator[tuple[_ReducedPerturbation, float]]:
    """Yield moves and the part of them to try, what exercises most first."""
    if intention.opened_contacts:
        yield from ((_ReducedPerturbation(intention), part) for part in _SHORT_PARTS)
        intention = replace(intention, opened_contacts=())
    variants = []
    for variant in _list_variants(intention):
        variants.append(variant)
        yield from ((variant, part) for part in PERTURBATION_PARTS)
    for duration, parts in _FURTHER_ATTEMPTS:
        yield from _list_shorter_attempts(variants, duration, parts)
    all_parameters = frozenset(range(len(intention.parameters)))
    last_variants = [
        _ReducedPerturbation(intention.without_starts(), keeps_starts=True),
        _ReducedPerturbation(intention.without_parameters(all_parameters), all_parameters),
    ]
    for duration, parts in ((1.0, PERTURBATION_PARTS), *_FURTHER_ATTEMPTS):
        yield from _list_shorter_attempts(last_variants, duration, parts)


def _list_shorter_attempts(
    variants: Sequence[_ReducedPerturbation], duration: float, parts: Sequence[float]
) -> Iterator[tuple[_ReducedPerturbation, float]]:
    """Yield moves of each variant and a part of them, in an experiment of a part of the duration."""
    for variant in variants:
        intention = variant.intention if duration == 1.0 else variant.intention.shorten(duration)
        if intention is not None:
            yield from ((replace(variant, intention=intention), part) for part in parts)


def _list_variants(intention: _IntendedPerturbation) -> Iterator[_ReducedPerturbation]:
    """Yield all moves; then those by one factor, and those without, of what cannot be moved by itself."""
    yield _ReducedPerturbation(intention)
    blocked = frozenset(
        int(k)
        for k in np.flatnonzero(intention.parameters)
        if _start_experiment(intention.with_single_perturbation(int(k)), PERTURBATION_PARTS[-1]) is None
    )
    if len(blocked) > 1:
        yield _ReducedPerturbation(intention.with_common_factor(blocked))
    if blocked:
        yield _ReducedPerturbation(intention.without_parameters(blocked), blocked)


def find_speeds_outside_fmu_states(
    definition: DeclaredModelContent, reference: ReferenceRun, states: Collection[str] | None
) -> tuple[int, ...]:
    """Return speeds that are no states of an FMU, if as many as the constraints: a chart of the mechanism.

    Such an FMU cannot pass where the constraints leave these speeds undetermined (a linkage at its dead centre), and
    need not: whoever made it chose these coordinates. What has all of them as states goes everywhere.
    """
    speeds = [record.name for record in definition.speeds]
    if states is None or not set(speeds) & set(states):
        return ()
    dependent = tuple(i for i, name in enumerate(speeds) if name not in states)
    return dependent if len(dependent) == reference.numeric.m else ()


def _form_intended_perturbation(
    definition: DeclaredModelContent,
    reference: ReferenceRun,
    settable: Collection[str] | None,
    any_step: bool,
    dependent_speeds: tuple[int, ...],
) -> _IntendedPerturbation:
    """Return all moves at their full size."""
    run, scale_of_change = reference.experiment, PerturbationEffects.sample_reference(definition, reference)
    steps = len(run.time) - 1
    count = max(min(steps, _MIN_STEP_COUNT), min(TARGET_STEP_COUNT, steps // 2))
    is_fixed_step = definition.experiment.solver == "fixed" or not any_step
    stride = 1 if is_fixed_step else _choose_step_stride(reference, count)
    time = np.arange(count + 1, dtype=np.float64) * (run.step * stride)
    free = [p for p in definition.parameters if not p.calculated]
    parameters, starts = (
        choose_parameter_perturbations(definition, scale_of_change),
        choose_start_perturbations(definition, reference),
    )
    if settable is not None:
        parameters *= [p.name in settable for p in free]
        starts *= [record.name in settable for record in _list_state_records(definition, reference)]
    starts[list(find_switch_mode_state_indices(reference.numeric))] = 0.0
    signals = make_excitation_signals(definition, scale_of_change, float(time[-1]))
    rows, gaps = compute_constraint_row_scales(reference), ContactGaps(reference.numeric)
    return _IntendedPerturbation(
        definition, reference, time, run.step, parameters, starts, signals, rows, dependent_speeds, gaps,
        _count_independent_rows(reference), find_resting_contacts_without_impact(reference.numeric, reference.states),
    )  # fmt: skip


def _count_independent_rows(reference: ReferenceRun) -> int:
    """Return how many rows of the velocity constraints follow from no others, at most, in the default experiment."""
    numeric, run = reference.numeric, reference.experiment
    prepared, last_row = numeric.prepare(run.parameters), len(reference.states) - 1
    rows = sorted({round(k * last_row / (_SAMPLED_STATE_COUNT - 1)) for k in range(_SAMPLED_STATE_COUNT)})
    return max(
        numeric.independent_rows(float(run.time[k]), reference.states[k], run.inputs_at(k), prepared) for k in rows
    )


def _choose_step_stride(reference: ReferenceRun, count: int) -> int:
    """Return the number of default communication steps in one step of the perturbed experiment.

    All together cover a part of the default experiment, and as much as its first event needs twice: what counts behind
    events only, such as a coefficient of restitution, would never be seen otherwise.
    """
    run = reference.experiment
    steps = len(run.time) - 1
    time_to_first_event = min((event.time for event in reference.events), default=float(run.time[0])) - float(
        run.time[0]
    )
    stride = max(
        COVERED_TIME_FRACTION * steps / count, math.ceil(_FIRST_EVENT_FACTOR * time_to_first_event / (run.step * count))
    )
    return max(1, min(round(stride), steps // count))


def compute_constraint_row_scales(reference: ReferenceRun) -> Floats:
    """Return the scale of each constraint row, shape (n_phi + m,)."""
    numeric = reference.numeric
    if not numeric.m and not numeric.equations.position_rows:
        return np.ones(0)
    return compute_constraint_scales(numeric, reference.experiment, reference.trajectory.values, reference.scales)[0]


def _list_state_records(definition: DeclaredModelContent, reference: ReferenceRun) -> tuple[DeclaredVariable, ...]:
    """Return the records of x = (q, independent u, z), in order."""
    independent = reference.numeric.equations.u_independent
    return (*definition.coordinates, *(definition.speeds[i] for i in independent), *definition.auxiliary_states)


def _start_experiment(intention: _IntendedPerturbation, part: float) -> ExperimentValues | None:
    """Return the experiment with part of the moves, started on its constraints; None where it cannot be."""
    definition, reference = intention.definition, intention.reference
    numeric, default = reference.numeric, reference.experiment
    perturbations = intention.parameters * part
    parameters = [
        value if not perturbation else round_to_significant_digits(value + perturbation)
        for value, perturbation in zip(default.parameters, perturbations.tolist(), strict=True)
    ]
    if not _calculated_parameters_in_bounds(definition, parameters):
        return None
    input_rows = np.array([signal.values(intention.time[:-1], part) for signal in intention.signals])
    inputs = input_rows.T if intention.signals else np.empty((len(intention.time) - 1, 0))
    try:
        prepared, default_prepared = numeric.prepare(parameters), numeric.prepare(default.parameters)
        x = reference.states[0] + part * intention.starts
        x = _project_start_state(numeric, x, inputs[0], prepared)
        x = intention.contact_gaps.open_gaps(x, inputs[0], prepared, reference.states[0], default_prepared)
        x = _stop_held_speeds(numeric, x, inputs[0].tolist(), prepared)
        x = intention.contact_gaps.let_contacts_strike(
            x, inputs[0], (default_prepared, prepared), intention.opened_contacts, float(intention.time[-1])
        )
        motion = numeric.motion(0.0, x, inputs[0].tolist(), prepared)
    except (ValidationError, ArithmeticError, ValueError):
        return None
    is_finite = all(np.all(np.isfinite(array)) for array in (x, motion.x_dot, motion.outputs, motion.u))
    if not is_finite or np.any(np.abs(motion.residual) > _CLOSURE_TOLERANCE * intention.rows):
        return None
    if numeric.independent_rows(0.0, x, inputs[0], prepared) > intention.independent:
        return None  # what moves by default is a rigid frame with such lengths
    n_q, n_z = numeric.n_q, numeric.n_z
    return replace(
        default,
        time=intention.time,
        inputs=inputs,
        parameters=tuple(parameters),
        q=tuple(x[:n_q].tolist()),
        u=tuple(motion.u.tolist()),
        z=tuple(x[len(x) - n_z :].tolist()),
        overridden_values=MappingProxyType({}),
        signals=MappingProxyType(
            {
                record.name: signal.text(part)
                for record, signal in zip(definition.inputs, intention.signals, strict=True)
            }
        ),
    )


def _project_start_state(numeric: NumericEquations, x: Floats, inputs: Floats, prepared: Sequence[float]) -> Floats:
    """Return the state at t = 0 on the constraints, with the quaternions that the FMU solves for at length 1."""
    x = numeric.project(0.0, x, inputs, prepared)
    for group in map(list, numeric.equations.solved_start_quaternions):
        x[group] /= np.linalg.norm(x[group])
    return x


def _stop_held_speeds(
    numeric: NumericEquations, x: Floats, inputs: Sequence[float], prepared: Sequence[float]
) -> Floats:
    """Return the state at t = 0 with speeds for which contacts that rest, and what sticks, stand still.

    A contact that rests while its gap grows contradicts itself: it is released at the next check, and the times of
    checks differ.
    """
    if not is_hybrid(numeric):
        return x
    return numeric.stop_held_speeds(0.0, x, inputs, prepared, numeric.find_modes(0.0, x, inputs, prepared))


def _calculated_parameters_in_bounds(definition: DeclaredModelContent, parameters: Sequence[float]) -> bool:
    """Return whether calculated parameters stay within their bounds."""
    values = evaluate_calculated_parameters(definition, parameters)
    for parameter in definition.parameters:
        if parameter.name in values:
            low, high, value = parameter.minimum, parameter.maximum, values[parameter.name]
            if math.isnan(value) or (low is not None and value < low) or (high is not None and value > high):
                return False
    return True


def _find_obstacle_on_the_way(reference: ReferenceRun, run: ExperimentValues, dependent_speeds: tuple[int, ...]) -> str:
    """Return why a rough integration does not reach the end as a motion that can be judged; empty where it does.

    This does not depend on the FMU: the mechanism's constraints alone decide where ``dependent_speeds`` are determined.
    """
    numeric = reference.numeric
    x = np.array([*run.q, *(run.u[i] for i in numeric.equations.u_independent), *run.z])
    try:
        prepared = numeric.prepare(run.parameters)
        integration = TrajectoryIntegrationProblem(
            numeric, run.time, run.inputs, prepared, stiff=run.stiff, budget=_ROUGH_RUN_BUDGET
        )
        tolerance = choose_rough_tolerance(numeric)
        scales = reference.error_scales(tolerance)
        trajectory = integration.integrate_trajectory(
            np.append(x, 0.0), tolerance, scales, projected=numeric.has_state_constraints
        )
    except (ValidationError, ArithmeticError, ValueError) as error:
        return f"with other values it cannot be integrated: {extract_first_message_line(error)}"
    states = trajectory[:, :-1]
    # What stands still by default may move by what is natural for it.
    magnitudes = np.maximum(reference.state_scales, np.max(np.abs(reference.states), axis=0))
    magnitudes = np.maximum(magnitudes, reference.typical[list(reference.state_columns)])
    if not np.all(np.isfinite(states)):
        return "with other values the motion has no finite numbers"
    largest_ratios = np.max(np.abs(states), axis=0) / (_WILD_MOTION_FACTOR * magnitudes)
    if np.any(largest_ratios > 1.0):
        worst = reference.variables[reference.state_columns[int(np.argmax(largest_ratios))]].name
        return f"with other values {worst} becomes more than {_WILD_MOTION_FACTOR:g} times as large as by default"
    rough_run = replace(reference, states=states, experiment=run)
    if rough_run.find_undetermined_time() is not None:
        return "with other values the constraints stop to determine the dependent speeds"
    if dependent_speeds and not _stays_in_chart(reference, rough_run, dependent_speeds):
        return "with other values it leaves the positions that the FMU's states determine"
    return ""


def extract_first_message_line(error: Exception) -> str:
    """Return the first line of an error's message, or its kind if it has none."""
    lines = str(error).splitlines()
    return lines[0].strip().rstrip(".:") if lines else type(error).__name__


def _stays_in_chart(default: ReferenceRun, perturbed: ReferenceRun, dependent_speeds: tuple[int, ...]) -> bool:
    """Return whether a motion starts in the default's assembly, and its following coordinates stay determined."""
    determinant_signs = []
    for reference_run in (default, perturbed):
        numeric, run = reference_run.numeric, reference_run.experiment
        first_point, prepared = run.form_points(reference_run.states)[:1], numeric.prepare(run.parameters)
        determinant_signs.append(numeric.dependent_determinant_signs(first_point, prepared, dependent_speeds)[0])
    return (
        determinant_signs[0] * determinant_signs[1] > 0 and perturbed.find_undetermined_time(dependent_speeds) is None
    )


def _list_perturbations(
    variant: _ReducedPerturbation, run: ExperimentValues | None, settable: Collection[str] | None
) -> tuple[PerturbedExperimentValue, ...]:
    """Return the move of every free parameter, fixed start value and input; none without a ``run``."""
    intention = variant.intention
    definition, default_experiment = intention.definition, intention.reference.experiment
    perturbed = run or default_experiment
    perturbations = []
    for k, parameter in enumerate(p for p in definition.parameters if not p.calculated):
        reason = ""
        if settable is not None and parameter.name not in settable:
            reason = _NOT_SETTABLE_TEXT
        elif run is None or k in variant.kept_parameters:
            reason = _NOT_STARTABLE_TEXT if run else _NO_EXPERIMENT_TEXT
        elif perturbed.parameters[k] == default_experiment.parameters[k]:
            reason = "its bounds leave no room"
        perturbations.append(
            _form_perturbation(
                parameter, "parameter", default_experiment.parameters[k], perturbed.parameters[k], reason
            )
        )
    perturbations += _list_start_perturbations(variant, run, settable)
    for k, record in enumerate(definition.inputs):
        largest = float(np.max(np.abs(perturbed.inputs[:, k]))) if run is not None else record.start
        reason = "" if run is not None else _NO_EXPERIMENT_TEXT
        perturbations.append(_form_perturbation(record, "input", record.start, largest, reason))
    return tuple(perturbations)


def _list_start_perturbations(
    variant: _ReducedPerturbation, run: ExperimentValues | None, settable: Collection[str] | None
) -> list[PerturbedExperimentValue]:
    """Return the move of every fixed start value."""
    definition, default_experiment = variant.intention.definition, variant.intention.reference.experiment
    perturbed = run or default_experiment
    given_starts = (*default_experiment.q, *default_experiment.u, *default_experiment.z)
    moved_starts = (*perturbed.q, *perturbed.u, *perturbed.z)
    records = (*definition.coordinates, *definition.speeds, *definition.auxiliary_states)
    states = _list_state_records(definition, variant.intention.reference)
    modes = {states[place].name for place in find_switch_mode_state_indices(variant.intention.reference.numeric)}
    perturbations = []
    for record, default, value in zip(records, given_starts, moved_starts, strict=True):
        if getattr(record, "kind", "fixed") == "guess":
            continue  # it follows from others, and is judged as a variable
        reason = "" if run is not None else _NO_EXPERIMENT_TEXT
        if settable is not None and record.name not in settable:
            reason = _NOT_SETTABLE_TEXT
        elif run is not None and record.name in modes and value == default:
            reason = "it follows from where bodies are"
        elif variant.keeps_starts and run is not None and value == default:
            reason = _NOT_STARTABLE_TEXT
        perturbations.append(_form_perturbation(record, "start value", default, value, reason))
    return perturbations


def _form_perturbation(
    record: DeclaredVariable, role: PerturbedRole, default: float, perturbed: float, reason: str
) -> PerturbedExperimentValue:
    """Return a record of the report."""
    return PerturbedExperimentValue(
        name=record.name, role=role, unit=record.unit, default=default, moved=perturbed, reason=reason
    )


def make_missing_perturbed_experiment_record(candidate: PerturbedExperiment, obstacle: str) -> PerturbedExperiment:
    """Return the record that there is no perturbed experiment; ``obstacle``: of the last one that was tried."""
    reason_text = f": {obstacle}" if obstacle else ""
    reasons = [
        each.reason if each.reason == _NOT_SETTABLE_TEXT else _NO_EXPERIMENT_TEXT for each in candidate.perturbations
    ]
    return PerturbedExperiment(
        None,
        tuple(
            replace(each, moved=each.default, reason=reason)
            for each, reason in zip(candidate.perturbations, reasons, strict=True)
        ),
        0.0,
        f"No experiment with other parameters, start values and inputs could be started, run and judged{reason_text}",
    )


def _describe_experiment(
    run: ExperimentValues, part: float, perturbations: Sequence[PerturbedExperimentValue], *, in_chart: bool
) -> str:
    """Describe how the experiment was made; ``in_chart``: within the range that the FMU's states determine."""
    obstacle = "it cannot be started or run" + (", or leaves the positions that the FMU's states determine" * in_chart)
    part_note = "" if part == 1.0 else f", by {part:g} of what was intended, for with more {obstacle}"
    kept_count = sum(bool(perturbation.reason) for perturbation in perturbations)
    kept_note = f"; {kept_count} keep their defaults" if kept_count else ""
    steps = len(run.time) - 1
    return (
        f"{len(perturbations) - kept_count} parameters, start values and inputs moved at once{part_note}{kept_note}; "
        f"{steps} steps of {run.step:g} s"
    )


def list_settable_fmu_variables(description: FmuDescription) -> frozenset[str]:
    """Return the names that can be set in an FMU before the simulation."""
    return frozenset(
        name for name, variable in description.variables.items() if variable.is_double and variable.settable
    )


def add_perturbed_value_overrides(
    perturbed: ExperimentValues, default: ExperimentValues, definition: DeclaredModelContent, settable: Collection[str]
) -> ExperimentValues:
    """Return the perturbed experiment with the values to set: moved parameters, and all settable start values."""
    free = [p.name for p in definition.parameters if not p.calculated]
    overridden = dict(default.overridden_values)
    pairs = zip(free, perturbed.parameters, default.parameters, strict=True)
    overridden |= {name: value for name, value, default_value in pairs if value != default_value}
    starts = (*definition.coordinates, *definition.speeds, *definition.auxiliary_states)
    overridden |= {r.name: v for r, v in zip(starts, (*perturbed.q, *perturbed.u, *perturbed.z), strict=True)}
    return replace(
        perturbed, overridden_values=MappingProxyType({name: v for name, v in overridden.items() if name in settable})
    )
