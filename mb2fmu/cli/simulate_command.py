"""The command ``mb2fmu simulate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import (
    InputOptionValues,
    add_quiet_and_debug_options,
    at_option,
    combine_click_options,
    input_option,
    json_file_option,
    print_unit_contradictions,
    print_unless_quiet,
    refuse_model_options_for_fmu,
    set_option,
    step_option,
    stop_option,
)
from mb2fmu.cli.robot_options import add_robot_options
from mb2fmu.cli.stage_progress_display import StageProgressDisplay

if TYPE_CHECKING:
    from mb2fmu.pipeline.simulation.fmu_simulation import InterfaceTypeName
    from mb2fmu.pipeline.simulation.simulation_trajectories import SimulationTrajectories

INTERFACE_TYPE_CHOICES = ("cs", "me")
_file_path_type = click.Path(path_type=Path, dir_okay=False)


@click.command(short_help="Simulate a model or any FMU: table, CSV, Parquet, plot.")
@click.argument("source", type=click.Path(path_type=Path), metavar="MODEL.py|ROBOT.urdf|NAME.fmu")
@at_option
@combine_click_options(input_option, stop_option, step_option)
@click.option(
    "--kind",
    type=click.Choice(INTERFACE_TYPE_CHOICES),
    help="Interface type of an FMU: Co-Simulation or Model Exchange.",
)
@click.option(
    "--csv", type=_file_path_type, metavar="FILE", help="Write all variables as a table, each head with its unit."
)
@click.option("--parquet", type=_file_path_type, metavar="FILE", help="Write them as Parquet; needs pyarrow.")
@click.option("--plot", type=_file_path_type, metavar="FILE", help="Draw variables over time, as .svg, .png or .pdf.")
@click.option("--show", metavar="NAME,…", help="Variables to draw and list; what moves most, if none is named.")
@combine_click_options(set_option, add_robot_options, json_file_option, add_quiet_and_debug_options)
def simulate(
    source: Path,
    at: dict[str, str],
    inputs: InputOptionValues,
    stop: float | None,
    step: float | None,
    kind: InterfaceTypeName | None,
    csv: Path | None,
    parquet: Path | None,
    plot: Path | None,
    show: str | None,
    arguments: dict[str, str],
    json_file: Path | None,
) -> None:
    """Simulates a model by its own equations, or any FMU by fmpy, without judging anything.

    A model without events follows its inputs at every instant. An FMU, and a model with events (friction that sticks,
    impacts), gets them at the beginning of each communication step: a shorter --step follows them more closely. The
    rates of a prescribed motion are derived from its formula; a table has to give them.

    \b
    Examples:
      mb2fmu simulate crane.py --at m=2 --stop 5 --csv crane.csv
      mb2fmu simulate cart_pole --input "force=5*sin(t)" --plot cart.svg --show x,theta
      mb2fmu simulate theirs.fmu --input measured.csv --parquet theirs.parquet
    """
    from mb2fmu import pipeline
    from mb2fmu.pipeline.simulation.simulation_trajectories import (
        ModelSimulation,
        SimulationStoppedError,
        require_parquet_support,
    )

    if parquet is not None:
        require_parquet_support()
    if plot is not None:
        from mb2fmu.report.figures.figure_style import choose_figure_format

        choose_figure_format(plot)
    formulas, tables = inputs
    stopped: SimulationStoppedError | None = None
    simulate_source: Callable[..., SimulationTrajectories]
    with StageProgressDisplay() as progress:
        if source.suffix == ".fmu":
            from mb2fmu.pipeline.simulation.fmu_simulation import simulate_fmu_file

            refuse_model_options_for_fmu()
            simulate_source = partial(simulate_fmu_file, source, at=at, kind=kind)
        else:
            if kind is not None:
                raise click.BadParameter("only an FMU is run so; a model is integrated", param_hint="--kind")
            from mb2fmu.pipeline.simulation.model_simulation import simulate_model

            model = pipeline.load(source, arguments).at(at)
            simulate_source = partial(simulate_model, model, observer=progress)
        try:
            result = simulate_source(inputs=formulas, tables=tables, stop=stop, step=step)
        except SimulationStoppedError as error:
            result, stopped = error.simulation, error
    shown = tuple(name.strip() for name in show.split(",")) if show else ()
    result.check(shown)
    if isinstance(result, ModelSimulation):
        print_unit_contradictions(result.derivation.checked)
    elif source.suffix != ".fmu" and (formulas or tables):
        _print_note_on_held_inputs(result)
    _write_simulation_files(result, shown, {"csv": csv, "parquet": parquet, "plot": plot}, json_file)
    if stopped is not None:
        raise stopped


def _print_note_on_held_inputs(result: SimulationTrajectories) -> None:
    """Print on stderr which inputs of a model with events change in steps, where its equations alone follow them."""
    from mb2fmu.pipeline.simulation.simulation_trajectories import FmuSimulation

    assert isinstance(result, FmuSimulation)
    moving = [name for name, row in zip(result.input_names, result.inputs.T, strict=True) if row.min() < row.max()]
    if moving:
        step = f"{result.time[1] - result.time[0]:g}"
        text = f"{', '.join(moving)}: held over each step of {step} s, since the model has events and is run as its FMU"
        click.echo(f"note: {text}; a shorter --step follows more closely", err=True)


def _write_simulation_files(
    result: SimulationTrajectories, shown: tuple[str, ...], files: dict[str, Path | None], json_file: Path | None
) -> None:
    """Write the requested files, and a summary on the terminal unless JSON goes there."""
    from mb2fmu import pipeline

    if files["csv"] is not None:
        result.to_csv(files["csv"])
    if files["parquet"] is not None:
        result.to_parquet(files["parquet"])
    if files["plot"] is not None:
        result.plot(*shown, save=files["plot"])
    if json_file is not None:
        columns = {name: result[name].tolist() for name in result.names}
        text = json.dumps(
            {"model": result.name, "units": result.units, "time": result.time.tolist(), "values": columns}
        )
        if str(json_file) == "-":
            click.echo(text)
            return
        pipeline.write(json_file, (text + "\n").encode())
    for line in _format_variable_ranges(result, shown):
        print_unless_quiet(line)
    for departure in result.range_violations():
        click.echo(f"note: {departure}", err=True)
    for what, path in files.items():
        if path is not None:
            print_unless_quiet(f"{what}: {path}")


def _format_variable_ranges(result: SimulationTrajectories, shown: tuple[str, ...]) -> Iterator[str]:
    """Yield start, end and range of each variable that is named; by default without derivatives and indicators."""
    names = shown or [name for name in result.names if not name.startswith(("der(", "event_indicator["))]
    yield f"{result.name}: {len(result.time):,} times from {result.time[0]:g} to {result.time[-1]:g} s"
    width = max(map(len, names))
    yield f"{'':{width}}  {'start':>12} {'end':>12} {'smallest':>12} {'largest':>12}"
    for name in names:
        values = result[name]
        numbers = (values[0], values[-1], min(values), max(values))
        unit = result.units[name]
        yield (
            f"{name:{width}}  " + " ".join(f"{float(v):12.6g}" for v in numbers) + (f"  {unit}" if unit != "1" else "")
        )
