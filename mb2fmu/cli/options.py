"""Options that the commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

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
