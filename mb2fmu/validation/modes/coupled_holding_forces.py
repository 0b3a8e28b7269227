"""Solve in numbers for holding forces that share a motion: frictions, contacts and latches.

With the rates of held surfaces a + B σ, B = −W D for dry friction (W: mobility, symmetric and positive semidefinite;
D: forces at σ = 1). Where B is singular σ is not determined by a + B σ = 0. Every friction is taken to give way a
little, in proportion to what it can take: σ is the limit, for ε to 0, of

    (B − ε Δ)⁻¹ (−a),    Δ_i = min(ρ_i / limit_i, 1e3 |B_ii|),    ρ_i: length of row i of B

which is the group inverse of Δ⁻¹ B, formed from a factorization of full rank. Source: Ben-Israel and Greville,
Generalized Inverses, 2nd ed. 2003, ch. 4, theorem 2.

Contacts and latches hold rigidly, and bear what they can alone: friction on a motion that they hold has none of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_RANK_TOLERANCE = 1e-9
_FIT_TOLERANCE = 1e-6  # of what there is: so much may be left over
_MAX_SCALE_RATIO = 1e3
_NEGLIGIBLE_EFFECT = 1e-9
"""Of the largest change that any friction makes to a slip: a friction that changes its own by less holds nothing."""

_ALREADY_HELD_FRACTION = 1e-9
"""Of the change that a friction makes to its own slip without contacts and latches: below it they hold the slip."""

_REGULAR_DETERMINANT = 1e-3
"""Of the sum of squares: two rows with a larger determinant have a condition below a thousand."""


def solve_coupled_holding_forces(
    B: Floats, right_side: Floats, limits: Floats, negligible_rate: float | None = None
) -> Floats:
    """Return holding values: of signs, then of contacts and latches.

    Args:
        B: Shape (k, k): what each value changes each rate by.
        right_side: Shape (k,): what the rates lack.
        limits: Of the signs, in front; the others are contacts and latches, of least norm where they say the same, each
            times the square root of what it moves by itself: so units of measure do not matter.
        negligible_rate: What signs may leave over, as it is round-off; None: a small part of what they could do.

    Raises:
        LinAlgError: If nothing holds.
    """
    values, effective_indices = np.zeros(len(right_side)), np.flatnonzero(_has_effect(B, limits))
    signs = len(limits)
    if len(effective_indices) < len(right_side):
        signs = int(np.sum(effective_indices < len(limits)))
        B, right_side, limits = (
            B[np.ix_(effective_indices, effective_indices)],
            right_side[effective_indices],
            limits[effective_indices[:signs]],
        )
    if signs == len(effective_indices):
        values[effective_indices] = _share_holding_forces(B, right_side, limits, negligible_rate)
        return values
    row_inverse = compute_weighted_pseudo_inverse(B[signs:, signs:])
    if not signs:
        values[effective_indices] = row_inverse @ right_side
        return values
    row_effects = B[:signs, signs:] @ row_inverse
    reduced, reduced_right_side = (
        B[:signs, :signs] - row_effects @ B[signs:, :signs],
        right_side[:signs] - row_effects @ right_side[signs:],
    )
    effective_frictions = np.flatnonzero(~_find_ineffective_frictions(reduced, B))
    friction_values = np.zeros(signs)
    friction_values[effective_frictions] = _share_holding_forces(
        reduced[np.ix_(effective_frictions, effective_frictions)],
        reduced_right_side[effective_frictions],
        limits[effective_frictions],
        negligible_rate,
    )
    values[effective_indices] = np.append(
        friction_values, row_inverse @ (right_side[signs:] - B[signs:, :signs] @ friction_values)
    )
    return values


def find_ineffective_frictions(B: Floats, signs: int) -> npt.NDArray[np.bool_]:
    """Return which frictions rub on a motion that contacts and latches hold, shape (signs,).

    Args:
        B: As above; all of its contacts rest, all of its latches are closed.
        signs: Number of frictions, in front.
    """
    if signs == len(B):
        return np.zeros(signs, dtype=bool)
    row_inverse = compute_weighted_pseudo_inverse(B[signs:, signs:])
    return _find_ineffective_frictions(B[:signs, :signs] - B[:signs, signs:] @ row_inverse @ B[signs:, :signs], B)


def compute_friction_influence(
    B: Floats, state_effects: Floats, is_barred: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the effects of frictions alone on their slips and on the states, beside contacts and latches that hold.

    Args:
        B: As above.
        state_effects: Effects on the states, shape (n_x, k).
        is_barred: Of the frictions: their effects are those without contacts and latches.
    """
    signs = len(is_barred)
    reactions = compute_weighted_pseudo_inverse(B[signs:, signs:]) @ B[signs:, :signs]
    reduced, reduced_state_effects = (
        B[:signs, :signs] - B[:signs, signs:] @ reactions,
        state_effects[:, :signs] - state_effects[:, signs:] @ reactions,
    )
    return np.where(is_barred, B[:signs, :signs], reduced), np.where(
        is_barred, state_effects[:, :signs], reduced_state_effects
    )


