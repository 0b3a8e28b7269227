"""The command ``mb2fmu audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mb2fmu.cli.command_options import add_quiet_and_debug_options, json_file_option, verbose_option
from mb2fmu.cli.verdict_output import print_verdict_summary


def _list_rules(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Print all rules and end (click's callback of --list-rules)."""
    if value and not ctx.resilient_parsing:
        from mb2fmu.report.pages.audit_page import format_audit_rules_as_text

        for line in format_audit_rules_as_text():
            click.echo(line)
        ctx.exit()


_file_path_type = click.Path(path_type=Path, dir_okay=False)
_existing_file_path_type = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command(short_help="Judge any FMU: what it does against what it says.")
@click.argument("fmu", type=click.Path(path_type=Path), metavar="NAME.fmu")
@json_file_option
@click.option(
    "--report",
    "--html",
    "html_file",
    type=_file_path_type,
    metavar="FILE.html",
    help="Also write them as one self-contained page.",
)
@click.option("--sarif", "sarif_file", type=_file_path_type, metavar="FILE", help="Also write them as SARIF 2.1.0.")
@click.option(
    "--junit", "junit_file", type=_file_path_type, metavar="FILE", help="Also write them as JUnit XML, a case per rule."
)
@click.option("--github", is_flag=True, help="Also print them as annotations of GitHub Actions, one per rule.")
@click.option(
    "--only",
    multiple=True,
    metavar="RULE",
    help="Judge these rules only; * stands for anything, as in dependencies.*. May be repeated.",
)
@click.option("--skip", multiple=True, metavar="RULE", help="Do not judge these rules. May be repeated.")
@click.option("--no-run", is_flag=True, help="Do not run the FMU: judge archive, description and binaries only.")
@click.option("--no-checkers", is_flag=True, help="Do not run fmpy and fmutool too.")
@click.option(
    "--fail-on", type=click.Choice(["error", "warning", "note"]), default="error", show_default=True,
    help="Lowest severity for which the exit code is 1.",
)  # fmt: skip
@click.option(
    "--policy", type=_existing_file_path_type, metavar="audit.toml",
    help="Rules to skip, severities and waivers; audit.toml in the working folder is read if it is there.",
)  # fmt: skip
@click.option(
    "--baseline",
    type=_existing_file_path_type,
    metavar="OLD.json",
    help="JSON of an earlier audit: only what is new fails.",
)
@click.option(
    "--reference", type=_existing_file_path_type, metavar="REF.csv",
    help="A recorded run to repeat (FMI cross-check form); else NAME_ref.csv beside the FMU, or one that it carries.",
)  # fmt: skip
@click.option(
    "--input", "input_file", type=_existing_file_path_type, metavar="IN.csv", help="Inputs of the recorded run."
)
@click.option(
    "--options",
    type=_existing_file_path_type,
    metavar="REF.opt",
    help="StartTime, StopTime, StepSize, RelTol of that run.",
)
@click.option(
    "--budget", type=click.FloatRange(min=1.0), default=120.0, show_default=True, metavar="S",
    help="Time for the whole audit; trials that did not fit are listed.",
)  # fmt: skip
@click.option(
    "--time-limit", type=click.FloatRange(min=0.1), default=15.0, show_default=True, metavar="S",
    help="Time for one call of the FMU; a longer call counts as a hang.",
)  # fmt: skip
@click.option(
    "--memory-limit", type=click.FloatRange(min=0.25), metavar="GIB",
    help="Memory of the process that runs it.  [default: 8, and at most half of the machine's]",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Number of parallel processes.  [default: processors]"
)
@click.option(
    "--platform", type=click.Choice(["host", "win64"]), default="host", show_default=True,
    help="Which of its binaries is run; those of Windows through wine, where that is installed.",
)  # fmt: skip
@click.option(
    "--valgrind/--no-valgrind",
    default=True,
    help="Run it once more under valgrind, where that is installed.  [default: valgrind]",
)
@click.option(
    "--list-rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_rules,
    help="List all rules with their sections of the standard.",
)
@verbose_option
@add_quiet_and_debug_options
def audit(
    fmu: Path, json_file: Path | None, html_file: Path | None, sarif_file: Path | None, junit_file: Path | None,
    github: bool, only: tuple[str, ...], skip: tuple[str, ...], no_run: bool, no_checkers: bool, fail_on: Any,
    policy: Path | None, baseline: Path | None, budget: float, time_limit: float, memory_limit: float | None,
    jobs: int | None, reference: Path | None, input_file: Path | None, options: Path | None,
    platform: str, valgrind: bool,
) -> None:  # fmt: skip
    """Judges any FMU of FMI 2 or 3, from any tool: archive, description, binaries, and what it does when it runs.

    It is run in a process of its own, within bounds; one that crashes or hangs is a finding. What fmpy and fmutool find
    is in the same report. Exit code 0: no errors, 1: errors (or what --fail-on says), 2: this is no FMU of version 2 or
    3, 3: a tool failed, 4: no errors, but the archive has no binary for this machine, 70: a fault of the auditor.

    \b
    Examples:
      mb2fmu audit out/CartPole.fmu
      mb2fmu audit theirs.fmu --report audit.html --json audit.json
      mb2fmu audit theirs.fmu --only 'dependencies.*' --only 'derivative.*'
      mb2fmu audit theirs.fmu --github --fail-on warning
      mb2fmu audit theirs.fmu --reference theirs_ref.csv --input theirs_in.csv
      mb2fmu audit theirs.fmu --baseline audit.json --sarif audit.sarif --junit audit.xml
    """
    from mb2fmu.audit import audit as judge
    from mb2fmu.audit import (
        find_reference_run_of_fmu,
        read_audit_policy,
        read_audit_reference_run,
        require_audit_packages,
    )
    from mb2fmu.report.pages.audit_page import format_audit_for_terminal, summarize_audit
    from mb2fmu.report.summary_lines import VerdictSummaryLine

    if reference is None and (input_file or options):
        raise click.UsageError("--input and --options belong to a recorded run: give --reference too")
    run_checkers = not no_checkers and not only
    require_audit_packages(run_checkers=run_checkers)
    rules = read_audit_policy(policy, baseline)
    recorded = read_audit_reference_run(reference, input_file, options) if reference else find_reference_run_of_fmu(fmu)
    result = judge(
        fmu, only=only or ("*",), skip=skip, run=not no_run, run_checkers=run_checkers, budget=budget,
        time_limit=time_limit, memory_limit=None if memory_limit is None else int(memory_limit * 1024**3), jobs=jobs,
        policy=rules, recorded=recorded, windows=platform == "win64", valgrind=valgrind,
    )  # fmt: skip
    to_stdout = json_file is not None and str(json_file) == "-"
    _write_audit_files(result, {"json": json_file, "html": html_file, "sarif": sarif_file, "junit": junit_file})
    if to_stdout:
        click.echo(result.to_json(), nl=False)
    else:
        headline, lines = summarize_audit(result, fail_on)
        if html_file is not None:
            lines.append(VerdictSummaryLine("Report", str(html_file), is_path=True))
        print_verdict_summary(headline, lines, lambda _width: format_audit_for_terminal(result))
    if github:
        from mb2fmu.report.pages.audit_ci_reports import format_github_annotations

        for line in format_github_annotations(result):
            click.echo(line)
    for fault in result.faults:
        click.echo(f"mb2fmu: a fault of the auditor, not of the FMU: {fault}", err=True)
    click.get_current_context().exit(result.exit_code(fail_on))


def _write_audit_files(result: Any, files: dict[str, Path | None]) -> None:
    """Write every requested file; output for stdout is left out."""
    if not any(path is not None and str(path) != "-" for path in files.values()):
        return
    from mb2fmu.fmu.package.atomic_publishing import write_file_atomically
    from mb2fmu.report.pages.audit_ci_reports import format_junit, format_sarif

    def page(result: Any) -> bytes:
        """Return the HTML page, whose libraries load slowly."""
        from mb2fmu.report.pages.audit_page import render_audit_page

        return render_audit_page(result)

    makers = {"json": lambda each: each.to_json().encode(), "html": page, "sarif": format_sarif, "junit": format_junit}
    for name, path in files.items():
        if path is not None and str(path) != "-":
            write_file_atomically(path, makers[name](result))
