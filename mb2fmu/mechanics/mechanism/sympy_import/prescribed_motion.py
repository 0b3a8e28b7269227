"""Recast a model for reading: prescribed motion becomes coordinates, rates of quaternions become ω.

- A state z with z' = f (``Model.state``) that stands in positions, direction cosines, velocities or constraints moves
  the mechanism: its rate takes part in velocities and accelerations. It is read as a coordinate, with z' − f = 0 as its
  kinematic equation; no speed belongs to it.
- SymPy's and opty's way to write a quaternion for a ``KanesMethod`` is q0' = u0 as a dependent speed, with e·e = 1 as
  configuration constraint. q' = K u is then divided by q0. With e·e' = 0 in place of u0 − q0' = 0 it is Euler's
  e' = E(e) ω / 2, which is regular everywhere; u0 is no speed any more, and is kept as an output of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sympy as sm
from sympy.physics.mechanics import LagrangesMethod

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import find_quaternions
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_tree import collect_direction_cosines
from mb2fmu.model.checks.expression_contents import collect_contents, differentiate_by_time
from mb2fmu.model.checks.mechanics_expressions import collect_mechanics_expressions
from mb2fmu.model.model import OutputRequest
from mb2fmu.model.model_definition import ModelDefinition
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Output
from mb2fmu.model.sources import mechanics_source

_QUANTITY_FIELDS = ("name", "unit", "display_unit", "minimum", "maximum", "nominal", "description", "where")


@dataclass(frozen=True, slots=True)
class RecastModel:
    """A definition and its kinematics, recast for reading.

    Attributes:
        definition: Coordinates and speeds as they are read; the mechanics are the user's still.
        speeds: Generalized speeds that are left.
        kinematic_equations: Expressions that vanish, linear in q' and u, functions of time.
        replaced_speeds: The user's speed → q' that stands for it.
    """

    definition: ModelDefinition
    speeds: mechanics_source.GeneralizedSpeeds
    kinematic_equations: tuple[sm.Expr, ...]
    replaced_speeds: dict[sm.Expr, sm.Expr]


def recast_prescribed_motion(definition: ModelDefinition) -> RecastModel:
    """Recast a model for reading.

    Raises:
        MechanismError: If a state moves the mechanism in a way that leaves velocities not linear in the speeds, or
            accelerations unknown.
    """
    mechanics = definition.mechanics
    speeds, equations = mechanics_source.speeds(mechanics), list(mechanics_source.kinematic_equations(mechanics))
    definition, more = _with_prescribed_coordinates(definition)
    instead = _quaternion_rates(definition, equations)
    for speed, rate in instead.items():
        equations = [sm.sympify(equation).xreplace({speed: rate}) for equation in equations]
    equations = [equation for equation in equations if sm.expand(equation) != 0]
    equations += [_unit_length_rate(definition, rate) for rate in instead.values()]
    speeds = replace(speeds, dependent=tuple(u for u in speeds.dependent if u not in instead))
    return RecastModel(_with_rates_as_outputs(definition, instead), speeds, (*equations, *more), instead)


# ---------------------------------------------------------------------- states that move the mechanism


def _with_prescribed_coordinates(definition: ModelDefinition) -> tuple[ModelDefinition, list[sm.Expr]]:
    """Return the definition with states that move the mechanism as coordinates, and their kinematic equations."""
    states = {state.symbol: state for state in definition.auxiliary_states}
    if not states:
        return definition, []
    needed = _needed_rates(definition, states)
    if isinstance(definition.mechanics, LagrangesMethod):
        _check_lagrangian_states(definition.mechanics, states, needed)
        return definition, []
    if not needed:
        return definition, []
    faults = [fault for symbol in needed for fault in _rate_faults(states[symbol], needed[symbol], definition)]
    if faults:
        raise MechanismError("a state that moves the mechanism cannot be used:", faults)
    moving = [state for state in definition.auxiliary_states if state.symbol in needed]
    coordinates = tuple(
        Coordinate(symbol=s.symbol, start=s.start, **{name: getattr(s, name) for name in _QUANTITY_FIELDS})
        for s in moving
    )
    recast_definition = replace(
        definition,
        coordinates=(*definition.coordinates, *coordinates),
        auxiliary_states=tuple(s for s in definition.auxiliary_states if s.symbol not in needed),
    )
    return recast_definition, [differentiate_by_time(s.symbol) - s.derivative for s in moving]


def _check_lagrangian_states(
    method: LagrangesMethod, states: dict[sm.Expr, AuxiliaryState], moving: dict[sm.Expr, int]
) -> None:
    """Refuse states that move bodies, stand in momenta ∂L/∂q', or have rates in L: SymPy cannot derive these."""
    L = sm.sympify(method._L[0])  # noqa: SLF001  there is no public name
    momenta = [L.diff(rate) for rate in method._qdots]  # noqa: SLF001  likewise
    wrong = {s for momentum in momenta for s in collect_contents(momentum).varying if s in states} | moving.keys()
    wrong |= {function for function, _ in collect_contents(L).derivatives if function in states}
    if wrong:
        names = ", ".join(sorted(states[s].name for s in wrong))
        what = f"{names} moves the mechanism of a LagrangesMethod, which differentiates coordinates only"
        remedy = "hand over a KanesMethod, System or Parts, or write it as an expression of time"
        raise MechanismError("a state that moves the mechanism cannot be used:", [Fault(what, remedy=remedy)])


