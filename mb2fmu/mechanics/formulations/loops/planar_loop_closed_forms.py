"""Planar loops (four-bar, crank and slider, sliding link): two rows that form a closed polygon of vectors.

With everything known on the right, v, and arms w whose directions ψ are wanted:

    FourBar         w1 exp(i ψ1) + w2 exp(i ψ2) = v      two circles meet
    CrankSlider     l x exp(i λ) + w exp(i ψ) = v        a circle meets a line of direction λ
    FourBarTrans    (x + a + i b) l exp(i ψ) = v         a tangent of a circle, or a line through its centre if b = 0

Each has two solutions, distinguished by the sign s of a square root, which is that of the start, and none where its
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

from mb2fmu.mechanics.equations.equations_of_motion import ClosedFormLoopSolution, SymbolAssignment
from mb2fmu.mechanics.formulations.loops.closed_form_loop_protocol import (
    SINGULARITY_MARGIN,
    AssemblyBranchStartValues,
    LoopClosureEquations,
    LoopKindMismatchError,
    make_closed_form_loop_solution,
)
from mb2fmu.mechanics.formulations.loops.planar_phasors import (
    LoopPolygon,
    PhasorSum,
    PhasorSumPolarForm,
    decompose_loop_row_into_harmonics,
    form_loop_polygon,
    form_polar_coordinates,
)


def _recognize_loop_polygon(rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> LoopPolygon:
    """Return the rows as a polygon; raises :class:`LoopKindMismatchError` where they are none."""
    coordinates = {s for phi in rows.phi for s in phi.free_symbols & start.moving_symbols}
    return form_loop_polygon([decompose_loop_row_into_harmonics(phi, coordinates) for phi in rows.phi], rows.unknowns)


@dataclass(frozen=True, slots=True)
class _BranchSquareRoot:
    """The square root that distinguishes the two solutions.

    Attributes:
        helpers: D and its root.
        root: √D.
        condition: D − EDGE · size.
        is_flat: Whether D vanishes at the start.
    """

    helpers: tuple[SymbolAssignment, SymbolAssignment]
    root: sm.Symbol
    condition: sm.Expr
    is_flat: bool


def _make_branch_root(
    discriminant: sm.Expr, size: sm.Expr, start: AssemblyBranchStartValues, name: str
) -> _BranchSquareRoot:
    """Return the discriminant D, and its size where the two links are at right angles."""
    square_of_root = start.define(f"{name}_inside", discriminant)
    condition = square_of_root.symbol - SINGULARITY_MARGIN * size
    is_flat = not start.evaluate(condition) > 0.0
    root = start.define(f"{name}_root", sm.sqrt(square_of_root.symbol)) if not is_flat else square_of_root
    return _BranchSquareRoot((square_of_root, root), root.symbol, condition, is_flat)


_FLAT_LOOP_MESSAGE = "at the start it lies flat, where its two branches meet: start it elsewhere"


def _solve_coordinates_from_angle_sums(
    angle_solution: Mapping[sm.Expr, sm.Expr], unknowns: Sequence[sm.Symbol], start: AssemblyBranchStartValues
) -> dict[sm.Symbol, sm.Expr]:
    """Return coordinates from angles that are sums of them, with the full turns of the start.

    Args:
        angle_solution: Sum of unknowns → its value, up to whole turns.
        unknowns: As many as there are sums.
        start: Says how many turns.

    Raises:
        LoopKindMismatchError: If the start is another, or the sums do not distinguish the unknowns.
    """
    equations = []
    for angle, value in angle_solution.items():
        turns = (start.evaluate(angle) - start.evaluate(value)) / (2 * math.pi)
        if abs(turns - round(turns)) > _TURN_TOLERANCE:
            start_angle, start_value = start.evaluate(angle), start.evaluate(value)
            raise LoopKindMismatchError(
                f"the start does not close it: {angle} is {start_angle:.6g}, not {start_value:.6g}"
            )
        equations.append((angle, value + 2 * sm.pi * round(turns)))
    matrix = sm.Matrix([[angle.diff(symbol) for symbol in unknowns] for angle, _ in equations])
    if matrix.shape[0] != matrix.shape[1] or matrix.det() == 0:
        raise LoopKindMismatchError(f"{', '.join(map(str, unknowns))} are not determined by the directions of its arms")
    solution = matrix.LUsolve(sm.Matrix([value for _, value in equations]))
    return dict(zip(unknowns, map(sm.expand, solution), strict=True))


_TURN_TOLERANCE = 1e-6


def _arm_angle(angle: sm.Expr, arm: PhasorSumPolarForm, psi: sm.Expr, shape: LoopPolygon) -> tuple[sm.Expr, sm.Expr]:
    """Return (sum of unknowns, its value) where an arm has direction psi."""
    return angle, shape.senses[angle] * (psi - arm.angle)


class FourBarLoopSolver:
    """Two arms whose angles are wanted: revolute joints at three places of the loop that are not all known.

    With D = 4 P r1² − (P + r1² − r2²)², P = |v|²: ψ1 = arg v + s atan2(√D, P + r1² − r2²),
    ψ2 = arg v − s atan2(√D, P + r2² − r1²). A parallelogram is solved as such, see :func:`_solve_parallelogram`.
    """

    name = "FourBar"
    size = 2

    def solve(self, rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> ClosedFormLoopSolution:
        """Solve by the triangle of the two arms and v; see :class:`LoopConnection`."""
        shape = _recognize_loop_polygon(rows, start)
        if len(shape.arms) != 2 or shape.slides or shape.sliding_arm_terms:
            raise LoopKindMismatchError(f"not two arms with unknown angles, but {_describe_unknowns(shape)}")
        (angle1, w1), (angle2, w2) = shape.arms.items()
        if not shape.known.terms:
            raise LoopKindMismatchError("nothing known is between its two arms")
        parallel = _solve_parallelogram(shape, start)
        if parallel is not None:
            solution = _solve_coordinates_from_angle_sums(parallel, rows.unknowns, start)
            relation = [angle - value for angle, value in solution.items()]
            return make_closed_form_loop_solution(self, rows, (), solution, (), relation)
        name = _solution_name(rows)
        v = form_polar_coordinates(-shape.known, start, name)
        arm1, arm2 = form_polar_coordinates(w1, start, f"{name}_1"), form_polar_coordinates(w2, start, f"{name}_2")
        P, R1, R2 = v.square, arm1.square, arm2.square
        if w1.single_length is not None and w2.single_length is not None:
            discriminant = ((w1.single_length + w2.single_length) ** 2 - P) * (
                P - (w1.single_length - w2.single_length) ** 2
            )
        else:
            discriminant = 4 * P * R1 - (P + R1 - R2) ** 2
        branch = _make_branch_root(discriminant, 4 * R1 * R2, start, name)
        if branch.is_flat:
            raise LoopKindMismatchError(_FLAT_LOOP_MESSAGE)
        start_psi1 = start.evaluate(shape.senses[angle1] * angle1 + arm1.angle)
        s = 1 if math.sin(start_psi1 - start.evaluate(v.angle)) > 0 else -1
        psi1 = v.angle + s * sm.atan2(branch.root, P + R1 - R2)
        psi2 = v.angle - s * sm.atan2(branch.root, P + R2 - R1)
        coordinate_solution = dict([_arm_angle(angle1, arm1, psi1, shape), _arm_angle(angle2, arm2, psi2, shape)])
        solution = _solve_coordinates_from_angle_sums(coordinate_solution, rows.unknowns, start)
        helpers = (*v.helpers, *arm1.helpers, *arm2.helpers, *branch.helpers)
        return make_closed_form_loop_solution(self, rows, helpers, solution, (branch.condition,))


def _solve_parallelogram(shape: LoopPolygon, start: AssemblyBranchStartValues) -> dict[sm.Expr, sm.Expr] | None:
    """Return the angles of the arms of a parallelogram: equal opposite sides that start parallel stay parallel.

    Such a loop could leave the parallelogram where it lies flat, and the triangle that the rest of the loops are solved
    by degenerates there. The motion that is wanted goes on as a parallelogram, which needs no triangle.
    """
    sides = (-shape.known).terms
    if len(sides) != 2:
        return None
    solution: dict[sm.Expr, sm.Expr] = {}
    remaining_sides = [PhasorSum((side,)) for side in sides]
    for angle, arm in shape.arms.items():
        if len(arm.terms) != 1:
            return None
        polar_arm = form_polar_coordinates(arm, start, "")
        for side in remaining_sides:
            opposite = form_polar_coordinates(side, start, "")
            value = shape.senses[angle] * (opposite.angle - polar_arm.angle)
            is_parallel = math.cos(start.evaluate(angle) - start.evaluate(value)) > 1 - _TURN_TOLERANCE**2
            if sm.expand(polar_arm.square - opposite.square) == 0 and is_parallel:
                solution[angle] = value
                remaining_sides.remove(side)
                break
    return solution if not remaining_sides else None


class CrankSliderLoopSolver:
    """An arm whose angle is wanted, and a displacement along a known direction.

    With v_l along the slide, v_n across it and D = r² − v_n²: x = (v_l − s √D) / l, ψ = λ + atan2(v_n, s √D).
    """

    name = "CrankSlider"
    size = 2

    def solve(self, rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> ClosedFormLoopSolution:
        """Solve by the height of the arm's end over the slide; see :class:`LoopConnection`."""
        shape = _recognize_loop_polygon(rows, start)
        if len(shape.arms) != 1 or len(shape.slides) != 1 or shape.sliding_arm_terms:
            raise LoopKindMismatchError(f"not one arm and one slide, but {_describe_unknowns(shape)}")
        ((angle, w),), ((x, slide),) = shape.arms.items(), shape.slides.items()
        name = _solution_name(rows)
        line, arm = (
            form_polar_coordinates(slide, start, f"{name}_slide"),
            form_polar_coordinates(w, start, f"{name}_arm"),
        )
        length = sm.sqrt(line.square) if slide.single_length is None else sm.Abs(slide.single_length)
        parts = (-shape.known).components(line.angle) if shape.known.terms else (sm.S.Zero, sm.S.Zero)
        along, across = (
            start.define(f"{name}_{direction_name}", part)
            for direction_name, part in zip(("along", "across"), parts, strict=True)
        )
        v_l, v_n, R = along.symbol, across.symbol, arm.square
        discriminant = (w.single_length - v_n) * (w.single_length + v_n) if w.single_length is not None else R - v_n**2
        branch = _make_branch_root(discriminant, R, start, name)
        if branch.is_flat:
            raise LoopKindMismatchError(_FLAT_LOOP_MESSAGE)
        inclined = start.evaluate(shape.senses[angle] * angle + arm.angle) - start.evaluate(line.angle)
        if math.cos(inclined) > 0:
            psi, place = line.angle + sm.atan2(v_n, branch.root), (v_l - branch.root) / length
        else:
            psi, place = line.angle + sm.pi - sm.atan2(v_n, branch.root), (v_l + branch.root) / length
        solution = _solve_coordinates_from_angle_sums(
            dict([_arm_angle(angle, arm, psi, shape)]), [q for q in rows.unknowns if q != x], start
        )
        helpers = (*line.helpers, *arm.helpers, along, across, *branch.helpers)
        return make_closed_form_loop_solution(self, rows, helpers, {x: place, **solution}, (branch.condition,))


