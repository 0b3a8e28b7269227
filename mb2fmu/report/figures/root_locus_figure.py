"""A root locus: as text for a terminal, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis import RootLocus, StabilityCrossing
from mb2fmu.report.figures.figure_style import (
    BLUE,
    GREEN,
    INK,
    LINE,
    RED,
    make_empty_figure,
    render_figure,
    style_axes,
    use_figure_style,
)

_TABLE_ROWS = 21
"""Of the table on a terminal: values between are in the JSON."""

_ORDERS = 3
"""Multiples of an angular speed that are drawn."""


def format_root_locus(found: RootLocus) -> str:
    """Return critical values, stable ranges, and the eigenvalues at about twenty values."""
    return "\n".join(_list_root_locus_lines(found)) + "\n"


def _list_root_locus_lines(found: RootLocus) -> Iterator[str]:
    """Yield the lines that describe a sweep: critical values, and where it is stable."""
    unit = "" if found.unit == "1" else f" {found.unit}"
    first, last = found.values[0], found.values[-1]
    yield f"{found.name} from {first:g} to {last:g}{unit}, {len(found.values)} operating points"
    yield f"States: {', '.join(found.states)}"
    if found.cyclic:
        yield f"Cyclic, with zero eigenvalues that are left out: {', '.join(found.cyclic)}"
    if found.critical:
        yield "Critical values"
        for each in found.critical:
            yield f"  {found.name} = {each.value:.12g}{unit}: {_describe_stability_crossing(each)}"
    else:
        yield "No eigenvalue crosses the imaginary axis on the way"
    ranges = list(_find_stable_ranges(found))
    yield f"Stable: {', '.join(f'{low:.6g} to {high:.6g}{unit}' for low, high in ranges) or 'nowhere on the way'}"
    rows = np.unique(np.rint(np.linspace(0, len(found.values) - 1, _TABLE_ROWS)).astype(int))
    yield f"Eigenvalues in 1/s over {found.name}{unit and f' in{unit}'}, those above the real axis"
    for k in rows:
        shown = [value for value in found.eigenvalues[k].tolist() if value.imag >= 0]
        yield f"  {found.values[k]:10.6g}  " + "  ".join(f"{_format_root(value):>22}" for value in shown)


def _describe_stability_crossing(each: StabilityCrossing) -> str:
    """Return what happens to a root at a critical value, in words."""
    kind = f"oscillation of {each.frequency:.6g} rad/s" if each.frequency else "motion without oscillation"
    return f"a {kind} becomes {each.becomes}".replace("a oscill", "an oscill")


def _format_root(value: complex) -> str:
    """Return a complex root with five digits; ± stands for the pair."""
    return f"{value.real:+.5g}" + (f" ± {value.imag:.5g}i" if value.imag > 0 else "")


def _find_stable_ranges(found: RootLocus) -> Iterator[tuple[float, float]]:
    """Yield the ranges, up to the critical values, in which all real parts are negative."""
    edges = [found.values[0], *(each.value for each in found.critical), found.values[-1]]
    for low, high in pairwise(edges):
        inside = (found.values > low) & (found.values < high)
        if inside.any() and found.stable[inside].all():
            yield float(low), float(high)


def draw_root_locus(found: RootLocus, *, form: str = "svg") -> bytes:
    """Draw real and imaginary parts over the quantity, critical values marked, unstable parts in red.

    Over an angular speed the lower panel is a Campbell diagram: dashed lines are its first multiples, with which a
    rotor is excited.

    Args:
        found: The sweep.
        form: One of :data:`.figure_style.FIGURE_FORMATS`; letters in SVG are outlines.
    """
    with use_figure_style():
        figure = make_empty_figure(7.2, 6.0)
        above, below = figure.subplots(2, 1, sharex=True)
        _draw_root_parts(above, found, "real")
        _draw_root_parts(below, found, "imag")
        if found.unit == "rad/s":
            _draw_orders(below, found.values)
        for each in found.critical:
            for axes in (above, below):
                axes.axvline(each.value, color=RED, linewidth=0.8, linestyle=(0, (3, 2)))
            text = f"{each.value:.5g}"
            above.annotate(text, (each.value, 1.0), xycoords=("data", "axes fraction"), color=RED, ha="center",
                           va="bottom", fontsize=9)  # fmt: skip
        unit = "" if found.unit == "1" else f" in {found.unit}"
        below.set_xlabel(f"{found.name}{unit}", color=INK)
    return render_figure(figure, form)


def _draw_root_parts(axes: Any, found: RootLocus, part: Literal["real", "imag"]) -> None:
    """Draw one panel: a curve per eigenvalue."""
    axes.axhline(0, color=LINE, linewidth=1.4)
    for column in found.eigenvalues.T:
        values = getattr(column, part)
        pair = np.abs(column.imag) > 1e-9 * (1 + np.abs(column))
        for colour, where in (
            (GREEN, pair & (column.real <= 0)),
            (BLUE, ~pair & (column.real <= 0)),
            (RED, column.real > 0),
        ):
            axes.plot(found.values, np.where(where, values, np.nan), ".", markersize=3, color=colour)
    axes.set_ylabel("real part in 1/s" if part == "real" else "imaginary part in rad/s", color=INK)
    axes.margins(x=0.02)
    style_axes(axes)


def _draw_orders(axes: Any, speeds: npt.NDArray[np.float64]) -> None:
    """Draw the first multiples of an angular speed, as far as the panel reaches."""
    limits = axes.get_ylim()
    for order in range(1, _ORDERS + 1):
        axes.plot(speeds, order * speeds, color=INK, linewidth=0.7, linestyle=(0, (4, 3)), alpha=0.5)
        last = min(float(speeds[-1]), limits[1] / order)
        axes.annotate(f"{order}×", (last, order * last), color=INK, fontsize=8, ha="right", va="bottom")
    axes.set_ylim(*limits)
