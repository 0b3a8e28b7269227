"""The command ``mb2fmu audit``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from mb2fmu.cli.command_options import debug_option, is_quiet, json_file_option

PIPED_WIDTH = 120


def _list_rules(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from mb2fmu.report.audited import rule_lines

        for line in rule_lines():
            click.echo(line)
        ctx.exit()


_file = click.Path(path_type=Path, dir_okay=False)


@click.command(short_help="Judge any FMU: what it does against what it says.")
@click.argument("fmu", type=click.Path(path_type=Path), metavar="UNIT.fmu")
@json_file_option
@click.option(
    "--report",
    "--html",
    "html_file",
    type=_file,
    metavar="FILE.html",
    help="Also write them as one self-contained page.",
)
@click.option("--github", is_flag=True, help="Also print them as annotations of GitHub Actions.")
@click.option(
    "--only",
    multiple=True,
    metavar="RULE",
    help="Judge these rules only; * stands for anything, as in dependencies.*. May be repeated.",
)
@click.option("--no-run", is_flag=True, help="Do not run the unit: judge archive, description and binaries only.")
@click.option("--no-checkers", is_flag=True, help="Do not ask fmpy and fmutool too.")
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "note"]), default="error", show_default=True,
    help="From which severity on the exit code is 1.",
)  # fmt: skip
@click.option(
    "--time-limit",
    type=click.FloatRange(min=1.0),
    default=120.0,
    show_default=True,
    metavar="S",
    help="For each thing tried with the unit.",
)
@click.option(
    "--memory-limit",
    type=click.FloatRange(min=0.5),
    default=8.0,
    show_default=True,
    metavar="GIB",
    help="For the process that runs it.",
)
@click.option(
    "--list-rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_rules,
    help="List all rules with their sections of the standard.",
)
@debug_option
def audit(
    fmu: Path, json_file: Path | None, html_file: Path | None, github: bool, only: tuple[str, ...], no_run: bool,
    no_checkers: bool, fail_on: Any, time_limit: float, memory_limit: float,
) -> None:  # fmt: skip
    """Judges any FMU of FMI 2 or 3, from any tool: archive, description, binaries, and what it does when it runs.

    It is run in a process of its own; one that crashes or hangs is a finding. What fmpy and fmutool find is in the same
    report. Exit code 0: no errors, 1: errors (or what --fail-on says), 2: this is no FMU.

    \b
    Examples:
      mb2fmu audit out/CartPole.fmu
      mb2fmu audit theirs.fmu --report audit.html --json audit.json
      mb2fmu audit theirs.fmu --only 'dependencies.*' --only 'derivative.*'
      mb2fmu audit theirs.fmu --github --fail-on warning
    """
    from mb2fmu.audit import audit as judge
    from mb2fmu.pipeline import write
    from mb2fmu.report.audited import audit_page, github_lines

    result = judge(
        fmu, only=only or ("*",), run=not no_run, others=not no_checkers and not only, time_limit=time_limit,
        memory_limit=int(memory_limit * 1024**3),
    )  # fmt: skip
    to_stdout = json_file is not None and str(json_file) == "-"
    if json_file is not None and not to_stdout:
        write(json_file, result.to_json().encode())
    if html_file is not None:
        write(html_file, audit_page(result))
    if to_stdout:
        click.echo(result.to_json(), nl=False)
    elif not is_quiet():
        _print(result)
    if github:
        for line in github_lines(result):
            click.echo(line)
    click.get_current_context().exit(1 if result.fails(fail_on) else 0)


def _print(result: Any) -> None:
    from rich.console import Console

    from mb2fmu.report.audited import audit_blocks

    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)
    for block in audit_blocks(result):
        console.print(block)
