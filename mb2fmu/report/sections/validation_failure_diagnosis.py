"""What failed in a validation, by how much, from when on, and the likeliest cause in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mb2fmu.validation.validation_result import (
    INTERFACE_TYPE_NAMES,
    EventResult,
    InterfaceTypeResult,
    InvariantResult,
    ValidationResult,
    VariableResult,
)

_NEVER = math.inf


@dataclass(frozen=True, slots=True)
class ValidationFailure:
    """One thing that failed.

    Attributes:
        what: Its name.
        text: By how much, when, and where it was found.
        onset: Time in s from which on it is beyond its tolerance; infinite where it has no time.
        rank: 0: variables and events, 1: invariants, 2: all others.
    """

    what: str
    text: str
    onset: float = _NEVER
    rank: int = 2


def format_tolerance_share(ratio: float) -> str:
    """Return error / bound in words: ``0.4 % of its tolerance``, ``3,900 times its tolerance``."""
    if not math.isfinite(ratio):
        return "not a finite number"
    if ratio > 1.0:
        return f"{_round_to_two_digits(ratio):,.12g} times its tolerance"
    if ratio == 0.0:
        return "0 % of its tolerance"
    if ratio < 1e-4:
        return "less than 0.01 % of its tolerance"
    return f"{_round_to_two_digits(100.0 * ratio):.6g} % of its tolerance"


def _round_to_two_digits(value: float) -> float:
    """Return two significant digits; all digits before the point from 100 on."""
    return float(f"{value:.2g}") if value < 100.0 or value >= 1e6 else float(f"{value:.0f}")


def list_validation_failures(result: ValidationResult) -> tuple[ValidationFailure, ...]:
    """Return everything that failed: variables and events first, the earliest first; of one only its worst run."""
    failures = [*_list_quantity_failures(result), *_list_event_failures(result), *_list_other_failures(result)]
    return tuple(sorted(failures, key=lambda failure: (failure.rank, failure.onset)))


def _find_error_onset(item: VariableResult | InvariantResult, kind: InterfaceTypeResult) -> float:
    """Return the first time in s at which an error is beyond its bound, or is not a number."""
    errors = item.errors if isinstance(item, VariableResult) else item.values
    time = kind.simulation.time[: len(errors)]
    horizon = item.horizon if isinstance(item, VariableResult) else math.inf
    with np.errstate(invalid="ignore"):
        beyond = ~(np.abs(errors) <= item.bounds) & (time <= horizon)
    return float(time[np.argmax(beyond)]) if beyond.any() else item.at


def _list_quantity_failures(result: ValidationResult) -> Iterator[ValidationFailure]:
    """Yield a failure for each variable and invariant, of its worst run."""
    worst: dict[str, tuple[float, ValidationFailure]] = {}
    for run, kind in result.judged_runs:
        quantities: list[VariableResult | InvariantResult] = [*kind.variables, *kind.invariants]
        for item in quantities:
            if item.verdict == "passed":
                continue
            onset, rank = _find_error_onset(item, kind), 0 if isinstance(item, VariableResult) else 1
            text = f"{format_tolerance_share(item.ratio)}, at t = {item.at:.4g} s"
            if math.isfinite(item.ratio):
                amount = item.error if isinstance(item, VariableResult) else item.value
                text = f"off by {amount:.3g} {item.unit}, {text}"
            if onset < item.at:
                text += f" (beyond it from {onset:.4g} s on)"
            if item.verdict == "unjudged":
                text, onset = f"not judged: {item.reason}" if isinstance(item, VariableResult) else "not judged", _NEVER
            if item.name not in worst or item.ratio > worst[item.name][0]:
                worst[item.name] = (item.ratio, ValidationFailure(item.name, f"{text}, {run}", onset, rank))
    return (failure for _, failure in worst.values())


def _event_time(event: EventResult) -> float:
    """Return the time of an event in s: the reference's, or the FMU's where the reference has none."""
    return event.found if math.isnan(event.time) else event.time


def _list_event_failures(result: ValidationResult) -> Iterator[ValidationFailure]:
    """Yield a failure for each wrong event."""
    for event in result.all_events:
        if event.verdict == "failed":
            at = _event_time(event)
            yield ValidationFailure(f"event {event.name}", f"at t = {at:.6g} s: {event.reason}, {event.kind}", at, 0)


def _list_other_failures(result: ValidationResult) -> Iterator[ValidationFailure]:
    """Yield what failed beside trajectories and events."""
    for refusal in result.perturbed_experiment.refusals if result.perturbed_experiment else ():
        yield ValidationFailure("perturbed experiment", refusal)
    yield from _list_check_failures(result)
    yield from (
        ValidationFailure(f"{table.source}, {column.name}", format_tolerance_share(column.ratio))
        for table in result.tables
        for column in table.columns
        if column.verdict != "passed"
    )
    yield from (
        ValidationFailure(each.checker, each.message) for each in result.conformance if each.severity == "error"
    )


def _list_check_failures(result: ValidationResult) -> Iterator[ValidationFailure]:
    """Yield failed independent checks and failed API checks during the run."""
    for check in result.independent_checks[:-1]:
        if check.verdict == "failed":
            where = f": {check.worst}" if check.worst else ""
            share = format_tolerance_share(check.ratio)
            yield ValidationFailure(check.name, f"{share}{where}" + (f": {check.reason}" if check.reason else ""))
    for call in result.api_checks:
        if call.verdict == "failed":
            yield ValidationFailure(
                call.name, f"wrong as {INTERFACE_TYPE_NAMES[call.kind]}: {call.reason or call.where}"
            )


def describe_likeliest_failure_cause(result: ValidationResult) -> str:
    """Return the likeliest cause of a failed validation in one sentence; the first rule that fits says it."""
    return next((text for rule in _CAUSE_RULES if (text := rule(result))), "")


def _names(items: Sequence[str], most: int = 3) -> str:
    """Return some names, and how many more there are."""
    rest = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + rest


def _failed_variables(kinds: Sequence[InterfaceTypeResult]) -> list[VariableResult]:
    """Return failed variables of some runs."""
    return [variable for kind in kinds for variable in kind.variables if variable.verdict != "passed"]


def _cause_import(result: ValidationResult) -> str:
    """A check of the import, which does not involve the FMU, failed."""
    checks = result.independent_check_set.import_checks if result.independent_check_set else ()
    failed = [check.name for check in checks if check.verdict == "failed"]
    return f"mb2fmu read the model wrong ({failed[0]}); please report this." if failed else ""


def _cause_other_declaration(result: ValidationResult) -> str:
    """The FMU declares other values than the model."""
    found = [each.message for each in result.conformance if each.checker == "model" and each.severity == "error"]
    return f"the FMU was made from another version of the model: {found[0]}." if found else ""


def _cause_not_finite(result: ValidationResult) -> str:
    """A variable is no number."""
    for _, kind in result.judged_runs:
        for item in kind.variables:
            if item.verdict == "failed" and not math.isfinite(item.ratio):
                return (
                    f"{item.name} is not a finite number from t = {_find_error_onset(item, kind):.4g} s on: look for a \
division by zero or a root of a negative number there."
                )
    return ""


def _cause_unjudged(result: ValidationResult) -> str:
    """Nothing is wrong, but a variable could not be judged."""
    items = [item for _, kind in result.judged_runs for item in kind.variables]
    if any(item.verdict == "failed" for item in items):
        return ""
    lacking = list(dict.fromkeys(item.name for item in items if item.verdict == "unjudged"))
    if not lacking:
        return ""
    is_for_tolerance = any("for this tolerance" in item.reason for item in items if item.verdict == "unjudged")
    remedy = "a smaller tolerance in model.experiment(tolerance=...), " if is_for_tolerance else ""
    return f"the motion cannot be predicted long enough to judge {_names(lacking)}; {remedy}a shorter experiment or a \
less sensitive start can be judged."


def _cause_coarse_integration(result: ValidationResult) -> str:
    """Co-Simulation was run again at a tighter tolerance, and agrees."""
    if result.agreeing_tolerance is None:
        return ""
    tolerance = f"{result.agreeing_tolerance:.3g}".replace("e-0", "e-")
    return f"Co-Simulation integrates too coarsely for this model, for it agrees at a tolerance of {tolerance}; set \
model.experiment(tolerance={tolerance}), or take --solver implicit for a stiff model."


def _cause_event(result: ValidationResult) -> str:
    """An event was wrong before a trajectory was."""
    wrong = [event for event in result.all_events if event.verdict == "failed"]
    if not wrong:
        return ""
    first = min(wrong, key=_event_time)
    onsets = [
        _find_error_onset(item, kind)
        for _, kind in result.judged_runs
        for item in kind.variables
        if item.verdict == "failed"
    ]
    if onsets and min(onsets) < _event_time(first) - abs(first.allowed):
        return ""
    return f"the FMU handles the event {first.name} at t = {_event_time(first):.6g} s wrongly, and later errors follow \
from it."


def _cause_defaults(result: ValidationResult) -> str:
    """Every value was set in the perturbed experiment, and it passed."""
    moved = result.perturbed_experiment
    if not moved or not moved.kinds or not moved.passed or not _failed_variables(result.kinds):
        return ""
    return "the equations agree where all values are set, so a default value inside the FMU differs from the model's."


def _cause_ignored_value(result: ValidationResult) -> str:
    """Only the perturbed experiment failed."""
    moved = result.perturbed_experiment
    if moved is None or moved.passed or _failed_variables(result.kinds):
        return ""
    return "the FMU ignores or misuses a parameter, start value or input that was changed; with default values it \
agrees."


def _cause_outputs(result: ValidationResult) -> str:
    """All states agree, outputs do not."""
    failed = _failed_variables([kind for _, kind in result.judged_runs])
    names = list(dict.fromkeys(item.name for item in failed))
    if not names or any(item.kind != "output" for item in failed):
        return ""
    return f"the states agree, so the FMU computes {_names(names)} by another formula than the model."


def _cause_one_kind(result: ValidationResult) -> str:
    """Of two kinds of the FMU one failed."""
    failed = [kind.simulation.kind for kind in result.kinds if _failed_variables([kind])]
    if len(result.kinds) < 2 or len(failed) != 1:
        return ""
    if failed[0] == "CoSimulation":
        return "Model Exchange agrees, so the equations are right and what only Co-Simulation uses is wrong: its \
solver, or how it handles events and inputs."
    return "Co-Simulation agrees, so the equations are right and a function that only Model Exchange uses is wrong \
(derivatives, events, or setting states)."


def _cause_accumulation(result: ValidationResult) -> str:
    """The motion is wrong: by each step, or by the sum of steps alone."""
    steps = [item for item in result.invariants if item.name.startswith("one-step error")]
    if not _failed_variables(result.kinds):
        return ""
    if not steps:
        return "the FMU has other equations or parameter values than the model, or it integrates too coarsely."
    if all(item.verdict == "passed" for item in steps):
        return "each single step agrees and the errors add up: the motion is sensitive, or the FMU's tolerance is too \
coarse; a smaller tolerance in model.experiment(tolerance=...) helps."
    return "single steps are wrong already, so the FMU has other equations or other parameter values than the model."


def _cause_independent_checks(result: ValidationResult) -> str:
    """The trajectory agrees with the reference, the source objects do not."""
    failed = [check for check in result.independent_checks[:-1] if check.verdict == "failed"]
    if not failed:
        return ""
    return f"the FMU agrees with mb2fmu's reference and not with {failed[0].name}: mb2fmu has read the model wrong; \
please report this."


def _cause_invariants(result: ValidationResult) -> str:
    """A balance is not kept."""
    failed = [i for _, kind in result.judged_runs for i in kind.invariants if i.verdict == "failed"]
    if failed and failed[0].name.startswith("one-step error") and not math.isfinite(failed[0].value):
        return (
            f"the trajectories agree, but from the FMU's state shortly before t = {failed[0].at:.3g} s the reference \
cannot go on: a singular position (a linkage at its change point, angles at their limit), or x' has no value there; \
stop the experiment before, or start elsewhere."
        )
    return (
        f"the trajectories agree, and {failed[0].name} does not close between the communication points."
        if failed
        else ""
    )


def _cause_calls(result: ValidationResult) -> str:
    """A family of functions is wrong."""
    failed = list(dict.fromkeys(call.name for call in result.api_checks if call.verdict == "failed"))
    return f"the motion agrees, and the FMU's functions for {_names(failed)} return other values." if failed else ""


def _cause_description(result: ValidationResult) -> str:
    """A checker found an error."""
    failed = [finding.checker for finding in result.conformance if finding.severity == "error"]
    return f"the motion agrees, and {failed[0]} finds that the FMU breaks a rule of FMI." if failed else ""


def _cause_data(result: ValidationResult) -> str:
    """The user's data differ."""
    failed = [table.source for table in result.tables if not table.passed]
    return f"the FMU moves as the model does, so the model and the data in {failed[0]} differ." if failed else ""


_CAUSE_RULES: tuple[Callable[[ValidationResult], str], ...] = (
    _cause_import,
    _cause_other_declaration,
    _cause_not_finite,
    _cause_unjudged,
    _cause_coarse_integration,
    _cause_event,
    _cause_one_kind,
    _cause_defaults,
    _cause_ignored_value,
    _cause_outputs,
    _cause_accumulation,
    _cause_independent_checks,
    _cause_invariants,
    _cause_calls,
    _cause_description,
    _cause_data,
)
"""The most specific first."""
