"""Results of the validation as records of the page: numbers are copied, never judged again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from mb2fmu.report.figures.svg_chart import Chart, ChartLine, ChartPanel, draw_chart
from mb2fmu.report.number_format import format_declared_number, format_exact_number, format_short_number
from mb2fmu.report.pages.report_page_records import (
    ExternalCheckerRow,
    ReportFact,
    ReportFigure,
    ReportFigureGroup,
    RoundedDisplayNumber,
    VariableErrorRow,
    VerdictColour,
    VerdictText,
)
from mb2fmu.report.sections.report_event_tables import form_mode_strips, list_event_times
from mb2fmu.report.sections.validation_failure_diagnosis import describe_likeliest_failure_cause
from mb2fmu.validation.reference.variable_scales import ERROR_BOUND_FACTOR
from mb2fmu.validation.validation_result import INTERFACE_TYPE_NAMES, InvariantResult, ValidationResult, VariableResult

_VERDICT_COLOURS: dict[str, VerdictColour] = {"passed": "good", "failed": "bad", "unjudged": "bad"}
_MOTION_KIND_NAMES = {"coordinate": "coordinates", "speed": "speeds", "state": "auxiliary states"}
# With more charts than this in a page, lines are thinned to half as many pixel columns.
_MANY_CHARTS = 24
_ONE_STEP_ERROR_PREFIX = "one-step error of "


def form_verdict_text(result: ValidationResult, exercised: Iterable[str] = (), coverage: str = "") -> VerdictText:
    """Return the judgement in words, as it stands in the result.

    Args:
        result: Of the validation.
        exercised: What is wrong beside the default experiment.
        coverage: How much is validated.
    """
    failed = [v.name for v in result.variables if v.verdict == "failed"]
    unjudged = [v.name for v in result.variables if v.verdict == "unjudged"]
    broken = [i.name for i in result.invariants if i.verdict == "failed"]
    errors = sum(f.severity == "error" for f in result.conformance)
    total = len(result.variables)
    parts = [
        f"{len(failed)} of {_format_count(total, 'variable')} out of bounds: {_format_first_names(failed)}"
        if failed
        else "",
        f"{len(unjudged)} of {_format_count(total, 'variable')} could not be judged: {_format_first_names(unjudged)}"
        if unjudged
        else "",
        f"not kept: {_format_first_names(broken)}" if broken else "",
        f"{_format_count(errors, 'error')} found by the checkers" if errors else "",
        *(
            f"not as {check.name}"
            for check in (result.independent_check_set.all_checks if result.independent_check_set else ())
            if check.verdict == "failed"
        ),
        *(
            f"{INTERFACE_TYPE_NAMES[o.simulation.kind]}: "
            + ("not within its bounds" if o.has_failures else "could not be judged")
            for o in result.other_interface_types
            if not o.passed
        ),
    ]
    headline = "; ".join(part for part in (*parts, *exercised) if part)
    quantities = (
        f"{len(result.judged_quantities)} quantities within their bounds, {_format_count(total, 'variable')} among them"
    )
    headline = headline or quantities
    return VerdictText(
        verdict=result.verdict,
        words=_describe_verdict(result),
        headline="; ".join(part for part in (headline, coverage) if part),
        sentences=(*_describe_interface_types(result), *_describe_horizons(result), *result.notes),
        facts=_form_verdict_tiles(result),
    )


def _describe_verdict(result: ValidationResult) -> str:
    """Return the verdict in one sentence; of a failure its likeliest cause."""
    if result.verdict == "passed":
        return "The FMU moves as the mechanism does."
    if result.verdict == "default experiment only":
        return (
            "The FMU moves as the mechanism does in the default experiment. With other parameters, start values and "
            "inputs nothing was exercised, so it may have them wrong."
        )
    cause, description = (
        describe_likeliest_failure_cause(result),
        f"The FMU {'failed' if result.has_failures else 'was not judged'}.",
    )
    return f"{description} Likely cause: {cause}" if cause else description


def list_variable_error_rows(result: ValidationResult, most: int | None = None) -> tuple[VariableErrorRow, ...]:
    """Return one row per variable, the worst first; the first ``most`` link to a chart."""
    anchors = {v.name: f"variable-{k}" for k, v in enumerate(result.variables)}
    ordered = sorted(result.variables, key=_worst_first_key)
    drawn = _choose_drawn_variables(result, most)
    return tuple(
        VariableErrorRow(
            name=v.name,
            anchor=anchors[v.name] if v.name in drawn else "",
            unit=v.unit,
            largest=make_display_number(v.max_error),
            error=make_display_number(v.error),
            bound=make_display_number(v.bound),
            ratio=make_display_number(v.ratio),
            bar_length=error_ratio_bar_width(v.ratio),
            when=make_display_number(v.at),
            verdict=v.verdict,
            state=_VERDICT_COLOURS[v.verdict],
            remark=v.reason,
        )
        for v in ordered
    )


def list_other_interface_type_rows(result: ValidationResult) -> dict[str, tuple[VariableErrorRow, ...]]:
    """Return the other ways in which the FMU was run → one row per variable and invariant, the worst first."""
    kinds = {}
    for other in result.other_interface_types:
        rows = [*map(form_variable_error_row, other.variables), *map(form_variable_error_row, other.invariants)]
        kinds[INTERFACE_TYPE_NAMES[other.simulation.kind]] = tuple(
            sorted(rows, key=lambda row: -float(row.ratio.value))
        )
    return kinds


def describe_error_scale(result: ValidationResult) -> str:
    """Say what the errors are compared with."""
    tolerance = format_declared_number(result.reference.experiment.tolerance)
    return (
        f"Bound: {format_declared_number(ERROR_BOUND_FACTOR)} "
        "(or how often the motion has gone through its range, if that is more)"
        " · tolerance "
        f"({tolerance}) · the larger of the variable's range and its sensitivity to the start, plus twice the "
        "reference's own uncertainty, plus round-off. "
        "Of a one-step error: the larger of the state's scale and what an error of that size grows to within one step, "
        "in place of range and sensitivity. Each error is shown where it is largest in relation to its "
        "bound; the worst variable stands first."
    )


def list_invariant_rows(result: ValidationResult) -> tuple[VariableErrorRow, ...]:
    """Return one row per invariant, in the result's order."""
    return tuple(map(form_variable_error_row, result.invariants))


