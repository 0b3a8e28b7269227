"""The command ``mb2fmu equations``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    at_option,
    combine_click_options,
    is_quiet_option_given,
    json_file_option,
    load_model_with_values,
    method_option,
    model_argument,
    print_unless_quiet,
    require_svg_path,
    set_option,
    write_json_result,
)
from mb2fmu.cli.robot_options import add_robot_options
from mb2fmu.cli.stage_progress_display import StageProgressDisplay
from mb2fmu.targets import SOURCE_TARGETS

if TYPE_CHECKING:
    from mb2fmu.pipeline import DerivationResult


@click.command(short_help="Show the equations of motion.")
@combine_click_options(model_argument, method_option, at_option, set_option, add_robot_options)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "latex", "python", *SOURCE_TARGETS]),
    default="text",
    show_default=True,
    help="latex: an align* per part. python: NumPy code that runs without mb2fmu and SymPy. "
    + " ".join(f"{row.name}: {row.gives}." for row in SOURCE_TARGETS.values()),
)
@click.option(
    "--show",
    metavar="KIND,…",
    help="Quantities of the theory instead: partial-velocities, generalized-active-forces, generalized-inertia-forces "
    "(Kane), transformation (TMT), lagrange, momenta, integrals. With --format text or latex.",
)
@click.option(
    "--graph",
    "picture",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=require_svg_path,
    metavar="FILE.svg",
    help="Draw bodies, joints, loads, constraints and sensors as a graph instead.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help=f"With --format {', '.join(SOURCE_TARGETS)}: folder for the files.  [default: out/<ModelName>_<format>]",
)
@combine_click_options(json_file_option, add_quiet_and_debug_options)
def equations(
    model: Path,
    method: Any,
    arguments: dict[str, str],
    at: dict[str, str],
    form: Any,
    show: str | None,
    picture: Path | None,
    folder: Path | None,
    json_file: Path | None,
) -> None:
    """Shows the equations of motion: M, forcing, kinematics, and how many operations they have.

    As source code of another language they are written into a folder, most with a program that integrates the default
    experiment.

    \b
    Examples:
      mb2fmu equations double_pendulum
      mb2fmu equations rolling_disc --method tmt --format latex
      mb2fmu equations cart_pole --format python > cart_pole_equations.py
      mb2fmu equations four_bar --format c -o four_bar_c
      mb2fmu equations four_bar --graph four_bar.svg
      mb2fmu equations two_rods --show partial-velocities,generalized-active-forces
      mb2fmu equations two_rods --json two_rods.json
    """
    from mb2fmu import pipeline

    if folder and form not in SOURCE_TARGETS:
        raise click.BadParameter(f"--format {form} is printed and writes no folder", param_hint="--output")
    if picture is not None:
        with StageProgressDisplay() as progress:
            drawn = pipeline.draw_model_graph(
                load_model_with_values(model, arguments, at), arguments=arguments, observer=progress
            )
            pipeline.write(picture, drawn.encode())
        if not write_json_result({"graph": str(picture)}, json_file):
            print_unless_quiet(str(picture))
        return
    if show is not None:
        _print_quantities(model, arguments, at, form, show, json_file)
        return
    with StageProgressDisplay() as progress:
        derivation = pipeline.derive(
            load_model_with_values(model, arguments, at), arguments=arguments, method=method, observer=progress
        )
        if form in SOURCE_TARGETS:
            name = derivation.definition.name
            written = pipeline.export_target_source_code(derivation, form, folder or Path("out") / f"{name}_{form}")
    if form in SOURCE_TARGETS:
        files = [str(path) for path in written]
        facts = {"model": name, "format": form, "operations": derivation.operations, "files": files}
        if not write_json_result(facts, json_file):
            print_unless_quiet("\n".join(str(path) for path in written if path.parent.name != "runtime"))
        return
    _print_equations(derivation, form, json_file)


def _print_equations(derivation: DerivationResult, form: Any, json_file: Path | None) -> None:
    """Prints the equations in one of the formats of text."""
    from mb2fmu import pipeline
    from mb2fmu.report.equation_display.equation_text import (
        EquationStartValues,
        count_operations_by_section,
        format_equation_sections,
        format_equations,
    )

    name, equations = derivation.definition.name, derivation.equations
    x0, r0, p0 = (tuple(numbers.tolist()) for numbers in pipeline.start_values(derivation))
    text, counts = (
        format_equations(equations, name, form, EquationStartValues(x0, r0, p0)),
        count_operations_by_section(equations),
    )
    facts = {
        "model": name,
        "format": form,
        "method": equations.method,
        "states": [str(state) for state in equations.states],
        "operations written out": counts,
        "operations": derivation.operations,
    } | ({"sections": format_equation_sections(equations)} if form == "text" else {"text": text})
    if write_json_result(facts, json_file) or is_quiet_option_given():
        return
    click.echo(text, nl=False)
    if form == "text":
        click.echo("\nOperations, written out")
        for part, count in counts.items():
            click.echo(f"  {part}: {count:,}")
        click.echo("Operations, evaluated (equal subexpressions once, linear solves included)")
        click.echo(f"  x': {derivation.operations:,}")


def _print_quantities(
    model: Path, arguments: Mapping[str, str], at: Mapping[str, str], form: Any, show: str, json_file: Path | None
) -> None:
    """Print the quantities of ``--show``."""
    from mb2fmu import pipeline
    from mb2fmu.report.equation_display.theory_quantity_text import (
        format_theory_quantities,
        format_theory_quantity_sections,
    )

    if form not in ("text", "latex"):
        raise click.BadParameter(f"quantities are shown as text or latex, not as {form}", param_hint="--show")
    kinds = [kind.strip() for kind in show.split(",") if kind.strip()]
    if not kinds:
        raise click.BadParameter("name what is to be shown, such as partial-velocities", param_hint="--show")
    with StageProgressDisplay() as progress:
        shown = pipeline.quantities(
            load_model_with_values(model, dict(arguments), dict(at)), *kinds, arguments=arguments, observer=progress
        )
    text = format_theory_quantities(shown, form)
    facts = {"model": shown.name, "format": form, "show": kinds}
    facts |= {"sections": format_theory_quantity_sections(shown)} if form == "text" else {"text": text}
    if not write_json_result(facts, json_file) and not is_quiet_option_given():
        click.echo(text, nl=False)
