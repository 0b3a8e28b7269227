"""Integration of stiff equations to nearly all digits: Radau IIA collocation with 7 stages, order 13.

E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, chapters IV.5 and IV.8. SciPy's Radau has order 5 and
would need very many steps for twelve digits. Each step is made once as a whole and once in two halves; the halves are
kept, and their difference steers the step size.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from mb2fmu.validation.compiled.c_structures import RadauCoefficientsStruct, array_address
from mb2fmu.validation.reference.smooth_integration import (
    BatchSlopeFunction,
    HeldBatchSlopeFunction,
    make_integration_standstill_error,
)

Floats = npt.NDArray[np.float64]

RADAU_STAGES = 7
_RADAU_ORDER = 2 * RADAU_STAGES - 1
_MAX_NEWTON_ITERATIONS = 15
_SLOW_CONVERGENCE_RATIO = (
    0.5  # a correction that is so large a part of the one before does not converge: it stands still or runs away
)
_STANDSTILL_ROUND_OFFS = 100.0  # units of round-off, up to which corrections that grow no smaller are round-off
_CANCELLATION_FACTOR = 16.0
_NOISE_FACTOR = 4.0
"""So many times their estimated round-off two results may differ by nothing else. No shorter step makes that smaller,
so it does not steer the step size: steps that round-off had shortened once stayed at a hundredth of their length."""
_EPSILON = float(np.finfo(float).eps)


def compute_radau_coefficients(stages: int) -> tuple[Floats, Floats]:
    """Return nodes c in (0, 1], shape (s,), and A with A_ij = ∫ of the j-th Lagrange polynomial from 0 to c_i.

    c are the zeros of P_s - P_{s-1} on [0, 1]; the last one is 1, so the last row of A holds the weights.
    """
    series = np.zeros(stages + 1)
    series[-1], series[-2] = 1.0, -1.0
    x = np.sort(np.real(legendre.legroots(series)))
    slope = legendre.legder(series)
    for _ in range(3):
        x = x - legendre.legval(x, series) / legendre.legval(x, slope)
    x[-1] = 1.0
    # In Legendre polynomials, because powers are ill-conditioned: A = (their integrals) (their values)^-1.
    values = legendre.legvander(x, stages - 1)
    integrals = np.array([legendre.legval(x, legendre.legint(unit, lbnd=-1)) for unit in np.eye(stages)]).T / 2
    return (x + 1) / 2, np.asarray(np.linalg.solve(values.T, integrals.T).T, dtype=np.float64)


def integrate_stiff_equations(
    slopes: HeldBatchSlopeFunction, time: Floats, start: Floats, tolerance: float, scales: Floats, budget: int
) -> Floats:
    """Integrate stiff equations as :func:`.smooth_integration.integrate_smooth_equations`; ``budget`` counts steps.

    Raises:
        ValidationError: If the step size vanishes or the budget is spent.
    """
    y = np.empty((len(time), len(start)))
    y[0] = start
    step, steps_spent = float(time[1] - time[0]), 0
    for k, end in enumerate(time[1:].tolist()):
        t, value, f = float(time[k]), y[k], slopes(k)
        while t < end:
            # A step that would leave a crumb takes the crumb with it.
            is_last_step = end - t <= 1.0001 * step
            h = end - t if is_last_step else step
            halves, error, error_beyond_noise = _step_twice(f, t, value, h, tolerance, scales)
            steps_spent += 1
            if steps_spent > budget or h < 1e-14 * end:
                reason = "the step size vanishes" if steps_spent <= budget else f"{budget} steps are spent"
                raise make_integration_standstill_error(t, reason, np.vstack([y[: k + 1], value]))
            steered_by = error_beyond_noise if error <= 1.0 else error
            factor = 0.8 * steered_by ** (-1 / (_RADAU_ORDER + 1)) if steered_by > 0 else 4.0
            if error <= 1.0:
                t, value = (end if is_last_step else t + h), halves
                step = max(step, h * min(4.0, factor)) if is_last_step else h * min(4.0, factor)
            else:
                step = h * max(0.1, min(0.9, factor))
        y[k + 1] = value
    return y


def _step_twice(
    f: BatchSlopeFunction, t: float, y: Floats, h: float, tolerance: float, scales: Floats
) -> tuple[Floats, float, float]:
    """Return the state after two steps of h/2, its scaled difference from one of h, and its part beyond round-off.

    The difference is infinite if Newton fails.
    """
    y_dot, jacobian = _compute_slope_and_jacobian(f, t, y, scales)
    whole_step = _take_collocation_step(
        f, t, y, _form_newton_matrix(y, y_dot, h, jacobian), scales, np.zeros((RADAU_STAGES, len(y)))
    )
    if whole_step is None:
        return y, np.inf, np.inf
    # Where the halves begin: the polynomial of the whole step.
    guess = _HALF_STEP_INTERPOLATION @ whole_step.stages
    newton = _form_newton_matrix(y, y_dot, h / 2, jacobian)
    first_half = _take_collocation_step(f, t, y, newton, scales, guess[:RADAU_STAGES])
    if first_half is None:
        return y, np.inf, np.inf
    middle = y + first_half.stages[-1]
    further_guess = guess[RADAU_STAGES:] - first_half.stages[-1]
    second_half = _take_collocation_step(f, t + h / 2, middle, newton, scales, further_guess)
    if second_half is None:  # the slopes have turned since
        y_dot, jacobian = _compute_slope_and_jacobian(f, t + h / 2, middle, scales)
        newton = _form_newton_matrix(middle, y_dot, h / 2, jacobian)
        second_half = _take_collocation_step(f, t + h / 2, middle, newton, scales, further_guess)
    if second_half is None:
        return y, np.inf, np.inf
    end = middle + second_half.stages[-1]
    # Newton's equations are solved to some units of round-off, below which no tolerance can be kept.
    floor = whole_step.floor[-1] + first_half.floor[-1] + second_half.floor[-1]
    allowed, difference = max(tolerance, 1e-13) * (scales + np.abs(end)), np.abs(end - (y + whole_step.stages[-1]))
    beyond_noise = (difference - _NOISE_FACTOR * floor) / allowed
    return end, float(np.max(difference / (allowed + floor))), max(0.0, float(np.max(beyond_noise)))


def _compute_slope_and_jacobian(f: BatchSlopeFunction, t: float, y: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """Return f, shape (n,), and its derivatives by forward differences, (n, n); these affect only Newton's speed."""
    displaced_states = np.vstack([y, y + 1e-7 * np.diag(np.maximum(scales, np.abs(y)))])
    slopes = f(np.full(len(displaced_states), t), displaced_states)
    return slopes[0], np.asarray((slopes[1:] - slopes[0]) / (np.diag(displaced_states[1:]) - y)[:, None]).T


