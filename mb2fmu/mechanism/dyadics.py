"""Components of SymPy's dyadics in a frame."""

from __future__ import annotations

import sympy as sm
from sympy.physics.mechanics import Dyadic, ReferenceFrame


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