def form_variable_error_row(result: VariableResult | InvariantResult) -> VariableErrorRow:
    """Return a row without a link to a chart."""
    error = result.error if isinstance(result, VariableResult) else result.value
    return VariableErrorRow(
        name=result.name,
        anchor="",
        unit=result.unit,
        largest=make_display_number(error),
        error=make_display_number(error),
        bound=make_display_number(result.bound),
        ratio=make_display_number(result.ratio),
        bar_length=error_ratio_bar_width(result.ratio),
        when=make_display_number(result.at),
        verdict=result.verdict,
        state=_VERDICT_COLOURS[result.verdict],
    )


def draw_trajectory_groups(
    result: ValidationResult,
    texts: Mapping[str, str],
    units: Mapping[str, str],
    *,
    columns: int | None = None,
    most: int | None = None,
) -> tuple[ReportFigureGroup, ...]:
    """Return charts of FMU over reference and error under bound, per variable: motion, outputs, inputs.

    Args:
        result: Of the validation.
        texts: Variable → one line about it.
        units: Input → its unit.
        columns: Pixel columns that lines are thinned to; None: by the number of charts.
        most: Only so many variables are drawn, the worst; None: all.
    """
    columns = columns or _chart_columns(len(result.variables))
    drawn = _choose_drawn_variables(result, most)
    motion: list[ReportFigure] = []
    outputs: list[ReportFigure] = []
    for k, v in enumerate(result.variables):
        if v.name not in drawn:
            continue
        figure = _draw_variable_comparison(result, v, f"variable-{k}", texts.get(v.name, ""), columns)
        (motion if v.kind in _MOTION_KIND_NAMES else outputs).append(figure)
    kinds = {v.kind for v in result.variables}
    title = " and ".join(
        ", ".join(text for kind, text in _MOTION_KIND_NAMES.items() if kind in kinds).rsplit(", ", 1)
    ).capitalize()
    hidden = len(result.variables) - len(drawn)
    note = f"{_format_count(hidden, 'variable')} nearer to the reference are not drawn here." if hidden else ""
    strips = form_mode_strips(result.reference)
    groups = [
        ReportFigureGroup(title, note, tuple(motion)),
        ReportFigureGroup("Outputs", "", tuple(outputs)),
        ReportFigureGroup("Modes", "", (strips,) if strips else ()),
        _draw_inputs(result, texts, units),
    ]
    return tuple(group for group in groups if group.figures)


