"""Common style of all figures in files: colours, letters, axes; equal figures give equal bytes.

Charts within pages are drawn by ``svg_chart``: they follow the page's light and dark, and are read off with the pointer
(docs/decisions/0059).

Variables over time are drawn with one panel per unit of measurement.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, ValidationError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, SOFT, LINE = "#1a2230", "#5a6577", "#c8d0dc"
BLUE, RED, GREEN, BROWN, PURPLE, GREY = "#1f5fbf", "#b3261e", "#0b7a5c", "#8a5a00", "#6b3fa0", "#3f4a5a"
CURVE_COLOURS = (BLUE, RED, GREEN, BROWN, PURPLE, GREY)
FIGURE_FORMATS = ("svg", "png", "pdf")


def use_figure_style() -> AbstractContextManager[None]:
    """Set our letters for figures inside, and names within SVG files that do not change between runs."""
    _check_figure_packages()
    import matplotlib as mpl

    style: dict[Any, Any] = {"svg.hashsalt": "mb2fmu", "font.family": "DejaVu Sans", "font.size": 10}
    return mpl.rc_context(style)


def make_empty_figure(width: float, height: float) -> Figure:
    """Return an empty figure, width and height in inches.

    Raises:
        ToolError: If matplotlib is not installed.
    """
    _check_figure_packages()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _check_figure_packages() -> None:
    """Check that figures can be drawn.

    Raises:
        ToolError: If matplotlib is not installed; says what to install.
    """
    require_packages("a picture in a file", "matplotlib")


def choose_figure_format(path: Path) -> str:
    """Return the form that the name of a figure's file requests, one of :data:`FIGURE_FORMATS`.

    Raises:
        ValidationError: If there is no such form.
        ToolError: If matplotlib is not installed.
    """
    form = path.suffix.lower().lstrip(".") or "svg"
    if form not in FIGURE_FORMATS:
        remedy = f"end its name in {', '.join('.' + known for known in FIGURE_FORMATS)}"
        raise ValidationError("the plot cannot be written:", [Fault(f"a picture cannot be .{form}", str(path), remedy)])
    _check_figure_packages()
    return form


def style_axes(axes: Axes) -> None:
    """Give axes pale borders and quiet numbers."""
    axes.tick_params(colors=SOFT)
    for side in axes.spines.values():
        side.set_color(LINE)


def render_figure(figure: Figure, form: str, *, dpi: int = 150) -> bytes:
    """Return the figure as a file; the same figure gives the same bytes with the same version of matplotlib.

    Args:
        figure: What is drawn.
        form: One of :data:`FIGURE_FORMATS`.
        dpi: Of a PNG.
    """
    file = BytesIO()
    metadata = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}.get(form, {"CreationDate": None})
    with use_figure_style():
        figure.savefig(file, format=form, dpi=dpi, metadata=metadata)
    return file.getvalue()


Floats = npt.NDArray[np.float64]
NamedCurve = tuple[str, str, Floats]


def draw_variable_panels(title: str, time: Floats, curves: Sequence[NamedCurve]) -> Figure:
    """Draw (name, unit, values) over time, those of one unit in one panel.

    Args:
        title: Above all panels.
        time: In s, shape (n_t,).
        curves: At least one; values of shape (n_t,).
    """
    groups: dict[str, list[NamedCurve]] = {}
    for curve in curves:
        groups.setdefault(curve[1], []).append(curve)
    with use_figure_style():
        figure = make_empty_figure(8.0, 0.6 + 2.2 * max(len(groups), 1))
        for axes, (unit, members) in zip(
            figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0], groups.items(), strict=True
        ):
            for k, (name, _, values) in enumerate(members):
                axes.plot(time, values, color=CURVE_COLOURS[k % len(CURVE_COLOURS)], linewidth=1.4, label=name)
            axes.set_ylabel(unit if unit != "1" else "", color=INK)
            axes.grid(color=LINE, linewidth=0.5)
            axes.margins(x=0)
            style_axes(axes)
            axes.legend(
                loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=len(members), fontsize=9, frameon=False,
                borderaxespad=0.2,
            )  # fmt: skip
        figure.axes[-1].set_xlabel("time in s", color=INK)
        figure.suptitle(title, color=INK, x=0.01, ha="left", fontsize=11)
    return figure
