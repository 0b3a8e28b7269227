"""Variables over time as a figure: one panel per unit."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]
Curve = tuple[str, str, Floats]

_COLOURS = ("#1f5fbf", "#b3261e", "#0b7a5c", "#8a5a00", "#6b3fa0", "#3f4a5a")
_INK, _SOFT, _LINE = "#1a2230", "#5a6577", "#c8d0dc"
_STYLE: dict[Any, Any] = {"svg.hashsalt": "mb2fmu", "font.family": "DejaVu Sans", "font.size": 10}
FORMS = ("svg", "png", "pdf")


def panels(title: str, time: Floats, curves: Sequence[Curve]) -> Figure:
    """(name, unit, values) over time, those of one unit in one panel.

    Args:
        title: Above all panels.
        time: In s, shape (n_t,).
        curves: At least one; values of shape (n_t,).
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    groups: dict[str, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve[1], []).append(curve)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8.0, 0.6 + 2.2 * max(len(groups), 1)), layout="constrained")
        for axes, (unit, members) in zip(
            figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0], groups.items(), strict=True
        ):
            for k, (name, _, values) in enumerate(members):
                axes.plot(time, values, color=_COLOURS[k % len(_COLOURS)], linewidth=1.4, label=name)
            axes.set_ylabel(unit if unit != "1" else "", color=_INK)
            axes.grid(color=_LINE, linewidth=0.5)
            axes.margins(x=0)
            axes.tick_params(colors=_SOFT)
            axes.legend(
                loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=len(members), fontsize=9, frameon=False,
                borderaxespad=0.2,
            )  # fmt: skip
            for side in axes.spines.values():
                side.set_color(_LINE)
        figure.axes[-1].set_xlabel("time in s", color=_INK)
        figure.suptitle(title, color=_INK, x=0.01, ha="left", fontsize=11)
    return figure


def drawn(figure: Figure, form: str) -> bytes:
    """The figure as a file; the same figure gives the same bytes.

    Raises:
        ValidationError: If there is no such form.
    """
    import matplotlib as mpl

    if form not in FORMS:
        fault = Fault(f"a picture cannot be .{form}", remedy=f"end its name in {', '.join('.' + f for f in FORMS)}")
        raise ValidationError("the plot cannot be written:", [fault])
    file = BytesIO()
    metadata = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}.get(form, {"CreationDate": None})
    with mpl.rc_context(_STYLE):
        figure.savefig(file, format=form, dpi=150, metadata=metadata)
    return file.getvalue()