def draw_invariant_charts(result: ValidationResult) -> ReportFigureGroup:
    """Return charts of balances; one-step errors together, as fractions of their bounds."""
    time = result.reference.trajectory.time
    figures = [
        _draw_invariant(i, f"invariant-{k}", time[-len(i.values) :])
        for k, i in enumerate(result.invariants)
        if not i.name.startswith(_ONE_STEP_ERROR_PREFIX)
    ]
    defects = [i for i in result.invariants if i.name.startswith(_ONE_STEP_ERROR_PREFIX)]
    if defects:
        figures.append(_draw_one_step_errors(defects, time))
    formulas = dict.fromkeys((_invariant_kind(i), i.formula) for i in result.invariants)
    text = " ".join(f"{kind.capitalize()}: {formula}." for kind, formula in formulas)
    return ReportFigureGroup("Balances and residuals", text, tuple(figures))


def describe_reference_balances(result: ValidationResult) -> str:
    """Say how well the reference satisfies its own balances."""
    balances = result.reference.balances
    scales = [format_short_number(b.scale) + ("" if b.unit == "1" else f" {b.unit}") for b in balances]
    kept = [
        f"{b.name} ({b.formula}) to {format_short_number(b.worst, 2)} of {scale}"
        for b, scale in zip(balances, scales, strict=True)
    ]
    return f"The reference itself keeps {'; '.join(kept)}." if kept else ""


def list_external_checker_rows(result: ValidationResult) -> tuple[ExternalCheckerRow, ...]:
    """Return one row per checker and importer."""
    rows = [*_list_importer_rows(result)]
    for checker in dict.fromkeys(f.checker for f in result.conformance):
        found = [f for f in result.conformance if f.checker == checker]
        errors = sum(f.severity == "error" for f in found)
        warnings = sum(f.severity == "warning" for f in found)
        text = _format_count(errors, "error") if errors else _format_count(warnings, "warning") if warnings else "clean"
        state: VerdictColour = "bad" if errors else "neutral" if warnings else "good"
        rows.append(ExternalCheckerRow(checker, text, state, tuple(f"{f.severity}: {f.message}" for f in found)))
    return tuple(rows)


def _list_importer_rows(result: ValidationResult) -> Iterator[ExternalCheckerRow]:
    """Yield the rows of importers; each has run the FMU to its end, or there would be no result."""
    versions = result.provenance.get("versions")
    version = versions.get("fmpy", "") if isinstance(versions, Mapping) else ""
    for simulation in (result.simulation, *(other.simulation for other in result.other_interface_types)):
        steps = _format_count(len(simulation.time) - 1, "step")
        description = f"{steps} to {format_short_number(float(simulation.time[-1]), 9)} s; " + (
            _format_count(len(simulation.log), "message") + " from the FMU"
            if simulation.log
            else "no message from the FMU"
        )
        yield ExternalCheckerRow(
            f"{f'fmpy {version}'.strip()}: {INTERFACE_TYPE_NAMES[simulation.kind]}",
            "ran",
            "good",
            (description, *simulation.log[:5]),
        )


def list_provenance_facts(result: ValidationResult) -> dict[str, str]:
    """Return the tools behind FMU and reference, flattened: without dates and paths."""
    facts: dict[str, str] = {}
    known = set(result.provenance) & {"versions"} | {"parameters"}  # those stand in the table of variables
    reference = result.reference.trajectory.provenance
    made = {name: value for name, value in reference.items() if name not in known}
    for prefix, source in (("", result.provenance), ("reference: ", made)):
        facts |= {f"{prefix}{name}": text for name, text in _flatten_mapping(source)}
    return facts


def _invariant_kind(i: InvariantResult) -> str:
    """Return the kind of an invariant; all one-step errors are one."""
    return "one-step error" if i.name.startswith(_ONE_STEP_ERROR_PREFIX) else i.name


def _draw_variable_comparison(
    result: ValidationResult, v: VariableResult, anchor: str, text: str, columns: int
) -> ReportFigure:
    """Draw a variable of the FMU over its reference, and below it the error under its bound."""
    reference = result.reference.trajectory
    time, column = reference.time, reference.column(v.name)
    chart = Chart(
        identity=anchor,
        title=f"{v.name}: the FMU over its reference, and the error under its bound, over time",
        panels=(
            ChartPanel(
                v.name,
                v.unit,
                (
                    ChartLine("reference", "reference", time, reference[v.name]),
                    ChartLine("FMU", "fmu", result.simulation.time, result.simulation[v.name]),
                ),
            ),
            ChartPanel(
                "error",
                v.unit,
                (
                    ChartLine("reference's uncertainty", "uncertainty", time, reference.uncertainty[:, column]),
                    ChartLine("error", "error", time, v.errors),
                    ChartLine("bound", "bound", time, v.bounds),
                ),
                "log",
            ),
        ),
        shading_start_time=v.horizon if v.horizon < time[-1] else None,
        ticks=list_event_times(result.reference),
    )
    return ReportFigure(
        anchor, v.name, text, draw_chart(chart, columns=columns), chart.legend, _VERDICT_COLOURS[v.verdict]
    )


