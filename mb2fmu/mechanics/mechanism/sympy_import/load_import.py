"""Read loads and actuators: forces on points, torques on frames, forces along pathways.

A pathway of straight segments is kept by its attachments: SymPy's expressions of its length and rate expand (9,400
operations at six joints), ours are two symbols computed from the kinematics. Wrapping pathways keep SymPy's loads.

Gravity is a load like any other: a force on each mass centre. ``gravity_detection`` finds it again among the loads
for recursions, which take it as an acceleration of the ground; the other formulations sum it up with the other loads
(``applied_loads``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import (
    DuffingSpring,
    ForceActuator,
    LinearDamper,
    LinearPathway,
    LinearSpring,
    ObstacleSetPathway,
    Point,
    ReferenceFrame,
    TorqueActuator,
)
from sympy.physics.mechanics.body_base import BodyBase
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    Load,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap


class LoadImportContext(Protocol):
    """State of the reading that loads need."""

    plain: DynamicsymbolMap
    frame_of: dict[Any, int]
    point_of: dict[Any, int]

    def read_vector(self, vector: Vector) -> VectorTerms:
        """Return the vector's components in the frames it is written in."""


def _is_straight_pathway(pathway: Any) -> bool:
    """True if the pathway is a chain of straight segments."""
    return isinstance(pathway, (LinearPathway, ObstacleSetPathway))


def list_curved_pathway_loads(actuator: Any) -> Sequence[Any]:
    """Return SymPy's loads of an actuator whose pathway is no chain of straight segments; else nothing."""
    pathway = getattr(actuator, "pathway", None)
    return () if pathway is None or _is_straight_pathway(pathway) else tuple(actuator.to_loads())


def read_sympy_loads(
    loads: Sequence[Any],
    actuators: Sequence[Any],
    reader: LoadImportContext,
    z_dot: Sequence[sm.Expr],
    taken_names: set[str],
    auxiliary_speeds: Sequence[sm.Expr] = (),
) -> tuple[tuple[Load, ...], Mapping[int, int], tuple[sm.Expr, ...]]:
    """Read all loads.

    Args:
        loads: ``Force``, ``Torque`` or (point or frame, vector) pairs.
        actuators: SymPy actuators.
        reader: Numbers of frames and points, translation of expressions.
        z_dot: Derivatives of auxiliary states; pathway lengths in them become symbols.
        taken_names: Names in use; grows.
        auxiliary_speeds: They are zero in the motion: a drag on a point that one of them moves does not feel it.

    Returns:
        The loads; id of the user's object → number of its load; ``z_dot`` with pathway symbols.

    Raises:
        MechanismError: If a load acts on something that is not part of the mechanism.
    """
    records: list[Load] = []
    numbers: dict[int, int] = {}
    faults: list[Fault] = []
    rates = tuple(z_dot)
    zero = dict.fromkeys(auxiliary_speeds, sm.S.Zero)
    for load in loads:
        numbers[id(load)] = len(records)
        point_or_frame, vector = load[0], load[1].xreplace(zero)
        record = _read_load(point_or_frame, vector, f"load[{len(records) + 1}]", reader, faults)
        if record is not None:
            records.append(record)
    for i, actuator in enumerate(actuators):
        numbers[id(actuator)] = len(records)
        name = str(getattr(actuator, "name", "")) or f"{type(actuator).__name__}[{i + 1}]"
        if isinstance(actuator, TorqueActuator):
            records.append(_read_torque_actuator(actuator, name, reader))
        elif isinstance(actuator, ForceActuator) and _is_straight_pathway(actuator.pathway):
            record, rates = _read_pathway(actuator, name, reader, rates, taken_names)
            records.append(record)
        else:
            for load in actuator.to_loads():
                record = _read_load(load[0], load[1].xreplace(zero), name, reader, faults)
                if record is not None:
                    records.append(record)
    if faults:
        raise MechanismError("the loads cannot be read:", faults)
    return tuple(records), numbers, rates


def _read_load(
    point_or_frame: Any, vector: Vector, name: str, reader: LoadImportContext, faults: list[Fault]
) -> Load | None:
    """Read a force at a point or a torque on a frame; add a fault and return None where it is neither."""
    if isinstance(point_or_frame, BodyBase):
        point_or_frame = point_or_frame.masscenter
    if isinstance(point_or_frame, Point):
        if point_or_frame in reader.point_of:
            return ForceLoad(
                f"{name} at {point_or_frame.name}", reader.point_of[point_or_frame], reader.read_vector(vector)
            )
        faults.append(
            Fault(f"a force acts on point {point_or_frame.name}, which is not connected to the mechanism", name)
        )
    elif isinstance(point_or_frame, ReferenceFrame):
        if point_or_frame in reader.frame_of:
            return TorqueLoad(
                f"{name} on {point_or_frame.name}", reader.frame_of[point_or_frame], reader.read_vector(vector)
            )
        faults.append(
            Fault(f"a torque acts on frame {point_or_frame.name}, which is not connected to the mechanism", name)
        )
    else:
        faults.append(Fault(f"a load acts on {point_or_frame!r}, which is neither point nor frame", name))
    return None


