"""The command ``mb2fmu study``, with the plan of a study from a file or from options."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from mb2fmu.analysis.studies.study_plan_words import CROSSING_DIRECTIONS, REDUCTION_KINDS, SAMPLING_METHODS
from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    combine_click_options,
    is_quiet_option_given,
    json_file_option,
    set_option,
    verbose_option,
)
from mb2fmu.cli.stage_progress_display import StageProgressDisplay
from mb2fmu.cli.verdict_output import print_verdict_summary

if TYPE_CHECKING:
    from rich.progress import TaskID

    from mb2fmu.pipeline.study_runs.study_run import StudyOutcome
    from mb2fmu.report.summary_lines import VerdictSummaryLine

DEFAULT_SPREAD, DEFAULT_CASE_COUNT = 0.1, 100
"""Defaults: parameters vary by ± 10 % in 100 cases."""

_PROGRESS_INTERVAL_SECONDS = 10.0
"""In s, between lines of progress where there is no terminal."""


class _StudyCaseProgressDisplay:
    """Shows the number of finished cases: a bar on a terminal, else a line now and then."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._silent, self._terminal = is_quiet_option_given(), console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=self._silent or not console.is_terminal)
        self._task: TaskID | None = None
        self._last_report_time = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show_case_progress(self, done: int, n: int, failed: int) -> None:
        """Show the number."""
        text = f"cases, {failed} failed" if failed else "cases"
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(text, total=n)
        self._bar.update(self._task, completed=done, description=text)
        if (
            not self._terminal
            and not self._silent
            and time.monotonic() - self._last_report_time > _PROGRESS_INTERVAL_SECONDS
        ):
            self._last_report_time = time.monotonic()
            click.echo(f"{done} of {n} {text}", err=True)