def _draw_inputs(result: ValidationResult, texts: Mapping[str, str], units: Mapping[str, str]) -> ReportFigureGroup:
    """Draw inputs as stairs: they are held over each step."""
    run = result.reference.experiment
    time = np.repeat(run.time, 2)[1:-1]
    figures = []
    for k, name in enumerate(run.input_names):
        line = ChartLine("input", "first", time, np.repeat(run.inputs[:, k], 2))
        chart = Chart(f"input-{k}", f"{name} over time", (ChartPanel(name, units[name], (line,)),))
        figures.append(ReportFigure(f"input-{k}", name, texts.get(name, ""), draw_chart(chart), ()))
    return ReportFigureGroup("Inputs", "", tuple(figures))


def _draw_invariant(i: InvariantResult, anchor: str, time: Any) -> ReportFigure:
    """Return the figure of an invariant over time, with its bound."""
    lines = (ChartLine(i.formula, "error", time, i.values), ChartLine("bound", "bound", time, i.bounds))
    chart = Chart(anchor, f"{i.name} over time, under its bound", (ChartPanel(i.name, i.unit, lines, "log"),))
    return ReportFigure(anchor, i.name, "", draw_chart(chart), chart.legend, _VERDICT_COLOURS[i.verdict])


def _draw_one_step_errors(defects: list[InvariantResult], time: Any) -> ReportFigure:
    """Return the largest of all states' one-step errors, each divided by its bound."""
    parts = [np.divide(i.values, i.bounds, where=i.bounds > 0, out=np.zeros_like(i.values)) for i in defects]
    ratios = np.max(parts, axis=0)
    at = time[-len(ratios) :]
    lines = (
        ChartLine("largest one-step error / bound", "error", at, ratios),
        ChartLine("bound", "bound", at, np.ones_like(ratios)),
    )
    chart = Chart(
        "step-defects", "Largest one-step error over time", (ChartPanel("one-step error / bound", "1", lines, "log"),)
    )
    state: VerdictColour = "good" if all(i.verdict == "passed" for i in defects) else "bad"
    return ReportFigure("step-defects", "one-step errors", "", draw_chart(chart), chart.legend, state)


def _form_verdict_tiles(result: ValidationResult) -> tuple[ReportFact, ...]:
    """Summarize the verdict: the worst variable, invariants, and checks, each against its bound."""
    tiles = [_form_worst_error_tile(result)]
    defects = [i for i in result.invariants if i.name.startswith(_ONE_STEP_ERROR_PREFIX)]
    singles = [i for i in result.invariants if not i.name.startswith(_ONE_STEP_ERROR_PREFIX)]
    for i in [*singles, *([max(defects, key=lambda i: i.ratio)] if defects else [])]:
        words = i.name if i.name in dict(result.reference.diagnostic_outputs) else i.name[:1].upper() + i.name[1:]
        name = "Worst one-step error" if i.name.startswith(_ONE_STEP_ERROR_PREFIX) else words
        note = (
            _format_name_at_time(i.name.removeprefix(_ONE_STEP_ERROR_PREFIX), i.at)
            if i.name.startswith(_ONE_STEP_ERROR_PREFIX)
            else f"at {format_short_number(i.at)} s"
        )
        tiles.append(
            ReportFact(
                f"{name} / bound",
                format_short_number(i.ratio),
                _VERDICT_COLOURS[i.verdict],
                note,
                format_exact_number(i.ratio),
            )
        )
    checks = [row for row in list_external_checker_rows(result) if row.verdict != "ran"]
    if checks:
        clean = sum(row.state != "bad" for row in checks)
        state: VerdictColour = "good" if clean == len(checks) else "bad"
        tiles.append(ReportFact("Checkers", f"{clean} of {len(checks)} agree", state))
    part = _largest_reference_uncertainty(result)
    tiles.append(
        ReportFact(
            "Reference's uncertainty / bound",
            format_short_number(part, 2),
            "neutral",
            "largest while judged",
            format_exact_number(part),
        )
    )
    return tuple(tiles)


