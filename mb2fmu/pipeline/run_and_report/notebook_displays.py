"""Displays of records in notebooks, registered by ``pipeline``."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING

from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.model import Model
from mb2fmu.pipeline.derivation.pipeline_results import ExportResult, RunResult, ValidationOutcome
from mb2fmu.pipeline.run_and_report import report_pages
from mb2fmu.pipeline.simulation.simulation_trajectories import (
    AnimationPage,
    FmuSimulation,
    ModelSimulation,
    SimulationTrajectories,
)

if TYPE_CHECKING:
    from mb2fmu.model.quantity_declarations import DeclaredVariable

_ANIMATION_FRAME_HEIGHT, _REPORT_FRAME_HEIGHT = 760, 640
_HEIGHT_SENDER_SCRIPT = """const tell = () => {
  const high = Math.ceil(document.body.getBoundingClientRect().bottom + scrollY);
  if (high > 0) parent.postMessage({ mb2fmuHeight: high }, "*");
  else setTimeout(tell, 500);  // it has no layout yet
};
addEventListener("load", tell);  // what is out of sight is not drawn, hence not observed
new ResizeObserver(tell).observe(document.body);"""
HEIGHT_RECEIVER_SCRIPT = """if (!window.mb2fmuHears) {
  window.mb2fmuHears = true;
  addEventListener("message", (event) => {
    const high = event.data && event.data.mb2fmuHeight;
    if (!(high > 0 && high < 100000)) return;
    for (const frame of document.querySelectorAll("iframe.mb2fmu"))
      if (frame.contentWindow === event.source) frame.style.height = `${high}px`;
  });
}"""
_FIXED_VIEW_HEIGHT_STYLE = ".animation-view { height: min(26rem, 85vw); }"
"""How a frame becomes as high as its page: the page sends it, the notebook receives it, and takes a number from its
own frames only. The view's height must not follow from the frame's."""
_MAX_SHOWN_DECLARATIONS = 40
"""Declarations of a model that are not folded: a robot's mass matrix and Jacobian have a hundred."""
_DECLARATION_KIND_NAMES = {"OutputRequest": "output", "AuxiliaryState": "state", "ConstraintForce": "constraint force"}


@notebook_display_registry.render_record_as_html.register
def _render_model(model: Model) -> str:
    """Return name, drawing, and all declarations."""
    from mb2fmu.report.figures.supplied_model_picture import embed_supplied_model_picture

    drawing = str(embed_supplied_model_picture(model.diagram, f"What the coordinates of {model.name} mean"))
    drawing = drawing.replace("<img ", '<img style="max-height:240px;background:#fff" ') if drawing else ""
    shown = list(map(_format_declaration_row, model.declared))
    table = f"<table>{''.join(shown[:_MAX_SHOWN_DECLARATIONS])}</table>"
    if len(shown) > _MAX_SHOWN_DECLARATIONS:
        folded = "".join(shown[_MAX_SHOWN_DECLARATIONS:])
        table += (
            f"<details><summary>{len(shown) - _MAX_SHOWN_DECLARATIONS} more</summary><table>{folded}</table></details>"
        )
    return f"<h4>{escape(model.name)}</h4><p>{escape(model.description)}</p>{drawing}{table}"


def _format_declaration_row(item: DeclaredVariable) -> str:
    """Return the table row (HTML) of a declared quantity: name, kind, value, unit, description."""
    kind = _DECLARATION_KIND_NAMES.get(type(item).__name__, type(item).__name__.lower())
    return (
        f"<tr><th style='text-align:left'>{escape(item.name)}</th><td>{kind}</td>"
        f"<td style='text-align:right'>{escape(_format_quantity_value(item))}</td><td>{escape(item.unit)}</td>"
        f"<td style='text-align:left'>{escape(item.description)}</td></tr>"
    )


@notebook_display_registry.render_record_as_html.register
def _render_motion_page(page: AnimationPage) -> str:
    """Return a page in motion."""
    return _embed_page_in_frame(page.content, page.name, _ANIMATION_FRAME_HEIGHT)


@notebook_display_registry.render_record_as_html.register
def _render_fmu_simulation(simulated: FmuSimulation) -> str:
    """Return the motion of an FMU; its numbers where it carries no scene."""
    from mb2fmu.errors import PackageError

    try:
        return _render_motion_page(simulated.animate())
    except PackageError:
        return _format_final_values(simulated)


