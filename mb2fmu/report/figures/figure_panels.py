"""Variables over time as a figure: one panel per unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.report.figures.figure_style import CURVE_COLOURS, INK, LINE, style_axes, use_figure_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
NamedCurve = tuple[str, str, Floats]


def draw_variable_panels(title: str, time: Floats, curves: Sequence[NamedCurve]) -> Figure:
    """Draw (name, unit, values) over time, those of one unit in one panel.

    Args:
        title: Above all panels.
        time: In s, shape (n_t,).
        curves: At least one; values of shape (n_t,).
    """
    from matplotlib.figure import Figure

    groups: dict[str, list[NamedCurve]] = {}
    for curve in curves:
        groups.setdefault(curve[1], []).append(curve)
    with use_figure_style():
        figure = Figure(figsize=(8.0, 0.6 + 2.2 * max(len(groups), 1)), layout="constrained")
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
