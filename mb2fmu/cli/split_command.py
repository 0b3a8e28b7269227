"""The command ``mb2fmu split``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    combine_click_options,
    folder_option,
    json_file_option,
    print_unless_quiet,
    set_option,
    write_json_result,
)
from mb2fmu.cli.stage_progress_display import StageProgressDisplay

if TYPE_CHECKING:
    from mb2fmu.pipeline.system_runs.model_split_export import ModelSplitResult
    from mb2fmu.systems.splitting import CutMechanismPart, CutMethod, SplittingSettings

_positive_number = click.FloatRange(min=0.0, min_open=True)
_DEFAULT_STIFFNESS_HELP = "  [default: such that steps of --step or --delay follow the parts on it]"


@click.command(short_help="Cut a model into several FMUs, with the file that couples them.")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.py|ROBOT.urdf")
@click.option(
    "--at",
    "places",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A joint or its point, a load, or a constraint. May be repeated: loads, constraints, joints by bushing or "
    "line.",
)
@click.option(
    "--by",
    "way",
    type=click.Choice(["force", "motion", "filter", "bushing", "line"]),
    help="force: one side takes motion and gives force. motion (loads): both take motion, no output depends "
    "directly on an input. filter (joints): as force, motion followed through a filter, no accelerations are passed. "
    "bushing (constraints, joints): a spring and damper, both take motion. line (joints): a transmission line, "
    "waves that arrive late. Default: by the kind of what is cut.",
)
@folder_option
@click.option("--step", type=_positive_number, default=1e-3, show_default=True, metavar="S", help="Communication step.")
@click.option(
    "--bandwidth",
    type=_positive_number,
    default=400.0,
    show_default=True,
    metavar="RAD/S",
    help="Bandwidth of the filter.",
)
@click.option(
    "--stiffness", type=_positive_number, metavar="N/M", help=f"Of a bushing or line.{_DEFAULT_STIFFNESS_HELP}"
)
@click.option("--damping", type=_positive_number, metavar="N.S/M", help=f"Of a bushing.{_DEFAULT_STIFFNESS_HELP}")
@click.option("--angular-stiffness", type=_positive_number, metavar="N.M/RAD",
              help=f"Of a bushing or line at a joint.{_DEFAULT_STIFFNESS_HELP}")  # fmt: skip
@click.option("--angular-damping", type=_positive_number, metavar="N.M.S/RAD",
              help=f"Of a bushing at a joint.{_DEFAULT_STIFFNESS_HELP}")  # fmt: skip
@click.option(
    "--delay",
    type=_positive_number,
    metavar="S",
    help="Delay of a line, at least one communication step.  [default: --step]",
)
@click.option("--flange-mass", type=click.FloatRange(min=0.0), default=0.0, show_default=True, metavar="KG",
              help="Mass of the flange at a bushing or line, if the bodies behind it have no inertia.")  # fmt: skip
@click.option("--flange-inertia", type=click.FloatRange(min=0.0), metavar="KG.M2",
              help="Moment of inertia of this flange, where frames behind the joint turn against those before.  "
              "[default: a thousandth of the smallest of a part, 1e-4 at most]")  # fmt: skip
@combine_click_options(set_option, json_file_option, add_quiet_and_debug_options)
def split(
    model: Path,
    places: tuple[str, ...],
    way: CutMethod | None,
    folder: Path,
    step: float,
    bandwidth: float,
    delay: float | None,
    arguments: dict[str, str],
    json_file: Path | None,
    **numbers: Any,
) -> None:
    """Cuts a model into FMUs, and writes them with the file that couples them; the model itself is the reference.

    Writes DIR/MODEL_PART.fmu and DIR/system.py, which "mb2fmu system" runs.

    \b
    Examples:
      mb2fmu split pendulum.py --at P2 -o out
      mb2fmu split masses.py --at "load[1]" --at "load[2]" --by motion
      mb2fmu split pendulum.py --at P1 --at P2 --by line --stiffness 1e4 --step 5e-4
    """
    from mb2fmu.pipeline.system_runs.model_split_export import split_model as write_part_fmus
    from mb2fmu.systems.splitting import SplittingSettings

    given = {name: value for name, value in numbers.items() if value is not None}
    settings = SplittingSettings(bandwidth=bandwidth, delay=delay or step, **given)
    with StageProgressDisplay() as progress:
        done = write_part_fmus(
            model, places, folder, way=way, arguments=arguments, settings=settings, step=step, observer=progress
        )
    if not write_json_result(_form_split_facts(done, places), json_file):
        _print_split(done, places, settings, step)


def _form_split_facts(done: ModelSplitResult, places: tuple[str, ...]) -> dict[str, Any]:
    """Return what was cut and written, for ``--json``."""
    return {
        "at": list(places),
        "by": done.cut.method,
        "fmus": [
            {
                "part": part.name,
                "fmu": str(fmu),
                "states": _list_part_states(part),
                "takes": _list_coupled_inputs(part),
            }
            for part, fmu in zip(done.parts, done.fmus, strict=True)
        ],
        "left_out": _list_missing_outputs(done),
        "settings": asdict(done.settings),
        "system": str(done.system),
    }


def _list_part_states(part: CutMechanismPart) -> list[str]:
    """Return names of the states of a part."""
    d = part.definition
    return [record.name for record in (*d.coordinates, *d.speeds, *d.auxiliary_states)]


def _list_coupled_inputs(part: CutMechanismPart) -> list[str]:
    """Return names of the inputs that come from other parts."""
    inputs = {str(given.name) for given in part.definition.inputs}
    members = (member.variable for terminal in part.definition.terminals for member in terminal.members)
    return [name for name in members if name in inputs]


def _list_missing_outputs(done: ModelSplitResult) -> list[str]:
    """Return outputs that no part has."""
    return sorted(set.intersection(*(set(part.omitted_outputs) for part in done.parts)))


def _suggest_step(step: float) -> str:
    """Return which communication step makes a system with bushings accurate, from the step in s that it has.

    Measured: four links 9.2e-4 off at 1 ms; links of 1, 0.2 and 3 kg 3.4e-3, 7.9e-4 at 0.5 ms; of 0.2, 1 and 3 kg
    7.8e-3, 9.1e-4 at 0.5 ms.
    """
    return (
        "mb2fmu system says by which part E of its size a variable is off, and E falls at about the rate of --step; "
        f"1e-3 takes --step {1e-3 * step:.2g} / E (off by 1 %: {0.1 * step:.2g}), for parts of unequal mass "
        f"about {0.5 * step:.2g}; a single joint cut --by force is off by none"
    )


def _print_split(done: ModelSplitResult, places: tuple[str, ...], settings: SplittingSettings, step: float) -> None:
    """Say what was cut and written; ``step``: the communication step, s."""
    print_unless_quiet(f"Cut at {', '.join(places)} by {done.cut.method}")
    for part, fmu in zip(done.parts, done.fmus, strict=True):
        print_unless_quiet(
            f"  {part.name}: {fmu}; states {', '.join(_list_part_states(part))}; "
            f"takes {', '.join(_list_coupled_inputs(part))}"
        )
    if lost := _list_missing_outputs(done):
        print_unless_quiet(f"Note: in no part are the outputs {', '.join(lost)}")
    if done.cut.method == "bushing":
        k, damping = done.settings.stiffness, done.settings.damping
        print_unless_quiet(
            f"Each bushing: stiffness {k:.3g} N/m (compliance {1.0 / k:.3g} m/N), damping {damping:.3g} N.s/m"
        )
        if not settings.stiffness:
            print_unless_quiet(f"If it is off by too much: {_suggest_step(step)}")
    if done.cut.method == "line":
        k, late = done.settings.stiffness, settings.delay
        print_unless_quiet(
            f"Each line: compliance {1.0 / k:.3g} m/N, parasitic inertia {k * late**2:.3g} kg along each axis"
        )
    print_unless_quiet(f"System: {done.system} (mb2fmu system {done.system})")
