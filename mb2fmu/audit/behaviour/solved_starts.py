"""Start values that a unit solves for: jumps to other solutions, and a solver's noise, are no dependencies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mb2fmu.audit.behaviour.binding import Value
from mb2fmu.audit.behaviour.stage import Stage
from mb2fmu.audit.description.described_model import Unknown, Variable

VISIBLE = 1e-7
"""A relative change that is more than the noise of an iteration within the unit."""

SLIGHT = 1e-3
"""Part of a change of a known in which solutions do not leave the branch that they are on."""


def on_one_branch(
    stage: Stage, entries: Sequence[Unknown], known: Variable, values: tuple[Sequence[Value], ...]
) -> list[Value]:
    """Return changed values of the unknowns without jumps to other solutions, which are no dependencies.

    Where a unit solves for start values, its equations may have several solutions (two ways to assemble a loop), and
    any large change of any value may lead to another one. Where a thousandth of the change moves an unknown by nothing
    but noise, and the whole of it moves a state that is solved for, which a thousandth does not move either, the whole
    has led elsewhere. Only unknowns of which the known is no declared dependency are looked at. What jumps while all
    solved states stay depends on the known, however it does.

    Args:
        stage: Tells which states are solved for.
        entries: The unknowns with their declared dependencies.
        known: What was changed.
        values: Of the unknowns: before, after a thousandth of the change, after the change.
    """
    solved = [
        k for k, entry in enumerate(entries)
        if entry.variable is not None
        and entry.variable in stage.description.state_set
        and entry.variable.initial == "approx"
    ]  # fmt: skip
    elsewhere = any(_still(values[0][k], values[1][k]) and not _still(values[0][k], values[2][k]) for k in solved)
    kept = []
    for entry, base, nearby, other in zip(entries, *values, strict=True):
        declared = any(known is each for each in entry.targets)
        branch = elsewhere and not declared and _still(base, nearby)
        kept.append(base if branch or _is_noise(base, nearby, other) else other)
    return kept


def in_the_same_modes(
    base: Sequence[Value], nearby: Sequence[Value], other: Sequence[Value], backs: Sequence[Sequence[Value]]
) -> list[Value]:
    """Return changed values of the unknowns without those that a change of mode caused.

    A parameter that moves a threshold switches a mode in Event Mode, and what depends on the mode jumps; the parameter
    is no dependency of it, for with the mode as it is it does nothing. A thousandth of the change says so, or that the
    unknown is not what it was with the parameter as it was: each event may switch a mode (a ball that is put down).

    Args:
        base: Before.
        nearby: After a thousandth of the change.
        other: After the change.
        backs: With the parameter as it was, after each.
    """
    kept = []
    for k, (one, near, far) in enumerate(zip(base, nearby, other, strict=True)):
        moded = _still(one, near) or not all(_still(one, back[k]) for back in backs)
        kept.append(one if moded else far)
    return kept


def _still(one: Value, other: Value) -> bool:
    """Return whether a value has moved by noise only."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(other, one, rel_tol=VISIBLE * SLIGHT)
    return one == other


NOISY = 1e-3
"""Relative change that an iteration within a unit may leave, if it does not shrink with what caused it."""


def _is_noise(base: Value, nearby: Value, other: Value) -> bool:
    """Return whether a change is a solver's noise: as large for a thousandth of its cause as for the whole."""
    if not (isinstance(base, float) and isinstance(nearby, float) and isinstance(other, float)):
        return False
    small, whole = abs(nearby - base), abs(other - base)
    return 0.0 < whole < NOISY * max(abs(base), abs(other)) and small > 0.2 * whole