@notebook_display_registry.render_record_as_html.register
def _render_model_simulation(simulated: ModelSimulation) -> str:
    """Return the motion and its plot, with controls."""
    from mb2fmu import visualization
    from mb2fmu.pipeline.fmu_build.model_scene import build_model_scene

    derivation = simulated.derivation
    scene = build_model_scene(derivation.mechanism, derivation.equations)
    if scene is None:
        return _format_final_values(simulated)
    drawing = visualization.draw_motion(scene, simulated.motion)
    return _embed_page_in_frame(
        visualization.render_animation_page(drawing, simulated.signals, shown=simulated.choose_plot_names()),
        drawing.name,
        _ANIMATION_FRAME_HEIGHT,
    )


@notebook_display_registry.render_record_as_html.register
def _render_validation(validated: ValidationOutcome) -> str:
    """Return the verdict, and the folded report."""
    return _format_verdict(validated) + _fold_page(
        report_pages.render_report_beside_fmu(None, validated, "", ()), validated.definition.name
    )


@notebook_display_registry.render_record_as_html.register
def _render_run_result(finished: RunResult) -> str:
    """Return the verdict, the motion with sliders that run the FMU where a page can, and the folded report."""
    built, name = finished.exported.build, finished.exported.build.interface.model_name
    motion = report_pages.render_page_that_runs_fmu(built, finished.validated)
    moving = "" if motion is None else _embed_page_in_frame(motion, name, _ANIMATION_FRAME_HEIGHT)
    return (
        _format_verdict(finished.validated)
        + moving
        + _fold_page(report_pages.render_report_beside_fmu(built, finished.validated, "", ()), name)
    )


@notebook_display_registry.render_record_as_html.register
def _render_export(exported: ExportResult) -> str:
    """Return the FMU's path, and the page that describes it."""
    built = exported.build
    return f"<p><code>{escape(str(exported.path))}</code></p>" + _fold_page(
        report_pages.render_fmu_description(built), built.interface.model_name, "What it is"
    )


def _format_final_values(simulated: SimulationTrajectories) -> str:
    """Return the final values of all signals, where nothing can be drawn."""
    signals, time = simulated.signals, simulated.time
    head = f"<tr><th></th><th>at {time[0]:g} s</th><th>at {time[-1]:g} s</th><th></th></tr>"
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{signals.values[0, k]:.6g}</td>"
        f"<td>{signals.values[-1, k]:.6g}</td><td>{escape(signals.units[k])}</td></tr>"
        for k, name in enumerate(signals.names)
    )
    return f"<table>{head}{rows}</table>"


def _format_quantity_value(item: DeclaredVariable) -> str:
    """Return the value or start of a quantity as text; empty where it has neither."""
    value = getattr(item, "value", getattr(item, "start", ""))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _format_verdict(validated: ValidationOutcome) -> str:
    """Return the line that the terminal ends with."""
    from mb2fmu.report.terminal_verdict_tables import format_verdict_line

    return f"<p><strong>{escape(format_verdict_line(validated.result).plain)}</strong></p>"


def _fold_page(content: bytes, title: str, summary: str = "The whole report") -> str:
    """Return a long page, folded."""
    frame = _embed_page_in_frame(content, title, _REPORT_FRAME_HEIGHT)
    return f"<details><summary>{escape(summary)}</summary>{frame}</details>"


def add_page_height_reporting(content: bytes) -> str:
    """Return a page that reports its height to the page around it; :data:`HEIGHT_RECEIVER_SCRIPT` receives it.

    Args:
        content: A page of ours, with its policy on scripts.
    """
    digest = base64.b64encode(hashlib.sha256(_HEIGHT_SENDER_SCRIPT.encode()).digest()).decode()
    page = content.decode().replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    return page.replace(
        "</body>", f"<style>{_FIXED_VIEW_HEIGHT_STYLE}</style><script>{_HEIGHT_SENDER_SCRIPT}</script></body>", 1
    )


def _embed_page_in_frame(content: bytes, title: str, height: int) -> str:
    """Return a whole page inside a notebook, isolated from it; the page reports its height and nothing else.

    So a frame is as high as its page and does not scroll. Where scripts of notebooks are not run it has the given
    height.
    """
    page = add_page_height_reporting(content)
    return (
        f'<iframe class="mb2fmu" srcdoc="{escape(page)}" sandbox="allow-scripts" title="{escape(title)}" '
        f'style="width:100%;height:{height}px;border:0"></iframe><script>{HEIGHT_RECEIVER_SCRIPT}</script>'
    )