class SlidingLinkLoopSolver:
    """A link that turns and on which something slides: its angle and the displacement are wanted.

    With D = P / l² − b²: x = s √D − a, ψ = arg v − atan2(b, s √D). A cylinder between two known pins is of this kind.
    """

    name = "FourBarTrans"
    size = 2

    def solve(self, rows: LoopClosureEquations, start: AssemblyBranchStartValues) -> ClosedFormLoopSolution:
        """Solve by the right-angled triangle of slide, offset and v; see :class:`LoopConnection`."""
        shape = _recognize_loop_polygon(rows, start)
        if len(shape.sliding_arm_terms) != 1 or len(shape.arms) > 1 or shape.slides:
            raise LoopKindMismatchError(f"not one link with a slide on it, but {_describe_unknowns(shape)}")
        ((x, angle), rail_phasor) = next(iter(shape.sliding_arm_terms.items()))
        if shape.arms and angle not in shape.arms:
            raise LoopKindMismatchError(f"an arm turns with {next(iter(shape.arms))}, the slide with {angle}")
        if not shape.known.terms:
            raise LoopKindMismatchError("nothing known is opposite to the slide")
        name = _solution_name(rows)
        v, line = (
            form_polar_coordinates(-shape.known, start, name),
            form_polar_coordinates(rail_phasor, start, f"{name}_slide"),
        )
        a, b = _slide_offset(shape.arms.get(angle), line)
        length = line.square
        branch = _make_branch_root(v.square / length - b**2, v.square / length, start, name)
        if branch.is_flat:
            raise LoopKindMismatchError(_FLAT_LOOP_MESSAGE)
        if start.evaluate(x + a) > 0:
            place, inclination = branch.root - a, sm.atan2(b, branch.root)
        else:
            place, inclination = -branch.root - a, sm.pi - sm.atan2(b, branch.root)
        psi = v.angle - (inclination if b != 0 or start.evaluate(x + a) <= 0 else sm.S.Zero)
        solution = _solve_coordinates_from_angle_sums(
            dict([_arm_angle(angle, line, psi, shape)]), [q for q in rows.unknowns if q != x], start
        )
        helpers = (*v.helpers, *line.helpers, *branch.helpers)
        return make_closed_form_loop_solution(self, rows, helpers, {x: place, **solution}, (branch.condition,))


def _slide_offset(arm: PhasorSum | None, line: PhasorSumPolarForm) -> tuple[sm.Expr, sm.Expr]:
    """Return the offset that turns with the slide: along it and to its left, as multiples of the slide's vector."""
    if arm is None:
        return sm.S.Zero, sm.S.Zero
    a, b = arm.components(line.angle)
    length = sm.sqrt(line.square)
    return sm.simplify(a / length), sm.simplify(b / length)


def _solution_name(rows: LoopClosureEquations) -> str:
    """Return the name of a loop's solution: loop_ and its unknown coordinates."""
    return "loop_" + "_".join(map(str, rows.unknowns))


def _describe_unknowns(shape: LoopPolygon) -> str:
    """Return the unknown parts of a polygon."""
    parts = [f"an arm that turns with {angle}" for angle in shape.arms]
    parts += [f"a slide by {x}" for x in shape.slides]
    parts += [f"a slide by {x} on a link that turns with {angle}" for x, angle in shape.sliding_arm_terms]
    return " and ".join(parts) or "nothing unknown"
