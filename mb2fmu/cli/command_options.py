"""Options shared by several commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from mb2fmu.mechanics.formulation_registry import FORMULATIONS

if TYPE_CHECKING:
    from mb2fmu.model import CheckedModel, Model

Command = TypeVar("Command", bound=Callable[..., Any])


def _enable_tracebacks(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Note that tracebacks are wanted (click's callback)."""
    ctx.ensure_object(dict)["debug"] = value


def _disable_progress(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Note that no progress is wanted (click's callback)."""
    ctx.ensure_object(dict)["quiet"] = value


def start_fmu_run_server() -> None:
    """Start the server of the processes that run FMUs, before anything large is imported.

    Only where the command is all that the process does: not in tests and programs that call a command as a function.
    """
    if click.get_current_context().ensure_object(dict).get("is_whole_process"):
        from mb2fmu.validation.runs.fmu_process_start import fork_server_early

        fork_server_early()


def is_quiet_option_given() -> bool:
    """Return whether ``--quiet`` was given to the command that runs."""
    context = click.get_current_context(silent=True)
    return bool(context and context.ensure_object(dict).get("quiet"))


def _enable_details(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Note that all tables are wanted (click's callback)."""
    ctx.ensure_object(dict)["verbose"] = value


def is_verbose_option_given() -> bool:
    """Return whether ``--verbose`` was given to the command that runs."""
    context = click.get_current_context(silent=True)
    return bool(context and context.ensure_object(dict).get("verbose"))


def print_unless_quiet(text: str) -> None:
    """Print a line on stdout, unless ``--quiet`` was given."""
    if not is_quiet_option_given():
        click.echo(text)


def print_unit_contradictions(definition: CheckedModel) -> None:
    """Print on stderr which declared units contradict each other."""
    from mb2fmu.model.checks.unit_contradictions import describe_unit_contradictions

    for note in describe_unit_contradictions(definition):
        click.echo(f"note: {note}", err=True)


def _parse_start_values(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE by FMU name; the model checks the names later."""
    pairs = [text.partition("=") for text in values]
    wrong = [text for text, (name, sign, value) in zip(values, pairs, strict=True) if not (sign and name and value)]
    if wrong:
        raise click.BadParameter(
            f"{', '.join(wrong)}: write NAME=VALUE, as in --at m=2 or --at 'theta=30 deg'; NAME is a parameter, "
            "a start value or an input"
        )
    return {name.strip(): value for name, _, value in pairs}


def load_model_with_values(path: Path, arguments: Mapping[str, str], at: Mapping[str, str]) -> Path | Model:
    """Return the model of a command: that of its file, with the values that were set.

    Raises:
        ModelError: If the file cannot be loaded, or a name cannot be set.
    """
    if not at:
        return path
    from mb2fmu import pipeline

    return pipeline.load(path, arguments).at(at)


def _parse_assignments(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE pairs as a mapping; raise with all that are not (click's callback)."""
    pairs = [text.partition("=") for text in values]
    wrong = [text for text, (name, sign, _) in zip(values, pairs, strict=True) if not (sign and name.isidentifier())]
    if wrong:
        raise click.BadParameter(
            f"{', '.join(wrong)}: write NAME=VALUE, as in --set n=4, with an argument of the model function; "
            "parameters, start values and inputs are set by --at"
        )
    return {name: value for name, _, value in pairs}


def refuse_model_options_for_fmu() -> None:
    """End the command, which has an FMU, if it was given options that apply to models only.

    Raises:
        click.UsageError: Naming those that were given.
    """
    context = click.get_current_context()
    option_names = {"arguments", "role", "limits", "friction", "inertia", "quantities", "packages"}
    meant = [
        option.opts[0]
        for option in context.command.params
        if option.name in option_names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]
    if meant:
        raise click.UsageError(f"{', '.join(meant)}: an FMU does not have this; --at sets an FMU's values")


def combine_click_options(*given: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator made from several, shown in ``--help`` in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(given):
            command = option(command)
        return command

    return decorate


model_argument = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.py|ROBOT.urdf")
method_option = click.option(
    "--method",
    type=click.Choice(["auto", *(row.name for row in FORMULATIONS)]),
    default="auto",
    show_default=True,
    help="Formulation of the equations of motion; recursive evaluates link after link and suits many joints.",
)
set_option = click.option(
    "--set",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_parse_assignments,
    help="Argument of the model function, e.g. --set n=4: another mechanism. May be repeated.",
)

at_option = click.option(
    "--at",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_parse_start_values,
    help="Value of a parameter, a start value or an input instead of the model's, in its unit or with one: "
    "--at 'theta=30 deg'. May be repeated.",
)

TABLE_SUFFIXES = (".csv", ".json")
InputOptionValues = tuple[dict[str, str], tuple[Path, ...]]
"""Formulas by FMU name, and tables."""


def _parse_inputs(_ctx: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> InputOptionValues:
    """Return NAME=FORMULA pairs, or the name of a table."""
    formulas: dict[str, str] = {}
    tables: list[Path] = []
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or Path(text).suffix.lower() in TABLE_SUFFIXES:
            tables.append(Path(text))
        elif name.strip() and value.strip():
            formulas[name.strip()] = value.strip()
        else:
            raise click.BadParameter(f"{text}: write NAME=FORMULA, as in --input 'V=5*sin(t)', or FILE.csv")
    return formulas, tuple(tables)


input_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FORMULA|FILE.csv",
    callback=_parse_inputs,
    help="An input over time: a formula of t (5*sin(2*pi*t), 3*step(t - 1), 1 if t < 2 else 0), or a table with a "
    "column time and columns by FMU name. May be repeated.",
)
stop_option = click.option(
    "--stop", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="End of the simulation."
)
step_option = click.option(
    "--step",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Step between the times of the result.",
)

folder_option = click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out"),
    show_default=True,
    metavar="DIR",
    help="Folder to write to; made if it is not there.",
)

json_file_option = click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    is_flag=False,
    flag_value="-",
    metavar="FILE",
    help="Also write everything as JSON; - (or nothing) writes it to stdout instead of the text.",
)


def write_json_result(facts: Mapping[str, Any], json_file: Path | None) -> bool:
    """Writes what a command found where ``--json`` says.

    Args:
        facts: What JSON knows.
        json_file: From the option; None: nowhere.

    Returns:
        Whether it went to stdout, instead of the text.
    """
    return json_file is not None and write_json_text(json.dumps(facts, indent=2) + "\n", json_file)


def write_json_text(text: str, json_file: Path | None) -> bool:
    """Write JSON where ``--json`` says; return whether it went to stdout, instead of the text."""
    if json_file is None:
        return False
    if str(json_file) == "-":
        click.echo(text, nl=False)
        return True
    from mb2fmu import pipeline

    pipeline.write(json_file, text.encode())
    return False


quiet_option = click.option(
    "--quiet",
    "-q",
    is_flag=True,
    expose_value=False,
    callback=_disable_progress,
    help="Print only errors; see the exit code.",
)

_traceback_option = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_enable_tracebacks, help="Show the traceback of an error."
)


verbose_option = click.option(
    "--verbose",
    "-v",
    is_flag=True,
    expose_value=False,
    callback=_enable_details,
    help="Also print every table, check and note.",
)


def add_quiet_and_debug_options(command: Command) -> Command:
    """Add ``--quiet`` and ``--debug``, which every command has."""
    return quiet_option(_traceback_option(command))


def require_svg_path(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Return the path of a picture that must be SVG (click's callback)."""
    if path is not None and path.suffix.lower() != ".svg":
        raise click.BadParameter(f"{path}: it is drawn as SVG; give FILE.svg")
    return path


PAGE_SUFFIXES = (".html", ".htm")


def choose_html_page_path(path: Path, name: str) -> Path:
    """Return the path of a page that was requested by FILE.html, or by its folder."""
    return path if path.suffix.lower() in PAGE_SUFFIXES else path / f"{name}.html"


def require_html_page_path(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Return the path of a page; pictures and films have options of their own (click's callback)."""
    kind = "" if path is None else path.suffix.lower().removeprefix(".")
    if kind in {"png", "svg", "gif", "webm", "mp4"}:
        raise click.BadParameter(f"{path}: the page is HTML; write --{kind} {path}")
    meant = _SUPPORTED_ALTERNATIVES.get(kind)
    if path is not None and meant is not None and not path.is_dir():
        written = " or ".join(f"--{each} {path.with_suffix(f'.{each}')}" for each in meant)
        raise click.BadParameter(f"{path}: the page is HTML, and .{kind} is not written; write {written}")
    return path


_SUPPORTED_ALTERNATIVES = {
    **dict.fromkeys(("mov", "avi", "mkv", "m4v", "mpg", "apng"), ("webm", "mp4", "gif")),
    **dict.fromkeys(("jpg", "jpeg", "webp", "bmp", "tif", "tiff", "pdf", "eps"), ("png", "svg")),
}
"""Kinds of films and pictures that are requested and not written → those that are."""
