"""Growth of small errors at the start: measured, since chaos decides what can be judged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.validation.bounds.small_error_propagation import propagate_small_errors
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.modes.located_events import IntegrationEventLog, assume_start_events_done
from mb2fmu.validation.reference.event_time_matching import (
    find_brief_mode_disagreements,
    find_points_between_matching_events,
    find_round_off_switches,
)
from mb2fmu.validation.reference.perturbed_contact_starts import ContactGaps, find_switch_mode_state_indices
from mb2fmu.validation.reference.reference_run import (
    ReferenceRun,
    integrate_reference,
    observe_instant,
    observe_instants,
    observe_trajectory,
)
from mb2fmu.validation.reference.variable_scales import (
    ERROR_BOUND_FACTOR,
    MAX_INFORMATIVE_FRACTION,
    STEP_CONTROL_FACTOR,
    find_moving_variables,
)

Floats = npt.NDArray[np.float64]

RELATIVE_START_ERROR = 1e-6
SMALLER_START_ERROR = 1e-8
"""Where errors of 1e-6 grow beyond what is small."""
_MAX_UNGROWN_RATIO = 2.0
"""Of an error to that at the start: what is no more has not grown."""
INTEGRATION_TOLERANCE = 1e-10
MAX_ERROR_DIRECTIONS = 6
MAX_SENSITIVITY_POINTS = 200
RAPID_CHANGE_POINTS = 20_000
"""Communication points that are looked at for rapid changes, about."""
DIRECTION_SEED = 20111
OUTPUT_SENSITIVITY_POINTS = 7
"""Communication points at which outputs are moved with the states."""


def choose_start_error_directions(n: int) -> Floats:
    """Return rows of ±1 and 0: single states while they are few, else random signs of all with a fixed seed."""
    if n <= MAX_ERROR_DIRECTIONS:
        return np.eye(n)
    return np.random.default_rng(DIRECTION_SEED).choice(np.array([-1.0, 1.0]), size=(MAX_ERROR_DIRECTIONS, n))


def find_fast_changing_points(reference: ReferenceRun) -> npt.NDArray[np.int64]:
    """Return points between the thinned ones at which an output or a state changes faster than at any before.

    There a small delay makes a large error: the direction of a pendulum that passes close to its centre turns by half a
    revolution within a moment, and a speed reverses where a disc passes close to its singular position. Delays grow
    with time, hence rates are weighed with it. Of a motion that becomes more and more rapid, only points are taken at
    which t |dy/dt| is a quarter more than at any before, and those next to them.

    Returns:
        Rows, ascending.
    """
    numeric, run = reference.numeric, reference.experiment
    _, selected_rows = run.select_points(MAX_SENSITIVITY_POINTS)
    if len(selected_rows) == len(run.time):
        return np.zeros(0, dtype=np.int64)
    rows = np.union1d(np.arange(0, len(run.time), max(1, len(run.time) // RAPID_CHANGE_POINTS)), selected_rows)
    rates = _compute_state_rates(reference)[rows]
    if numeric.equations.outputs:
        rates = np.hstack([rates, _compute_output_rates(reference, rows)])
    is_selected = np.isin(rows, selected_rows)
    rapid_rows = set()
    for column in (run.time[rows, None] * rates).T:
        largest = 0.0
        for index, (size, is_known) in enumerate(zip(column.tolist(), is_selected.tolist(), strict=True)):
            if size > 1.25 * largest > 0.0 and not is_known:
                rapid_rows.update(rows[max(index - 1, 0) : index + 2].tolist())
            largest = max(largest, size)
    return np.array(sorted(rapid_rows - set(rows[is_selected].tolist())), dtype=np.int64)


def _compute_state_rates(reference: ReferenceRun) -> Floats:
    """Return by how much the states change per second on the faster side of each communication point, (n_t, n_x)."""
    changes = np.abs(np.diff(reference.states, axis=0)) / reference.experiment.step
    edge = np.zeros((1, changes.shape[1]))
    return np.asarray(np.maximum(np.vstack([edge, changes]), np.vstack([changes, edge])))


def _compute_output_rates(reference: ReferenceRun, rows: npt.NDArray[np.int64]) -> Floats:
    """Return |dy/dt| of the outputs at communication points, inputs held, shape (n_rows, n_y); 0 where undefined."""
    time_step = 1e-6 * reference.experiment.step
    rates = np.abs(_compute_output_changes(reference, rows, time_step)) / time_step
    return np.where(np.isfinite(rates), rates, 0.0)


def _compute_output_changes(reference: ReferenceRun, rows: npt.NDArray[np.int64], time_step: float) -> Floats:
    """Return what outputs change by within a short time after communication points, inputs held; 0 where undefined."""
    numeric, run = reference.numeric, reference.experiment
    time, states, inputs, prepared = (
        run.time[rows], reference.states[rows], run.inputs_at(rows), numeric.prepare(run.parameters)
    )  # fmt: skip
    modes = [reference.modes[row] for row in rows.tolist()] if reference.modes else []
    try:
        motions = observe_instants(numeric, time, states, inputs, prepared, modes)
        later_states = states + time_step * motions.x_dot
        later_motions = observe_instants(numeric, time + time_step, later_states, inputs, prepared, modes)
    except (ValidationError, ArithmeticError, ValueError):
        if len(rows) == 1:
            return np.zeros((1, sum(variable.kind == "output" for variable in reference.variables)))
        return np.vstack([_compute_output_changes(reference, row, time_step) for row in rows[:, None]])
    return np.asarray(later_motions.outputs - motions.outputs)


def measure_step_control_errors(reference: ReferenceRun) -> Floats:
    """Return what variables may be off by because states far from zero hardly move, over the tolerance, shape (n,).

    Integrators measure the error of a step by the value of a state, whatever it changes by.
    """
    largest = np.max(np.abs(reference.states), axis=0)
    trajectory, columns = reference.trajectory, list(reference.state_columns)
    moves = find_moving_variables(trajectory.values, trajectory.uncertainty, reference.typical)[columns]
    is_far = moves & (STEP_CONTROL_FACTOR * largest > ERROR_BOUND_FACTOR * reference.state_scales)
    errors = np.zeros(len(reference.variables))
    if is_far.any():
        state_errors = STEP_CONTROL_FACTOR * np.where(is_far, largest, 0.0)
        is_output = np.array([variable.kind == "output" for variable in reference.variables])
        errors[is_output] = measure_output_sensitivity(reference, state_errors)
        errors[columns] = state_errors
    return errors


def measure_output_sensitivity(
    reference: ReferenceRun, state_errors: Floats | None = None, part: float = RELATIVE_START_ERROR
) -> Floats:
    """Return what outputs change by, at most, where the states of the motion are moved, shape (n_y,).

    ``state_errors``: how far, shape (n_x,); None: by their scales. ``part``: what part of that they are moved by, and
    changes are divided by: 1 where what grows with the square of an error counts, too.

    The derivative at a few communication points, times the scales: summed over the states one by one, or the largest of
    random signs of all. What stands still may hang on the states much more later than at the start: the total energy
    of a chain that begins horizontally, nearly at rest. Errors of later steps act there.
    """
    numeric, run = reference.numeric, reference.experiment
    moved_by = reference.state_scales if state_errors is None else state_errors
    prepared, axes = numeric.prepare(run.parameters), choose_start_error_directions(numeric.n_x)
    axes[:, list(find_switch_mode_state_indices(numeric))] = 0.0
    largest = np.zeros(sum(variable.kind == "output" for variable in reference.variables))
    for row in np.unique(np.linspace(0, len(run.time) - 1, OUTPUT_SENSITIVITY_POINTS).astype(np.int64)).tolist():
        t, r, modes = (
            float(run.time[row]),
            run.inputs_at(row).tolist(),
            reference.modes[row] if reference.modes else None,
        )
        changes = []
        try:
            unmoved_outputs = observe_instant(numeric, t, reference.states[row], r, prepared, modes).outputs
            for direction in axes:
                x = reference.states[row] + part * direction * moved_by
                moved_outputs = observe_instant(
                    numeric, t, numeric.project(t, x, r, prepared), r, prepared, modes
                ).outputs
                changes.append(np.abs(np.subtract(moved_outputs, unmoved_outputs)) / part)
        except (ValidationError, ArithmeticError, ValueError):
            continue
        if changes:
            combined = np.sum(changes, axis=0) if len(axes) == numeric.n_x else np.max(changes, axis=0)
            largest = np.fmax(largest, np.where(np.isfinite(combined), combined, 0.0))
    return largest


def measure_start_error_growth(reference: ReferenceRun) -> Floats:
    """Return the error of each variable per relative error of the state, as it grows over time.

    S_v(t) = max over s ≤ t of the sum (states perturbed one by one) or the maximum (random signs of all states) over
    the directions d of |v(s; x0 + ε d ∘ scale) − v(s; x0)| / ε, with ε = 1e-6 and each state's own scale (``scales``):
    where every state is wrong by a part ε of its scale, v is wrong by at most ε S_v to first order. Where no input
    changes it is measured at about 200 points, and where outputs change most rapidly
    (:func:`find_fast_changing_points`), and interpolated. Points between an event and the same event of the
    perturbed motion are left out: there v differs by a jump, and not by what errors grow to. What is held at the start
    stays so, gaps of resting contacts included (a gap that the next change of modes lets jump would tell another
    sequence of events), and modes are not perturbed: of a contact that has opened at the start, and is still where it
    was, 1/4 and a little is no mode.

    In a chaotic motion an error of 1e-6 stops growing when it is as large as the chaos itself. From then on ε S_v is
    the size of the chaos, which may be small beside the range of v. So, if an error of a state grows to a twentieth of
    its range, S_v is measured with a smaller ε, too, and the larger of both counts. An error that has less than doubled
    has not grown: that of a state that stands still is larger than its range from the start.

    Where errors stay smaller, the perturbed motions are those of the variational equation, if that is known well enough
    (:mod:`.small_error_propagation`); else each of them is integrated.

    Returns:
        Shape (n_t, n), in the variables' units, never decreasing in time.

    Raises:
        ValidationError: If a perturbed start cannot be integrated.
    """
    growth = _measure_growth_to_first_order(reference)
    if growth is not None and not _grows_beyond_small(reference, growth):
        return growth
    growth = _measure_growth(reference, RELATIVE_START_ERROR)
    if _grows_beyond_small(reference, growth):
        growth = np.maximum(growth, _measure_growth(reference, SMALLER_START_ERROR))
    return growth


def _grows_beyond_small(reference: ReferenceRun, growth: Floats) -> bool:
    """Return whether errors of a state grow, and to a twentieth of its range, or to no number.

    The error of a state that stands still is larger than its range from the start, and need not grow at all.
    """
    at_start, largest = RELATIVE_START_ERROR * growth[[0, -1]][:, list(reference.state_columns)]
    allowed = MAX_INFORMATIVE_FRACTION * np.ptp(reference.states, axis=0)
    return not np.all(largest <= np.maximum(allowed, _MAX_UNGROWN_RATIO * at_start))


def _measure_growth_to_first_order(reference: ReferenceRun) -> Floats | None:
    """Return S_v(t) of :func:`measure_start_error_growth` by the variational equation; None where that is not known."""
    numeric = reference.numeric
    run, rows = reference.experiment.select_points(
        MAX_SENSITIVITY_POINTS, further_points=find_fast_changing_points(reference)
    )
    prepared, scales = numeric.prepare(run.parameters), RELATIVE_START_ERROR * reference.state_scales
    directions = choose_start_error_directions(numeric.n_x)
    starts = [
        numeric.project(0.0, reference.states[0] + scales * direction, run.inputs_at(0), prepared)
        for direction in directions
    ]
    errors = propagate_small_errors(reference, (np.array(starts) - reference.states[0]) / scales, rows)
    if errors is None:
        return None
    error_ratios = []
    for error in errors.transpose(1, 0, 2):
        values, _, _ = observe_trajectory(numeric, run, reference.states[rows] + scales * error, prepared)
        error_ratios.append(np.abs(values - reference.trajectory.values[rows]) / RELATIVE_START_ERROR)
    return _combine_directions(reference, run.time, error_ratios)


def _measure_growth(reference: ReferenceRun, relative_error: float) -> Floats:
    """Return S_v(t) of :func:`measure_start_error_growth`, measured with ε = ``relative_error``."""
    numeric = reference.numeric
    run, rows = reference.experiment.select_points(
        MAX_SENSITIVITY_POINTS, further_points=find_fast_changing_points(reference)
    )
    reference_values = reference.trajectory.values[rows]
    prepared = numeric.prepare(run.parameters)
    tolerance = INTEGRATION_TOLERANCE * relative_error / RELATIVE_START_ERROR
    scales = reference.error_scales(tolerance)
    gaps, error_ratios = ContactGaps(numeric), []
    axes = choose_start_error_directions(numeric.n_x)
    axes[:, list(find_switch_mode_state_indices(numeric))] = 0.0
    for direction in axes[axes.any(axis=1)]:
        x0 = reference.states[0] + relative_error * direction * reference.state_scales
        x0 = gaps.open_gaps(
            numeric.project(0.0, x0, run.inputs_at(0), prepared),
            run.inputs_at(0),
            prepared,
            reference.states[0],
            prepared,
        )
        if is_hybrid(numeric):
            x0 = numeric.stop_held_speeds(0.0, x0, run.inputs[0].tolist(), prepared, reference.modes[0])
        event_log = IntegrationEventLog()
        with assume_start_events_done(numeric):
            perturbed_trajectory = integrate_reference(
                numeric, run, np.append(x0, 0.0), tolerance, scales, event_log=event_log
            )
        values, _, _ = observe_trajectory(numeric, run, perturbed_trajectory[:, :-1], prepared, event_log.modes)
        is_between_events, _ = find_points_between_matching_events(run.time, reference.events, event_log.events)
        if reference.modes:
            round_off_switches = find_round_off_switches((*reference.events, *event_log.events))
            is_between_events |= find_brief_mode_disagreements(
                [reference.modes[row] for row in rows.tolist()], event_log.modes, round_off_switches
            )
        error_ratios.append(
            np.where(is_between_events[:, None], 0.0, np.abs(values - reference_values)) / relative_error
        )
    if not error_ratios:  # without states nothing is perturbed
        return np.zeros_like(reference.trajectory.values)
    return _combine_directions(reference, run.time, error_ratios)


def _combine_directions(reference: ReferenceRun, time: Floats, error_ratios: Sequence[Floats]) -> Floats:
    """Return S_v at all communication points from |Δv| / ε of each direction at some instants, shape (n_i, n) each."""
    has_all_axes = reference.numeric.n_x <= MAX_ERROR_DIRECTIONS
    combined = np.sum(error_ratios, axis=0) if has_all_axes else np.max(error_ratios, axis=0)
    largest = np.maximum.accumulate(combined, axis=0)
    # Between the points looked at: linear, which keeps it from decreasing.
    return np.array([np.interp(reference.trajectory.time, time, column) for column in largest.T]).T
