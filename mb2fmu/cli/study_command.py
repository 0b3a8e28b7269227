"""The command ``mb2fmu study``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from mb2fmu.cli.command_options import debug_option, is_quiet, json_file_option, options, say, set_option
from mb2fmu.cli.progress import Progress
from mb2fmu.cli.study_options import plan_of, plan_options

if TYPE_CHECKING:
    from rich.progress import TaskID

_EVERY = 10.0
"""In s, between lines of progress where there is no terminal."""


class _Counter:
    """Shows the number of finished cases: a bar on a terminal, else a line now and then."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._silent, self._terminal = is_quiet(), console.is_terminal
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=self._silent or not console.is_terminal)
        self._task: TaskID | None = None
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def told(self, done: int, n: int, failed: int) -> None:
        """Show the number."""
        text = f"cases, {failed} failed" if failed else "cases"
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(text, total=n)
        self._bar.update(self._task, completed=done, description=text)
        if not self._terminal and not self._silent and time.monotonic() - self._said > _EVERY:
            self._said = time.monotonic()
            click.echo(f"{done} of {n} {text}", err=True)


@click.command(short_help="Run one model or FMU over thousands of cases, on one machine or many.")
@click.argument("source", type=click.Path(path_type=Path), metavar="PLAN.toml|X.fmu|MODEL")
@click.option(
    "-o", "--out", "--output", "folder", required=True, type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR", help="For results, manifest and summary.",
)  # fmt: skip
@click.option(
    "--scheduler", default="local", show_default=True, metavar="local|none|tcp://HOST:PORT",
    help="Processes of this machine, this very process, or a scheduler of dask.distributed.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Processes of this machine.  [default: processors]"
)
@click.option("--resume", is_flag=True, help="Go on with the study in DIR; refused if unit or plan are others.")
@plan_options
@options(set_option, json_file_option, debug_option)
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

    A plan is a file, or options say it of a unit or model. Results are Parquet, with a manifest and a page that sums
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
    from mb2fmu.pipeline.study_runs.study_run import run_study

    if workers is not None and scheduler != "local":
        raise click.BadParameter("a scheduler determines its number of workers itself", param_hint="--workers")
    plan = plan_of(source, words)
    with Progress() as progress, _Counter() as counter:
        outcome = run_study(
            plan, folder, scheduler=scheduler, workers=workers, resume=resume, told=counter.told, observer=progress
        )
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
        say(f"{outcome.study.model}: {outcome.cases} cases, {outcome.failed} failed")
        say(f"Results: {facts['results']}")
        for line in filter(None, (outcome.spread, outcome.effort)):
            say(line)
        say(f"Summary: {facts['summary']}")
    click.get_current_context().exit(1 if outcome.failed else 0)