@dataclass(frozen=True, slots=True)
class _CollocationStep:
    """One collocation step: y at the stages less y at its beginning, and their round-off; shapes (s, n)."""

    stages: Floats
    floor: Floats


@dataclass(frozen=True, slots=True)
class _CollocationNewtonMatrix:
    """Newton's matrix of a collocation step.

    Attributes:
        h: Size of the step.
        inverse: Shape (s n, s n).
        floor: What the stages can be known to, shape (s, n).
    """

    h: float
    inverse: Floats
    floor: Floats


def _form_newton_matrix(y: Floats, y_dot: Floats, h: float, jacobian: Floats) -> _CollocationNewtonMatrix:
    """Return I - h A ⊗ J, inverted: with A = Σ λ_k P_k it is Σ P_k ⊗ (I - h λ_k J)^-1 (Hairer and Wanner, IV.8).

    Of a stiff equation f is a small difference of large forces: a spring of 1e6 N/m whose length is known to 1e-16 m
    gives its force to 1e-10 N, and no iteration makes the residual smaller. What the stages can be known to follows
    from |J| |y| units of round-off in f through the inverse of Newton's matrix.
    """
    n = len(y)
    inverses = np.linalg.inv(np.eye(n) - (h * _EIGENVALUES)[:, None, None] * jacobian)
    products = (_EIGENPROJECTIONS @ inverses.reshape(len(inverses), n * n)).real
    inverse = products.reshape(RADAU_STAGES, RADAU_STAGES, n, n).transpose(0, 2, 1, 3).reshape(2 * (RADAU_STAGES * n,))
    noise = _EPSILON * (np.abs(jacobian) @ np.abs(y) + np.abs(y_dot))
    worst = np.outer(h * np.abs(_COEFFICIENTS).sum(axis=1), noise).ravel()
    return _CollocationNewtonMatrix(h, inverse, (np.abs(inverse) @ worst).reshape(RADAU_STAGES, n))