def _find_ineffective_frictions(reduced: Floats, B: Floats) -> npt.NDArray[np.bool_]:
    """Return where next to nothing is left of what a friction changes its own slip by, beside contacts and latches."""
    return np.asarray(np.abs(np.diag(reduced)) < _ALREADY_HELD_FRACTION * np.abs(np.diag(B)[: len(reduced)]))


def _has_effect(B: Floats, limits: Floats) -> npt.NDArray[np.bool_]:
    """Return whether each value has an effect, shape (k,).

    A friction that nothing presses has none. Where next to nothing presses it (an open clutch beside a freewheel that
    holds), its effect is round-off: ``_NEGLIGIBLE_EFFECT`` distinguishes the two.
    """
    has_effect = np.asarray(B.any(axis=0))
    if len(limits) > 1:
        effects = np.abs(B[: len(limits), : len(limits)]) * limits
        has_effect[: len(limits)] &= np.diag(effects) > _NEGLIGIBLE_EFFECT * effects.max(axis=1)
    return has_effect


def compute_weighted_pseudo_inverse(B: Floats) -> Floats:
    """Return the pseudoinverse, forces times the square root of what they move; of regular small ones the inverse."""
    if B.size == 1:
        return np.asarray(1.0 / B if B[0, 0] != 0.0 else B)
    if B.size == 4:
        (a, b), (c, d) = B.tolist()
        product = a * d - b * c
        if abs(product) > _REGULAR_DETERMINANT * (a * a + b * b + c * c + d * d):
            return np.asarray(np.array([[d, -b], [-c, a]]) / product)
    scales = compute_row_scale_factors(B)
    return np.asarray(scales[:, None] * np.linalg.pinv(B * scales * scales[:, None], rcond=1e-10) * scales)


def compute_row_scale_factors(B: Floats) -> Floats:
    """Return what makes each row's effect on itself 1; 0 of a row that moves nothing."""
    self_effects = np.sqrt(np.abs(np.diag(B)))
    return np.divide(1.0, self_effects, out=np.zeros(len(B)), where=self_effects > 0.0)


def _share_holding_forces(B: Floats, right_side: Floats, limits: Floats, negligible_rate: float | None) -> Floats:
    """Return the values of held signs alone: of least norm, weighted by their limits, where B is singular."""
    if not len(right_side):
        return right_side
    scales = np.minimum(np.linalg.norm(B, axis=1) / limits, _MAX_SCALE_RATIO * np.abs(np.diag(B)))
    if not np.all(scales > 0.0):
        raise np.linalg.LinAlgError("a friction has no effect on its own slip")
    if len(right_side) == 1:
        return np.asarray(right_side / B[0])
    A, b = B / scales[:, None], right_side / scales
    lengths = np.linalg.norm(A, axis=0)
    U, sizes, V = np.linalg.svd(A / lengths)
    rank = int(np.sum(sizes > _RANK_TOLERANCE * sizes[0]))
    if rank == len(b):
        return np.asarray(np.linalg.solve(A, b))
    F, G = U[:, :rank] * sizes[:rank], V[:rank] * lengths
    values = F @ np.linalg.solve(G @ F, np.linalg.solve(G @ F, G @ b))
    values += (
        np.linalg.lstsq(A / lengths, b - A @ values, rcond=_RANK_TOLERANCE)[0] / lengths
    )  # squares have cost digits
    negligible_rates = _NEGLIGIBLE_EFFECT * (np.abs(B) @ limits) if negligible_rate is None else negligible_rate
    if np.linalg.norm(A @ values - b) > _FIT_TOLERANCE * np.linalg.norm(b) and np.any(
        np.abs(B @ values - right_side) > negligible_rates
    ):
        raise np.linalg.LinAlgError("nothing holds what is driven")
    return np.asarray(values)
