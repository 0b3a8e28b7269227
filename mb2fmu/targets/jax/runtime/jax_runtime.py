"""Functions that printed code calls, in JAX: one instance each, to be mapped by ``jax.vmap``.

What has no solution is NaN. Solutions of linear systems and of Newton's method are differentiated by the equations that
they solve (implicit function theorem), not through the steps that find them.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.lax import dynamic_update_slice, scan, stop_gradient
from jax.scipy.linalg import cho_solve
from jax.scipy.linalg import lu_factor as _factor_by_lu
from jax.scipy.linalg import lu_solve as _solve_by_lu
from jax.scipy.special import erf

inf, nan = float("inf"), float("nan")
sqrt, exp, log, power, absolute = jnp.sqrt, jnp.exp, jnp.log, jnp.power, jnp.abs
sin, cos, tan, sinh, cosh, tanh = jnp.sin, jnp.cos, jnp.tan, jnp.sinh, jnp.cosh, jnp.tanh
asin, acos, atan, atan2 = jnp.arcsin, jnp.arccos, jnp.arctan, jnp.arctan2
asinh, acosh, atanh, hypot = jnp.arcsinh, jnp.arccosh, jnp.arctanh, jnp.hypot
sign, floor, ceil, minimum, maximum = jnp.sign, jnp.floor, jnp.ceil, jnp.minimum, jnp.maximum
logical_or = jnp.maximum

_WRITTEN_OUT = 8  # largest number of unknowns of a system that is solved by scalars, which XLA fuses
_ITERATIONS, _HALVINGS = 60, 12
_BEND, _LITTLE, _FAR = 0.55, 0.03125, 0.2  # of steps, as in the Newton's method of FMUs
_OPEN, _TURNING, _FLAT, _SCARCELY = 0.05, 0.1, 1e-4, 0.9
_STEP, _ERROR, _RESIDUAL = 450.0, 0.45, 4.5e5  # times the round-off of the type: 1e-13, 1e-16 and 1e-10 in float64
_FADING = 1e-14  # of the largest eigenvalue: those below it fade out


def join(dtype, *parts):
    """Return numbers, values and vectors as one vector."""
    return jnp.concatenate([jnp.atleast_1d(jnp.asarray(part, dtype)) for part in parts])


def assemble(dtype, *parts):
    """Return the results of a function as one vector.

    On a CPU they are written one after another: XLA fuses a concatenation with what it joins, and then evaluates the
    terms that its elements share for each element anew.
    """
    if jax.default_backend() != "cpu":
        return join(dtype, *parts)
    vectors = [jnp.atleast_1d(jnp.asarray(part, dtype)) for part in parts]
    result, place = jnp.zeros(sum(map(len, vectors)), dtype), 0
    for vector in vectors:
        result = dynamic_update_slice(result, vector, (place,))
        place += len(vector)
    return result


def less(a, b):
    """Return 1.0 where a < b, else 0.0."""
    return jnp.where(a < b, 1.0, 0.0)


def less_equal(a, b):
    """Return 1.0 where a ≤ b, else 0.0."""
    return jnp.where(a <= b, 1.0, 0.0)


def equal(a, b):
    """Return 1.0 where a = b, else 0.0."""
    return jnp.where(a == b, 1.0, 0.0)


def logical_not(a):
    """Return the opposite of a truth value, 0.0 or 1.0."""
    return 1.0 - a


def logical_and(a, b):
    """Return whether both hold, as 0.0 or 1.0."""
    return a * b


def select(condition, a, b):
    """Return a where the condition is not 0, else b."""
    return jnp.where(condition != 0.0, a, b)


def if_positive(a):
    """Return a where it is positive and finite, else NaN."""
    return jnp.where((a > 0.0) & (a < inf), a, nan)


def if_not_zero(a):
    """Return a where it is finite and not 0, else NaN."""
    return jnp.where((abs(a) > 0.0) & (abs(a) < inf), a, nan)


def table(breaks, coefficients, x):
    """Return a piecewise polynomial: per piece the coefficients, the highest power first."""
    x = jnp.asarray(x)
    breaks, coefficients = jnp.asarray(breaks, x.dtype), jnp.asarray(coefficients, x.dtype)
    i = jnp.clip(jnp.searchsorted(breaks, stop_gradient(x), side="right") - 1, 0, len(breaks) - 2)
    h, total = x - breaks[i], jnp.zeros_like(x)
    for k in range(coefficients.shape[1]):
        total = total * h + coefficients[i, k]
    return total


# --- linear systems --------------------------------------------------------------------------------------------------


def _symmetric(n, entries):
    """Return a symmetric matrix from its lower triangle, row by row."""
    row = [max(i, j) * (max(i, j) + 1) // 2 + min(i, j) for i in range(n) for j in range(n)]
    return entries[jnp.array(row)].reshape(n, n)


def ldlt_factor(n, entries):
    """Return the factors of a symmetric positive definite matrix; NaN where it is not."""
    if n > _WRITTEN_OUT:
        return jnp.linalg.cholesky(_symmetric(n, entries))
    factors: list[list[jax.Array]] = []
    k = 0
    for i in range(n):
        row: list[jax.Array] = []
        for j in range(i):
            value = entries[k + j]
            for m in range(j):
                value = value - row[m] * factors[j][m]
            row.append(value)
        pivot = entries[k + i]
        for j in range(i):
            scaled = row[j] / factors[j][j]
            pivot = pivot - scaled * row[j]
            row[j] = scaled
        factors.append([*row, if_positive(pivot)])
        k += i + 1
    return factors


def ldlt_solve(factors, right):
    """Return the solution of a symmetric positive definite system."""
    if not isinstance(factors, list):
        return cho_solve((factors, True), right)
    x = list(right)
    for i, row in enumerate(factors):
        for j in range(i):
            x[i] = x[i] - row[j] * x[j]
    x = [value / row[i] for i, (value, row) in enumerate(zip(x, factors, strict=True))]
    for i in range(len(x) - 1, 0, -1):
        for j in range(i):
            x[j] = x[j] - factors[i][j] * x[i]
    return x


def lu_factor(n, entries):
    """Return the factors of a matrix, rows exchanged for the largest pivot."""
    return _factor_by_lu(entries.reshape(n, n))


def lu_solve(factors, right):
    """Return the solution of a linear system; NaN where a pivot is 0."""
    x = _solve_by_lu(factors, right)
    return jnp.where(jnp.all(jnp.isfinite(x)), x, nan)


def least_norm_factor(n, entries, rank):
    """Return a symmetric positive semidefinite matrix and its rank."""
    return _symmetric(n, entries), rank


def least_norm_solve(factors, right):
    """Return the shortest x for which S x is nearest to ``right``."""
    matrix, rank = factors
    return _least_norm(rank, matrix, right)


def _pseudoinverse(rank, matrix):
    """Return the inverse on the eigenvectors of the ``rank`` largest eigenvalues; small ones fade out."""
    values, vectors = jnp.linalg.eigh(matrix)
    counted = (jnp.arange(len(values)) >= len(values) - rank) & (values > 0.0)
    shifted = jnp.where(counted, values + _FADING * values[-1], 1.0)
    part = values / shifted
    return (vectors * jnp.where(counted, part / shifted * (2.0 - part * part), 0.0)) @ vectors.T


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _least_norm(rank, matrix, right):
    """Return the solution of least norm."""
    return _pseudoinverse(rank, matrix) @ right


@_least_norm.defjvp
def _least_norm_jvp(rank, values, tangents):
    """Return the solution and its tangent where the rank stays (Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973)."""
    (matrix, right), (slope, right_slope) = values, tangents
    inverse = _pseudoinverse(rank, matrix)
    x = inverse @ right
    left = right - matrix @ x
    along = inverse @ x
    tangent = inverse @ (right_slope - slope @ x + inverse @ (slope @ left))
    across = slope @ along
    return x, tangent + across - inverse @ (matrix @ across)


# --- Newton's method -------------------------------------------------------------------------------------------------


def _largest(values):
    """Return the largest magnitude; inf if one is not finite."""
    return jnp.max(jnp.where(jnp.isfinite(values), jnp.abs(values), inf))


def _determinant_sign(matrix):
    """Return the sign of a determinant; 0 where round-off decides it."""
    clear = jnp.abs(jnp.diagonal(jnp.linalg.qr(matrix.T)[1])) > _FLAT * jnp.linalg.norm(matrix.T, axis=0)
    return jnp.where(jnp.all(clear), jnp.linalg.slogdet(matrix)[0], 0.0)


def _where_asked(is_asked, function, otherwise):
    """Return ``function()`` where it is requested; mapped by ``vmap`` it runs only if one instance asks."""
    begin = (is_asked, otherwise)
    return jax.lax.while_loop(lambda carry: carry[0], lambda _: (jnp.zeros((), bool), function()), begin)[1]


def _follow_newton_path(n, at, guess, limits):
    """Return the solution on the branch of the guess, else NaN; ``at``: y → F and the steps."""
    eps = jnp.finfo(guess.dtype).eps
    step_size, error, residual = _STEP * eps, _ERROR * eps, _RESIDUAL * eps

    def is_closed(values, size):
        """Return whether a last step of some size, or none, leaves no more of F than may be."""
        if limits is None:
            return (size > 0.0) | (_largest(values[:n]) <= residual)
        return jnp.all(jnp.abs(values[:n]) <= limits + 2.0 * n * size)

    def is_beyond(tried):
        """Return whether a singular position lies between the guess and a point."""
        slopes = jax.vmap(jax.jacfwd(lambda y: at(y)[:n]))(jnp.stack([guess, tried]))
        return jnp.prod(jax.vmap(_determinant_sign)(slopes)) < 0.0

    def is_kept(values, part, tried, after, between):
        """Return whether a part of a step makes F smaller and stays on the path."""
        step, left = values[n:], _largest(values[:n])
        size = _largest(step)
        is_smaller = _largest(after[:n]) <= jnp.maximum(_SCARCELY, 1.0 - 0.5 * part) * left
        is_far, bend = part * size > _FAR, _largest(after[n:] - (1.0 - part) * step)
        middle = jnp.where(_largest(between[:n]) < inf, _largest(between[n:] - (1.0 - 0.5 * part) * step), inf)
        bend = jnp.where((bend > _LITTLE * size) | is_far, jnp.maximum(bend, middle), bend)
        is_straight = bend <= jnp.where(is_far, _LITTLE, _BEND) * size
        is_doubtful = is_smaller & is_straight & (left > residual) & ((left > _OPEN) | (bend > _TURNING * size))
        crosses = _where_asked(is_doubtful, lambda: is_beyond(tried), jnp.zeros((), bool))
        return is_smaller & ((left <= residual) | (is_straight & ~crosses))

    def advance(carry):
        """Try a part of a step; the first time the guess itself. ``at`` stands here only: it is compiled once."""
        y, values, way, part, steps, halvings, _, _ = carry
        is_first = steps < 0
        step = jnp.where(is_first, 0.0, values[n:])
        tried = y + part * step
        after, between = jax.vmap(at)(jnp.stack([tried, y + 0.5 * part * step]))
        kept = is_first | is_kept(values, part, tried, after, between)
        way, y = jnp.where(kept, way + part * step, way), jnp.where(kept, tried, y)
        values = jnp.where(kept, after, values)
        steps, halvings = jnp.where(kept, steps + 1, steps), jnp.where(kept, 0, halvings + 1)
        size, is_finite = _largest(values[n:]), _largest(values[:n]) < inf
        is_small = (size <= step_size) | (size * (_largest(way) + size) <= error)
        is_last = kept & is_small & is_finite & (steps < _ITERATIONS)
        y = jnp.where(is_last, y + values[n:], y)
        found = is_finite & is_closed(values, jnp.where(is_last, size, 0.0))
        ended = is_last | ~is_finite | (steps >= _ITERATIONS) | (halvings >= _HALVINGS)
        return y, values, way, jnp.where(kept, 1.0, 0.5 * part), steps, halvings, ended, found

    no = jnp.zeros((), bool)
    begin = (guess, jnp.zeros(2 * n, guess.dtype), jnp.zeros_like(guess), jnp.ones((), guess.dtype), -1, 0, no, no)
    y, *_, found = jax.lax.while_loop(lambda carry: ~carry[6], advance, begin)
    return jnp.where(found, y, nan)


def newton(n, body, theta, guess, has_limits, space=None):
    """Return y with F(y, theta) = 0, by damped steps on the branch of the guess; NaN where it is not found.

    Args:
        n: Number of unknowns.
        body: (y, theta) → F and the steps, shape (2 n,).
        theta: What F depends on; with ``has_limits`` its last n values say how much of each row may be left over.
        guess: Where y starts.
        has_limits: Rows may contradict each other.
        space: (y, theta) → y with the derivatives that it has as the space turns in which there is one solution, then
            the slopes of F with the space's complement added, row by row; None: F has full rank. The derivative is that
            of one last step, first order only.
    """
    guess, held = stop_gradient(guess), stop_gradient(theta)
    limits = held[-n:] if has_limits else None

    def solve(_function, start):
        return _follow_newton_path(n, lambda y: body(y, held), start, limits)

    if space is not None:
        y = space(stop_gradient(solve(None, guess)), theta)[:n]
        slopes = stop_gradient(space(y, theta)[n:]).reshape(n, n)
        return y - jnp.linalg.solve(slopes, body(y, theta)[:n])

    def solve_tangent(slope, right):
        return jnp.linalg.solve(jax.jacfwd(slope)(jnp.zeros_like(right)), right)

    return jax.lax.custom_root(lambda y: body(y, theta)[:n], guess, solve, solve_tangent)
