"""Functions that printed code calls, in JAX: one instance each, to be mapped by ``jax.vmap``.

What has no solution is NaN. Solutions of linear systems and of Newton's method are differentiated by the equations that
they solve (implicit function theorem), not through the steps that find them.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jax.scipy.linalg import cho_solve
from jax.scipy.linalg import lu_factor as _factor_by_lu
from jax.scipy.linalg import lu_solve as _solve_by_lu

inf, nan = float("inf"), float("nan")
sqrt, exp, log, power, absolute = jnp.sqrt, jnp.exp, jnp.log, jnp.power, jnp.abs
sin, cos, tan, sinh, cosh, tanh = jnp.sin, jnp.cos, jnp.tan, jnp.sinh, jnp.cosh, jnp.tanh
asin, acos, atan, atan2 = jnp.arcsin, jnp.arccos, jnp.arctan, jnp.arctan2
asinh, acosh, atanh, hypot = jnp.arcsinh, jnp.arccosh, jnp.arctanh, jnp.hypot
sign, floor, ceil, minimum, maximum = jnp.sign, jnp.floor, jnp.ceil, jnp.minimum, jnp.maximum
logical_or = jnp.maximum

_ITERATIONS = 60
_HALVINGS = 12
_BEND, _LITTLE, _FAR = 0.55, 0.03125, 0.2  # of steps, as in the Newton's method of FMUs
_OPEN, _TURNING, _FLAT, _SCARCELY = 0.05, 0.1, 1e-4, 0.9
_FADING = 1e-14  # of the largest eigenvalue: those below it fade out


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


def inside(a, _clause):
    """Return a where it is positive and finite, else NaN."""
    return jnp.where((a > 0.0) & (a < inf), a, nan)


def table(pieces, x):
    """Return a piecewise polynomial: ``pieces`` = (breaks, per piece the coefficients from the highest power down)."""
    x = jnp.asarray(x)
    breaks, coefficients = (jnp.asarray(part, x.dtype) for part in pieces)
    i = jnp.clip(jnp.searchsorted(breaks, stop_gradient(x), side="right") - 1, 0, len(breaks) - 2)
    h, total = x - breaks[i], jnp.zeros_like(x)
    for k in range(coefficients.shape[1]):
        total = total * h + coefficients[i, k]
    return total


def _vector(values):
    """Return numbers and scalars as one vector of the type that they have together."""
    return jnp.stack([jnp.asarray(value, jnp.result_type(*values, 0.0)) for value in values])


def _symmetric(n, entries):
    """Return a symmetric matrix from its lower triangle, row by row."""
    row = [max(i, j) * (max(i, j) + 1) // 2 + min(i, j) for i in range(n) for j in range(n)]
    return _vector(entries)[jnp.array(row)].reshape(n, n)


def ldlt_factor(n, _name, entries):
    """Return the factor of a symmetric positive definite matrix; NaN where it is not."""
    return jnp.linalg.cholesky(_symmetric(n, entries))


def ldlt_solve(factor, right):
    """Return the solution of a symmetric positive definite system."""
    return cho_solve((factor, True), _vector(right).astype(factor.dtype))


def lu_factor(n, _name, entries):
    """Return the factors of a matrix, rows exchanged for the largest pivot."""
    return _factor_by_lu(_vector(entries).reshape(n, n))


def lu_solve(factors, right):
    """Return the solution of a linear system; NaN where a pivot is 0."""
    x = _solve_by_lu(factors, _vector(right).astype(factors[0].dtype))
    return jnp.where(jnp.all(jnp.isfinite(x)), x, nan)


def least_norm_factor(n, _name, entries, rank):
    """Return a symmetric positive semidefinite matrix and its rank."""
    return _symmetric(n, entries), rank


def least_norm_solve(factor, right):
    """Return the shortest x for which S x is nearest to ``right``."""
    matrix, rank = factor
    return _least_norm(rank, matrix, _vector(right).astype(matrix.dtype))


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


def _largest(values):
    """Return the largest magnitude; inf if one is not finite."""
    return jnp.max(jnp.where(jnp.isfinite(values), jnp.abs(values), inf))


def _determinant_sign(matrix):
    """Return the sign of a determinant; 0 where round-off decides it."""
    clear = jnp.abs(jnp.diagonal(jnp.linalg.qr(matrix.T)[1])) > _FLAT * jnp.linalg.norm(matrix.T, axis=0)
    return jnp.where(jnp.all(clear), jnp.linalg.slogdet(matrix)[0], 0.0)


def _follow_newton_path(n, at, start, limits):
    """Return the solution on the branch of the guess, else NaN; ``at``: y → F and the steps."""
    scale = 450.0 * jnp.finfo(start.dtype).eps  # 1e-13 in float64: a step below it is the last one

    def side(y):
        return _determinant_sign(jax.jacfwd(lambda tried: at(tried)[:n])(y))

    side_of_guess = side(start)

    def is_too_long(y, values, part):
        step = values[n:]
        size, tried = _largest(step), y + part * step
        after, between = at(tried), at(y + 0.5 * part * step)
        bend = _largest(after[n:] - (1.0 - part) * step)
        is_far = part * size > _FAR
        middle = _largest(between[n:] - (1.0 - 0.5 * part) * step)
        bend = jnp.where((bend > _LITTLE * size) | is_far, jnp.maximum(bend, middle), bend)
        is_bent = ~(bend <= jnp.where(is_far, _LITTLE, _BEND) * size)
        is_doubtful = (_largest(values[:n]) > _OPEN) | (bend > _TURNING * size)
        leaves_path = is_bent | (is_doubtful & (side_of_guess * side(tried) < 0))
        left = _largest(values[:n])
        is_smaller = _largest(after[:n]) <= jnp.maximum(_SCARCELY, 1.0 - 0.5 * part) * left
        return ~is_smaller | (leaves_path & (left > 1e3 * scale))

    def advance(carry):
        y, values, k, _ = carry

        def halve(tried):
            return 0.5 * tried[0], tried[1] + 1, is_too_long(y, values, 0.5 * tried[0])

        first = (jnp.ones((), y.dtype), 0, is_too_long(y, values, jnp.ones((), y.dtype)))
        part, _, stuck = jax.lax.while_loop(lambda tried: tried[2] & (tried[1] < _HALVINGS), halve, first)
        y = jnp.where(stuck, y, y + part * values[n:])
        return y, at(y), k + 1, stuck

    def goes_on(carry):
        _, values, k, stuck = carry
        return ~(_largest(values[n:]) < scale) & (k < _ITERATIONS) & ~stuck

    begin = (start, at(start), 0, jnp.zeros((), bool))
    y, values, _, _ = jax.lax.while_loop(goes_on, advance, begin)
    found = (_largest(values[n:]) < scale) | (_largest(values[:n]) <= 1e3 * scale)
    if limits is not None:
        limit = limits + 2.0 * n * _largest(values[n:])
        found &= jnp.all(jnp.abs(values[:n]) <= limit)
    return jnp.where(found, y + values[n:], nan)


def newton(n, _name, body, theta, guess, rows=()):
    """Return y with F(y, theta) = 0, by damped steps on the branch of the guess; NaN where it is not found.

    Args:
        n: Number of unknowns.
        body: (y, theta) → F and the steps, 2 n numbers.
        theta: Handed on; with ``rows`` its last 2 n values are what a unit of each row counts, and how much of each
            may be left over.
        guess: Where y starts.
        rows: Names of rows that may contradict each other.
    """
    guess = stop_gradient(_vector(guess))
    limits = _vector(stop_gradient(theta)[-n:]) if rows else None

    def residual(y):
        return _vector(body(tuple(y), theta)[:n])

    def solve(_function, start):
        return _follow_newton_path(n, lambda y: _vector(body(tuple(y), stop_gradient(theta))), start, limits)

    def solve_tangent(slope, right):
        return jnp.linalg.solve(jax.jacfwd(slope)(jnp.zeros_like(right)), right)

    return jax.lax.custom_root(residual, guess, solve, solve_tangent)
