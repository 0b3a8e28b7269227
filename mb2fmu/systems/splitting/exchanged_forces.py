"""``list_exchanged_forces``: forces that one part of a cut mechanism gives and another takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy as sm

from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism import NumericMechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.model.declarations.declared_terminals import ConnectionKind
from mb2fmu.systems.splitting.moving_states import list_load_points, list_turned_frames

if TYPE_CHECKING:
    from mb2fmu.systems.splitting.cut_records import MechanismCut

AXES = "xyz"
_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class ExchangedForce:
    """One scalar force or torque between two parts.

    Attributes:
        name: Of the taker's input.
        symbol: Of the same, in the taker's records.
        unit: N or N.m.
        taker: Number of the part that it acts on.
        giver: Number of the part that computes it.
        output: Name of the giver's output.
        expression: Of the giver's output; None: the giver is asked for it (a pathway's force, a reaction).
        load: Number of the load in the whole whose size it is; -1: a reaction.
        kinds: Of the taker's and the giver's member of the terminal.
        start: Of the taker's input.
    """

    name: str
    symbol: sm.Symbol
    unit: str
    taker: int
    giver: int
    output: str
    expression: sm.Expr | None = None
    load: int = -1
    kinds: tuple[ConnectionKind, ConnectionKind] = ("inflow", "outflow")
    start: float = 0.0


def make_identifier(text: str) -> str:
    """Return letters, digits and _ of a name."""
    return re.sub(r"\W+", "_", text).strip("_") or "cut"


def list_exchanged_forces(cut: MechanismCut) -> tuple[ExchangedForce, ...]:
    """Return the exchanged forces of all cuts, in order."""
    if cut.kind == "joint":
        return tuple(_wrench(cut))
    if cut.way == "line":
        owners = cut.owners
        return tuple(
            ExchangedForce(w.name, w.symbol, w.unit, owners[w.taker], owners[w.giver], w.name, w.given,
                     kinds=("signal", "signal"), start=w.start)
            for w in cut.waves
        )  # fmt: skip
    if cut.way != "force":
        return ()
    return tuple(each for number in cut.numbers for each in _magnitudes(cut, number))


def find_parts_acted_on(cut: MechanismCut, load: Load) -> frozenset[int]:
    """Return the numbers of the parts whose bodies a load acts on."""
    movement = cut.movement
    if cut.kind == "joint":
        place = cut.numbers[0]
        found = {int(_beyond(cut, place, k)) for k in list_load_points(load)}
        return frozenset(found | {int(bool(cut.parts_of(movement.frames[k]) & {1})) for k in list_turned_frames(load)})
    states = [movement.points[k] for k in list_load_points(load)] + [
        movement.frames[k] for k in list_turned_frames(load)
    ]
    return frozenset(part for some in states for part in cut.parts_of(some))


def _beyond(cut: MechanismCut, place: int, point: int) -> bool:
    """Return whether a point is located from the cut's point, or moves with the outer states."""
    above = list(cut.movement.above(point))[1:]
    return place in above or 1 in cut.parts_of(cut.movement.points[point])


def _magnitudes(cut: MechanismCut, number: int) -> Iterator[ExchangedForce]:
    """Yield the scalars of one load that the first of its parts takes from the last."""
    load = cut.mechanism.loads[number]
    involved = find_parts_acted_on(cut, load) | cut.parts_of(cut.movement.of_magnitude(load))
    taker, giver = min(involved), max(involved)
    if taker == giver or taker not in find_parts_acted_on(cut, load):
        return
    stem = make_identifier(load.name)

    def made(name: str, unit: str, expression: sm.Expr | None) -> ExchangedForce:
        return ExchangedForce(name, sm.Symbol(name), unit, taker, giver, name, expression, number)

    match load:
        case PathwayLoad():
            yield made(f"{stem}_tension", "N", None)
        case TorqueActuatorLoad():
            yield made(f"{stem}_torque", "N.m", load.torque)
        case ForceLoad():
            yield from (made(f"{stem}_{axis}", "N", e) for axis, e in _components(load.force))
        case TorqueLoad():
            yield from (made(f"{stem}_{axis}", "N.m", e) for axis, e in _components(load.torque))


def _components(terms: VectorTerms) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the non-zero (axis, component) pairs; axes of further frames have numbers."""
    for k, (_, components) in enumerate(terms):
        for axis, component in zip(AXES, components, strict=True):
            if component != 0:
                yield f"{axis}{k or ''}", component


def _wrench(cut: MechanismCut) -> Iterator[ExchangedForce]:
    """Yield the force of the outer part on the inner one at the joint, along axes in which the inner one can move."""
    stem, free = make_identifier(cut.name), find_free_axes(cut.mechanism, cut.numbers[0], cut.frame)
    for kind, letter, unit, axes in zip(("force", "torque"), "fm", ("N", "N.m"), free, strict=True):
        for axis, moves in zip(AXES, axes, strict=True):
            if moves:
                name = f"{stem}_{letter}{axis}"
                symbol, output = sm.Symbol(name), f"{stem}_{kind}.{axis}"
                yield ExchangedForce(name, symbol, unit, 0, 1, output, kinds=("inflow", "inflow"))


def find_free_axes(m: Mechanism, point: int, frame: int) -> tuple[list[bool], list[bool]]:
    """Find the axes of N along which a point moves, and about which a frame turns."""
    numeric = NumericMechanism(m)
    random = np.random.default_rng(0)
    translation, rotation = np.zeros(3), np.zeros(3)
    for _ in range(_SAMPLES):
        p = numeric.parameters(random.uniform(0.5, 1.5, len(m.p)))
        q, u, z, r = (random.uniform(0.2, 1.2, len(some)) for some in (m.q, m.u_all, m.z, m.r))
        numeric.set(0.3, q, u, z, r, p)
        translation += np.abs(numeric.points[point].partials).sum(axis=1)
        rotation += np.abs(numeric.frames[frame].partials).sum(axis=1)
    return [bool(each > 1e-12) for each in translation], [bool(each > 1e-12) for each in rotation]


def replace_magnitude_by_input(load: Load, symbols: dict[sm.Expr, sm.Symbol]) -> Load:
    """Return the load with its magnitude from inputs: expression → input, in the order of exchange."""
    from dataclasses import replace

    def through(terms: VectorTerms) -> VectorTerms:
        return tuple((frame, tuple(symbols.get(c, c) for c in components)) for frame, components in terms)

    match load:
        case ForceLoad():
            return replace(load, force=through(load.force))
        case TorqueLoad():
            return replace(load, torque=through(load.torque))
        case PathwayLoad():
            return replace(load, force=next(iter(symbols.values())), potential=None)
    return replace(load, torque=next(iter(symbols.values())))
