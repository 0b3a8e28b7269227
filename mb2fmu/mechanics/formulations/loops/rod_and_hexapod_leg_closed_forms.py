"""Closed forms of a rod and of a leg of a hexapod.

``RodLoopSolver``: one row with one unknown angle: a rod without coordinates of its own, or a pin on a line.
``HexapodLegLoopSolver``: three rows: a universal joint, a slide behind it, and its end at a known point.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import ClosedFormLoopSolution
from mb2fmu.mechanics.formulations.loops.closed_form_loop_protocol import (
    SINGULARITY_MARGIN,
    AssemblyBranchStartValues,
    LoopClosureEquations,
    LoopKindMismatchError,
    make_closed_form_loop_solution,
)
from mb2fmu.mechanics.formulations.loops.planar_phasors import (
    PhasorSum,
    decompose_loop_row_into_harmonics,
    form_polar_coordinates,
    split_harmonic_by_unknowns,
)
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

_SAMPLE_COUNT = 4
_FORM_TOLERANCE = 1e-9


class RodLoopSolver:
    """a cos ψ + b sin ψ + c = 0: the end of a link at a given distance from a known point, or at a known height.

    With w = a − i b and D = |w|² − c²: ψ = −arg w + s atan2(√D, −c). A rod between two bodies, given by the square of
    its length, is of this kind, and so is a pin in a straight slot.
    """

    name = "Rod"
    size = 1

    def solve(self, rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> ClosedFormLoopSolution:
        """Solve by the angle between the link and the place of its end; see :class:`LoopConnection`."""
        (phi,), (unknown,) = rows.phi, rows.unknowns
        angle, w, rest = _split_row(phi, unknown, rows.names[0], start)
        name = f"loop_{unknown}"
        arm = form_polar_coordinates(w, start, f"{name}_arm")
        c = start.define(f"{name}_rest", rest)
        square_of_root = start.define(f"{name}_inside", arm.square - c.symbol**2)
        condition = square_of_root.symbol - SINGULARITY_MARGIN * arm.square
        if not start.evaluate(condition) > 0.0:
            raise LoopKindMismatchError(
                "at the start the link points at where its end must be, or away: start it elsewhere"
            )
        root = start.define(f"{name}_root", sm.sqrt(square_of_root.symbol))
        psi = start.evaluate(angle + arm.angle)
        value = -arm.angle + (1 if math.sin(psi) > 0 else -1) * sm.atan2(root.symbol, -c.symbol)
        turns = round((start.evaluate(angle) - start.evaluate(value)) / (2 * math.pi))
        solution = {unknown: sm.expand((value + 2 * sm.pi * turns) / angle.diff(unknown))}
        return make_closed_form_loop_solution(
            self, rows, (*arm.helpers, c, square_of_root, root), solution, (condition,)
        )


def _split_row(
    phi: sm.Expr, unknown: sm.Symbol, row: str, start: AssemblyBranchStartValues
) -> tuple[sm.Expr, PhasorSum, sm.Expr]:
    """Angle, w and rest of a row Re(w exp(i angle)) + rest."""
    arms: dict[sm.Expr, dict[sm.Expr, tuple[sm.Expr, sm.Expr]]] = {}
    rest = []
    for (monomial, angle, sine), factor in decompose_loop_row_into_harmonics(
        phi, phi.free_symbols & start.moving_symbols
    ).items():
        (displacement, unknown_factor), known, is_sine, value = split_harmonic_by_unknowns(
            monomial, angle, sine=sine, factor=factor, unknowns=(unknown,)
        )
        if displacement != 1:
            raise LoopKindMismatchError(f"{unknown} is no angle in {row}")
        if unknown_factor == 0:
            rest.append(value * (sm.sin(known) if is_sine else sm.cos(known)))
            continue
        terms = arms.setdefault(unknown_factor, {})
        re, im = terms.get(known, (sm.S.Zero, sm.S.Zero))
        terms[known] = (re, im - value) if is_sine else (re + value, im)
    if len(arms) != 1:
        raise LoopKindMismatchError(f"{row} contains {len(arms)} angles of {unknown}, not one")
    ((angle, arm_length),) = arms.items()
    return angle, PhasorSum(tuple((re, im, known) for known, (re, im) in arm_length.items())), sm.Add(*rest)


@dataclass(frozen=True, slots=True)
class _SphericalLegRows:
    """Rows (x + offset) e − v, e = sin β n + cos β (cos α m1 + sin α m2), n, m1, m2 at right angles.

    Attributes:
        alpha: First angle.
        beta: Second angle, from the plane of m1 and m2.
        axes: n, m1, m2.
        offset: Of the displacement.
        v: Where the end must be, from where the leg begins.
    """

    alpha: sm.Symbol
    beta: sm.Symbol
    axes: tuple[sm.Matrix, sm.Matrix, sm.Matrix]
    offset: sm.Expr
    v: sm.Matrix


class HexapodLegLoopSolver:
    """Two angles and a displacement that bring the end of a leg to a known point: spherical coordinates of v.

    With h = v·n, a = v·m1, b = v·m2 and s the sign of cos β, σ that of x + offset at the start:
    x + offset = σ |v|, α = atan2(σ s b, σ s a), β = atan2(σ h, s √(a² + b²)). It ends where the leg points along the
    axis of its first hinge, where α is undetermined.
    """

    name = "Leg"
    size = 3

    def solve(self, rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> ClosedFormLoopSolution:
        """Solve by the vector from one end of the leg to the other; see :class:`LoopConnection`."""
        slide, direction, rest = _find_displacement(rows)
        shape = _find_spherical_form(rows, (slide, direction, rest), start)
        name = f"leg_{slide}"
        components = [
            start.define(f"{name}_{part}", shape.v.dot(axis))
            for part, axis in zip(("along", "first", "second"), shape.axes, strict=True)
        ]
        h, a, b = (item.symbol for item in components)
        flat = start.define(f"{name}_flat", a**2 + b**2)
        condition = flat.symbol - SINGULARITY_MARGIN * (flat.symbol + h**2)
        if not start.evaluate(condition) > 0.0:
            raise LoopKindMismatchError("at the start it points along the axis of its first hinge: start it elsewhere")
        sigma = 1 if start.evaluate(slide + shape.offset) > 0 else -1
        s = 1 if math.cos(start.values[shape.beta]) > 0 else -1
        solution = {
            slide: sigma * sm.sqrt(flat.symbol + h**2) - shape.offset,
            shape.alpha: sm.atan2(sigma * s * b, sigma * s * a),
            shape.beta: sm.atan2(sigma * h, s * sm.sqrt(flat.symbol)),
        }
        for unknown, value in solution.items():
            start_error = start.evaluate(unknown) - start.evaluate(value)
            turns = 0 if unknown == slide else round(start_error / (2 * math.pi))
            if not abs(start_error - 2 * math.pi * turns) <= 1e-6 * (1 + abs(start.values[unknown])):
                raise LoopKindMismatchError(f"the start does not close it: {unknown} is off by {start_error:.3g}")
            solution[unknown] = value + 2 * sm.pi * turns
        return make_closed_form_loop_solution(self, rows, (*components, flat), solution, (condition,))


def _find_displacement(rows: LoopClosureEquations) -> tuple[sm.Symbol, sm.Matrix, sm.Matrix]:
    """Return the unknown that all rows are linear in, its direction, and the remaining terms."""
    phi = sm.Matrix(rows.phi)
    for unknown in rows.unknowns:
        direction = phi.diff(unknown)
        if not direction.free_symbols & {unknown} and direction.free_symbols & set(rows.unknowns):
            return unknown, direction, phi.xreplace({unknown: sm.S.Zero})
    raise LoopKindMismatchError("none of its unknowns is a displacement along a direction that the others give")


def _find_spherical_form(
    rows: LoopClosureEquations, linear: tuple[sm.Symbol, sm.Matrix, sm.Matrix], start: AssemblyBranchStartValues
) -> _SphericalLegRows:
    """Return the rows in the form of :class:`_SphericalLegRows`, validated by numbers at random places."""
    slide, direction, rest = linear
    angles = [unknown for unknown in rows.unknowns if unknown != slide]
    quarter, zero = sm.pi / 2, sm.S.Zero
    for alpha, beta in itertools.permutations(angles):
        along, first, second = (
            {alpha: angle, beta: height} for angle, height in ((zero, quarter), (zero, zero), (quarter, zero))
        )
        axes = (direction.xreplace(along), direction.xreplace(first), direction.xreplace(second))
        # rest = offset e − v: what it gains from β = −π/2 to π/2 is 2 offset n
        change = rest.xreplace(along) - rest.xreplace({alpha: zero, beta: -quarter})
        offset = sm.expand(change.dot(axes[0]) / 2)
        v = offset * axes[1] - rest.xreplace(first)
        shape = _SphericalLegRows(alpha, beta, axes, offset, v)
        if _matches_form(shape, direction, rest, start):
            return shape
    raise LoopKindMismatchError(
        f"{', '.join(map(str, angles))} are not the angles of a universal joint that turns {slide}"
    )


def _matches_form(
    shape: _SphericalLegRows, direction: sm.Matrix, rest: sm.Matrix, start: AssemblyBranchStartValues
) -> bool:
    """Return whether the rows are of the shape, and its axes at right angles and of length 1, at random places."""
    n, m1, m2 = shape.axes
    rebuilt_direction = sm.sin(shape.beta) * n + sm.cos(shape.beta) * (
        sm.cos(shape.alpha) * m1 + sm.sin(shape.alpha) * m2
    )
    frame = sm.Matrix.hstack(n, m1, m2)
    zeros = [
        *(rebuilt_direction - direction),
        *(shape.offset * rebuilt_direction - shape.v - rest),
        *(frame.T * frame - sm.eye(3)),
    ]
    symbols = sorted(start.values, key=str)
    if not set().union(*(entry.free_symbols for entry in zeros)) <= set(symbols):
        return False
    evaluate = lambdify_for_numpy(symbols, zeros)
    generator = np.random.default_rng(7)
    for _ in range(_SAMPLE_COUNT):
        place = [start.values[s] + (generator.uniform(-1, 1) if s in start.moving_symbols else 0.0) for s in symbols]
        if not np.max(np.abs(evaluate(*place))) <= _FORM_TOLERANCE * (1 + np.max(np.abs(place))):
            return False
    return True
