"""Eigenvalues of a linearization: as text for a terminal, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis import Linearization
from mb2fmu.report.figures.figure_style import (
    BLUE,
    INK,
    LINE,
    RED,
    SOFT,
    make_empty_figure,
    render_figure,
    style_axes,
    use_figure_style,
)

_ZERO_TOLERANCE = 1e-7
_MOST_PRINTED_STATES = 6  # of a linearization whose A and B are printed


def format_eigenvalues(found: Linearization) -> str:
    """Return the operating point and the eigenvalues with their frequencies and damping."""
    return "\n".join(_list_linearization_lines(found)) + "\n"


def _list_linearization_lines(found: Linearization) -> Iterator[str]:
    """Yield the lines that describe a linearization: its point, what is left out, its eigenvalues."""
    point = found.point
    what = {"equilibrium": "Equilibrium", "steady": "Steady motion", "instant": "Instant"}[point.motion]
    yield f"{what} (what has to vanish is below {max(point.residual, 1e-16):.1e})"
    width = max((len(name) for name in found.names), default=1)
    for i, name in enumerate(found.names):
        grows = f", changes by {point.rates[i]:.6g} per second" if abs(point.rates[i]) > _ZERO_TOLERANCE else ""
        yield f"  {name:{width}}  {point.x[i] + 0.0:.12g}{grows}"
    if point.ignored:
        yield f"Left out, for they grow or follow what grows: {', '.join(found.names[i] for i in point.ignored)}"
    if found.unsteady:
        yield f"Outputs that are not constant: {', '.join(found.unsteady)}"
    if found.resting_friction:
        yield f"Dry friction left out, since nothing slides there: {', '.join(found.resting_friction)} = 0"
        yield "  What friction holds does not move at all; the numbers are of motion without it."
    yield f"Independent: {', '.join(found.states)}"
    if found.inputs:
        yield f"Inputs: {', '.join(f'{n} = {v:.6g}' for n, v in zip(found.inputs, point.r, strict=True))}"
    yield "Eigenvalues in 1/s"
    least = 1e-13 * float(np.max(np.abs(found.A), initial=0.0))
    for value in found.eigenvalues:
        real, imag = (0.0 if abs(part) < least else part for part in (value.real, value.imag))
        yield f"  {real:+.14g} {imag:+.14g}i{_describe_eigenvalue(complex(real, imag))}"
    if len(found.states) <= _MOST_PRINTED_STATES:
        yield from _list_matrix_lines("A", found.states, found.states, found.A)
        yield from _list_matrix_lines("B", found.states, found.inputs, found.B)


def _list_matrix_lines(
    name: str, rows: Sequence[str], columns: Sequence[str], values: npt.NDArray[np.float64]
) -> Iterator[str]:
    """Yield a small matrix with the names of its rows and columns; nothing where it is empty."""
    if not values.size:
        return
    cells = [[f"{value + 0.0:.6g}" for value in row] for row in values.tolist()]
    wide = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    first = max(map(len, rows))
    yield f"{name}{' ' * (first + 1)}  " + "  ".join(f"{c:>{w}}" for c, w in zip(columns, wide, strict=True))
    for row, line in zip(rows, cells, strict=True):
        yield f"  {row:{first}}  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(line, wide, strict=True))


def _describe_eigenvalue(value: complex) -> str:
    """Say what an eigenvalue (1/s) means: time constant, or frequency and damping."""
    size = abs(value)
    if size < _ZERO_TOLERANCE:
        return "    neutral"
    if abs(value.imag) < _ZERO_TOLERANCE:
        return f"    {'falls' if value.real < 0 else 'GROWS'} by e in {1 / size:.4g} s"
    grows = " GROWS," if value.real > _ZERO_TOLERANCE else ""
    damping = f"damping ratio {-value.real / size:.4g}" if value.real else "undamped"
    return f"   {grows} {size / (2 * np.pi):.4g} Hz, {damping}"


def draw_eigenvalues(found: Linearization, *, form: str = "svg") -> bytes:
    """Draw eigenvalues in the complex plane, growing ones in red; equal ones once, with their number.

    Args:
        found: The linearization.
        form: One of :data:`.figure_style.FIGURE_FORMATS`; letters in SVG are outlines.
    """
    with use_figure_style():
        figure = make_empty_figure(5.6, 4.2)
        axes = figure.subplots()
        axes.axhline(0, color=LINE, linewidth=0.8)
        axes.axvline(0, color=LINE, linewidth=1.4)
        for value, count in _count_distinct_values(found.eigenvalues.tolist()):
            colour = RED if value.real > _ZERO_TOLERANCE else BLUE
            axes.plot(value.real, value.imag, "x", color=colour, markersize=8, markeredgewidth=2, clip_on=False)
            if count > 1:
                at = (value.real, value.imag)
                axes.annotate(f"×{count}", at, textcoords="offset points", xytext=(6, 5), color=SOFT)
        axes.set_xlabel("real part in 1/s", color=INK)
        axes.set_ylabel("imaginary part in 1/s", color=INK)
        axes.margins(0.12)
        size = max((abs(value) for value in found.eigenvalues.tolist()), default=1.0) or 1.0
        for low, high, limit in (*((*axes.get_xlim(), axes.set_xlim),), *((*axes.get_ylim(), axes.set_ylim),)):
            if high - low < 0.2 * size:  # what differs by round-off looks alike
                limit((low + high) / 2 - 0.1 * size, (low + high) / 2 + 0.1 * size)
        style_axes(axes)
    return render_figure(figure, form)


def _count_distinct_values(values: list[complex]) -> list[tuple[complex, int]]:
    """Return values that are distinct in a picture, and how often each occurs."""
    size = max((abs(value) for value in values), default=1.0) or 1.0
    found: list[tuple[complex, int]] = []
    for value in values:
        for i, (other, count) in enumerate(found):
            if abs(other - value) < 1e-3 * size:
                found[i] = (other, count + 1)
                break
        else:
            found.append((value, 1))
    return found