def _needed_rates(definition: ModelDefinition, states: dict[sm.Expr, AuxiliaryState]) -> dict[sm.Expr, int]:
    """Return state that prescribes motion → number of its rates in accelerations: 2 for positions, 1 for velocities."""
    needed: dict[sm.Expr, int] = {}
    requests = [item for item in definition.outputs if isinstance(item, OutputRequest)]
    orders = {"position": 2, "velocity": 1}
    inside = collect_mechanics_expressions(definition.mechanics, requests)
    found = [(use.expression, orders[use.role]) for use in inside if use.role in orders]
    while found:
        expression, order = found.pop()
        for symbol in sorted(collect_contents(expression).varying & states.keys(), key=str):
            if needed.get(symbol, 0) < order:
                needed[symbol] = order
                found.append((states[symbol].derivative, max(order - 1, 1)))
    return {symbol: needed[symbol] for symbol in states if symbol in needed}


def _rate_faults(state: AuxiliaryState, order: int, definition: ModelDefinition) -> list[Fault]:
    """Return the reasons why a state's rate cannot be part of the kinematics."""
    rate, faults = state.derivative, []
    moving = [
        *(s.symbol for s in definition.speeds),
        *(differentiate_by_time(c.symbol) for c in definition.coordinates),
    ]
    stand_in = {symbol: sm.Dummy() for symbol in moving}
    plain = rate.xreplace(stand_in)
    if any(plain.diff(s).free_symbols & set(stand_in.values()) for s in stand_in.values()):
        what = f"{state.name} moves the mechanism, and its rate is not linear in the speeds"
        faults.append(Fault(what, state.where, "velocities must be linear in the speeds: write its rate so"))
    known = {i.symbol for i in definition.inputs}
    jumping = [
        i for i in sorted(collect_contents(rate).varying & known, key=str) if differentiate_by_time(i) not in known
    ]
    if order > 1 and jumping:
        names = ", ".join(map(str, jumping))
        what = f"{state.name} stands in positions, and its rate contains {names}: accelerations need its derivative"
        faults.append(Fault(what, state.where, f"give the derivative as an input too: {names}.diff()"))
    return faults


# ---------------------------------------------------------------------- quaternions


def _quaternion_rates(definition: ModelDefinition, equations: Sequence[sm.Expr]) -> dict[sm.Expr, sm.Expr]:
    """Return dependent speed that is the rate of one coordinate of a unit quaternion → that rate."""
    mechanics = definition.mechanics
    groups = [
        e
        for phi in mechanics_source.holonomic_constraints(mechanics)
        if (e := _unit_length_coordinates(phi, definition))
    ]
    if not groups:
        return {}
    frame = mechanics_source.inertial_frame(mechanics)
    q = [coordinate.symbol for coordinate in definition.coordinates]
    plain = dict(zip(q, sm.symbols(f"e:{len(q)}", cls=sm.Dummy), strict=True))
    rotations = [dcm.xreplace(plain) for dcm in collect_direction_cosines(frame)] if frame is not None else []
    known = {frozenset(group) for group in find_quaternions(rotations, list(plain.values()))}
    found: dict[sm.Expr, sm.Expr] = {}
    for e in groups:
        if frozenset(q.index(c) for c in e) not in known:
            continue
        rates = {differentiate_by_time(c) for c in e}
        pairs = {
            u: rate
            for u in mechanics_source.speeds(mechanics).all
            for rate in rates
            if _contains_equation(equations, u, rate)
        }
        if len(pairs) == 1 and pairs.keys() <= set(mechanics_source.speeds(mechanics).dependent):
            found |= pairs
    return found


def _unit_length_coordinates(phi: sm.Expr, definition: ModelDefinition) -> list[sm.Expr]:
    """Return the four coordinates e of a row c (e·e − 1); empty for any other row."""
    e = [c.symbol for c in definition.coordinates if sm.sympify(phi).has(c.symbol)]
    if len(e) != 4:
        return []
    stand_in = {c: sm.Dummy() for c in e}
    plain, symbols = sm.sympify(phi).xreplace(stand_in), list(stand_in.values())
    if plain.free_symbols != set(symbols) or not plain.is_polynomial(*symbols):
        return []
    factor = plain.coeff(symbols[0], 2)
    difference = plain - factor * (sm.Add(*(symbol**2 for symbol in symbols)) - 1)
    return e if factor.is_number and factor != 0 and sm.expand(difference) == 0 else []


def _contains_equation(equations: Sequence[sm.Expr], speed: sm.Expr, rate: sm.Expr) -> bool:
    """Return whether one of the equations is c (speed − rate) = 0."""
    return any(
        sm.sympify(equation).has(speed, rate) and sm.expand(sm.sympify(equation).xreplace({speed: rate})) == 0
        for equation in equations
    )


def _unit_length_rate(definition: ModelDefinition, rate: sm.Expr) -> sm.Expr:
    """Return e·e' of the quaternion that has the coordinate with this rate."""
    for phi in mechanics_source.holonomic_constraints(definition.mechanics):
        e = _unit_length_coordinates(phi, definition)
        if any(differentiate_by_time(c) == rate for c in e):
            return sm.Add(*(c * differentiate_by_time(c) for c in e))
    raise AssertionError(rate)


def _with_rates_as_outputs(definition: ModelDefinition, instead: dict[sm.Expr, sm.Expr]) -> ModelDefinition:
    """Return the definition with speeds that were replaced as outputs of the same names."""
    gone = [speed for speed in definition.speeds if speed.symbol in instead]
    if not gone:
        return definition
    outputs = tuple(
        Output(
            expression=instead[speed.symbol],
            **{name: getattr(speed, name) for name in _QUANTITY_FIELDS if name not in {"minimum", "maximum"}},
        )
        for speed in gone
    )
    speeds = tuple(speed for speed in definition.speeds if speed.symbol not in instead)
    return replace(definition, speeds=speeds, outputs=(*definition.outputs, *outputs))
