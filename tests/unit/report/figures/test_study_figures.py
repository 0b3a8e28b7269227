"""Pictures of studies show each case where its numbers are, and failed ones."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from lxml import etree

from mb2fmu.report.figures.study_figures import (
    MOST_LINES,
    SobolIndexBarValues,
    draw_parallel_coordinates,
    draw_sobol_indices,
    draw_study_results,
)

Floats = npt.NDArray[np.float64]
N = 40
RANDOM = np.random.default_rng(3)
VARIED = {"l": ("m", RANDOM.uniform(0.4, 0.6, N)), "mass <1>": ("kg", 10.0 ** RANDOM.uniform(-2.0, 2.0, N))}
SWING = np.where(np.arange(N) % 10 == 7, np.nan, RANDOM.uniform(-1.0, 3.0, N))


def numbers(path: Any) -> Floats:
    """The points that a path names."""
    return np.array([float(text) for text in re.findall(r"-?[\d.]+", path.get("d").replace("h0", ""))]).reshape(-1, 2)


def paths(root: Any, style: str) -> list[Any]:
    return [path for path in root.iter("path") if path.get("class") == style]


def test_a_case_is_a_line_over_all_columns_coloured_by_its_result() -> None:
    root: Any = etree.fromstring(draw_parallel_coordinates(VARIED, ("swing", "rad", SWING), log=["mass <1>"]))
    good = np.isfinite(SWING)
    order = np.argsort(SWING[good])
    columns = (VARIED["l"][1], np.log(VARIED["mass <1>"][1]), SWING)
    heights = np.array([(v - np.nanmin(v)) / np.ptp(v[np.isfinite(v)]) for v in columns]).T
    drawn = [numbers(path) for path in paths(root, "case")]
    assert -np.array(drawn)[:, :, 1] / 2400.0 == pytest.approx(heights[good][order], abs=1e-3)
    failed = [-numbers(path)[:, 1] / 2400.0 for path in paths(root, "case failed")]
    assert np.array(failed) == pytest.approx(heights[~good, :2], abs=1e-3)
    colours = [path.get("stroke") for path in paths(root, "case")]
    ramp = [path.get("stroke") for path in paths(root, "ramp")]
    places = [ramp.index(colour) for colour in colours]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, len(ramp) - 1)


def test_points_lie_where_the_ticks_say() -> None:
    root: Any = etree.fromstring(draw_study_results(VARIED, [("swing", "rad", SWING)], log=["mass <1>"]))
    good = np.isfinite(SWING)
    ticks = [text for text in root.iter("text") if text.get("class") == "tick end"]
    beside = np.array([[float(t.text.replace("−", "-")), float(t.get("y")) - 3.5] for t in ticks])
    slope, zero = np.polyfit(beside[:, 1], beside[:, 0], 1)
    width = int(paths(root, "frame")[0].get("d").rpartition("h")[2])
    for group, (_, x) in zip(root.iter("g"), VARIED.values(), strict=True):
        left, lower = (int(text) for text in re.findall(r"\d+", group.get("transform"))[:2])
        (path,) = paths(group, "point")
        points = numbers(path) / 10.0 + [left, lower]
        assert slope * points[:, 1] + zero == pytest.approx(SWING[good], abs=0.01)
        across = np.log(x) if x.max() > 1.0 else x
        expected = (across[good] - across.min()) / np.ptp(across)
        assert (points[:, 0] - left) / width == pytest.approx(expected, abs=1e-3)
        assert len(re.findall("M", paths(group, "case failed")[0].get("d"))) == (~good).sum()
        assert paths(group, "median")
    below = {t.text: float(t.get("x")) for t in root.iter("text") if t.get("class") == "tick middle"}
    assert below["10"] - below["1"] == pytest.approx(below["1"] - below["0.1"], abs=0.2)


@pytest.mark.parametrize("values", [np.full(3, np.nan), np.full(3, 2.0), np.array([1.0, np.nan, 1e300])])
def test_values_without_a_range_are_drawn(values: Floats) -> None:
    varied = {"k": ("1", np.full(3, 5.0)), "c": ("1", np.full(3, 5.0))}
    for text in (
        draw_parallel_coordinates(varied, ("y", "1", values), log=["c"]),
        draw_study_results(varied, [("y", "1", values)], log=["c"]),
    ):
        etree.fromstring(text)
        assert "nan" not in text


def test_of_many_cases_the_same_ones_are_drawn() -> None:
    n = 2 * MOST_LINES
    varied = {"k": ("1", np.linspace(1.0, 2.0, n))}
    first, second = (draw_parallel_coordinates(varied, ("y", "1", np.linspace(0.0, 1.0, n)), log=[]) for _ in range(2))
    assert first == second
    assert len(paths(etree.fromstring(first), "case")) == MOST_LINES


def test_a_bar_is_as_long_as_its_index() -> None:
    first, total = np.array([0.5, 0.2]), np.array([0.75, 0.25])
    found = SobolIndexBarValues(first, total, np.column_stack([first - 0.1, first + 0.1]), np.full((2, 2), np.nan))
    root: Any = etree.fromstring(draw_sobol_indices(["l", "m"], {"swing": found}))
    for style, values in (("first", first), ("third", total)):
        drawn = [re.findall(r"[\d.]+", path.get("d")) for path in paths(root, f"bar line {style}")][1:]
        lengths = [float(end) - float(begin) for begin, _, end in drawn]
        assert lengths == pytest.approx(360.0 * values, abs=0.2)
    assert len(paths(root, "median")) == 2
