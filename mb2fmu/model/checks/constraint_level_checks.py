"""Check that constraints on positions and on velocities were given as what they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sympy as sm
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, System

from mb2fmu.errors import Fault
from mb2fmu.model.checks.expression_symbols import collect_expression_symbols, differentiate_by_time
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.mechanics_source import Mechanics

_LEVELS = ("positions", "velocities", "accelerations")


def find_constraint_level_faults(model: Model) -> Iterator[Fault]:
    """Yield constraints on velocities among those on positions, or the other way round, and those on accelerations.

    The arguments are named as SymPy has them. What follows from a row of the wrong level (a rate that is an
    acceleration, an unknown derivative) is no fault of its own.
    """
    mechanics = model.mechanics
    positions, velocities = _argument_names(mechanics)
    for level, argument, rows in (
        (0, positions, mechanics_source.holonomic_constraints(mechanics)),
        (1, velocities, _list_velocity_rows(mechanics)),
    ):
        for number, row in enumerate(map(sm.sympify, rows), 1):
            found = _find_level(row, mechanics)
            if found is None or found[0] == level:
                continue
            actual, symbols = found
            names = ", ".join(sorted(symbols))
            where = f"{argument} takes constraints on {_LEVELS[level]}, and row {number} contains {names}"
            if actual >= len(_LEVELS) - 1:
                what, remedy = f"{where}: it is one on accelerations", "hand over what it is the derivative of"
            else:
                other = (positions, velocities)[actual]
                what = (
                    where if actual else f"{argument} takes constraints on velocities, and row {number} contains none"
                )
                what, remedy = f"{what}: it is one on {_LEVELS[actual]}", f"hand it over in {other}"
            yield Fault(what, model.where, remedy)


def _argument_names(mechanics: Mechanics) -> tuple[str, str]:
    """Return the arguments that take constraints on positions and on velocities."""
    if isinstance(mechanics, LagrangesMethod):
        return "hol_coneqs", "nonhol_coneqs"
    if isinstance(mechanics, KanesMethod):
        return "configuration_constraints", "velocity_constraints"
    return "holonomic_constraints", "nonholonomic_constraints" if isinstance(
        mechanics, System
    ) else "velocity_constraints"


def _list_velocity_rows(mechanics: Mechanics) -> Iterable[sm.Expr]:
    """Return the rows that the user gave as constraints on velocities."""
    if isinstance(mechanics, System):
        return tuple(mechanics.nonholonomic_constraints)
    rows = mechanics_source.velocity_constraints(mechanics)
    if isinstance(mechanics, KanesMethod):
        return rows
    return rows[len(mechanics_source.holonomic_constraints(mechanics)) :]  # their rates come first


def _find_level(row: sm.Expr, mechanics: Mechanics) -> tuple[int, set[str]] | None:
    """Return the level of a row's highest quantities (0 positions, 1 velocities, …), and their names.

    None where it contains nothing that moves.
    """
    speeds = mechanics_source.speeds(mechanics)
    levels = dict.fromkeys(mechanics_source.coordinates(mechanics), 0)
    levels |= dict.fromkeys((speed for speed in (*speeds.all, *speeds.auxiliary) if not speed.is_Derivative), 1)
    contents = collect_expression_symbols(row)
    found = [(levels[function], function) for function in contents.functions if function in levels]
    found += [
        (levels[function] + order, differentiate_by_time(function, order))
        for function, order in contents.derivatives
        if function in levels
    ]
    if not found:
        return None
    highest = max(level for level, _ in found)
    return highest, {format_symbol_as_word(symbol) for level, symbol in found if level == highest}
