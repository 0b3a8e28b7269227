"""Content of a study's page, chosen from its results."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from mb2fmu.analysis.studies.resolved_study_plan import ResolvedStudy
from mb2fmu.analysis.studies.sensitivity_indices import SobolIndices, estimate_sobol_indices
from mb2fmu.analysis.studies.study_result_store import INPUTS_FILE
from mb2fmu.report.figures.study_figures import (
    MOST_ACROSS,
    MOST_DOWN,
    MOST_LINES,
    SobolIndexBarValues,
    draw_parallel_coordinates,
    draw_sobol_indices,
    draw_study_results,
)
from mb2fmu.report.pages.study_page import StudyCaseRow, StudyPageContent, render_study_page

Floats = npt.NDArray[np.float64]

WORST, FAILURES = 5, 20
_SOBOL_INDEX_CAPTION = (
    "Sobol’ indices with 95 % intervals: the part of a result’s variance that a quantity makes alone, and together "
    "with others. What has a green bar near 0 may be fixed."
)


def format_study_case_command(study: ResolvedStudy, fmu: Path, case: int) -> str:
    """Return the command that runs one case again, with the same numbers to the last bit.

    Args:
        study: What was run.
        fmu: Its FMU.
        case: Number of the case.
    """
    values = dict(zip(study.varied, study.cases[case].tolist(), strict=True)) | dict(study.fixed)
    words = ["mb2fmu", "simulate", str(fmu)]
    for name, value in values.items():
        words += ["--at", f"{name}={value!r}"]
    for name, held in study.driven.items():
        if name not in _time_varying_inputs(study):
            words += ["--at", f"{name}={float(held[0])!r}"]
    for name, formula in study.inputs.items():
        words += ["--input", f"{name}={formula}"]
    words += ["--input", str(fmu.parent / INPUTS_FILE)] if _time_varying_inputs(study) else []
    words += ["--stop", repr(study.stop), "--step", repr(study.job.step)]
    words += ["--kind", "me" if study.job.request["kind"] == "ModelExchange" else "cs"]
    return shlex.join([*words, "--plot", f"case-{case}.svg"])


def _time_varying_inputs(study: ResolvedStudy) -> list[str]:
    """Return the inputs that follow the model's experiment and change with time."""
    return [name for name, held in study.driven.items() if (held != held[0]).any()]


def format_input_signal_table(study: ResolvedStudy) -> bytes:
    """Return inputs that follow the model's experiment as CSV: a row for each step; empty if none changes with time."""
    names = _time_varying_inputs(study)
    if not names:
        return b""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *names])
    rows = np.column_stack([np.arange(len(study.job.held)) * study.job.step, *(study.driven[name] for name in names)])
    writer.writerows([repr(value) for value in row] for row in rows.tolist())
    return text.getvalue().encode()


def compute_sobol_indices(study: ResolvedStudy, values: Floats) -> dict[str, SobolIndices]:
    """Return Sobol' indices of all results, if the cases were chosen for them; values of all cases, (n, n_results)."""
    if not study.plan.indices:
        return {}
    d = len(study.varied)
    return {name: estimate_sobol_indices(values[:, k], d, study.plan.seed) for k, name in enumerate(study.results)}


def _list_sobol_index_rows(
    study: ResolvedStudy, found: Mapping[str, SobolIndices]
) -> list[tuple[str, str, list[float]]]:
    """Return result, quantity, and six numbers: first-order index, its interval, total index, its interval."""
    return [
        (name, quantity, [each.first[k], *each.first_interval[k], each.total[k], *each.total_interval[k]])
        for name, each in found.items()
        for k, quantity in enumerate(study.varied)
    ]


def format_sobol_indices_as_csv(study: ResolvedStudy, found: Mapping[str, SobolIndices]) -> bytes:
    """Return the indices as CSV, every digit of them."""
    heads = ("result", "quantity", "alone", "alone from", "alone to", "together", "together from", "together to")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(
        [name, quantity, *map(repr, map(float, row))] for name, quantity, row in _list_sobol_index_rows(study, found)
    )
    return text.getvalue().encode()


def _format_index_cells(name: str, quantity: str, row: Sequence[float]) -> tuple[str, ...]:
    """Return a row of the table of indices."""
    alone, low, high, together, least, most = ("–" if np.isnan(v) else f"{v:.3f}" for v in row)
    return (name, quantity, alone, f"{low} … {high}", together, f"{least} … {most}")