def _parse_number(text: str) -> float | str:
    """Return a number, or text with a unit that is read later."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _parse_varied_quantities(
    _ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """Return NAME=FROM:TO, NAME=FROM:TO:COUNT or NAME=VALUE,VALUE,… as a plan has it."""
    found: dict[str, Any] = {}
    wrong = []
    for text in values:
        name, sign, given = text.partition("=")
        name = name.strip()
        ends = given.split(":")
        parts = given.split(",") if len(ends) == 1 else ends
        if not (sign and name) or name in found or len(ends) > 3 or not all(part.strip() for part in parts):
            wrong.append(text)
        elif len(ends) == 1:
            found[name] = {"values": [_parse_number(part) for part in parts]}
        else:
            found[name] = {"from": _parse_number(ends[0]), "to": _parse_number(ends[1])}
            if len(ends) == 3:
                found[name]["count"] = int(ends[2]) if ends[2].strip().isdecimal() else ends[2]
    if wrong:
        raise click.BadParameter(
            f"{', '.join(wrong)}: write NAME=FROM:TO, or for a grid NAME=FROM:TO:COUNT or NAME=VALUE,VALUE; "
            "as in --vary m2=0.5:2 or --vary 'angle=10 deg:60 deg'; each name once"
        )
    return found


def _parse_pairs(_ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, float | str]:
    """Return NAME=VALUE pairs, values as numbers or as text with a unit (click's callback)."""
    pairs = [text.partition("=") for text in values]
    wrong = [text for text, (name, sign, value) in zip(values, pairs, strict=True) if not (sign and name and value)]
    if wrong:
        raise click.BadParameter(f"{', '.join(wrong)}: write {parameter.metavar}")
    return {name.strip(): _parse_number(value) for name, _, value in pairs}


def _parse_results(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """Return what each result reads and takes, by its text: NAME, NAME:TAKE, NAME:first-crossing=LEVEL:rising."""
    found: dict[str, Any] = {}
    for text in values:
        rest, _, direction = text.rpartition(":")
        directed = {"direction": direction} if rest and direction in CROSSING_DIRECTIONS else {}
        name, _, statistic = (rest if directed else text).rpartition(":")
        take, equals, level = statistic.partition("=")
        if not name or take not in REDUCTION_KINDS:
            found[text] = {"of": text}
        else:
            found[text] = {"of": name, "take": take} | directed | ({"level": _parse_number(level)} if equals else {})
    return found


_PLAN_OPTIONS = (
    click.option(
        "--vary", multiple=True, callback=_parse_varied_quantities, metavar="NAME=FROM:TO",
        help="A parameter, a start value or an input that varies, in its unit or with one; NAME=FROM:TO:COUNT and "
        "NAME=VALUE,VALUE make a grid. May be repeated.  [default: all parameters by 10 %, upward and downward]",
    ),
    click.option(
        "--cases", "table", type=click.Path(), metavar="FILE.csv", help="Cases from a table: a column per name."
    ),
    click.option(
        "--method", type=click.Choice([name for name in SAMPLING_METHODS if name != "table"]),
        help="How cases are chosen.  [default: latin-hypercube, or grid if --vary has one]",
    ),
    click.option("--count", type=click.IntRange(min=1), metavar="N",
        help=f"How many cases.  [default: {DEFAULT_CASE_COUNT}]"),
    click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Seed of the random numbers.  [default: 0]"),
    click.option("--indices", is_flag=True, default=None, help="Sobol' indices; with --method sobol."),
    click.option(
        "--at", "fixed", multiple=True, callback=_parse_pairs, metavar="NAME=VALUE",
        help="A value for all cases. Repeatable.",
    ),
    click.option(
        "--input", "inputs", multiple=True, callback=_parse_pairs, metavar="NAME=FORMULA",
        help="What an input follows, as in --input 'force=5*sin(t)'. Repeatable.",
    ),
    click.option(
        "--result", "results", multiple=True, callback=_parse_results, metavar="NAME[:TAKE]",
        help=f"What is kept: of a variable its {', '.join(REDUCTION_KINDS[:-1])} or {REDUCTION_KINDS[-1]}: the time "
        "when it passes 0, or "
        f"{REDUCTION_KINDS[-1]}=LEVEL; {REDUCTION_KINDS[-1]}=LEVEL:rising and …:falling pass it in that direction "
        "only.  "
        "[default: all outputs at the end]",
    ),
    click.option("--trajectory", "trajectories", multiple=True, metavar="NAME", help="Kept over time. Repeatable."),
    click.option(
        "--trajectory-format", type=click.Choice(["parquet", "zarr"]), help="Their file format.  [default: parquet]"
    ),
    click.option("--stop", type=float, metavar="T", help="End in s.  [default: as the experiment]"),
    click.option("--step", type=float, metavar="H", help="Communication step in s.  [default: as the experiment]"),
    click.option("--kind", type=click.Choice(["cs", "me"]), help="How an FMU is run.  [default: cs]"),
)  # fmt: skip


def _add_plan_options(command: Command) -> Command:
    """Add the options that describe a plan; the command receives them as keyword arguments."""
    for option in reversed(_PLAN_OPTIONS):
        command = option(command)
    return command


def _form_study_plan(source: Path, words: Mapping[str, Any]) -> Path | dict[str, Any]:
    """Return the plan: read from a file, or made of options for an FMU or model.

    Args:
        source: Plan, FMU or model.
        words: The options' values; None or empty: not given.

    Raises:
        click.UsageError: If a plan is given and options that a plan says.
    """
    given = {name: value for name, value in words.items() if value not in (None, (), {})}
    if source.suffix == ".toml":
        if given:
            names = {"table": "cases", "fixed": "at", "inputs": "input", "results": "result", "arguments": "set"}
            option_list = ", ".join(f"--{names.get(name, name).replace('_', '-')}" for name in given)
            raise click.UsageError(
                f"{option_list}: a plan says this itself; write it into {source}, or name an FMU or model"
            )
        return source
    plan: dict[str, Any] = {"fmu" if source.suffix == ".fmu" else "model": str(source)}
    for key, name in (("set", "fixed"), *((each, each) for each in ("arguments", "inputs", "results", "vary"))):
        if name in given:
            plan[key] = given[name]
    if "trajectories" in given:
        plan["trajectories"] = list(given["trajectories"])
    plan |= {key: given[key] for key in ("trajectory_format", "stop", "step", "kind") if key in given}
    plan["cases"] = _form_cases_table(given)
    return plan


def _form_cases_table(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table ``[cases]``."""
    cases = {key: given[key] for key in ("method", "count", "seed", "indices") if key in given}
    if "table" in given:
        return {"method": "table", "file": given["table"], **cases}
    vary = given.get("vary", {})
    on_grid = any("values" in entry or "count" in entry for entry in vary.values())
    cases.setdefault("method", "grid" if on_grid else "latin-hypercube")
    if cases["method"] != "grid":
        cases.setdefault("count", DEFAULT_CASE_COUNT if cases["method"] == "latin-hypercube" else 128)
    if not vary:
        cases["spread"] = DEFAULT_SPREAD
    return cases


@click.command(short_help="Run one model or FMU over thousands of cases, on one machine or many.")
@click.argument("source", type=click.Path(path_type=Path), metavar="PLAN.toml|X.fmu|MODEL")
@click.option(
    "-o", "--out", "--output", "folder", required=True, type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR", help="Folder for results, manifest and summary.",
)  # fmt: skip
@click.option(
    "--scheduler", default="local", show_default=True, metavar="local|none|tcp://HOST:PORT",
    help="Processes of this machine, this very process, or a scheduler of dask.distributed.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Processes of this machine.  [default: processors]"
)
@click.option("--resume", is_flag=True, help="Continue the study in DIR; refused if FMU or plan differ.")
@_add_plan_options
@combine_click_options(set_option, json_file_option, verbose_option, add_quiet_and_debug_options)
def study(
    source: Path,
    folder: Path,
    scheduler: str,
    workers: int | None,
    resume: bool,
    json_file: Path | None,
    **words: Any,
) -> None:
    """Runs all cases of a plan: a grid, a Latin hypercube, Sobol's sequence or a table of one's own.

    A plan is a file, or options say it of an FMU or model. Results are Parquet, with a manifest and a page that sums
    them up. A case that fails is a row with its message; what is interrupted goes on with --resume. Exit code 1 if a
    case failed.

    \b
    Examples:
      mb2fmu study plan.toml --out results
      mb2fmu study theirs.fmu --out results
      mb2fmu study theirs.fmu --vary m2=0.5:2 --count 1000 --result tip.y:largest --out results
      mb2fmu study plan.toml --out results --resume
      mb2fmu study plan.toml --out results --scheduler tcp://10.0.0.5:8786
    """
    from mb2fmu import pipeline
    from mb2fmu.analysis.studies.study_result_store import MANIFEST_FILE
    from mb2fmu.pipeline.study_runs.study_run import run_study

    if workers is not None and scheduler != "local":
        raise click.BadParameter("a scheduler determines its number of workers itself", param_hint="--workers")
    plan = _form_study_plan(source, words)
    with StageProgressDisplay() as progress, _StudyCaseProgressDisplay() as counter:
        try:
            outcome = run_study(
                plan,
                folder,
                scheduler=scheduler,
                workers=workers,
                resume=resume,
                on_progress=counter.show_case_progress,
                observer=progress,
            )
        except KeyboardInterrupt as error:
            if (folder / MANIFEST_FILE).is_file():
                error.args = (f"{str(error) or 'interrupted'}; the same with --resume goes on",)
            raise
    facts = {
        "folder": str(outcome.folder),
        "cases": outcome.cases,
        "failed": outcome.failed,
        "overhead": outcome.overhead,
        "results": str(outcome.folder / "results.parquet"),
        "summary": str(outcome.summary),
    }
    text = json.dumps(facts, indent=2) + "\n"
    if json_file is not None and str(json_file) != "-":
        pipeline.write(json_file, text.encode())
    if str(json_file) == "-":
        click.echo(text, nl=False)
    else:
        _print_outcome(outcome)
    click.get_current_context().exit(1 if outcome.failed else 0)


def _print_outcome(outcome: StudyOutcome) -> None:
    """Print how many cases ran, and where the results are."""
    from mb2fmu.report.summary_lines import VerdictSummaryLine

    good = outcome.cases - outcome.failed
    text = f"{outcome.study.model}: {good} of {outcome.cases} cases ran"
    headline = VerdictSummaryLine("", text + (f", {outcome.failed} failed" if outcome.failed else ""), "good")
    lines: list[VerdictSummaryLine] = []
    if outcome.failed:
        headline = replace(headline, state="bad")
        reason = textwrap.shorten(outcome.commonest_failure, 160, placeholder=" …")
        lines.append(VerdictSummaryLine("Failed", f"most often: {reason} (the column message of the results has all)"))
    lines += [VerdictSummaryLine("Varied", outcome.default_variation_note)] if outcome.default_variation_note else []
    lines += [VerdictSummaryLine("Time", outcome.effort)] if outcome.effort else []
    lines.append(VerdictSummaryLine("Results", str(outcome.folder / "results.parquet"), is_path=True))
    lines.append(VerdictSummaryLine("Report", str(outcome.summary), is_path=True))
    print_verdict_summary(headline, lines)


Command = TypeVar("Command", bound=Callable[..., Any])
