"""Progress of stages, on a terminal or in a log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

import click

from mb2fmu.cli.command_options import is_quiet_option_given, is_verbose_option_given

if TYPE_CHECKING:
    from rich.progress import TaskID

    from mb2fmu.pipeline.derivation.pipeline_results import StageTime

QUIET_LOG_SECONDS = 60.0
"""In s: who waits longer than this wants to know for what, also where progress cannot be drawn."""


def record_command_start_time() -> None:
    """Note that the command begins now, unless that was noted before."""
    click.get_current_context().ensure_object(dict).setdefault("begin", time.monotonic())


def seconds_since_command_start() -> float:
    """Return the time in s since the command began; 0 if that was not noted."""
    begin = click.get_current_context().ensure_object(dict).get("begin")
    return 0.0 if begin is None else time.monotonic() - float(begin)


class StageProgressDisplay:
    """Shows the stages and what they took, on stderr. Stages may run side by side.

    What is no terminal (a pipe, a log) gets a line for each platform that was compiled for where others than the host
    are requested, and, once :data:`QUIET_LOG_SECONDS` has gone by, a line when a stage begins and when it is done.

    Args:
        platforms: As the user wrote them.
    """

    def __init__(self, platforms: str = "host") -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), TimeElapsedColumn())
        silent = is_quiet_option_given()
        self._progress = Progress(
            *columns,
            console=console,
            disable=silent or not console.is_terminal,
            transient=not is_verbose_option_given(),
        )  # the summary alone stays on the screen
        self._tasks: dict[str, TaskID] = {}
        self._log, self._each_platform = not console.is_terminal and not silent, platforms != "host"
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, stage: str) -> None:
        """Add a line."""
        self._tasks[stage] = self._progress.add_task(stage, total=1)
        if self._long:
            click.echo(f"{stage} …", err=True)

    def report_progress(self, stage: str, share: float) -> None:
        """Show which part of a stage is done, 0 to 1."""
        self._progress.update(self._tasks[stage], description=f"{stage} [dim]{share:4.0%}")

    def report_activity(self, stage: str, part: str) -> None:
        """Show the present activity of a stage."""
        self._progress.update(self._tasks[stage], description=f"{stage} [dim]{part}")
        if self._long:
            click.echo(f"{stage}: {part} …", err=True)

    def finished(self, timing: StageTime) -> None:
        """End a stage, with its time."""
        how = " (as before)" if timing.was_cached else ""
        text = f"{timing.stage}{how} [dim]{timing.seconds:.2f} s"
        self._progress.update(self._tasks.pop(timing.stage), completed=1, description=text)
        platform = self._log and self._each_platform and timing.stage.startswith("compile for ")
        if platform or self._long:
            click.echo(f"{timing.stage}{how}: {timing.seconds:.2f} s", err=True)

    @property
    def _long(self) -> bool:
        """Whether a log has been quiet for so long that a stage should say its time."""
        return self._log and time.monotonic() - self._begin > QUIET_LOG_SECONDS
