"""Components of SymPy's dyadics in a frame."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import sympy as sm
from sympy.physics.mechanics import Dyadic, ReferenceFrame

from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

_SEED, _PLACES = 20117, 4
_COMPONENT_TOLERANCE = 1e-12


def dyadic_components(inertia: Dyadic, frame: ReferenceFrame) -> list[sm.Expr]:
    """Return a dyadic in a frame, row by row; one written in this frame is copied, as SymPy needs 0.1 s for it."""
    if any(
        vector.args[0][1] != frame or len(vector.args) != 1
        for _, *unit_vectors in inertia.args
        for vector in unit_vectors
    ):
        return list(inertia.to_matrix(frame))
    terms: dict[tuple[int, int], list[sm.Expr]] = {}
    for factor, left_vector, right_vector in inertia.args:
        rows, columns = left_vector.args[0][0].todok(), right_vector.args[0][0].todok()
        for (i, _), row_entry in rows.items():
            for (j, _), column_entry in columns.items():
                terms.setdefault((i, j), []).append(factor * row_entry * column_entry)
    return [sm.Add(*terms.get((i, j), ())) for i in range(3) for j in range(3)]


def simplify_constant_matrix(matrix: sm.ImmutableMatrix, moving: Collection[sm.Symbol]) -> sm.ImmutableMatrix | None:
    """Simplify a matrix known to be constant: remove time-varying symbols on which it does not depend.

    A body of revolution may have its inertia along axes in which it spins: J sin²ψ + J cos²ψ is J. The result is the
    matrix where all of these symbols are 0; it is compared with the original at random values.

    Returns:
        None if it depends on them.
    """
    symbols = sorted(matrix.free_symbols & set(moving), key=str)
    if not symbols:
        return matrix
    constant = sm.ImmutableMatrix(matrix.subs(dict.fromkeys(symbols, 0)))
    if constant.has(sm.nan, sm.zoo, sm.oo, -sm.oo):
        constant = sm.ImmutableMatrix(sm.simplify(matrix))
        return None if constant.free_symbols & set(symbols) else constant
    arguments = sorted(matrix.free_symbols, key=str)
    evaluate = lambdify_for_numpy(arguments, [*matrix, *constant])
    generator = np.random.default_rng(_SEED)
    for _ in range(_PLACES):
        values = np.array(evaluate(*generator.uniform(0.2, 3.0, len(arguments))), dtype=float).reshape(2, -1)
        if not np.max(np.abs(values[0] - values[1])) <= _COMPONENT_TOLERANCE * np.max(np.abs(values)):
            return None
    return constant
