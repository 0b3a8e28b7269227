"""Contacts, latches and frictions along a motion, as the page shows them: efforts, states, and impacts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.visualization.scene.drawing_records import Drawing
from mb2fmu.visualization.scene.scene_contacts import SceneContact
from mb2fmu.visualization.scene.scene_pose_trajectories import PlotSignals

Floats = npt.NDArray[np.float64]

STATE_OPEN, STATE_STICKING, STATE_SLIDING = 0.0, 1.0, 2.0
"""States of a touch: not there; at rest, closed or sticking; sliding or pressed."""

_STATE_WORDS = {
    "contact": ("open", "rests", "touches"),
    "rough": ("open", "sticks", "slides"),
    "latch": ("open", "closed", "closed"),
    "friction": ("slides", "sticks", "slides"),
}
_MAX_ARROW_FRACTION = 0.25  # of the picture: the largest force
_MAX_IMPACTS = 400


@dataclass(frozen=True, slots=True, eq=False)
class ContactOverlay:
    """What the page shows of touches.

    Attributes:
        parts: As ``viewer.js`` reads them: ``each`` touch with its words, unit and impacts ([time, part of the largest
            impulse, impulse]), and where they are ``pushed``.
        values: Per touch its state and the magnitude of its effort, then per place three components of an arrow in m
            of the picture; shape (n_t, n).
        pushed: Whether any has a place.
    """

    parts: dict[str, Any]
    values: Floats
    pushed: bool


def form_contact_overlay(drawing: Drawing, signals: PlotSignals | None) -> ContactOverlay | None:
    """Return the touches of a drawing whose variables are among the signals; None if there are none.

    Args:
        drawing: With its touches.
        signals: Over the drawing's times.
    """
    if signals is None or len(drawing.poses.time) < 2:
        return None
    columns = {name: signals.values[:, k] for k, name in enumerate(signals.names)}
    known = [
        k for k, touch in enumerate(drawing.touches) if {*touch.efforts, *filter(None, [touch.holds])} <= columns.keys()
    ]
    if not known:
        return None
    time, impulses = drawing.poses.time, _largest_impulses(drawing, columns)
    each, values = [], []
    for k in known:
        touch = drawing.touches[k]
        efforts = np.stack([columns[name] for name in touch.efforts], axis=1)
        same = len(set(touch.units)) == 1  # a force and a torque have no magnitude together
        size = np.linalg.norm(efforts, axis=1) if same else np.abs(efforts[:, 0])
        values += [_contact_state(touch, columns, size), size]
        unit = touch.units[0]
        impacts = list(_list_impacts(touch, columns, time, impulses.get(touch.impulse_unit, 0.0)))[:_MAX_IMPACTS]
        words = _STATE_WORDS["rough" if touch.kind == "contact" and touch.slides else touch.kind]
        record = {"name": touch.name, "words": list(words), "unit": unit, "impulseUnit": touch.impulse_unit}
        each.append({**record, "impacts": impacts})
    pushed = [p for p in drawing.pushed if p.touch in known]
    forces = [columns[drawing.touches[p.touch].efforts[p.effort]][:, None] * p.directions for p in pushed]
    largest = max((float(np.abs(force).max()) for force in forces), default=0.0)
    scale = _MAX_ARROW_FRACTION * max(drawing.span) / (largest or 1.0)
    values += [column for force in forces for column in (scale * force).T]
    places = [
        {
            "touch": known.index(p.touch),
            "pose": p.anchor.pose,
            "local": [float(f"{value:.7g}") for value in p.anchor.local],
        }
        for p in pushed
    ]
    return ContactOverlay({"each": each, "pushed": places}, np.stack(values, axis=1), pushed=bool(pushed))


def _contact_state(touch: SceneContact, columns: dict[str, Floats], size: Floats) -> Floats:
    """Return the state of a touch at all times."""
    holds = columns[touch.holds] > MODE_THRESHOLD if touch.holds else np.zeros(len(size), dtype=bool)
    if touch.kind == "contact" and not touch.counts:  # compliant
        return np.where(holds, STATE_STICKING, np.where(size > 0.0, STATE_SLIDING, STATE_OPEN))
    slides = np.abs(columns[touch.slides]) > MODE_THRESHOLD if touch.slides in columns else np.zeros_like(holds)
    return np.where(holds, np.where(slides, STATE_SLIDING, STATE_STICKING), STATE_OPEN)


def _largest_impulses(drawing: Drawing, columns: dict[str, Floats]) -> dict[str, float]:
    """Return unit → the largest impulse in it."""
    found: dict[str, float] = {}
    for touch in drawing.touches:
        if touch.impulse in columns:
            largest = float(np.abs(columns[touch.impulse]).max())
            found[touch.impulse_unit] = max(found.get(touch.impulse_unit, 0.0), largest)
    return found


def _list_impacts(
    touch: SceneContact, columns: dict[str, Floats], time: Floats, largest: float
) -> Iterator[list[float]]:
    """Yield time, part of the largest impulse, and impulse of each impact, at the end of the step it came in."""
    if touch.counts not in columns:
        return
    grows = np.flatnonzero(np.diff(columns[touch.counts]) > 0.5) + 1
    for row in grows.tolist():
        impulse = abs(float(columns[touch.impulse][row])) if touch.impulse in columns else 0.0
        yield [
            float(f"{time[row]:.9g}"),
            float(f"{impulse / largest:.4g}") if largest else 1.0,
            float(f"{impulse:.4g}"),
        ]
