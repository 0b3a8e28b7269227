"""Components of SymPy's dyadics in a frame."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import sympy as sm
from sympy.physics.mechanics import Dyadic, ReferenceFrame

_SEED, _PLACES = 20117, 4
_COMPONENT_TOLERANCE = 1e-12


def dyadic_components(inertia: Dyadic, frame: ReferenceFrame) -> list[sm.Expr]:
    """Return a dyadic in a frame, row by row; one written in this frame is copied, as SymPy needs 0.1 s for it."""
    if any(vector.args[0][1] != frame or len(vector.args) != 1 for _, *pair in inertia.args for vector in pair):
        return list(inertia.to_matrix(frame))
    terms: dict[tuple[int, int], list[sm.Expr]] = {}
    for factor, a, b in inertia.args:
        rows, columns = a.args[0][0].todok(), b.args[0][0].todok()
        for (i, _), x in rows.items():
            for (j, _), y in columns.items():
                terms.setdefault((i, j), []).append(factor * x * y)
    return [sm.Add(*terms.get((i, j), ())) for i in range(3) for j in range(3)]


def simplify_constant_matrix(matrix: sm.ImmutableMatrix, moving: Collection[sm.Symbol]) -> sm.ImmutableMatrix | None:
    """Return a matrix without the symbols that move, of which it is made but on which it does not depend.

    A body of revolution may have its inertia along axes in which it spins: J sin²ψ + J cos²ψ is J. It is what it is
    where all of these symbols are 0, and is compared with that at random places.

    Returns:
        None if it does depend on them.
    """
    symbols = sorted(matrix.free_symbols & set(moving), key=str)
    if not symbols:
        return matrix
    still = sm.ImmutableMatrix(matrix.subs(dict.fromkeys(symbols, 0)))
    if still.has(sm.nan, sm.zoo, sm.oo, -sm.oo):
        still = sm.ImmutableMatrix(sm.simplify(matrix))
        return None if still.free_symbols & set(symbols) else still
    given = sorted(matrix.free_symbols, key=str)
    evaluate = sm.lambdify(given, [*matrix, *still], modules=["scipy", "numpy"])
    draw = np.random.default_rng(_SEED)
    for _ in range(_PLACES):
        found = np.array(evaluate(*draw.uniform(0.2, 3.0, len(given))), dtype=float).reshape(2, -1)
        if not np.max(np.abs(found[0] - found[1])) <= _COMPONENT_TOLERANCE * np.max(np.abs(found)):
            return None
    return still
