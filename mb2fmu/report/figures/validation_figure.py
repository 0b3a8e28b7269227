"""One picture of a result for a document: the FMU over its reference, the error under its bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from mb2fmu.report.figures.figure_style import INK, SOFT, make_empty_figure, render_figure, use_figure_style
from mb2fmu.report.figures.svg_chart import format_axis_label
from mb2fmu.validation.validation_result import ValidationResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# FMU, reference: blue and orange, green and pink: distinguished by the colour-blind and in grey.
_FMU_AND_REFERENCE_COLOURS = (("#1f5fbf", "#f6b65a"), ("#146c43", "#e7a3bd"), ("#6b3fa0", "#a8d5a2"))


def draw_validation_figure(
    result: ValidationResult,
    names: Sequence[str] = (),
    *,
    title: str = "",
    form: Literal["svg", "png"] = "svg",
) -> bytes:
    """Draw FMU over reference over time, and below the errors and their bounds on a logarithmic scale.

    Args:
        result: Of the validation.
        names: One to three variables of one unit of measurement; the first coordinates of one unit if none are named.
        title: Over the picture; none if empty.
        form: ``svg`` (letters as outlines, so that it looks alike everywhere) or ``png``.

    Returns:
        The file; equal arguments give equal bytes with equal versions of matplotlib.

    Raises:
        ValueError: If a variable was not compared, the units differ, or there are more than three.
    """
    chosen = list(names) or _default_variable_names(result)
    compared = {v.name: v for v in result.variables}
    missing = [name for name in chosen if name not in compared]
    if missing:
        raise ValueError(f"not among the compared variables: {', '.join(missing)}")
    units = {compared[name].unit for name in chosen}
    if len(units) != 1 or len(chosen) > len(_FMU_AND_REFERENCE_COLOURS):
        raise ValueError(f"a picture shows one to three variables of one unit, not {', '.join(chosen)}")
    with use_figure_style():
        drawing = make_empty_figure(8.0, 4.6)
        upper, lower = drawing.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        if title:
            upper.set_title(title, loc="left", color=INK, fontweight="bold")
        _draw_trajectories(upper, result, chosen)
        _draw_errors(lower, result, chosen)
        unit = units.pop()
        upper.set_ylabel(format_axis_label(chosen[0] if len(chosen) == 1 else "value", unit))
        lower.set_ylabel(format_axis_label("error", unit))
        lower.set_xlabel("time in s")
    return render_figure(drawing, form, dpi=200)


def _default_variable_names(result: ValidationResult) -> list[str]:
    """Return the first coordinates that share a unit, as many as there are colours."""
    coordinates = [v for v in result.variables if v.kind == "coordinate"]
    return [v.name for v in coordinates if v.unit == coordinates[0].unit][: len(_FMU_AND_REFERENCE_COLOURS)]


def _draw_trajectories(axes: Axes, result: ValidationResult, names: Sequence[str]) -> None:
    """Draw variables of the FMU over the broader lines of the reference."""
    reference = result.reference.trajectory
    for name, (blue, orange) in zip(names, _FMU_AND_REFERENCE_COLOURS, strict=False):
        axes.plot(reference.time, reference[name], color=orange, linewidth=5.5, label=f"{name}: reference")
        axes.plot(result.simulation.time, result.simulation[name], color=blue, linewidth=1.5, label=f"{name}: FMU")
    _style_finished_axes(axes)


def _draw_errors(axes: Axes, result: ValidationResult, names: Sequence[str]) -> None:
    """Draw errors and bounds over time, on a logarithmic axis, up to the horizon."""
    time = result.reference.trajectory.time
    axes.set_yscale("log")
    for name, (blue, _) in zip(names, _FMU_AND_REFERENCE_COLOURS, strict=False):
        v = next(v for v in result.variables if v.name == name)
        errors = np.where(v.errors > 0, v.errors, np.nan)
        axes.plot(time, errors, color=blue, linewidth=1.1, label=f"{name}: error")
        axes.plot(time, v.bounds, color=blue, linewidth=1.4, linestyle=(0, (5, 3)), label=f"{name}: bound")
        if v.horizon < time[-1]:
            axes.axvline(v.horizon, color=SOFT, linewidth=0.8)
    axes.minorticks_off()
    _style_finished_axes(axes)


def _style_finished_axes(axes: Axes) -> None:
    """Give axes the look that all figures have."""
    axes.grid(color="#e4e8ef", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0)
    axes.tick_params(colors=SOFT, labelcolor=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(SOFT)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9, labelcolor=INK)