def _form_worst_error_tile(result: ValidationResult) -> ReportFact:
    """Return the number that the terminal ends with: the worst of all quantities, of every kind and experiment."""
    worst = max(result.judged_quantities, key=lambda v: v.ratio if not math.isnan(v.ratio) else math.inf)
    bounded: VerdictColour = "bad" if any(v.verdict == "failed" for v in result.judged_quantities) else "good"
    runs = [
        ("", result.other_interface_types),
        ("moved, ", result.perturbed_experiment.kinds if result.perturbed_experiment else ()),
    ]
    where = (
        f", {prefix}{INTERFACE_TYPE_NAMES[kind.simulation.kind].partition(',')[0]}"
        for prefix, kinds in runs
        for kind in kinds
        if any(item is worst for item in (*kind.variables, *kind.invariants))
    )
    note = _format_name_at_time(worst.name, worst.at) + next(where, "")
    return ReportFact(
        "Worst error / bound", format_short_number(worst.ratio), bounded, note, format_exact_number(worst.ratio)
    )


def _largest_reference_uncertainty(result: ValidationResult) -> float:
    """Return the largest uncertainty of the reference as a fraction of the bound, within the horizons."""
    reference = result.reference.trajectory
    parts = [0.0]
    for v in result.variables:
        compared = (reference.time <= v.horizon) & (v.bounds > 0)
        uncertainty = reference.uncertainty[:, reference.column(v.name)]
        parts.append(float(np.max(uncertainty[compared] / v.bounds[compared], initial=0.0)))
    return max(parts)


def _describe_horizons(result: ValidationResult) -> tuple[str, ...]:
    """Say up to which time variables are judged, and which one stops first."""
    stop = float(result.reference.trajectory.time[-1])
    early = [v for v in result.variables if v.horizon < stop]
    if not early:
        return (f"All variables are judged over the whole run of {format_short_number(stop, 9)} s.",)
    first = min(early, key=lambda v: v.horizon)
    part = f"{len(early)} of {_format_count(len(result.variables), 'variable')}"
    earliest = f"the earliest at {format_short_number(first.horizon)} s ({first.name})"
    text = f"{part} judged up to a horizon before the end at {format_short_number(stop, 9)} s, {earliest}"
    return (f"{text}; beyond it the balances alone are judged.",)


def _describe_interface_types(result: ValidationResult) -> tuple[str, ...]:
    """Say as which kinds the FMU was run, where that was more than one."""
    if not result.other_interface_types:
        return ()
    first = INTERFACE_TYPE_NAMES[result.simulation.kind]
    others = " and as ".join(INTERFACE_TYPE_NAMES[other.simulation.kind] for other in result.other_interface_types)
    return (f"The FMU was run as {first}, and as {others}; charts and balances show the first.",)


def _choose_drawn_variables(result: ValidationResult, most: int | None) -> frozenset[str]:
    """Return the variables that get a chart: all, or the worst so many."""
    ordered = sorted(result.variables, key=_worst_first_key)
    return frozenset(v.name for v in ordered[:most])


def _worst_first_key(v: VariableResult) -> float:
    """Return the key that sorts the worst ratio first, NaN last."""
    return -v.ratio if not math.isnan(v.ratio) else -math.inf


def _chart_columns(charts: int) -> int:
    """Return the width of a chart, half of it if there are many."""
    return 382 if charts > _MANY_CHARTS else 764


def error_ratio_bar_width(ratio: float) -> float:
    """Return a bar of 12.5 % per decade; the bound stands at 75 %, where the style sheet marks it."""
    if not math.isfinite(ratio):
        return 100.0
    return round(min(max(75 + 12.5 * math.log10(ratio), 0.0), 100.0), 1) if ratio > 0 else 0.0


def make_display_number(value: float) -> RoundedDisplayNumber:
    """Return a number for people and for machines."""
    return RoundedDisplayNumber(format_short_number(value), format_exact_number(value))


def _format_name_at_time(name: str, time: float) -> str:
    """Return a name with the time at which it is meant."""
    return f"{name} at {format_short_number(time)} s"


def _format_count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if needed."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _format_first_names(names: list[str], most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _flatten_mapping(source: Mapping[str, object], prefix: str = "") -> list[tuple[str, str]]:
    """List nested values as rows; a row is named by all keys on its way, joined by spaces."""
    rows = []
    for name in sorted(source):
        value = source[name]
        if isinstance(value, Mapping):
            rows += _flatten_mapping(value, f"{prefix}{name} ")
        else:
            rows.append((f"{prefix}{name}", format_declared_number(value) if isinstance(value, float) else str(value)))
    return rows