def _read_torque_actuator(actuator: TorqueActuator, name: str, reader: LoadImportContext) -> TorqueActuatorLoad:
    """Read a torque actuator; reaction −1 where it acts against nothing."""
    reaction = actuator.reaction_frame
    return TorqueActuatorLoad(
        name,
        reader.frame_of[actuator.target_frame],
        -1 if reaction is None else reader.frame_of[reaction],
        reader.plain(actuator.torque),
        reader.read_vector(actuator.axis),
    )


def _read_pathway(
    actuator: ForceActuator, name: str, reader: LoadImportContext, z_dot: tuple[sm.Expr, ...], taken_names: set[str]
) -> tuple[PathwayLoad, tuple[sm.Expr, ...]]:
    """Read an actuator on a pathway: its force in length and rate, and its potential energy in J if it is known."""
    pathway = actuator.pathway
    length, rate = (_make_symbol(f"{kind}_{name}", taken_names) for kind in ("length", "rate"))
    potential = None
    if type(actuator) is LinearSpring:
        stiffness, rest_length = reader.plain(actuator.stiffness), reader.plain(actuator.equilibrium_length)
        force = -stiffness * (length - rest_length)
        potential = stiffness * (length - rest_length) ** 2 / 2
    elif type(actuator) is LinearDamper:
        force = -reader.plain(actuator.damping) * rate
    elif type(actuator) is DuffingSpring:
        linear_stiffness, cubic_stiffness = (
            reader.plain(actuator.linear_stiffness),
            reader.plain(actuator.nonlinear_stiffness),
        )
        extension = length - reader.plain(actuator.equilibrium_length)
        force = -(linear_stiffness * extension + cubic_stiffness * extension**3)
        potential = linear_stiffness * extension**2 / 2 + cubic_stiffness * extension**4 / 4
    else:
        substitutions = _pathway_substitutions(actuator, reader, length, rate, z_dot)
        force = _substitute_pathway(reader.plain(actuator.force), substitutions)
        z_dot = tuple(_substitute_pathway(expression, substitutions) for expression in z_dot)
    points = tuple(reader.point_of[point] for point in pathway.attachments)
    return PathwayLoad(name, points, force, length, rate, potential), z_dot


def _pathway_substitutions(
    actuator: ForceActuator, reader: LoadImportContext, length: sm.Symbol, rate: sm.Symbol, z_dot: Sequence[sm.Expr]
) -> dict[sm.Expr, sm.Expr]:
    """Return SymPy's expanded length and rate → their symbols, for forces and activations that contain them.

    Both contain what the length depends on. SymPy takes long for the rate, so it is asked only where that occurs.
    """
    pathway = actuator.pathway
    moving = {reader.plain(coordinate) for coordinate in pathway.length.atoms(AppliedUndef)}
    if not any(moving & expression.free_symbols for expression in (reader.plain(actuator.force), *z_dot)):
        return {}
    pairs = ((pathway.extension_velocity, rate), (pathway.length, length))
    return {translated: symbol for user, symbol in pairs if (translated := reader.plain(user)).args}


def _substitute_pathway(expression: sm.Expr, substitutions: Mapping[sm.Expr, sm.Expr]) -> sm.Expr:
    """Return an expression with stand-ins for a pathway's length, its powers included (SymPy has √(length²))."""
    squares = {node.base: symbol for node, symbol in substitutions.items() if node.is_Pow and node.exp == sm.S.Half}
    replaced = expression.xreplace(substitutions)
    if not any(replaced.has(square) for square in squares):
        return replaced
    return replaced.replace(
        lambda e: e.is_Pow and e.base in squares and (2 * e.exp).is_Integer,
        lambda e: squares[e.base] ** (2 * e.exp),
    )


def _make_symbol(name: str, taken_names: set[str]) -> sm.Symbol:
    """Return a new symbol for an actuator, made an identifier and different from all taken names."""
    name = re.sub(r"\W+", "_", name).strip("_")  # an identifier, whatever the actuator is called
    while name in taken_names:
        name += "_"
    taken_names.add(name)
    return sm.Symbol(name)
