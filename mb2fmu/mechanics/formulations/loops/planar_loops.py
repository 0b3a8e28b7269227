"""Planar loops ``FourBar``, ``CrankSlider`` and ``FourBarTrans``: two rows that form a closed polygon of vectors.

With everything known on the right, v, and arms w whose directions ψ are wanted:

    FourBar         w1 exp(i ψ1) + w2 exp(i ψ2) = v      two circles meet
    CrankSlider     l x exp(i λ) + w exp(i ψ) = v        a circle meets a line of direction λ
    FourBarTrans    (x + a + i b) l exp(i ψ) = v         a tangent of a circle, or a line through its centre if b = 0

Each has two solutions, told apart by the sign s of a square root, which is that of the start, and none where its
argument D is negative: the loop cannot close there. Where D = 0 the two meet, and speeds are undetermined; so the
solution ends before, at D = EDGE · size.

Source: M. Hiller, Mechanische Systeme, Springer 1983, ch. 4 (characteristic pair of joints); J. J. McPhee and others:
the formulas are the elementary ones of triangles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import Assignment, ClosedForm
from mb2fmu.mechanics.formulations.loops.loop_kind import EDGE, LoopRows, Misfit, Start, closed_form
from mb2fmu.mechanics.formulations.loops.planar_phasors import Phasors, Polar, Polygon, harmonics, polar, polygon


def seen_as_polygon(rows: LoopRows, start: Start) -> Polygon:
    """Return the rows as a polygon; raises :class:`Misfit` where they are none."""
    coordinates = {s for phi in rows.phi for s in phi.free_symbols & start.moving}
    return polygon([harmonics(phi, coordinates) for phi in rows.phi], rows.unknowns)


@dataclass(frozen=True, slots=True)
class _Branch:
    """The square root that tells the two solutions apart.

    Attributes:
        helpers: D and its root.
        root: √D.
        condition: D − EDGE · size.
        is_flat: Whether D vanishes at the start.
    """

    helpers: tuple[Assignment, Assignment]
    root: sm.Symbol
    condition: sm.Expr
    is_flat: bool


def _branch(discriminant: sm.Expr, size: sm.Expr, start: Start, name: str) -> _Branch:
    """Return the discriminant D, and its size where the two links are at right angles."""
    inside = start.define(f"{name}_inside", discriminant)
    condition = inside.symbol - EDGE * size
    is_flat = not start.value(condition) > 0.0
    root = start.define(f"{name}_root", sm.sqrt(inside.symbol)) if not is_flat else inside
    return _Branch((inside, root), root.symbol, condition, is_flat)


_NO_BRANCH = "at the start it lies flat, where its two branches meet: start it elsewhere"


def angles(found: Mapping[sm.Expr, sm.Expr], unknowns: Sequence[sm.Symbol], start: Start) -> dict[sm.Symbol, sm.Expr]:
    """Return coordinates from angles that are sums of them, with the full turns of the start.

    Args:
        found: Sum of unknowns → its value, up to whole turns.
        unknowns: As many as there are sums.
        start: Says how many turns.

    Raises:
        Misfit: If the start is another, or the sums do not tell the unknowns apart.
    """
    equations = []
    for angle, value in found.items():
        turns = (start.value(angle) - start.value(value)) / (2 * math.pi)
        if abs(turns - round(turns)) > _SAME:
            left, right = start.value(angle), start.value(value)
            raise Misfit(f"the start does not close it: {angle} is {left:.6g}, not {right:.6g}")
        equations.append((angle, value + 2 * sm.pi * round(turns)))
    matrix = sm.Matrix([[angle.diff(symbol) for symbol in unknowns] for angle, _ in equations])
    if matrix.shape[0] != matrix.shape[1] or matrix.det() == 0:
        raise Misfit(f"{', '.join(map(str, unknowns))} are not determined by the directions of its arms")
    solution = matrix.LUsolve(sm.Matrix([value for _, value in equations]))
    return dict(zip(unknowns, map(sm.expand, solution), strict=True))


_SAME = 1e-6


def _direction(angle: sm.Expr, arm: Polar, psi: sm.Expr, shape: Polygon) -> tuple[sm.Expr, sm.Expr]:
    """Return (sum of unknowns, its value) where an arm has direction psi."""
    return angle, shape.senses[angle] * (psi - arm.angle)


class FourBar:
    """Two arms whose angles are wanted: revolute joints at three places of the loop that are not all known.

    With D = 4 P r1² − (P + r1² − r2²)², P = |v|²: ψ1 = arg v + s atan2(√D, P + r1² − r2²),
    ψ2 = arg v − s atan2(√D, P + r2² − r1²). A parallelogram is solved as such, see :func:`_parallelogram`.
    """

    name = "FourBar"
    size = 2

    def solve(self, rows: LoopRows, start: Start) -> ClosedForm:
        """Solve by the triangle of the two arms and v; see :class:`LoopKind`."""
        shape = seen_as_polygon(rows, start)
        if len(shape.arms) != 2 or shape.slides or shape.rails:
            raise Misfit(f"not two arms with unknown angles, but {_what(shape)}")
        (angle1, w1), (angle2, w2) = shape.arms.items()
        if not shape.known.terms:
            raise Misfit("nothing known is between its two arms")
        parallel = _parallelogram(shape, start)
        if parallel is not None:
            solution = angles(parallel, rows.unknowns, start)
            relation = [angle - value for angle, value in solution.items()]
            return closed_form(self, rows, (), solution, (), relation)
        name = _name(rows)
        v = polar(-shape.known, start, name)
        arm1, arm2 = polar(w1, start, f"{name}_1"), polar(w2, start, f"{name}_2")
        P, R1, R2 = v.square, arm1.square, arm2.square
        if w1.single is not None and w2.single is not None:
            discriminant = ((w1.single + w2.single) ** 2 - P) * (P - (w1.single - w2.single) ** 2)
        else:
            discriminant = 4 * P * R1 - (P + R1 - R2) ** 2
        branch = _branch(discriminant, 4 * R1 * R2, start, name)
        if branch.is_flat:
            raise Misfit(_NO_BRANCH)
        start_psi1 = start.value(shape.senses[angle1] * angle1 + arm1.angle)
        s = 1 if math.sin(start_psi1 - start.value(v.angle)) > 0 else -1
        psi1 = v.angle + s * sm.atan2(branch.root, P + R1 - R2)
        psi2 = v.angle - s * sm.atan2(branch.root, P + R2 - R1)
        found = dict([_direction(angle1, arm1, psi1, shape), _direction(angle2, arm2, psi2, shape)])
        solution = angles(found, rows.unknowns, start)
        helpers = (*v.helpers, *arm1.helpers, *arm2.helpers, *branch.helpers)
        return closed_form(self, rows, helpers, solution, (branch.condition,))


def _parallelogram(shape: Polygon, start: Start) -> dict[sm.Expr, sm.Expr] | None:
    """Return the angles of the arms of a parallelogram: equal opposite sides that start parallel stay parallel.

    Such a loop could leave the parallelogram where it lies flat, and the triangle that the rest of the loops are solved
    by degenerates there. The motion that is wanted goes on as a parallelogram, which needs no triangle.
    """
    sides = (-shape.known).terms
    if len(sides) != 2:
        return None
    found: dict[sm.Expr, sm.Expr] = {}
    left = [Phasors((side,)) for side in sides]
    for angle, arm in shape.arms.items():
        if len(arm.terms) != 1:
            return None
        own = polar(arm, start, "")
        for side in left:
            opposite = polar(side, start, "")
            value = shape.senses[angle] * (opposite.angle - own.angle)
            is_parallel = math.cos(start.value(angle) - start.value(value)) > 1 - _SAME**2
            if sm.expand(own.square - opposite.square) == 0 and is_parallel:
                found[angle] = value
                left.remove(side)
                break
    return found if not left else None


class CrankSlider:
    """An arm whose angle is wanted, and a displacement along a known direction.

    With v_l along the slide, v_n across it and D = r² − v_n²: x = (v_l − s √D) / l, ψ = λ + atan2(v_n, s √D).
    """

    name = "CrankSlider"
    size = 2

    def solve(self, rows: LoopRows, start: Start) -> ClosedForm:
        """Solve by the height of the arm's end over the slide; see :class:`LoopKind`."""
        shape = seen_as_polygon(rows, start)
        if len(shape.arms) != 1 or len(shape.slides) != 1 or shape.rails:
            raise Misfit(f"not one arm and one slide, but {_what(shape)}")
        ((angle, w),), ((x, slide),) = shape.arms.items(), shape.slides.items()
        name = _name(rows)
        line, arm = polar(slide, start, f"{name}_slide"), polar(w, start, f"{name}_arm")
        length = sm.sqrt(line.square) if slide.single is None else sm.Abs(slide.single)
        parts = (-shape.known).components(line.angle) if shape.known.terms else (sm.S.Zero, sm.S.Zero)
        along, across = (
            start.define(f"{name}_{what}", part) for what, part in zip(("along", "across"), parts, strict=True)
        )
        v_l, v_n, R = along.symbol, across.symbol, arm.square
        discriminant = (w.single - v_n) * (w.single + v_n) if w.single is not None else R - v_n**2
        branch = _branch(discriminant, R, start, name)
        if branch.is_flat:
            raise Misfit(_NO_BRANCH)
        inclined = start.value(shape.senses[angle] * angle + arm.angle) - start.value(line.angle)
        if math.cos(inclined) > 0:
            psi, place = line.angle + sm.atan2(v_n, branch.root), (v_l - branch.root) / length
        else:
            psi, place = line.angle + sm.pi - sm.atan2(v_n, branch.root), (v_l + branch.root) / length
        solution = angles(dict([_direction(angle, arm, psi, shape)]), [q for q in rows.unknowns if q != x], start)
        helpers = (*line.helpers, *arm.helpers, along, across, *branch.helpers)
        return closed_form(self, rows, helpers, {x: place, **solution}, (branch.condition,))


