"""Derivatives requested one by one, against those of one call for all, and adjoint ones against directional ones.

Importers request one column of a Jacobian, one gradient, or a product with a dense vector. All of that is one linear
map, whatever way it goes through the FMU; so the FMU's own answers must agree nearly to round-off. The reference,
whose differences are compared with the same derivatives, knows them to some hundred tolerances only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.runs.fmu_run import Operations

Floats = npt.NDArray[np.float64]

_AGREEMENT_TOLERANCE = 1e-6
"""Relative difference of numbers that should be one: FMUs of other tools differentiate by differences."""
_SMALLEST_CHANGE_FRACTION = 1e-3
"""Part of an unknown's largest change below which a single change is measured by this part instead."""
_RANDOM_SEED = 13
_MAX_PAIRS = 400
"""Pairs of one unknown and one known that are requested by themselves, about."""


def _make_dense_seed(count: int) -> Floats:
    """Return numbers of either sign and of like size, no two equal, shape (count,): a dense seed."""
    random = np.random.default_rng(_RANDOM_SEED)
    return np.asarray(random.choice(np.array([-1.0, 1.0]), count) * random.uniform(0.5, 1.5, count))


def _list_pairs(known_count: int, unknown_count: int) -> list[tuple[int, int]]:
    """Return (number of a known, number of an unknown): all pairs, or diagonals that have every number."""
    apart = 1 + known_count * unknown_count // _MAX_PAIRS
    return [(k, u) for k, u in product(range(known_count), range(unknown_count)) if (k + u) % apart == 0]


def plan_single_seed_calls(
    unknown_references: Sequence[int], known_references: Sequence[int], sizes: Sequence[float], *, adjoint: bool
) -> Operations:
    """Return the calls of a session, in either order; :func:`compare_derivative_calls` reads the answers.

    Args:
        unknown_references: Value references of unknowns.
        known_references: Value references of knowns.
        sizes: Typical change of each known, > 0.
        adjoint: Whether the FMU offers adjoint derivatives.
    """
    by_known = (_make_dense_seed(len(known_references)) * np.array(sizes)).tolist()
    by_unknown = _make_dense_seed(len(unknown_references)).tolist()
    calls: list[list[Any]] = [
        ["directional", [*unknown_references], [*known_references], [*np.diag(sizes).tolist(), by_known]],
        *(
            ["directional", [*unknown_references], [k], [[size]]]
            for k, size in zip(known_references, sizes, strict=True)
        ),
        *(["directional", [u], known_references[::-1], [by_known[::-1]]] for u in unknown_references),
    ]
    pairs = _list_pairs(len(known_references), len(unknown_references))
    calls += [["directional", [unknown_references[u]], [known_references[k]], [[sizes[k]]]] for k, u in pairs]
    if adjoint:
        calls += [
            [
                "adjoint",
                [*unknown_references],
                [*known_references],
                [*np.eye(len(unknown_references)).tolist(), by_unknown],
            ],
            *(["adjoint", [u], [*known_references], [[1.0]]] for u in unknown_references),
            *(["adjoint", unknown_references[::-1], [k], [by_unknown[::-1]]] for k in known_references),
            *(["adjoint", [unknown_references[u]], [known_references[k]], [[1.0]]] for k, u in pairs),
        ]
    return calls


def compare_derivative_calls(
    recorded_values: Sequence[Any], names: Sequence[str], sizes: Sequence[float], noise: Sequence[float]
) -> Iterator[tuple[float, float, str]]:
    """Yield (difference, bound, description) of each derivative that another call gives, too.

    Args:
        recorded_values: Recorded values of the calls after those that lead to the point.
        names: Of the unknowns.
        sizes: Typical change of each known.
        noise: Of each unknown, a change that is nothing but round-off.
    """
    n, m = len(sizes), len(names)
    scale, floor = np.array(sizes), np.array(noise)
    jacobian, dense_product = np.array(recorded_values[0][:n]).reshape(n, m), np.array(recorded_values[0][n])
    largest = np.max(np.abs(jacobian), axis=0, initial=0.0)
    bounds = _AGREEMENT_TOLERANCE * np.maximum(np.abs(jacobian), _SMALLEST_CHANGE_FRACTION * largest) + floor
    single_columns = np.array([row[0] for row in recorded_values[1 : 1 + n]]).reshape(n, m)
    yield from _compare_rows(single_columns, jacobian, bounds, names, "with one known")
    summed, total = _make_dense_seed(n) @ jacobian, _AGREEMENT_TOLERANCE * np.abs(jacobian).sum(axis=0) + floor
    yield from _compare_rows(dense_product[None], summed[None], total[None], names, "in a dense direction")
    gradients_products = np.array([row[0][0] for row in recorded_values[1 + n : 1 + n + m]])
    yield from _compare_rows(
        gradients_products[None], summed[None], total[None], names, "with one unknown, in a dense direction"
    )
    pairs = _list_pairs(n, m)
    first_pair, adjoint_answers = 1 + n + m, recorded_values[1 + n + m + len(pairs) :]
    single_pairs = jacobian.copy()
    for (k, u), row in zip(pairs, recorded_values[first_pair : first_pair + len(pairs)], strict=True):
        single_pairs[k, u] = row[0][0]
    yield from _compare_rows(single_pairs, jacobian, bounds, names, "one unknown by one known")
    if not adjoint_answers:
        return
    adjoint_rows = np.array(adjoint_answers[0][:m]).reshape(m, n).T * scale[:, None]
    yield from _compare_rows(adjoint_rows, jacobian, bounds, names, "adjoint against directional")
    gradients = np.array([row[0] for row in adjoint_answers[1 : 1 + m]]).reshape(m, n).T * scale[:, None]
    yield from _compare_rows(gradients, jacobian, bounds, names, "adjoint with one unknown")
    adjoint_pairs = jacobian.copy()
    for (k, u), row in zip(pairs, adjoint_answers[1 + m + n :], strict=True):
        adjoint_pairs[k, u] = row[0][0] * scale[k]
    yield from _compare_rows(adjoint_pairs, jacobian, bounds, names, "adjoint, one unknown by one known")
    dense_adjoints = (
        ("adjoint with a dense seed", adjoint_answers[0][m]),
        ("adjoint with one known", [row[0][0] for row in adjoint_answers[1 + m : 1 + m + n]]),
    )
    by_unknown = _make_dense_seed(m)
    expected, bound = jacobian @ by_unknown, (_AGREEMENT_TOLERANCE * np.abs(jacobian) + floor) @ np.abs(by_unknown)
    for description, derivatives in dense_adjoints:
        error = np.abs(np.array(derivatives) * scale - expected)
        for k in range(n):
            yield float(error[k]), float(bound[k]), f"{description}, by known number {k + 1}"


def _compare_rows(
    derivatives: Floats, expected: Floats, bounds: Floats, names: Sequence[str], description: str
) -> Iterator[tuple[float, float, str]]:
    """Yield the worst number of each unknown: rows are directions, columns unknowns."""
    ratio = np.abs(derivatives - expected) / np.maximum(bounds, 5e-324)
    for column, name in enumerate(names):
        if len(derivatives):
            k = int(np.argmax(np.where(np.isfinite(ratio[:, column]), ratio[:, column], np.inf)))
            yield (
                float(abs(derivatives[k, column] - expected[k, column])),
                float(bounds[k, column]),
                f"{name}, {description}",
            )
