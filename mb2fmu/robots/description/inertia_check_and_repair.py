"""Masses and inertias of links: check whether a body can have them, repair them, and sum them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mb2fmu.robots.description.robot_description import Array, LinkInertia, Pose

INERTIA_REMEDY = "correct the file; or --inertia repair: the nearest possible one; --inertia keep: as it is"
"""For what no body can have."""
_TRIANGLE_TOLERANCE = 1e-9
"""Relative: a thin rod has A + B = C, and files are written with few digits."""
_ROUNDING_TOLERANCE = 5e-3
_MIN_GYRATION_RADIUS_M = 1e-6
"""Radius of gyration in m below which a body is a point, whatever the signs of its moments."""


def find_inertia_faults(inertial: LinkInertia) -> list[str]:
    """Return what no body can have: a negative mass, principal moments that are negative or break A + B ≥ C.

    Moments that are off by what a file with three digits rounds are taken as they are.
    """
    if inertial.mass < 0:
        return [f"its mass is {inertial.mass:g} kg"]
    if inertial.mass == 0:
        return [] if not np.any(inertial.inertia) else ["it has an inertia and no mass"]
    moments = np.linalg.eigvalsh(inertial.inertia)
    if np.max(np.abs(moments)) <= inertial.mass * _MIN_GYRATION_RADIUS_M**2:
        return []
    listed = ", ".join(f"{moment:.4g}" for moment in moments)
    slack = _ROUNDING_TOLERANCE * max(float(moments[2]), 0.0)
    if moments[0] < -slack * _TRIANGLE_TOLERANCE - _TRIANGLE_TOLERANCE * abs(float(moments[2])):
        return [f"its principal moments of inertia are {listed} kg·m², not all positive"]
    if moments[0] + moments[1] < moments[2] - slack:
        return [f"its principal moments of inertia are {listed} kg·m²: A + B ≥ C is broken"]
    return []


def repair_inertia(inertial: LinkInertia) -> LinkInertia:
    """Return the nearest possible inertia: principal axes kept, ∫ x² dm along each not negative.

    A negative mass becomes its magnitude; an inertia without mass is dropped.
    """
    mass = abs(inertial.mass)
    if mass == 0:
        return LinkInertia(0.0, inertial.center, np.zeros((3, 3)), inertial.line)
    moments, axes = np.linalg.eigh(inertial.inertia)
    second = np.maximum(np.sum(moments) / 2 - moments, 0.0)  # ∫ x² dm of each principal axis
    mended = np.sum(second) - second
    return LinkInertia(mass, inertial.center, axes @ np.diag(mended) @ axes.T, inertial.line)


def combine_inertias(parts: Iterable[tuple[Pose, LinkInertia]]) -> LinkInertia | None:
    """Return several rigid bodies as one.

    Args:
        parts: Where each one's link is in a frame, and its inertial there.

    Returns:
        Mass centre, and the inertia about it, in that frame; None where there is no mass.
    """
    found = [
        (p.position + p.rotation @ i.center, p.rotation @ i.inertia @ p.rotation.T, i)
        for p, i in parts
        if i.mass or np.any(i.inertia)
    ]
    mass = float(sum(i.mass for _, _, i in found))
    if not found:
        return None
    if len(found) == 1:
        center, inertia, one = found[0]
        return LinkInertia(one.mass, center, (inertia + inertia.T) / 2, one.line)
    center = sum((i.mass * at for at, _, i in found), np.zeros(3)) / (mass or 1.0)
    total = sum((about + i.mass * _point_mass_inertia(at - center) for at, about, i in found), np.zeros((3, 3)))
    return LinkInertia(mass, center, (total + total.T) / 2, found[0][2].line)


def _point_mass_inertia(r: Array) -> Array:
    """Return ∫ of a unit mass at r: r·r 1 − r rᵀ."""
    return float(r @ r) * np.eye(3) - np.outer(r, r)