def _take_collocation_step(
    f: BatchSlopeFunction, t: float, y: Floats, newton: _CollocationNewtonMatrix, scales: Floats, guess: Floats
) -> _CollocationStep | None:
    """Return one collocation step by simplified Newton iteration from ``guess``; None if it does not converge."""
    h, n = newton.h, len(y)
    # The bound sums up what mostly cancels.
    unit = _EPSILON * (scales + np.abs(y)) + newton.floor / _CANCELLATION_FACTOR
    times = t + h * _NODES
    Z, last = guess, np.inf
    for _ in range(_MAX_NEWTON_ITERATIONS):
        update = (newton.inverse @ (h * _COEFFICIENTS @ f(times, y + Z) - Z).ravel()).reshape(RADAU_STAGES, n)
        size = float(np.max(np.abs(update) / unit))
        rate = size / last
        if not np.isfinite(size) or (rate > _SLOW_CONVERGENCE_RATIO and size > _STANDSTILL_ROUND_OFFS):
            return None
        Z = Z + update
        # The next correction would be ``rate`` times this one.
        if size <= 1.0 or (np.isfinite(last) and size * rate <= 1.0) or rate > _SLOW_CONVERGENCE_RATIO:
            return _CollocationStep(Z, newton.floor)
        last = size
    return None


def _compute_half_step_interpolation() -> Floats:
    """Return the matrix from a polynomial's values at the stages (0 at the start) to those at its halves' stages."""
    nodes = np.concatenate([[0.0], _NODES])
    interpolation_points = np.concatenate([_NODES / 2, (1 + _NODES) / 2])
    weights = np.empty((2 * RADAU_STAGES, RADAU_STAGES))
    for j in range(1, RADAU_STAGES + 1):
        other_nodes = np.delete(nodes, j)
        weights[:, j - 1] = np.prod((interpolation_points[:, None] - other_nodes) / (nodes[j] - other_nodes), axis=1)
    return weights


def _decompose_coefficients() -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]:
    """Return λ_k, shape (k,), and P_k as columns, (s², k), of A = Re Σ λ_k P_k: one of each pair, taken twice."""
    values, vectors = np.linalg.eig(_COEFFICIENTS)
    one_of_each = np.flatnonzero(values.imag >= 0.0)
    rows = np.linalg.inv(vectors)[one_of_each] * np.where(values.imag[one_of_each] > 0.0, 2.0, 1.0)[:, None]
    projections = np.einsum("ik,kj->ijk", vectors[:, one_of_each], rows)
    return values[one_of_each], projections.reshape(RADAU_STAGES**2, len(one_of_each))


_NODES, _COEFFICIENTS = compute_radau_coefficients(RADAU_STAGES)
_HALF_STEP_INTERPOLATION = _compute_half_step_interpolation()
_EIGENVALUES, _EIGENPROJECTIONS = _decompose_coefficients()


@functools.cache
def get_collocation_struct() -> RadauCoefficientsStruct:
    """Return the method's numbers for C."""
    numbers = [
        np.ascontiguousarray(a)
        for a in (_NODES, _COEFFICIENTS, _HALF_STEP_INTERPOLATION, _EIGENVALUES, _EIGENPROJECTIONS)
    ]
    addresses = [*map(array_address, numbers)]
    struct = RadauCoefficientsStruct(RADAU_STAGES, *addresses[:3], len(_EIGENVALUES), *addresses[3:])
    struct.numbers = numbers
    return struct
