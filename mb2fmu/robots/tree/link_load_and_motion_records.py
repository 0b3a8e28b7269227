"""Forces and torques on links, and what expressions name of the links' motion, as records of the mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, KinematicVectorSymbols, Load, TorqueLoad
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap, plain_symbols
from mb2fmu.model.checks.expression_symbols import differentiate_by_time
from mb2fmu.model.sources.record_based_mechanics import FrameReference, NamedFramePoint
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics


def read_link_loads(
    robot: RobotMechanics, number_of: Callable[[object], int], plain: DynamicsymbolMap, body_of: Mapping[int, int]
) -> list[Load]:
    """Return the forces and torques that were added to links.

    Args:
        robot: Has them.
        number_of: A point or frame → its number, made when it is requested first.
        plain: Translates the user's symbols.
        body_of: Part → number of its body.
    """
    found: list[Load] = []
    for k, load in enumerate(robot.loads, 1):
        x, y, z = map(plain, load.components)
        body = body_of.get(robot.tree.location_of_link[load.frame][0], -1)
        name, terms = f"{load.load_kind} {k} on {load.frame}", ((number_of(FrameReference(load.axes)), (x, y, z)),)
        kind = ForceLoad if isinstance(load.at, NamedFramePoint) else TorqueLoad
        found.append(kind(name, number_of(load.at), terms, body))
    return found


def make_motion_vector_symbols(
    robot: RobotMechanics, number_of: Callable[[object], int], plain: DynamicsymbolMap
) -> tuple[KinematicVectorSymbols, ...]:
    """Number what expressions name of the motion, and give it symbols that ``plain`` translates to.

    Args:
        robot: Says what it is.
        number_of: As for :func:`read_link_loads`.
        plain: Grows.
    """
    found, taken = [], {symbol.name for symbol in plain.to_plain.values() if symbol.is_Symbol}
    for (what, at), components in robot.sensed.items():
        x, y, z = plain_symbols(components, taken)
        found.append(KinematicVectorSymbols(what, number_of(at), (x, y, z)))
        plain.to_plain.update(zip(components, (x, y, z), strict=True))
        plain.to_dynamic.update(zip((x, y, z), components, strict=True))
    for symbol, rate in robot.motion_symbols.items():
        if rate is not None:
            plain.to_plain[differentiate_by_time(symbol)] = plain.to_plain[rate]
    return tuple(found)