def render_study_summary_page(
    study: ResolvedStudy,
    fmu: Path,
    cases: npt.NDArray[np.intp],
    values: Floats,
    messages: Sequence[str],
    facts: Mapping[str, str],
    found: Mapping[str, SobolIndices],
) -> bytes:
    """Return the page of a study.

    Args:
        study: What was run.
        fmu: Where it lies.
        cases: That have results.
        values: Shape (n, n_results).
        messages: Of each.
        facts: Of the FMU.
        found: Sobol' indices by results; none where cases are missing.
    """
    rows = study.cases[cases]
    log = [each.name for each in study.plan.varied if each.law == "log"]
    varied = {name: (unit_, rows[:, k]) for k, (name, unit_) in enumerate(study.varied.items())}
    results = [(name, unit_, values[:, k]) for k, (name, unit_) in enumerate(study.results.items())]
    failed = [k for k, message in enumerate(messages) if message]

    def row(k: int) -> StudyCaseRow:
        cells = (*(f"{v:.6g}" for v in rows[k]), *("–" if np.isnan(v) else f"{v:.6g}" for v in values[k]))
        return StudyCaseRow(int(cases[k]), cells, format_study_case_command(study, fmu, int(cases[k])), messages[k])

    varying = f"{', '.join(study.varied)} {'varies' if len(study.varied) == 1 else 'vary'}"
    page = StudyPageContent(
        title=study.model,
        summary_sentence=f"{len(study.cases):,} cases, chosen by {study.plan.method}: {varying}.",
        cases=len(study.cases), failed=len(failed), left=len(study.cases) - len(cases),
        pictures=_draw_study_figures(varied, results, found, log),
        ranges=[_format_range_row(*each) for each in results],
        indices=[_format_index_cells(*row) for row in _list_sobol_index_rows(study, found)],
        case_table_heads=[f"{name} [{unit_}]" if unit_ != "1" else name
               for name, unit_ in (*study.varied.items(), *study.results.items())],
        worst={_format_worst_case_heading(each.name, each.worst):
               [row(k) for k in _find_worst_rows(values[:, i], each.worst)]
               for i, each in enumerate(study.wanted[:MOST_DOWN])},
        failures=[row(k) for k in failed[:FAILURES]],
        notes=list(_list_notes(study, len(failed), found)),
        facts={**facts, "Experiment": f"{study.stop:g} s in steps of {study.job.step:g} s, {study.job.request['kind']}",
               "Cases": f"{study.plan.method}, seed {study.plan.seed}"},
    )  # fmt: skip
    return render_study_page(page)


def _format_worst_case_heading(name: str, worst: str) -> str:
    """Return the title of a result's worst case, by which end of its values is the worse one."""
    return f"{'Largest' if worst == 'largest' else 'Smallest'} {name}"


def _find_worst_rows(values: Floats, worst: str) -> list[int]:
    """Return rows with the most extreme results."""
    order = np.argsort(-values if worst == "largest" else values, kind="stable")
    return [int(k) for k in order[:WORST] if np.isfinite(values[k])]


def _format_range_row(name: str, unit: str, values: Floats) -> tuple[str, ...]:
    """Return a row of the table of ranges."""
    finite = values[np.isfinite(values)]
    numbers = np.quantile(finite, [0.0, 0.05, 0.5, 0.95, 1.0]) if len(finite) else np.full(5, np.nan)
    return (name, unit, *("–" if np.isnan(v) else f"{v:.6g}" for v in numbers))


def _draw_study_figures(
    varied: Mapping[str, tuple[str, Floats]],
    results: Sequence[tuple[str, str, Floats]],
    found: Mapping[str, SobolIndices],
    log: Sequence[str],
) -> dict[str, tuple[Markup, str]]:
    """Return heading → picture and its caption."""
    if not len(results[0][2]):
        return {}
    n = len(results[0][2])
    some = f" {MOST_LINES:,} of {n:,} cases, drawn by chance." if n > MOST_LINES else ""
    pictures = {
        "All cases": (
            draw_parallel_coordinates(varied, results[0], log=log),
            f"Each case is a line over what varies, coloured by {results[0][0]}. Failed cases are red.{some}",
        ),
        "Results over what varies": (
            draw_study_results(varied, results, log=log),
            "Each case is a point; of many cases, a line shows the median of neighbours. Red marks below: cases "
            "without a result."
            + (f" The first {MOST_ACROSS} quantities." if len(varied) > MOST_ACROSS else "")
            + (f" The first {MOST_DOWN} results." if len(results) > MOST_DOWN else ""),
        ),
    }
    shown = {
        name: SobolIndexBarValues(i.first, i.total, i.first_interval, i.total_interval)
        for name, i in found.items()
        if np.isfinite(i.first).all()
    }
    if shown:
        pictures["What the results depend on"] = (
            draw_sobol_indices(list(varied), shown),
            _SOBOL_INDEX_CAPTION,
        )
    return pictures


def _list_notes(study: ResolvedStudy, failed: int, found: Mapping[str, SobolIndices]) -> list[str]:
    """Return remarks."""
    notes = []
    if failed > FAILURES:
        notes.append(f"Only the first {FAILURES} failed cases are listed; results.parquet has all of them.")
    for name, each in found.items():
        if each.used < study.plan.count:
            notes.append(
                f"Sobol’ indices of {name} rest on {each.used} of {study.plan.count} rows: others lack results."
            )
        wide = float(np.nanmax(each.total_interval[:, 1] - each.total_interval[:, 0], initial=0.0))
        if wide > 0.3:
            notes.append(f"Sobol’ indices of {name} are known to ± {wide / 2:.2g} only: take a larger count.")
    return notes
