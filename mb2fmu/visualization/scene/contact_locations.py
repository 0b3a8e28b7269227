"""Where contacts and latches are, and along which directions they push: found in the motion of all points.

A model gives the gap g of a contact, and no place. Of a point P that moves with the coordinates q by dP/dq, the unit
vector n with n · dP/dq = dg/dq is the direction in which a force at P drives the gap up; where one exists at all
states that are tried, the contact is drawn there. Else two points P and Q are looked for, with n · (dP/dq − dQ/dq).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler import evaluation
from mb2fmu.visualization.scene.poses import StateTrajectory
from mb2fmu.visualization.scene.scene import Scene

Floats = npt.NDArray[np.float64]

_SEARCH_INSTANTS = 4  # instants at which places are looked for
_MAX_DIRECTION_ROWS = 500  # at which directions are computed; between them they turn evenly
_MAX_PAIRED_POINTS = 40  # points of which pairs are tried
_RELATIVE_DIFFERENCE_STEP = 1e-5  # of a state's magnitude, for differences
_SLOPE_TOLERANCE = 1e-4  # of dg/dq
_UNIT_LENGTH_TOLERANCE = 1e-2  # that n may be longer or shorter than 1: gaps that are no lengths have no place


@dataclass(frozen=True, slots=True)
class LocatedContact:
    """An arrow of a touch.

    Attributes:
        touch: Index among the scene's touches.
        gap: Which of its gaps.
        point: Index among the scene's points.
        directions: Unit vectors along which a positive effort acts on the point, shape (n_t, 3).
    """

    touch: int
    gap: int
    point: int
    directions: Floats


def locate_contacts(scene: Scene, motion: StateTrajectory) -> tuple[LocatedContact, ...]:
    """Return where the touches of a scene are along a motion; nothing for those that are at none of its points."""
    wanted = [
        (t, k, gap)
        for t, touch in enumerate(scene.touches)
        for k, gap in enumerate(touch.gaps)
        if touch.units[k] != "N.m"  # torques are no arrows at a point, even where a lever of 1 m would fit
    ]
    if not wanted or not scene.program.entries["points"].results:
        return ()
    n = len(motion.time)
    tried = np.unique(np.linspace(0, n - 1, _SEARCH_INSTANTS).round().astype(np.intp))
    points, gaps = _differentiate_points_and_gaps(scene, motion, tried)
    at = evaluation.make_evaluator(scene.program, "points")
    first = motion.at([0])
    where = np.reshape(at(first.time[0], first.states[0], first.inputs[0], first.parameters), (-1, 3))
    chosen = [(t, k, gap, _find_contact_points(points, gaps[:, :, gap], where)) for t, k, gap in wanted]
    if not any(pair for *_, pair in chosen):
        return ()
    rows = np.unique(np.linspace(0, n - 1, min(n, _MAX_DIRECTION_ROWS)).round().astype(np.intp))
    points, gaps = _differentiate_points_and_gaps(scene, motion, rows)
    return tuple(
        LocatedContact(
            t,
            k,
            point,
            sense
            * _normalize_vectors(
                _interpolate_directions(motion.time, rows, _contact_normals(points, gaps[:, :, gap], pair))
            ),
        )
        for t, k, gap, pair in chosen
        for point, sense in zip(pair, (1.0, -1.0), strict=False)
    )


def _differentiate_points_and_gaps(
    scene: Scene, motion: StateTrajectory, rows: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return dP/dx, shape (n_rows, n_x, n_points, 3), and dg/dx, shape (n_rows, n_x, n_gaps), by differences."""
    here = motion.at(rows)
    functions = [evaluation.make_evaluator(scene.program, entry) for entry in ("points", "gaps")]
    scale = np.maximum(np.abs(motion.states).max(axis=0), np.ptp(motion.states, axis=0))
    steps = _RELATIVE_DIFFERENCE_STEP * np.where(scale > 0.0, scale, 1.0)
    found: list[list[Floats]] = [[], []]
    for k, step in enumerate(steps):
        sides = []
        for sign in (1.0, -1.0):
            states = here.states.copy()
            states[:, k] += sign * step
            there = replace(here, states=states)
            sides.append([f(there.time, there.states, there.inputs, there.parameters) for f in functions])
        for each, high, low in zip(found, *sides, strict=True):
            each.append((np.asarray(high) - np.asarray(low)) / (2.0 * step))
    points, gaps = (np.nan_to_num(np.stack(each, axis=1)) for each in found)
    return points.reshape(*points.shape[:2], -1, 3), gaps


def _find_contact_points(points: Floats, gaps: Floats, where: Floats) -> tuple[int, ...]:
    """Return the point, or both points, whose motion is the gap's; none if there are none.

    Of several points that move alike the one farthest in is taken: what touches is there and not in the middle.

    Args:
        points: dP/dx, shape (n_rows, n_x, n_points, 3).
        gaps: dg/dx of one gap, shape (n_rows, n_x).
        where: Places of the points at the first row, shape (n_points, 3).
    """
    if not np.abs(gaps).max():
        return ()
    count = points.shape[2]
    single = [(p,) for p in range(count) if _matches_gap_slopes(points[:, :, p], gaps)]
    if single:
        inward = [float(where[p] @ _contact_normals(points, gaps, (p,))[0]) for (p,) in single]
        return single[int(np.argmin(inward))]
    pairs = combinations(range(min(count, _MAX_PAIRED_POINTS)), 2)
    both = [pair for pair in pairs if _matches_gap_slopes(points[:, :, pair[0]] - points[:, :, pair[1]], gaps)]
    return min(both, key=lambda pair: float(np.linalg.norm(where[pair[0]] - where[pair[1]])), default=())


def _matches_gap_slopes(moves: Floats, gaps: Floats) -> bool:
    """Return whether one unit vector at each row makes the gap's slopes of a point's."""
    for slope, wanted in zip(moves, gaps, strict=True):
        n = np.linalg.lstsq(slope, wanted, rcond=None)[0]
        if (
            np.abs(slope @ n - wanted).max() > _SLOPE_TOLERANCE * np.abs(wanted).max()
            or abs(np.linalg.norm(n) - 1.0) > _UNIT_LENGTH_TOLERANCE
        ):
            return False
    return True


def _contact_normals(points: Floats, gaps: Floats, pair: tuple[int, ...]) -> Floats:
    """Return n at each row, shape (n_rows, 3)."""
    if not pair:
        return np.zeros((len(gaps), 3))
    moves = points[:, :, pair[0]] - (points[:, :, pair[1]] if len(pair) > 1 else 0.0)
    return np.array([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(moves, gaps, strict=True)])


def _interpolate_directions(time: Floats, rows: npt.NDArray[np.intp], directions: Floats) -> Floats:
    """Return directions at all times from those at some rows."""
    return np.stack([np.interp(time, time[rows], column) for column in directions.T], axis=1)


def _normalize_vectors(vectors: Floats) -> Floats:
    """Return vectors of length one; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0))