class FourBarTrans:
    """A link that turns and on which something slides: its angle and the displacement are wanted.

    With D = P / l² − b²: x = s √D − a, ψ = arg v − atan2(b, s √D). A cylinder between two known pins is of this kind.
    """

    name = "FourBarTrans"
    size = 2

    def solve(self, rows: LoopRows, start: Start) -> ClosedForm:
        """Solve by the right-angled triangle of slide, offset and v; see :class:`LoopKind`."""
        shape = seen_as_polygon(rows, start)
        if len(shape.rails) != 1 or len(shape.arms) > 1 or shape.slides:
            raise Misfit(f"not one link with a slide on it, but {_what(shape)}")
        ((x, angle), rail) = next(iter(shape.rails.items()))
        if shape.arms and angle not in shape.arms:
            raise Misfit(f"an arm turns with {next(iter(shape.arms))}, the slide with {angle}")
        if not shape.known.terms:
            raise Misfit("nothing known is opposite to the slide")
        name = _name(rows)
        v, line = polar(-shape.known, start, name), polar(rail, start, f"{name}_slide")
        a, b = _offset(shape.arms.get(angle), line)
        length = line.square
        branch = _branch(v.square / length - b**2, v.square / length, start, name)
        if branch.is_flat:
            raise Misfit(_NO_BRANCH)
        if start.value(x + a) > 0:
            place, lean = branch.root - a, sm.atan2(b, branch.root)
        else:
            place, lean = -branch.root - a, sm.pi - sm.atan2(b, branch.root)
        psi = v.angle - (lean if b != 0 or start.value(x + a) <= 0 else sm.S.Zero)
        solution = angles(dict([_direction(angle, line, psi, shape)]), [q for q in rows.unknowns if q != x], start)
        helpers = (*v.helpers, *line.helpers, *branch.helpers)
        return closed_form(self, rows, helpers, {x: place, **solution}, (branch.condition,))


def _offset(arm: Phasors | None, line: Polar) -> tuple[sm.Expr, sm.Expr]:
    """Return the offset that turns with the slide: along it and to its left, as multiples of the slide's vector."""
    if arm is None:
        return sm.S.Zero, sm.S.Zero
    a, b = arm.components(line.angle)
    length = sm.sqrt(line.square)
    return sm.simplify(a / length), sm.simplify(b / length)


def _name(rows: LoopRows) -> str:
    """Return the name of a loop's solution: loop_ and its unknown coordinates."""
    return "loop_" + "_".join(map(str, rows.unknowns))


def _what(shape: Polygon) -> str:
    """Return the unknown parts of a polygon."""
    parts = [f"an arm that turns with {angle}" for angle in shape.arms]
    parts += [f"a slide by {x}" for x in shape.slides]
    parts += [f"a slide by {x} on a link that turns with {angle}" for x, angle in shape.rails]
    return " and ".join(parts) or "nothing unknown"
