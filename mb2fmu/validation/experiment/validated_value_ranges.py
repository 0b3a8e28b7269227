"""Ranges over which each parameter, start value and input was tried, and what was not tried at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import DeclaredVariable
from mb2fmu.validation.api_checks.api_call_plan import ApiCallPlan, ApiCheckPoint
from mb2fmu.validation.api_checks.api_check_families import EXTREMES, SOLVERS, STEPS, ApiCheckFamily
from mb2fmu.validation.api_checks.extreme_state_checks import ExtremeEvaluationPoint
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.runs.fmu_description_for_runs import InterfaceType
from mb2fmu.validation.runs.fmu_run import FmuProcessResult
from mb2fmu.validation.validation_result import ExercisedQuantityResult

_LISTED_POINTS = 4


def add_tried_value_ranges(
    quantities: Sequence[ExercisedQuantityResult],
    definition: DeclaredModelContent,
    references: Sequence[ReferenceRun],
    check_point: ApiCheckPoint | None,
    fmu_results: Sequence[FmuProcessResult],
) -> tuple[ExercisedQuantityResult, ...]:
    """Return the quantities with the ranges over which they were tried.

    Args:
        quantities: Without ranges.
        definition: The checked model: declared ranges.
        references: Of all experiments.
        check_point: Of the API checks; None without them.
        fmu_results: Of each interface type.
    """
    points = check_point.extreme_points if check_point is not None else ()
    values = _collect_values(definition, references)
    for point in _list_accepted_points(points, fmu_results):
        for name, value in point.moved.items():
            values.setdefault(name, []).append(value)
    declared: dict[str, DeclaredVariable] = {
        record.name: record
        for records in (
            definition.parameters, definition.inputs, definition.coordinates, definition.speeds,
            definition.auxiliary_states,
        )
        for record in records
    }  # fmt: skip
    ranges = []
    for item in quantities:
        low, high = min(values[item.name]), max(values[item.name])
        record = declared[item.name]
        covers_low = record.minimum is not None and low <= record.minimum
        covers_high = record.maximum is not None and high >= record.maximum
        ranges.append(replace(item, low=low, high=high, unit=record.unit, is_whole_range=covers_low and covers_high))
    return tuple(ranges)


def _collect_values(definition: DeclaredModelContent, references: Sequence[ReferenceRun]) -> dict[str, list[float]]:
    """Return name → values in the experiments: of parameters, the extremes of inputs and of states."""
    values: dict[str, list[float]] = {}
    free = [p.name for p in definition.parameters if not p.calculated]
    for reference in references:
        run = reference.experiment
        for name, value in zip(free, run.parameters, strict=True):
            values.setdefault(name, []).append(float(value))
        columns = [*zip(run.input_names, run.inputs.T, strict=True)]
        columns += [*zip(reference.trajectory.names, reference.trajectory.values.T, strict=True)]
        for name, column in columns:
            values.setdefault(name, []).extend([float(np.min(column)), float(np.max(column))])
    return values


def _list_accepted_points(
    points: Sequence[ExtremeEvaluationPoint], fmu_results: Sequence[FmuProcessResult]
) -> Iterator[ExtremeEvaluationPoint]:
    """Yield the points at which every interface type gave values."""
    answers = [list(_list_answers(each, EXTREMES)) for each in fmu_results]
    for number, point in enumerate(points):
        answers_at_point = [each[number] for each in answers if number < len(each)]
        if answers_at_point and not any(isinstance(answer, str) for answer in answers_at_point):
            yield point


def _list_answers(fmu_result: FmuProcessResult, check: ApiCheckFamily) -> Sequence[object]:
    """Return the answers at the points, or by the solvers; none where the calls failed."""
    recorded = (fmu_result.recorded_values or {}).get(check.name, ())
    if check is EXTREMES:
        return recorded[0] if recorded and isinstance(recorded[0], list) else ()
    return recorded


def describe_unvalidated_conditions(
    check_point: ApiCheckPoint | None,
    call_plans: Mapping[InterfaceType, ApiCallPlan | None],
    fmu_results: Sequence[FmuProcessResult],
) -> tuple[str, ...]:
    """Return what no experiment and no API check tried, in words.

    Args:
        check_point: Of the API checks; None without them.
        call_plans: Interface type → its calls.
        fmu_results: Of each interface type.
    """
    plans = [plan for plan in call_plans.values() if plan is not None]
    if check_point is None or not plans:
        return ("values beyond the default experiment",)
    untried_conditions = []
    if not check_point.extreme_points:
        untried_conditions.append(
            "values beyond the experiments (something sticks, rests, is latched or due wherever they could begin)"
        )
    if not any(STEPS.name in plan.sequences for plan in plans):
        untried_conditions.append("start times other than 0, steps of other sizes than the experiments', other solvers")
    accepted = set(map(id, _list_accepted_points(check_point.extreme_points, fmu_results)))
    refused_points = [point.text for point in check_point.extreme_points if id(point) not in accepted]
    if refused_points:
        remainder_text = (
            f" and {len(refused_points) - _LISTED_POINTS} more" if len(refused_points) > _LISTED_POINTS else ""
        )
        untried_conditions.append(f"what the FMU refuses: {'; '.join(refused_points[:_LISTED_POINTS])}{remainder_text}")
    for plan, fmu_result in zip(plans, fmu_results, strict=False):
        if SOLVERS.name in plan.sequences:
            labels = plan.sequences[SOLVERS.name].labels
            answers = _list_answers(fmu_result, SOLVERS)
            untried_conditions += [
                f"the solver {name}, which refuses the step"
                for name, answer in zip(labels, answers, strict=False)
                if isinstance(answer, str)
            ]
    if check_point.steps is not None:
        longest = check_point.steps.times[-1] - check_point.steps.times[-2]
        untried_conditions.append(f"steps longer than {longest:.3g} s")
    return tuple(untried_conditions)
