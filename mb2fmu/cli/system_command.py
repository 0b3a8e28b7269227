"""The command ``mb2fmu system``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    combine_options,
    folder_option,
    json_file_option,
    print_unless_quiet,
    set_option,
)
from mb2fmu.cli.progress import StageProgress

if TYPE_CHECKING:
    from mb2fmu.pipeline.system_runs.system_run import SystemRunResult
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
@combine_options(json_file_option, set_option, add_quiet_and_debug_options)
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
      mb2fmu system systems/two_masses/system.py
      mb2fmu system systems/two_masses/system.py --set step=0.001 --masters fmpy,libcosim
      mb2fmu system TwoMasses.ssp --set step=0.001 --set order=2
    """
    from mb2fmu import pipeline
    from mb2fmu.pipeline.system_runs.system_run import run_coupled_system

    wanted = [name.strip() for name in masters.split(",") if name.strip()]
    with StageProgress() as progress:
        done = run_coupled_system(
            system, folder, arguments=arguments, masters=wanted, parquet=parquet, ssp=ssp, observer=progress
        )
    if json_file is not None and str(json_file) == "-":
        click.echo(done.to_json(), nl=False)
    else:
        if json_file is not None:
            pipeline.write(json_file, done.to_json().encode())
        _print_system_result(done, asked=bool(wanted))
    click.get_current_context().exit(0 if done.passed else 1)


def _print_system_result(done: SystemRunResult, *, asked: bool) -> None:
    """Say what a system did; with other masters asked, also which outputs they read too early."""
    from mb2fmu.systems.exports.foreign_masters import find_largest_difference
    from mb2fmu.systems.resolved_system import find_stale_reads

    tally = done.motion.statistics
    print_unless_quiet(f"{done.joined.system.name}: {tally['steps']} steps, {tally['total_passes']} passes")
    for note in (*done.joined.notes, *tally["notes"]):
        print_unless_quiet(f"Note: {note}")
    for note in find_stale_reads(done.joined.wiring).values() if asked else ():
        print_unless_quiet(f"Note: {note}")
    width = max((len(each.name) for each in done.deviations), default=0)
    for each in done.deviations:
        print_unless_quiet(
            f"  {each.name:{width}}  largest error {each.max_error:.3e} {each.unit}, "
            f"{each.relative_error:.2e} of its size"
        )
    for k, bond in enumerate(done.motion.bonds):
        print_unless_quiet(f"  bond {bond}: energy defect {done.motion.energy_defects[-1, k]:.3e} J")
    for answer in done.answers:
        values = ", ".join(f"{name} = {value:.9g}" for name, value in answer.final_values.items())
        print_unless_quiet(f"  {answer.master_name}: {answer.failure or values}")
        if answer.note:
            print_unless_quiet(f"    {answer.note}")
        if far := find_largest_difference(answer, done.deviations):
            print_unless_quiet(f"    at the end {far[0]:.2e} of its size from the monolithic model: {far[1]}")
    bound = done.joined.system.run_settings.bound
    if bound is not None and done.deviations:
        print_unless_quiet(f"{'Passed' if done.passed else 'Failed'}: the bound is {bound:g} of each variable's size")
    elif done.deviations:
        print_unless_quiet("Not judged: no bound is stated; system.experiment(…, bound=1e-3) states one")
    print_unless_quiet("\n".join(str(path) for path in done.files if path.suffix in {".ssp", ".html"}))
