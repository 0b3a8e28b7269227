"""The verdict in a terminal: tables of errors and invariants, results of checkers, one last line."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mb2fmu.report.sections.coverage_section import describe_default_experiment_only, describe_exercised_quantities
from mb2fmu.report.sections.measured_data_section import (
    describe_failed_measured_tables,
    format_measurements_for_terminal,
)
from mb2fmu.report.sections.report_event_tables import describe_event_failures as event_failures
from mb2fmu.report.sections.report_event_tables import describe_event_verdict_counts
from mb2fmu.validation.independent_checks import IndependentCheck
from mb2fmu.validation.validation_result import (
    INTERFACE_TYPE_NAMES,
    InterfaceTypeResult,
    InvariantResult,
    ValidationResult,
    VariableResult,
)

# Below this width (in characters) a table keeps only the columns that the verdict needs.
NARROW_WIDTH = 88
_DOUBT_STYLE = "bold yellow"
_VERDICT_STYLES = {"passed": "green", "failed": "bold red", "unjudged": _DOUBT_STYLE}


def format_terminal_verdict_blocks(result: ValidationResult, width: int) -> Iterator[RenderableType]:
    """Yield blocks for a terminal of that ``width``."""
    yield _make_variable_table(result, wide=width >= NARROW_WIDTH)
    yield from _format_reason_lines(result)
    yield from _format_horizon_lines(result)
    if result.invariants:
        yield _make_invariant_table(result, wide=width >= NARROW_WIDTH)
    for other in result.other_interface_types:
        yield _format_interface_type_line(other)
    yield from _format_event_lines(result)
    yield from _format_exercised_lines(result)
    yield from map(_format_check, result.independent_checks)
    yield from format_measurements_for_terminal(result.tables, width)
    for finding in result.conformance:
        yield Text(f"{finding.checker}: {finding.severity}: {finding.message}")
    for note in result.notes:
        yield Text(f"note: {note}")
    yield format_verdict_line(result)


def format_verdict_line(result: ValidationResult) -> Text:
    """Return whether it passed, and by how much."""
    quantities = result.judged_quantities
    coverage = "; ".join(filter(None, (describe_event_verdict_counts(result), describe_exercised_quantities(result))))
    if result.passed_at_defaults:
        worst = max(quantities, key=lambda item: item.ratio)
        largest = f"largest error/bound {_format_number(worst.ratio)} ({worst.name})"
        text = f"{len(quantities)} quantities within their bounds, {largest}"
        text = f"{text}; {coverage}" if coverage else text
        if result.has_defaults_only:
            return Text(f"{result.model}: {describe_default_experiment_only(result)}: {text}", style=_DOUBT_STYLE)
        return Text(f"{result.model}: passed, {text}", style="bold green")
    lacking = list(dict.fromkeys(item.name for item in quantities if item.verdict == "failed"))
    unjudged = list(dict.fromkeys(item.name for item in quantities if item.verdict == "unjudged"))
    errors = sum(finding.severity == "error" for finding in result.conformance)
    lacking += [
        f"x' against {check.name}" for check in result.independent_checks if check.verdict == "failed" and check.reason
    ]
    reasons = [f"{', '.join(lacking)} not within bounds"] if lacking else []
    reasons += [f"{', '.join(unjudged)} could not be judged"] if unjudged else []
    wrong = [
        f"{call.name} ({INTERFACE_TYPE_NAMES[call.kind]})" for call in result.api_checks if call.verdict == "failed"
    ]
    reasons += [f"{', '.join(wrong)} wrong"] if wrong else []
    reasons += event_failures(result)
    reasons += [f"{errors} errors found by the checkers"] if errors else []
    reasons += describe_failed_measured_tables(result.tables)
    style = "bold red" if result.has_failures else _DOUBT_STYLE
    return Text(f"{result.model}: {result.verdict}: {'; '.join(reasons)}", style=style)


def _format_event_lines(result: ValidationResult) -> Iterator[Text]:
    """Yield a line for each run with events, and for each wrong event."""
    moved = result.perturbed_experiment.kinds if result.perturbed_experiment else ()
    for prefix, kinds in (("Events", result.kinds), ("Events of the perturbed experiment", moved)):
        for kind in kinds:
            judged_events = [event for event in kind.events if event.verdict != "unjudged"]
            wrong = [event for event in judged_events if event.verdict == "failed"]
            if not kind.events:
                continue
            late = max(
                (abs(event.difference) for event in judged_events if event.difference == event.difference), default=0.0
            )
            count = len(judged_events)
            text = f"{prefix}, {INTERFACE_TYPE_NAMES[kind.simulation.kind]}: {count - len(wrong)} of {count} "
            text += f"as they should be, instants {_format_number(late)} s off at most"
            left = len(kind.events) - count
            text += f", {left} not judged" if left else ""
            yield Text(text, style=_VERDICT_STYLES["failed"] if wrong else "green")
            for event in wrong[:5]:
                at = event.found if event.time != event.time else event.time
                yield Text(f"  {event.name} at t = {at:.9g} s: {event.reason}", style=_VERDICT_STYLES["failed"])


def _format_exercised_lines(result: ValidationResult) -> Iterator[Text]:
    """Yield a line for each kind of the perturbed experiment, each failed call, and everything not exercised."""
    if result.perturbed_experiment is None:
        return
    yield Text(f"Perturbed experiment: {result.perturbed_experiment.text}")
    for moved in result.perturbed_experiment.kinds:
        yield Text.assemble("  ", _format_interface_type_line(moved))
    for kind in dict.fromkeys(call.kind for call in result.api_checks):
        calls = [call for call in result.api_checks if call.kind == kind]
        passed = sum(call.verdict == "passed" for call in calls)
        yield Text(
            f"API checks during the run, {INTERFACE_TYPE_NAMES[kind]}: "
            f"{passed} of {len(calls)} agree with the reference"
        )
        for call in calls:
            if call.verdict != "passed":
                style = _VERDICT_STYLES["failed"] if call.verdict == "failed" else ""
                yield Text(f"  {call.name}: {call.verdict}: {call.reason or call.where}", style=style)
    for name in result.events_at_defaults_only:
        yield Text(
            f"not exercised: event {name}: it is not in the perturbed experiment", style=_VERDICT_STYLES["unjudged"]
        )
    for untested_switch in result.untested_switches:
        yield Text(f"not exercised: what lies beyond {untested_switch}", style=_VERDICT_STYLES["unjudged"])
    for item in result.not_exercised:
        yield Text(f"not exercised: {item.role} {item.name}: {item.reason}", style=_VERDICT_STYLES["unjudged"])


def _format_interface_type_line(other: InterfaceTypeResult) -> Text:
    """Return one line: the details are in the report."""
    quantities: list[VariableResult | InvariantResult] = [*other.variables, *other.invariants]
    short = [item for item in quantities if item.verdict == "failed"]
    unjudged = sum(item.verdict == "unjudged" for item in quantities)
    worst = max(quantities, key=lambda item: item.ratio)
    verdict = f"{len(short)} of {len(quantities)} quantities not within their bounds" if short else ""
    verdict = verdict or (f"{unjudged} of {len(quantities)} quantities could not be judged" if unjudged else "passed")
    text = f"{INTERFACE_TYPE_NAMES[other.simulation.kind]}: {verdict}, "
    text += f"largest error/bound {_format_number(worst.ratio)} ({worst.name})"
    return Text(text, style="bold red" if short else _DOUBT_STYLE if unjudged else "green")


def _format_check(check: IndependentCheck) -> Text:
    """Return one line: the independence of the validation."""
    if check.verdict == "unjudged":
        return Text(f"{check.name}: not {'judged' if check.points else 'done'}: {check.reason}")
    text = f"{check.name}: {check.verdict}, {check.points} points, largest error/bound {_format_number(check.ratio)}"
    text += f" ({check.worst})" if check.worst else ""
    reason = f": {check.reason}" if check.reason else ""
    return Text(text + reason, style="bold red" if check.verdict == "failed" else "green")


def _format_number(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.3g}"


def _make_variable_table(result: ValidationResult, *, wide: bool) -> Table:
    """Return the table of the variables: range, error and bound; ``wide`` adds where and up to when."""
    table = _make_table("FMU against the reference", "variable", "range", "error", wide=wide)
    for variable in result.variables:
        verdict = Text(variable.verdict, style=_VERDICT_STYLES[variable.verdict])
        columns = [
            variable.name,
            variable.unit,
            _format_number(variable.range),
            _format_number(variable.error),
            _format_number(variable.bound),
        ]
        horizon = [_format_number(variable.at), _format_number(variable.horizon)] if wide else []
        kept = columns if wide else [f"{columns[0]} ({columns[1]})", *columns[3:]]
        table.add_row(*kept, _format_number(variable.ratio), *horizon, verdict)
    return table


def _format_reason_lines(result: ValidationResult) -> Iterator[Text]:
    """Yield why a variable is not predictable to the end or failed, where the table's numbers do not say it."""
    for variable in result.variables:
        if variable.reason and not variable.reason.startswith("the error is "):
            yield Text(f"  {variable.name}: {variable.reason}", style=_VERDICT_STYLES[variable.verdict])


