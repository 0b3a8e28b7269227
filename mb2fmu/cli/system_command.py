"""The command ``mb2fmu system``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    combine_click_options,
    folder_option,
    json_file_option,
    set_option,
    verbose_option,
)
from mb2fmu.cli.stage_progress_display import StageProgressDisplay
from mb2fmu.cli.verdict_output import print_verdict_summary

if TYPE_CHECKING:
    from rich.text import Text

    from mb2fmu.pipeline.system_runs.coupled_system_run import SystemRunResult
    from mb2fmu.report.summary_lines import SummaryState, VerdictSummaryLine
    from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings
    from mb2fmu.systems.ssp.ssp_archive import SspVersion


@click.command(short_help="Couple several FMUs: run them together, write SSP and OSP files.")
@click.argument("system", type=click.Path(path_type=Path), metavar="SYSTEM.py|SYSTEM.ssp")
@folder_option
@click.option(
    "--masters",
    default="",
    metavar="LIST",
    help="Also run the files in other masters: fmpy, libcosim, ecos, separated by commas, as far as installed.",
)
@click.option(
    "--ssp",
    type=click.Choice(["1.0", "2.0", "2.1-draft"]),
    default="1.0",
    show_default=True,
    help="Version of the .ssp. The draft writes connected terminals as such; most importers read 1.0 alone.",
)
@click.option("--parquet", is_flag=True, help="Also write the results as Parquet, DIR/NAME.parquet.")
@combine_click_options(json_file_option, set_option, verbose_option, add_quiet_and_debug_options)
def system(
    system: Path,
    folder: Path,
    masters: str,
    ssp: SspVersion,
    parquet: bool,
    json_file: Path | None,
    arguments: dict[str, str],
) -> None:
    """Couples FMUs as a system file says, runs them, and compares them with the monolithic model if one is given.

    Writes DIR/NAME.ssp, DIR/NAME/OspSystemStructure.xml with the FMUs (libcosim), DIR/NAME_fmpy.py,
    a picture, results and a report. A system file is Python with one function annotated "-> CoupledSystem".

    An .ssp is read and run; --set step, stop, order, passes and loops say how.

    \b
    Examples:
      mb2fmu system parts/system.py
      mb2fmu system parts/system.py --set step=0.001 --masters fmpy,libcosim
      mb2fmu system TwoMasses.ssp --set step=0.001 --set order=2
    """
    from mb2fmu import pipeline
    from mb2fmu.pipeline.system_runs.coupled_system_run import run_coupled_system

    wanted = [name.strip() for name in masters.split(",") if name.strip()]
    with StageProgressDisplay() as progress:
        done = run_coupled_system(
            system, folder, arguments=arguments, masters=wanted, parquet=parquet, ssp=ssp, observer=progress
        )
    if json_file is not None and str(json_file) == "-":
        click.echo(done.to_json(), nl=False)
    else:
        if json_file is not None:
            pipeline.write(json_file, done.to_json().encode())
        _print_system_result(done, with_masters=bool(wanted))
    click.get_current_context().exit(0 if done.passed else 1)


def _print_system_result(done: SystemRunResult, *, with_masters: bool) -> None:
    """Print the verdict; all numbers and notes with ``--verbose``."""
    from mb2fmu.report.summary_lines import VerdictSummaryLine

    lines = [*_summarize_run(done), *_summarize_masters(done)]
    notes = [*done.joined.notes, *done.motion.statistics["notes"]]
    if notes:
        more = f" ({len(notes) - 1} more with -v)" if len(notes) > 1 else ""
        lines.append(VerdictSummaryLine("Note", notes[0] + more))
    for label, suffix in (("SSP", ".ssp"), ("Report", ".html")):
        lines += [VerdictSummaryLine(label, str(path), is_path=True) for path in done.files if path.suffix == suffix]
    print_verdict_summary(
        _format_system_headline(done), lines, lambda _width: _list_system_details(done, with_masters=with_masters)
    )


def _format_system_headline(done: SystemRunResult) -> VerdictSummaryLine:
    """Return the verdict in one line."""
    from mb2fmu.report.summary_lines import VerdictSummaryLine

    name, bound = done.joined.system.name, done.joined.system.run_settings.bound
    took = f" ({sum(each.seconds for each in done.timings):.1f} s)"
    if not done.deviations:
        return VerdictSummaryLine("", f"{name} was run; no monolithic model to compare it with{took}", "plain")
    worst = max(done.deviations, key=lambda each: each.relative_error)
    share = f"{worst.name} is off by {100.0 * worst.relative_error:.2g} % of its size"
    if bound is None:
        text = f"{name} was run, not judged: {share}; system.experiment(..., bound=1e-3) states a bound{took}"
        return VerdictSummaryLine("", text, "plain")
    text = f"{name} {'passed' if done.passed else 'failed'}: at worst {share}, the bound is {100.0 * bound:.2g} %{took}"
    return VerdictSummaryLine("", text, "good" if done.passed else "bad")


def _summarize_run(done: SystemRunResult) -> Iterator[VerdictSummaryLine]:
    """Yield what was run, and how well it agrees."""
    from mb2fmu.report.summary_lines import VerdictSummaryLine

    tally, bound = done.motion.statistics, done.joined.system.run_settings.bound
    yield VerdictSummaryLine("Run", f"{tally['steps']} communication steps, {tally['total_passes']} iterations")
    if done.deviations:
        bad = [each for each in done.deviations if bound is not None and not each.relative_error <= bound]
        total = len(done.deviations)
        state: SummaryState = "bad" if bad else "good" if bound is not None else "plain"
        text = (
            f"{total - len(bad)} of {total} variables within the bound" if bound is not None else f"{total} variables"
        )
        yield VerdictSummaryLine("Reference", f"{text}, compared with the monolithic model", state)
        for each in bad[:4]:
            yield VerdictSummaryLine("", f"{each.name}: off by {each.max_error:.3g} {each.unit}", "bad")
        if bad:
            yield VerdictSummaryLine("Try", _suggest_finer_stepping(done.joined.system.run_settings.stepping))
    if done.motion.bonds:
        defects = [abs(float(value)) for value in done.motion.energy_defects[-1]]
        k = max(range(len(defects)), key=defects.__getitem__)
        yield VerdictSummaryLine("Energy", f"at worst {defects[k]:.3g} J lost or gained, at {done.motion.bonds[k]}")


def _suggest_finer_stepping(stepping: CommunicationStepSettings) -> str:
    """Return what makes a system more accurate, the cheapest first; what it has already is left out."""
    cheaper = [
        text for text, is_used in (("order=2", stepping.order > 1), ("passes=20", stepping.passes > 1)) if not is_used
    ]
    step = f"step={stepping.step / 4:g}"
    first = (
        f"{', '.join(cheaper)} in system.experiment(...), then {step}"
        if cheaper
        else f"{step} in system.experiment(...)"
    )
    return f"{first}: those of the FMUs themselves stay"


def _summarize_masters(done: SystemRunResult) -> Iterator[VerdictSummaryLine]:
    """Yield what other masters made of the same files."""
    from mb2fmu.report.summary_lines import VerdictSummaryLine
    from mb2fmu.systems.exports.foreign_masters import find_largest_master_difference

    for k, answer in enumerate(done.answers):
        far = find_largest_master_difference(answer, done.deviations)
        text = f"{answer.master_name}: {answer.failure or 'ran'}"
        if far:
            text += f"; at the end {100.0 * far[0]:.2g} % of its size from the monolithic model: {far[1]}"
        yield VerdictSummaryLine("Masters" if k == 0 else "", text, "bad" if answer.failure else "plain")


def _list_system_details(done: SystemRunResult, *, with_masters: bool) -> Iterator[Text]:
    """Yield all numbers; with other masters requested, also which outputs they read too early."""
    from rich.text import Text

    from mb2fmu.systems.port_and_bond_records import find_outputs_read_before_inputs

    for note in (*done.joined.notes, *done.motion.statistics["notes"]):
        yield Text(f"Note: {note}")
    for note in find_outputs_read_before_inputs(done.joined.wiring).values() if with_masters else ():
        yield Text(f"Note: {note}")
    width = max((len(each.name) for each in done.deviations), default=0)
    for each in done.deviations:
        yield Text(
            f"  {each.name:{width}}  largest error {each.max_error:.3e} {each.unit}, "
            f"{each.relative_error:.2e} of its size"
        )
    for k, bond in enumerate(done.motion.bonds):
        yield Text(f"  bond {bond}: energy defect {done.motion.energy_defects[-1, k]:.3e} J")
    for answer in done.answers:
        values = ", ".join(f"{name} = {value:.9g}" for name, value in answer.final_values.items())
        yield Text(f"  {answer.master_name}: {answer.failure or values}")
        if answer.note:
            yield Text(f"    {answer.note}")
