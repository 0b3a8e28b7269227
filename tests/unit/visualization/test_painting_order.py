"""What is in front is painted last, by faces that look at the eye; by depth where no face tells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mb2fmu.visualization.still_picture import (
    MAX_COMPARED_SOLIDS,
    box_hull,
    cylinder_hull,
    ellipsoid_hull,
    point_cloud_hull,
    sort_solids_for_painting,
)

TOWARD = np.array([0.0, -np.cos(0.4), np.sin(0.4)])
"""The eye looks down a little, along y."""
RIGHT = np.array([1.0, 0.0, 0.0])
UP = np.cross(TOWARD, RIGHT)
EYE = np.eye(3)


def order(*solids):
    """Indices of (middle, half extent, hull), what is behind first."""
    reach = np.array([[-1.0, -1.0], [1.0, 1.0]])
    boxes = [np.array([middle @ RIGHT, middle @ UP]) + half * reach for middle, half, _ in solids]
    return sort_solids_for_painting(
        [float(middle @ TOWARD) for middle, _, _ in solids], boxes, [h for *_, h in solids], TOWARD
    )


def ball(*middle, radius=0.1):
    at = np.array(middle, dtype=float)
    return at, radius, ellipsoid_hull(at, EYE, np.full(3, radius))


def plank(*middle, edges=(4.0, 4.0, 0.2)):
    at, sizes = np.array(middle, dtype=float), np.array(edges)
    return at, 2.0, box_hull(at, EYE, sizes)


def disc(*middle):
    at = np.array(middle, dtype=float)
    return at, 2.0, cylinder_hull(at, np.array([0.0, 0.0, 1.0]), 0.2, 2.0)


@pytest.mark.parametrize("table", [plank, disc])
@pytest.mark.parametrize("place", [-1.5, 0.0, 1.5])
def test_a_ball_on_a_table_is_in_front_wherever_it_lies(table, place) -> None:
    """Also where it rolls at the far edge, and its middle is farther from the eye than the table's."""
    on, under = ball(0.0, place, 0.2), ball(0.0, place, -0.2)
    assert order(table(0, 0, 0), on) == [0, 1]
    assert order(on, table(0, 0, 0)) == [1, 0]
    assert order(table(0, 0, 0), under) == [1, 0]
    assert order(under, table(0, 0, 0), on) == [0, 1, 2]


def test_points_of_meshes_and_lines_lie_beyond_faces_too() -> None:
    rail = np.array([[-1.0, 1.5, 0.2], [1.0, 1.8, 0.3]])
    assert order(plank(0, 0, 0), (rail.mean(axis=0), 1.0, point_cloud_hull(rail))) == [0, 1]


def test_where_no_face_tells_depth_does() -> None:
    near, far = ball(0.0, -1.0, 0.0), ball(0.0, 1.0, 0.0)
    assert order(near, far) == [1, 0]
    crossing = plank(0, 0.3, 0, edges=(0.2, 0.2, 4.0))
    assert order(plank(0, 0, 0), crossing) == [1, 0]


def test_what_does_not_meet_in_the_picture_goes_by_depth() -> None:
    aside = ball(50.0, 1.5, 0.2)
    assert order(plank(0, 0, 0), aside) == [1, 0]


def test_a_circle_is_cut_and_everybody_is_painted_once() -> None:
    """Three planks each of which lies on the next one; and more solids than pairs are looked at."""
    turned = []
    for k in range(3):
        angle = 2 * np.pi * k / 3
        along = np.array([np.cos(angle), np.sin(angle), 0.35])
        along /= np.linalg.norm(along)
        across = np.cross([0.0, 0.0, 1.0], along)
        across /= np.linalg.norm(across)
        R = np.stack([along, across, np.cross(along, across)], axis=1)
        middle = 0.8 * np.array([-np.sin(angle), np.cos(angle), 0.0])
        turned.append((middle, 2.0, box_hull(middle, R, np.array([4.0, 0.2, 0.05]))))
    for some in itertools.permutations(turned):
        assert sorted(order(*some)) == [0, 1, 2]
    many = [ball(0.0, 0.01 * k, 0.0) for k in range(MAX_COMPARED_SOLIDS + 1)]
    assert order(*many) == list(range(MAX_COMPARED_SOLIDS, -1, -1))