def _format_horizon_lines(result: ValidationResult) -> Iterator[Text]:
    """Yield why variables are predictable until an earlier time than the end only, if any is."""
    stop = float(result.reference.trajectory.time[-1])
    early = [variable for variable in result.variables if variable.horizon < stop]
    if early:
        first = min(early, key=lambda variable: variable.horizon)
        text = f"Not predictable until the end at {_format_number(stop)} s: {len(early)} of {len(result.variables)} "
        text += (
            f"variables, the first is {first.name}, until {_format_number(first.horizon)} s. Small differences grow in "
        )
        text += "this motion, and beyond that time the reference itself does not know the variable well enough; "
        yield Text(f"{text}balances are compared up to the end.")


def _make_invariant_table(result: ValidationResult, *, wide: bool) -> Table:
    """Return the table of invariants of the whole run; ``wide`` adds where each is worst."""
    table = _make_table("Held over the whole run", "invariant", None, "value", wide=wide)
    for item in result.invariants:
        columns = [item.name, item.unit, _format_number(item.value), _format_number(item.bound)]
        kept = columns if wide else [f"{columns[0]} ({columns[1]})", *columns[2:]]
        at = [_format_number(item.at)] if wide else []
        table.add_row(*kept, _format_number(item.ratio), *at, Text(item.verdict, style=_VERDICT_STYLES[item.verdict]))
    return table


def _make_table(title: str, subject: str, spread: str | None, value: str, *, wide: bool) -> Table:
    """Return a table; only variables have a ``spread`` and a time until which they are predictable."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    table.add_column(subject, overflow="ellipsis", no_wrap=True)
    if wide:
        table.add_column("unit", no_wrap=True)
    numbers = [value, "bound", f"{value}/bound"]
    if wide:
        numbers = [
            *([spread] if spread else []),
            *numbers,
            "at t in s",
            *(["predictable until"] if spread else []),
        ]
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    return table
