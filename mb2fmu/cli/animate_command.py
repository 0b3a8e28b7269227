"""The command ``mb2fmu animate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import (
    InputOptionValues,
    add_quiet_and_debug_options,
    at_option,
    choose_html_page_path,
    combine_click_options,
    input_option,
    json_file_option,
    print_unless_quiet,
    refuse_model_options_for_fmu,
    require_html_page_path,
    set_option,
    step_option,
    stop_option,
    write_json_result,
)
from mb2fmu.cli.robot_options import add_robot_options
from mb2fmu.cli.stage_progress_display import StageProgressDisplay

if TYPE_CHECKING:
    from mb2fmu.visualization import Drawing, PlotSignals

PICTURE_WIDTH_PIXELS = 1280
_file_path_type = click.Path(path_type=Path, dir_okay=False)


@click.command(short_help="A page, or a picture, of a mechanism in motion.")
@click.argument("source", type=click.Path(path_type=Path), metavar="NAME.fmu|MODEL.py|ROBOT.urdf")
@click.option(
    "-o",
    "--output",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE.html|DIR",
    callback=require_html_page_path,
    help="The page, or the folder for it; NAME.html here if no picture is requested either.",
)
@click.option("--png", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="A still picture as PNG.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="A still picture as SVG.")
@click.option(
    "--gif", type=_file_path_type, metavar="FILE", help="The motion as an animated GIF, drawn without a browser."
)
@click.option(
    "--webm", type=_file_path_type, metavar="FILE", help="The motion as a WebM film; smaller where ffmpeg is."
)
@click.option("--mp4", type=_file_path_type, metavar="FILE", help="The motion as an MP4 film; needs ffmpeg.")
@click.option("--time", type=float, metavar="SECONDS", help="Time of the pictures.  [default: the start]")
@click.option(
    "--strobe", type=click.IntRange(0, 50), default=0, metavar="N", help="N earlier instants, pale, in the pictures."
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="MODEL.py",
    help="Model with the appearance of an FMU that has none; the model's own motion is drawn as the reference.",
)
@click.option("--plot", metavar="NAME,…", help="Variables to show in the page's plot at first.")
@combine_click_options(at_option, input_option, stop_option, step_option, set_option, add_robot_options)
@combine_click_options(json_file_option, add_quiet_and_debug_options)
def animate(
    source: Path,
    page: Path | None,
    png: Path | None,
    svg: Path | None,
    gif: Path | None,
    webm: Path | None,
    mp4: Path | None,
    time: float | None,
    strobe: int,
    model: Path | None,
    plot: str | None,
    arguments: dict[str, str],
    at: dict[str, str],
    inputs: InputOptionValues,
    stop: float | None,
    step: float | None,
    json_file: Path | None,
) -> None:
    """Shows a mechanism in motion: one page that opens from disk, without a network; or still pictures of it.

    A model is integrated by its own equations; an FMU is run by fmpy, beside the reference that it carries (if it is
    run as that was: without --at, --input, --stop and --step).

    \b
    Examples:
      mb2fmu animate double_pendulum -o swing.html
      mb2fmu animate out/DoublePendulum.fmu -o fmu.html --plot tip.x,tip.y
      mb2fmu animate double_pendulum --gif swing.gif
      mb2fmu animate double_pendulum --png swing.png --time 1.2 --strobe 6
      mb2fmu animate cart_pole --input "force=5*sin(t)" --stop 4 -o pushed.html
      mb2fmu animate theirs.fmu --model double_pendulum -o theirs.html
    """
    from mb2fmu import pipeline, visualization
    from mb2fmu.fmu import package

    if source.suffix == ".fmu" and model is None:
        refuse_model_options_for_fmu()
    formulas, tables = inputs
    with StageProgressDisplay() as progress:
        drawing, signals = pipeline.animate(
            source, model=model, arguments=arguments, at=at, inputs=formulas, tables=tables, stop=stop, step=step,
            observer=progress,
        )  # fmt: skip
    pictures = {form: path for form, path in (("svg", svg), ("png", png)) if path is not None}
    films = [path for path in (gif, webm, mp4) if path is not None]
    if page is None and not pictures and not films:
        page = Path(f"{drawing.name}.html")
    if page is not None:
        page = choose_html_page_path(page, drawing.name)
        _write_page(page, drawing, signals, plot)
    for form, path in pictures.items():
        picture = visualization.render_still_picture(
            drawing, time, strobe=strobe, background="#ffffff" if form == "png" else ""
        )
        pipeline.write(path, picture if form == "svg" else package.rasterize_svg(picture, PICTURE_WIDTH_PIXELS))
    if films:
        from mb2fmu.pipeline.display.video_rendering import render_video

        for path in films:
            render_video(drawing, path)
    for note in drawing.notes:
        click.echo(f"note: {note}", err=True)
    written = [("page", page)] if page is not None else []
    written += [*(("picture", path) for path in pictures.values()), *(("film", path) for path in films)]
    facts = {
        "model": drawing.name,
        "seconds": float(drawing.poses.time[-1]) - float(drawing.poses.time[0]),
        "instants": len(drawing.poses.time),
        "variables": list(signals.names),
        "files": [{"kind": kind, "path": str(path)} for kind, path in written],
    }
    if not write_json_result(facts, json_file):
        print_unless_quiet("\n".join(f"{kind}: {path}" for kind, path in written))


def _write_page(page: Path, drawing: Drawing, signals: PlotSignals, plot: str | None) -> None:
    """Write the page in motion; its plot has the variables of ``--plot``, or those that deserve a first look."""
    from mb2fmu import visualization
    from mb2fmu.fmu import package
    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
    from mb2fmu.visualization.default_plots import choose_default_plots

    shown = tuple(plot.split(",")) if plot else choose_default_plots(signals)
    unknown = [name for name in shown if name not in signals.names]
    if unknown:
        raise click.BadParameter(f"no variable {', '.join(unknown)}; there are {', '.join(signals.names)}")
    package.write_file_tree(
        InMemoryFileTree({page.name: visualization.render_animation_page(drawing, signals, shown=shown)}), page.parent
    )
