"""Integration of stiff equations to nearly all digits: Radau IIA collocation with 7 stages, order 13.

E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, chapters IV.5 and IV.8. SciPy's Radau has order 5 and
would need very many steps for twelve digits. Each step is made once as a whole and once in two halves; the halves are
kept, and their difference steers the step size.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.polynomial import legendre

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.validation.integration import HeldSlope, Slope, finite

Floats = npt.NDArray[np.float64]

STAGES = 7
_ORDER = 2 * STAGES - 1
_ITERATIONS = 12


def radau_matrix(stages: int) -> tuple[Floats, Floats]:
    """Nodes c in (0, 1], shape (s,), and A with A_ij = integral from 0 to c_i of the j-th Lagrange polynomial.

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


def integrate_stiff(
    slope: HeldSlope, time: Floats, start: Floats, tolerance: float, scales: Floats, budget: int
) -> Floats:
    """As :func:`mb2fmu.validation.integration.integrate`, for stiff equations; ``budget`` counts steps.

    Raises:
        ValidationError: If the step size vanishes or the budget is spent.
    """
    y = np.empty((len(time), len(start)))
    y[0] = start
    step, spent = float(time[1] - time[0]), 0
    for k, end in enumerate(time[1:].tolist()):
        t, value, f = float(time[k]), y[k], finite(slope(k))
        while t < end:
            # A step that would leave a crumb takes the crumb with it.
            whole = end - t <= 1.0001 * step
            h = end - t if whole else step
            halves, error = _doubled(f, t, value, h, tolerance, scales)
            spent += 1
            if spent > budget or h < 1e-14 * end:
                why = "the step size vanishes" if spent <= budget else f"{budget} steps are spent"
                raise ValidationError("the reference cannot be integrated:", [Fault(f"at t = {t:.6g} s {why}")])
            factor = 0.8 * error ** (-1 / (_ORDER + 1)) if error > 0 else 4.0
            if error <= 1.0:
                t, value = (end if whole else t + h), halves
                step = max(step, h * min(4.0, factor)) if whole else h * min(4.0, factor)
            else:
                step = h * max(0.1, min(0.9, factor))
        y[k + 1] = value
    return y


def _doubled(f: Slope, t: float, y: Floats, h: float, tolerance: float, scales: Floats) -> tuple[Floats, float]:
    """After two steps of h/2, and their difference from one of h over what is allowed; infinite if Newton fails."""
    jacobian = _jacobian(f, t, y, scales)
    whole = _step(f, t, y, h, jacobian, scales)
    half = _step(f, t, y, h / 2, jacobian, scales)
    if whole is None or half is None:
        return y, np.inf
    halves = _step(f, t + h / 2, half, h / 2, _jacobian(f, t + h / 2, half, scales), scales)
    if halves is None:
        return y, np.inf
    # Newton's equations are solved to some units of round-off, below which no tolerance can be kept.
    allowed = max(tolerance, 1e-13) * (scales + np.abs(halves))
    return halves, float(np.max(np.abs(halves - whole) / allowed))


def _jacobian(f: Slope, t: float, y: Floats, scales: Floats) -> Floats:
    """Derivatives of f by forward differences, shape (n, n); only Newton's speed depends on them."""
    base = f(t, y)
    columns = []
    for j, size in enumerate(np.maximum(scales, np.abs(y)).tolist()):
        moved = y.copy()
        moved[j] += 1e-7 * size
        columns.append((f(t, moved) - base) / (moved[j] - y[j]))
    return np.array(columns).T


def _step(f: Slope, t: float, y: Floats, h: float, jacobian: Floats, scales: Floats) -> Floats | None:
    """One collocation step by simplified Newton iteration; None if it does not converge."""
    n = len(y)
    matrix = np.eye(STAGES * n) - h * np.kron(_A, jacobian)
    inverse = np.linalg.inv(matrix)
    times = t + h * _C
    Z = np.zeros((STAGES, n))
    last = np.inf
    for _ in range(_ITERATIONS):
        slopes = np.array([f(float(time), y + z) for time, z in zip(times, Z, strict=True)])
        update = (inverse @ (h * _A @ slopes - Z).ravel()).reshape(STAGES, n)
        size = float(np.max(np.abs(update) / scales))
        if not np.isfinite(size):
            return None
        Z = Z + update
        if size < 1e-15 or (size < 1e-12 and size > 0.5 * last):
            return np.asarray(y + Z[-1])
        last = size
    return None


_C, _A = radau_matrix(STAGES)
