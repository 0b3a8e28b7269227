"""What the commands share: options, and the progress of stages on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import TaskID

    from mb2fmu.outcomes import Timing

Command = TypeVar("Command", bound=Callable[..., Any])


def _debug(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    ctx.ensure_object(dict)["debug"] = value


def _assignments(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in values]
    wrong = [text for text, (name, sign, _) in zip(values, pairs, strict=True) if not (sign and name.isidentifier())]
    if wrong:
        raise click.BadParameter(f"{', '.join(wrong)}: write NAME=VALUE, as in --set n=4")
    return {name: value for name, _, value in pairs}


def options(*given: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """One decorator from several, shown in ``--help`` in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(given):
            command = option(command)
        return command

    return decorate


set_option = click.option(
    "--set",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_assignments,
    help="Argument of the model function, e.g. --set n=4. May be repeated.",
)

debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_debug, help="Show the traceback of an error."
)


class Progress:
    """Shows the stages and what they took, on stderr. Stages may run side by side.

    What is no terminal (a pipe, a log) gets a line for each platform that was compiled for, because that can take
    minutes; and nothing where the host alone is asked for.

    Args:
        platforms: As the user wrote them.
    """

    def __init__(self, platforms: str = "host") -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}
        self._lines = not console.is_terminal and platforms != "host"

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, stage: str) -> None:
        """Adds a line."""
        self._tasks[stage] = self._progress.add_task(stage, total=1)

    def finished(self, timing: Timing) -> None:
        """Ends it, with its time."""
        how = " (as before)" if timing.cached else ""
        text = f"{timing.stage}{how} [dim]{timing.seconds:.2f} s"
        self._progress.update(self._tasks.pop(timing.stage), completed=1, description=text)
        if self._lines and timing.stage.startswith("compile for "):
            click.echo(f"{timing.stage}{how}: {timing.seconds:.2f} s", err=True)
