"""Rows of planar loops as sums of rotating vectors, by which loop kinds recognise and solve them.

A row is first written as a sum of sines and cosines of angles that are linear in the coordinates: products, which come
from frames one after the other, become sums by the addition theorems, exactly. Two rows are then one complex number,
row 1 + i row 2 = Σ W exp(i angle), a closed polygon of *phasors*; a sum of phasors has a length and a direction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import SymbolAssignment
from mb2fmu.mechanics.formulations.loops.closed_form_loop_protocol import (
    AssemblyBranchStartValues,
    LoopKindMismatchError,
)

Harmonic = tuple[sm.Expr, sm.Expr, bool]
"""Monomial in coordinates, angle, whether a sine (else a cosine)."""

Harmonics = Mapping[Harmonic, sm.Expr]
"""Sum of coefficient · monomial · cos(angle) or sin(angle); coefficients hold what is of no such form."""

_UNIT_HARMONIC: Harmonic = (sm.S.One, sm.S.Zero, False)


def decompose_loop_row_into_harmonics(row: sm.Expr, q: Iterable[sm.Symbol]) -> Harmonics:
    """Return a row as a sum of harmonics, with no two of the same angle.

    Args:
        row: φ.
        q: Coordinates; all else is as constant as they need it.
    """
    symbols = frozenset(q)
    harmonics = _split_into_harmonics(sm.sympify(row), symbols)
    expanded = ((key, sm.expand(value)) for key, value in harmonics.items())
    return {key: value for key, value in expanded if value != 0}


def _split_into_harmonics(e: sm.Expr, q: frozenset[sm.Symbol]) -> dict[Harmonic, sm.Expr]:
    """Split an expression into a sum of harmonics of the coordinates ``q``, each with its amplitude."""
    harmonics: dict[Harmonic, sm.Expr] = {_UNIT_HARMONIC: e}
    if not e.free_symbols & q:
        return harmonics
    if e in q:
        harmonics = {(e, sm.S.Zero, False): sm.S.One}
    elif isinstance(e, sm.Add):
        harmonics = _add_harmonics(_split_into_harmonics(term, q) for term in e.args)
    elif isinstance(e, sm.Mul):
        harmonics = _multiply_all(_split_into_harmonics(factor, q) for factor in e.args)
    elif isinstance(e, sm.Pow) and e.exp.is_Integer and 0 < e.exp <= _MAX_POWER:
        harmonics = _multiply_all([_split_into_harmonics(e.base, q)] * int(e.exp))
    elif isinstance(e, sm.sin | sm.cos):
        angle = sm.expand(e.args[0])
        if all(not angle.diff(symbol).free_symbols & q for symbol in angle.free_symbols & q):
            harmonics = dict([_make_harmonic(sm.S.One, angle, sine=isinstance(e, sm.sin), factor=sm.S.One)])
    return harmonics


_MAX_POWER = 4


def _multiply_all(factors: Iterable[Mapping[Harmonic, sm.Expr]]) -> dict[Harmonic, sm.Expr]:
    """Multiply sums of harmonics: their angles add, products of sines and cosines become sums."""
    product: dict[Harmonic, sm.Expr] = {_UNIT_HARMONIC: sm.S.One}
    for factor in factors:
        product = _multiply_harmonics(product, factor)
    return product


def _make_harmonic(monomial: sm.Expr, angle: sm.Expr, *, sine: bool, factor: sm.Expr) -> tuple[Harmonic, sm.Expr]:
    """Return key and coefficient of factor · monomial · sin or cos of an angle, written without a leading minus."""
    if angle == 0:
        return (monomial, sm.S.Zero, False), sm.S.Zero if sine else factor
    if angle.could_extract_minus_sign():
        angle, factor = -angle, -factor if sine else factor
    return (monomial, angle, sine), factor


def _add_harmonics(parts: Iterable[Mapping[Harmonic, sm.Expr]]) -> dict[Harmonic, sm.Expr]:
    """Add sums of harmonics, coefficient by coefficient."""
    terms: dict[Harmonic, list[sm.Expr]] = {}
    for part in parts:
        for key, value in part.items():
            terms.setdefault(key, []).append(value)
    return {key: sm.Add(*values) for key, values in terms.items()}


def _multiply_harmonics(a: Mapping[Harmonic, sm.Expr], b: Mapping[Harmonic, sm.Expr]) -> dict[Harmonic, sm.Expr]:
    """Return the product of two sums, by 2 cos a cos b = cos(a − b) + cos(a + b), and so on."""
    parts = []
    for ((m, x, sine_x), c), ((n, y, sine_y), d) in itertools.product(a.items(), b.items()):
        monomial, factor = m * n, c * d
        if x == 0 or y == 0:
            parts.append(dict([_make_harmonic(monomial, x + y, sine=sine_x or sine_y, factor=factor)]))
            continue
        half = factor / 2
        if sine_x and not sine_y:
            sum_harmonic, difference_harmonic = (half, True), (half, True)
        elif sine_y and not sine_x:
            sum_harmonic, difference_harmonic = (half, True), (-half, True)
        else:
            sum_harmonic, difference_harmonic = (-half if sine_x else half, False), (half, False)
        parts.append(dict([_make_harmonic(monomial, x + y, sine=sum_harmonic[1], factor=sum_harmonic[0])]))
        parts.append(
            dict([_make_harmonic(monomial, x - y, sine=difference_harmonic[1], factor=difference_harmonic[0])])
        )
    return _add_harmonics(parts)


@dataclass(frozen=True, slots=True)
class PhasorSum:
    """Σ (re + i im) exp(i angle).

    Attributes:
        terms: (re, im, angle); no two have the same angle, none vanishes.
    """

    terms: tuple[tuple[sm.Expr, sm.Expr, sm.Expr], ...]

    def __neg__(self) -> PhasorSum:
        """Return the sum turned by half a turn."""
        return PhasorSum(tuple((-re, -im, angle) for re, im, angle in self.terms))

    @property
    def single_length(self) -> sm.Expr | None:
        """The length (with sign) of the only real phasor; None if there are more."""
        if len(self.terms) != 1 or self.terms[0][1] != 0:
            return None
        return self.terms[0][0]

    def components(self, rotation_angle: sm.Expr, quarters: int = 0) -> tuple[sm.Expr, sm.Expr]:
        """Return real and imaginary part of the sum times exp(−i (turned + quarters π/2))."""
        c, s = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters % 4]
        xs, ys = [], []
        for re, im, angle in self.terms:
            cosine, sine = sm.cos(angle - rotation_angle), sm.sin(angle - rotation_angle)
            x, y = re * cosine - im * sine, im * cosine + re * sine
            xs.append(c * x + s * y)
            ys.append(c * y - s * x)
        return sm.Add(*xs), sm.Add(*ys)


@dataclass(frozen=True, slots=True)
class PhasorSumPolarForm:
    """A sum of phasors as helpers that are evaluated.

    Attributes:
        helpers: Assignments, in order.
        angle: Direction, continuous as far as the longest phasor outweighs the others: it may go round.
        square: Squared length.
    """

    helpers: tuple[SymbolAssignment, ...]
    angle: sm.Expr
    square: sm.Expr


def form_polar_coordinates(vector: PhasorSum, start: AssemblyBranchStartValues, name: str) -> PhasorSumPolarForm:
    """Return length and direction.

    The direction is counted from that of the longest phasor at the start, to the next quarter of a turn. Where that
    phasor is longer than all others together the angle from there is less than 3/8 of a turn at all times: so the
    direction follows a crank round and round. Where none is, it is counted from what it is at the start.

    Args:
        vector: Of known angles.
        start: The numbers by which phasors are compared.
        name: Of helpers.
    """
    lengths = [math.hypot(start.evaluate(re), start.evaluate(im)) for re, im, _ in vector.terms]
    k = lengths.index(max(lengths))
    re, im, rotation_angle = vector.terms[k]
    quarters = _quarter_turns(start.evaluate(re), start.evaluate(im))
    if len(vector.terms) == 1:
        direction = quarters * sm.pi / 2 if im == 0 else sm.atan2(im, re)
        return PhasorSumPolarForm((), rotation_angle + direction, re**2 + im**2)
    if 2 * lengths[k] <= sum(lengths):
        x, y = (start.evaluate(part) for part in vector.components(sm.S.Zero))
        rotation_angle, quarters = sm.S.Zero, _quarter_turns(x, y)
    parts = zip("xy", vector.components(rotation_angle, quarters), strict=True)
    x_part, y_part = (start.define(f"{name}_{axis}", part) for axis, part in parts)
    x, y = x_part.symbol, y_part.symbol
    square = start.define(f"{name}_square", x**2 + y**2)
    angle = start.define(f"{name}_angle", rotation_angle + quarters * sm.pi / 2 + sm.atan2(y, x))
    return PhasorSumPolarForm((x_part, y_part, square, angle), angle.symbol, square.symbol)


def _quarter_turns(x: float, y: float) -> int:
    """Return the direction in quarters of a turn, with a margin, so that round-off cannot change it."""
    return math.floor(math.atan2(y, x) / (math.pi / 2) + 0.5 - _DIRECTION_MARGIN)


_DIRECTION_MARGIN = 1e-6


@dataclass(frozen=True, slots=True)
class LoopPolygon:
    """Two rows as known + Σ_x slides[x] x + Σ_α arms[α] exp(i s_α α) + Σ_(x, α) rails[x, α] x exp(i s_α α) = 0.

    Attributes:
        known: What contains no unknown.
        slides: Unknown displacement → its direction.
        arms: Angle of unknowns → vector that it turns.
        sliding_arm_terms: (Unknown displacement, angle of unknowns) → direction that it turns.
        senses: Angle of unknowns → s: 1, or −1 where it turns the other way.
    """

    known: PhasorSum
    slides: Mapping[sm.Expr, PhasorSum]
    arms: Mapping[sm.Expr, PhasorSum]
    sliding_arm_terms: Mapping[tuple[sm.Expr, sm.Expr], PhasorSum]
    senses: Mapping[sm.Expr, int]


def form_loop_polygon(rows: Sequence[Harmonics], unknowns: Sequence[sm.Symbol]) -> LoopPolygon:
    """Return two rows as one complex polygon equation.

    Args:
        rows: Harmonics of two rows.
        unknowns: Coordinates that are to be found.

    Raises:
        LoopKindMismatchError: Why they are none.
    """
    sums: dict[tuple[sm.Expr, sm.Expr], dict[sm.Expr, dict[tuple[int, bool], sm.Expr]]] = {}
    for i, row in enumerate(rows):
        for (monomial, angle, sine), factor in row.items():
            parts = split_harmonic_by_unknowns(monomial, angle, sine=sine, factor=factor, unknowns=unknowns)
            place, known_angle, is_sine, value = parts
            entries = sums.setdefault(place, {}).setdefault(known_angle, {})
            entries[i, is_sine] = entries.get((i, is_sine), sm.S.Zero) + value
    known: list[tuple[sm.Expr, sm.Expr, sm.Expr]] = []
    slides: dict[sm.Expr, PhasorSum] = {}
    arms: dict[sm.Expr, PhasorSum] = {}
    rails: dict[tuple[sm.Expr, sm.Expr], PhasorSum] = {}
    senses: dict[sm.Expr, int] = {}
    for (displacement, angle), by_known in sums.items():
        if angle == 0:
            terms = [term for beta, entries in by_known.items() for term in _rotating_vectors(entries, beta)]
            if displacement == 1:
                known += terms
            else:
                slides[displacement] = PhasorSum(tuple(terms))
            continue
        sense, phasors = _rotation_sense(by_known, angle)
        if senses.setdefault(angle, sense) != sense:
            raise LoopKindMismatchError(f"{angle} turns one vector forward and another backward")
        if displacement == 1:
            arms[angle] = phasors
        else:
            rails[displacement, angle] = phasors
    return LoopPolygon(PhasorSum(tuple(known)), slides, arms, rails, senses)


def split_harmonic_by_unknowns(
    monomial: sm.Expr, angle: sm.Expr, *, sine: bool, factor: sm.Expr, unknowns: Sequence[sm.Symbol]
) -> tuple[tuple[sm.Expr, sm.Expr], sm.Expr, bool, sm.Expr]:
    """Split a harmonic: ((unknown displacement or 1, unknown angle), known angle, whether a sine, factor)."""
    unknowns_in_factor = factor.free_symbols & set(unknowns)
    if unknowns_in_factor:
        unknown_names = ", ".join(sorted(map(str, unknowns_in_factor)))
        raise LoopKindMismatchError(
            f"{unknown_names} stands in {str(factor)[:60]}, which is no sum of sines and cosines"
        )
    displacement, rest = monomial.as_independent(*unknowns)[::-1]
    if displacement not in (1, *unknowns):
        raise LoopKindMismatchError(f"the unknowns are multiplied: {displacement}")
    unknown_angle = sm.Add(*(symbol * angle.diff(symbol) for symbol in unknowns))
    known_angle = sm.expand(angle - unknown_angle)
    value = factor * rest
    if unknown_angle.could_extract_minus_sign():
        unknown_angle, known_angle = -unknown_angle, -known_angle
        value = -value if sine else value
    return (displacement, unknown_angle), known_angle, sine, value


def _rotating_vectors(
    entries: Mapping[tuple[int, bool], sm.Expr], angle: sm.Expr
) -> Iterable[tuple[sm.Expr, sm.Expr, sm.Expr]]:
    """Write two sums of cos and sin of one angle as a vector turned forward plus a vector turned backward."""
    (cx, sx), (cy, sy) = (tuple(entries.get((i, sine), sm.S.Zero) for sine in (False, True)) for i in (0, 1))
    if angle == 0:
        if cx != 0 or cy != 0:
            yield cx, cy, sm.S.Zero
        return
    for re, im, rotation_angle in (
        ((cx + sy) / 2, (cy - sx) / 2, angle),
        ((cx - sy) / 2, (cy + sx) / 2, -angle),
    ):
        re_, im_ = sm.expand(re), sm.expand(im)
        if re_ != 0 or im_ != 0:
            yield re_, im_, rotation_angle


def _rotation_sense(
    by_known: Mapping[sm.Expr, Mapping[tuple[int, bool], sm.Expr]], angle: sm.Expr
) -> tuple[int, PhasorSum]:
    """Return the sense in which an unknown angle turns vectors, and their sum at angle 0."""
    for sense in (1, -1):
        terms = []
        for beta, entries in by_known.items():
            (cx, sx), (cy, sy) = (tuple(entries.get((i, sine), sm.S.Zero) for sine in (False, True)) for i in (0, 1))
            if sm.expand(cy + sense * sx) != 0 or sm.expand(sy - sense * cx) != 0:
                break
            terms.append((sm.expand(cx), sm.expand(-sense * sx), sense * beta))
        else:
            return sense, PhasorSum(tuple(terms))
    raise LoopKindMismatchError(
        f"what {angle} turns is not one vector in both rows: they are no components along x and y"
    )
