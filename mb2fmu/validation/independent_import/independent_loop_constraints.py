"""Closed loops in the independent import of a robot's file: residuals, Jacobians, and x' on them, in numbers.

Two ends meet. With p, R, v, ω, a, α of each (a and α at u' = 0), e a direction fixed in the first end, and all in the
ground's components,

    point   p_1 − p_2 = 0                 A = J_v1 − J_v2             A u' + (a_1 − a_2) = 0
    turn    (ω_1 − ω_2) · e = 0           A = eᵀ (J_w1 − J_w2)        A u' + (α_1 − α_2) · e + (ω_1 − ω_2) · ω_1 × e = 0

for every e across a hinge's axis, for all three of a weld. A is taken apart by singular values, so that rows which
follow from others do no harm. Nothing of ``mb2fmu.robots`` is used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mb2fmu.validation.independent_import.independent_urdf_equations import (
    Array,
    LinkMotion,
    Pose,
    axes_with_third_direction,
    cross_product_matrix,
)

_RANK_TOLERANCE = 1e-9
_MAX_NEWTON_STEPS = 50
_CLOSURE_TOLERANCE = 1e-13  # m or rad
_LARGEST_NEWTON_STEP = 0.5  # m or rad: longer steps of Newton's method, whose slopes are of here, are shortened


@dataclass(frozen=True, slots=True)
class LinkFrameConnection:
    """Two frames that are connected.

    Attributes:
        kind: ``point``, ``hinge`` (about the first frame's z axis) or ``weld``.
        links: Which carry them.
        places: Rotation and position of each in its link.
    """

    kind: str
    links: tuple[str, str]
    places: tuple[Pose, Pose]


@dataclass(frozen=True, slots=True)
class LoopConstraints:
    """Rows of all loops at one point: residuals φ, A, and γ in A u' + γ = 0."""

    residual: Array
    A: Array
    gamma: Array


def read_loop_tables(text: bytes) -> list[Mapping[str, Any]]:
    """Return the loops of a side file, unchanged."""
    loops: list[Mapping[str, Any]] = tomllib.loads(text.decode()).get("loops", [])
    return loops


def read_loop_closure_frames(table: Mapping[str, Any], place_of_link: Callable[[str], Pose]) -> LinkFrameConnection:
    """Return the closure of a loop of a side file.

    Args:
        table: Its table.
        place_of_link: A link's name → its frame in the frame of the independent import for it.
    """
    first, second = table["frames"]
    axis = table.get("axis", (0.0, 0.0, 1.0))
    sides = (("offset", axis), ("other_offset", table.get("other_axis") or axis))
    hinge = table.get("by", "point") == "hinge"
    places = []
    for name, (offset, axis_text) in zip((first, second), sides, strict=True):
        R, p = place_of_link(name)
        axes = axes_with_third_direction(np.array(_parse_three_numbers(axis_text))) if hinge else np.eye(3)
        places.append((R @ axes, p + R @ np.array(_parse_three_numbers(table.get(offset, (0.0, 0.0, 0.0))))))
    return LinkFrameConnection(table.get("by", "point"), (first, second), (places[0], places[1]))


def compute_loop_constraints(
    closures: Sequence[LinkFrameConnection], motions: Mapping[str, LinkMotion]
) -> LoopConstraints:
    """Return the rows of all loops.

    Args:
        closures: What is connected.
        motions: Of the links that carry them.
    """
    residual, A, gamma = [], [], []
    for closure in closures:
        first_motion, second_motion = (
            _motion_of_fixed_frame(motions[link], place)
            for link, place in zip(closure.links, closure.places, strict=True)
        )
        residual.append(first_motion.p - second_motion.p)
        A.append(first_motion.Jv - second_motion.Jv)
        gamma.append(first_motion.a - second_motion.a)
        if closure.kind == "point":
            continue
        constrained_directions = first_motion.R[:, :2] if closure.kind == "hinge" else first_motion.R
        relative_omega = first_motion.w - second_motion.w
        residual.append(
            constrained_directions.T
            @ _rotation_vector_between(first_motion.R, second_motion.R, hinge=closure.kind == "hinge")
        )
        A.append(constrained_directions.T @ (first_motion.Jw - second_motion.Jw))
        gamma.append(
            constrained_directions.T @ (first_motion.alpha - second_motion.alpha)
            + np.cross(first_motion.w, constrained_directions.T) @ relative_omega
        )
    return LoopConstraints(np.concatenate(residual), np.vstack(A), np.concatenate(gamma))


def close_loops_from_guess(
    values: list[float],
    rows: Callable[[list[float]], LoopConstraints],
    move: Callable[[list[float], Array], list[float]],
    project_speeds_on_constraints: Callable[[list[float], Array], list[float]],
) -> list[float] | None:
    """Return values on the loops by Newton's method, then their speeds; None if there is no solution near.

    Args:
        values: Of all slots.
        rows: Of the loops there.
        move: Function that gives the values after a small motion along the speeds.
        project_speeds_on_constraints: Function that gives the values with speeds projected on A u = 0, given A.
    """
    for _ in range(_MAX_NEWTON_STEPS):
        constraints = rows(values)
        step = _pseudo_inverse(constraints.A) @ constraints.residual
        size = float(np.max(np.abs(step), initial=0.0))
        values = move(values, -step * min(1.0, _LARGEST_NEWTON_STEP / max(size, _CLOSURE_TOLERANCE)))
        if size < _CLOSURE_TOLERANCE:
            return project_speeds_on_constraints(values, rows(values).A)
    return None


def project_speeds_on_loops(A: Array, u: Array) -> Array:
    """Return the speeds nearest to u with A u = 0."""
    return np.asarray(u - _pseudo_inverse(A) @ (A @ u))


def solve_loop_accelerations(M: Array, f: Array, rows: LoopConstraints) -> tuple[Array, Array, Array]:
    """Return u' on the loops, |N| (effect of forces) and A⁺ (effect of γ).

    u' = −A⁺ γ + Z w, A Z = 0, Zᵀ M u' = Zᵀ f; N = Z (Zᵀ M Z)⁻¹ Zᵀ. The loops' forces are λ = A⁺ᵀ (f − M u').
    """
    _, sizes, Vt = np.linalg.svd(rows.A)
    rank = int(np.count_nonzero(sizes > _RANK_TOLERANCE * max(float(sizes[0]), 1e-300)))
    Z = Vt[rank:].T
    N = Z @ np.linalg.solve(Z.T @ M @ Z, Z.T) if Z.size else np.zeros_like(M)
    inverse = _pseudo_inverse(rows.A)
    particular = -inverse @ rows.gamma
    return particular + N @ (f - M @ particular), np.abs(N), inverse


def _pseudo_inverse(A: Array) -> Array:
    """Return the pseudo-inverse; singular values below the rank tolerance count as zero."""
    return np.asarray(np.linalg.pinv(A, rcond=_RANK_TOLERANCE))


def _rotation_vector_between(first: Array, second: Array, *, hinge: bool) -> Array:
    """Rotation vector (small) that turns the second axes, or its z axis alone, into the first."""
    if hinge:
        return np.cross(second[:, 2], first[:, 2])
    return np.asarray(sum(np.cross(second[:, k], first[:, k]) for k in range(3)) / 2)


def _motion_of_fixed_frame(motion: LinkMotion, place: Pose) -> LinkMotion:
    """Return the motion of a frame fixed in a link."""
    R, r = motion.R @ place[0], motion.R @ place[1]
    a = motion.a + np.cross(motion.alpha, r) + np.cross(motion.w, np.cross(motion.w, r))
    Jv = motion.Jv - cross_product_matrix(r) @ motion.Jw
    return LinkMotion(R, motion.p + r, motion.w, motion.v + np.cross(motion.w, r), motion.alpha, a, motion.Jw, Jv)


def _parse_three_numbers(value: Any) -> list[float]:
    """Return numbers from a sequence, or from text separated by spaces or commas."""
    return [float(part) for part in (value.replace(",", " ").split() if isinstance(value, str) else value)]
