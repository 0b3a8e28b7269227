"""``RodLoop``: one row with one unknown angle: a rod without coordinates of its own, or a pin on a line."""

from __future__ import annotations

import math

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import ClosedForm
from mb2fmu.mechanics.formulations.loops.loop_kind import (
    SINGULARITY_MARGIN,
    LoopEquations,
    LoopMismatch,
    LoopStart,
    make_closed_form,
)
from mb2fmu.mechanics.formulations.loops.planar_phasors import (
    PhasorSum,
    decompose_harmonics,
    form_polar,
    split_harmonic,
)


class RodLoop:
    """a cos ψ + b sin ψ + c = 0: the end of a link at a given distance from a known point, or at a known height.

    With w = a − i b and D = |w|² − c²: ψ = −arg w + s atan2(√D, −c). A rod between two bodies, given by the square of
    its length, is of this kind, and so is a pin in a straight slot.
    """

    name = "Rod"
    size = 1

    def solve(self, rows: LoopEquations, start: LoopStart) -> ClosedForm:
        """Solve by the angle between the link and the place of its end; see :class:`LoopConnection`."""
        (phi,), (unknown,) = rows.phi, rows.unknowns
        angle, w, rest = _split_row(phi, unknown, rows.names[0], start)
        name = f"loop_{unknown}"
        arm = form_polar(w, start, f"{name}_arm")
        c = start.define(f"{name}_rest", rest)
        inside = start.define(f"{name}_inside", arm.square - c.symbol**2)
        condition = inside.symbol - SINGULARITY_MARGIN * arm.square
        if not start.value(condition) > 0.0:
            raise LoopMismatch("at the start the link points at where its end must be, or away: start it elsewhere")
        root = start.define(f"{name}_root", sm.sqrt(inside.symbol))
        psi = start.value(angle + arm.angle)
        value = -arm.angle + (1 if math.sin(psi) > 0 else -1) * sm.atan2(root.symbol, -c.symbol)
        turns = round((start.value(angle) - start.value(value)) / (2 * math.pi))
        solution = {unknown: sm.expand((value + 2 * sm.pi * turns) / angle.diff(unknown))}
        return make_closed_form(self, rows, (*arm.helpers, c, inside, root), solution, (condition,))


def _split_row(phi: sm.Expr, unknown: sm.Symbol, row: str, start: LoopStart) -> tuple[sm.Expr, PhasorSum, sm.Expr]:
    """Angle, w and rest of a row Re(w exp(i angle)) + rest."""
    arms: dict[sm.Expr, dict[sm.Expr, tuple[sm.Expr, sm.Expr]]] = {}
    rest = []
    for (monomial, angle, sine), factor in decompose_harmonics(phi, phi.free_symbols & start.moving).items():
        (displacement, own), known, is_sine, value = split_harmonic(
            monomial, angle, sine=sine, factor=factor, unknowns=(unknown,)
        )
        if displacement != 1:
            raise LoopMismatch(f"{unknown} is no angle in {row}")
        if own == 0:
            rest.append(value * (sm.sin(known) if is_sine else sm.cos(known)))
            continue
        terms = arms.setdefault(own, {})
        re, im = terms.get(known, (sm.S.Zero, sm.S.Zero))
        terms[known] = (re, im - value) if is_sine else (re + value, im)
    if len(arms) != 1:
        raise LoopMismatch(f"{row} contains {len(arms)} angles of {unknown}, not one")
    ((angle, found),) = arms.items()
    return angle, PhasorSum(tuple((re, im, known) for known, (re, im) in found.items())), sm.Add(*rest)
