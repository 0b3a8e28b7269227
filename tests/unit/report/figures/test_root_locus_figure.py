"""Root loci as pictures: over an angular speed they are Campbell diagrams."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import mb2fmu
from mb2fmu.report.figures import root_locus_figure


@pytest.fixture
def panels(monkeypatch):
    """The figures that are rendered."""
    seen: list[Figure] = []
    monkeypatch.setattr(root_locus_figure, "render_figure", lambda figure, _: seen.append(figure) or b"")
    return seen


def orders(figure: Figure) -> list[float]:
    """Slopes of the dashed lines through the origin in the lower panel."""
    lines = [line for line in figure.axes[1].lines if line.get_linestyle() == "--" and len(line.get_xdata()) > 2]
    return [float(np.polyfit(line.get_xdata(), line.get_ydata(), 1)[0]) for line in lines]


def test_multiples_of_an_angular_speed_are_drawn(panels):
    found = mb2fmu.sweep("rotating_blade", "hub.speed", [0.0, 20.0, 40.0])
    root_locus_figure.draw_root_locus(found)
    assert orders(panels[0]) == pytest.approx([1.0, 2.0, 3.0])
    low, high = panels[0].axes[1].get_ylim()
    assert high > np.max(found.eigenvalues.imag)
    assert low < np.min(found.eigenvalues.imag)


def test_of_other_quantities_there_are_no_multiples(panels):
    root_locus_figure.draw_root_locus(mb2fmu.sweep("simple_pendulum", "l", [0.5, 0.75, 1.0]))
    assert orders(panels[0]) == []
