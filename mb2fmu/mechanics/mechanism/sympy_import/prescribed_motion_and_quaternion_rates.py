"""Recast a model for the import: prescribed motion becomes coordinates, rates of quaternions become ω.

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
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import find_quaternion_coordinates
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_tree import collect_direction_cosines
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.checks.expression_symbols import collect_expression_symbols, differentiate_by_time
from mb2fmu.model.checks.mechanics_expressions import collect_mechanics_expressions
from mb2fmu.model.model import OutputRequest
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Output
from mb2fmu.model.sources import mechanics_source

_QUANTITY_FIELDS = ("name", "unit", "display_unit", "minimum", "maximum", "nominal", "description", "where")


@dataclass(frozen=True, slots=True)
class ModelRecastForImport:
    """A definition and its kinematics, recast for the import.

    Attributes:
        definition: Definition with the recast coordinates and speeds; the mechanics are unchanged.
        speeds: Remaining generalized speeds.
        kinematic_equations: Expressions that vanish, linear in q' and u, functions of time.
        replaced_speeds: The user's speed → q' that replaces it.
    """

    definition: CheckedModel
    speeds: mechanics_source.GeneralizedSpeeds
    kinematic_equations: tuple[sm.Expr, ...]
    replaced_speeds: dict[sm.Expr, sm.Expr]


def recast_prescribed_motion_and_quaternion_rates(definition: CheckedModel) -> ModelRecastForImport:
    """Recast a model for the import.

    Raises:
        MechanismError: If a state moves the mechanism in a way that leaves velocities not linear in the speeds, or
            accelerations unknown.
    """
    mechanics = definition.mechanics
    speeds, equations = mechanics_source.speeds(mechanics), list(mechanics_source.kinematic_equations(mechanics))
    definition, added_equations = _with_prescribed_coordinates(definition)
    replaced_speeds = _quaternion_rates(definition, equations)
    for speed, rate in replaced_speeds.items():
        equations = [sm.sympify(equation).xreplace({speed: rate}) for equation in equations]
    equations = [equation for equation in equations if sm.expand(equation) != 0]
    equations += [_unit_length_rate(definition, rate) for rate in replaced_speeds.values()]
    speeds = replace(speeds, dependent=tuple(u for u in speeds.dependent if u not in replaced_speeds))
    return ModelRecastForImport(
        _with_rates_as_outputs(definition, replaced_speeds), speeds, (*equations, *added_equations), replaced_speeds
    )


# ---------------------------------------------------------------------- states that move the mechanism


def _with_prescribed_coordinates(definition: CheckedModel) -> tuple[CheckedModel, list[sm.Expr]]:
    """Return the definition with states that move the mechanism as coordinates, and their kinematic equations."""
    states = {state.symbol: state for state in definition.auxiliary_states}
    if not states:
        return definition, []
    needed_rates = _needed_rates(definition, states)
    if isinstance(definition.mechanics, LagrangesMethod):
        _check_lagrangian_states(definition.mechanics, states, needed_rates)
        return definition, []
    if not needed_rates:
        return definition, []
    faults = [
        fault for symbol in needed_rates for fault in _rate_faults(states[symbol], needed_rates[symbol], definition)
    ]
    if faults:
        raise MechanismError("a state that moves the mechanism cannot be used:", faults)
    moving_states = [state for state in definition.auxiliary_states if state.symbol in needed_rates]
    coordinates = tuple(
        Coordinate(symbol=s.symbol, start=s.start, **{name: getattr(s, name) for name in _QUANTITY_FIELDS})
        for s in moving_states
    )
    recast_definition = replace(
        definition,
        coordinates=(*definition.coordinates, *coordinates),
        auxiliary_states=tuple(s for s in definition.auxiliary_states if s.symbol not in needed_rates),
    )
    return recast_definition, [differentiate_by_time(s.symbol) - s.derivative for s in moving_states]


def _check_lagrangian_states(
    method: LagrangesMethod, states: dict[sm.Expr, AuxiliaryState], moving: dict[sm.Expr, int]
) -> None:
    """Refuse states that move bodies, stand in momenta ∂L/∂q', or have rates in L: SymPy cannot derive these."""
    L = sm.sympify(method._L[0])  # noqa: SLF001  there is no public name
    momenta = [L.diff(rate) for rate in method._qdots]  # noqa: SLF001  likewise
    unsupported_states = {
        s for momentum in momenta for s in collect_expression_symbols(momentum).functions_of_time if s in states
    } | moving.keys()
    unsupported_states |= {function for function, _ in collect_expression_symbols(L).derivatives if function in states}
    if unsupported_states:
        names = ", ".join(sorted(states[s].name for s in unsupported_states))
        problem = f"{names} moves the mechanism of a LagrangesMethod, which differentiates coordinates only"
        remedy = "hand over a KanesMethod, System or Parts, or write it as an expression of time"
        raise MechanismError("a state that moves the mechanism cannot be used:", [Fault(problem, remedy=remedy)])


def _needed_rates(definition: CheckedModel, states: dict[sm.Expr, AuxiliaryState]) -> dict[sm.Expr, int]:
    """Return state that prescribes motion → number of its rates in accelerations: 2 for positions, 1 for velocities."""
    needed_orders: dict[sm.Expr, int] = {}
    requests = [item for item in definition.outputs if isinstance(item, OutputRequest)]
    orders = {"position": 2, "velocity": 1}
    uses = collect_mechanics_expressions(definition.mechanics, requests)
    pending_expressions = [(use.expression, orders[use.role]) for use in uses if use.role in orders]
    while pending_expressions:
        expression, order = pending_expressions.pop()
        for symbol in sorted(collect_expression_symbols(expression).functions_of_time & states.keys(), key=str):
            if needed_orders.get(symbol, 0) < order:
                needed_orders[symbol] = order
                pending_expressions.append((states[symbol].derivative, max(order - 1, 1)))
    return {symbol: needed_orders[symbol] for symbol in states if symbol in needed_orders}


def _rate_faults(state: AuxiliaryState, order: int, definition: CheckedModel) -> list[Fault]:
    """Return the reasons why a state's rate cannot be part of the kinematics."""
    rate, faults = state.derivative, []
    moving = [
        *(s.symbol for s in definition.speeds),
        *(differentiate_by_time(c.symbol) for c in definition.coordinates),
    ]
    substitutes = {symbol: sm.Dummy() for symbol in moving}
    translated = rate.xreplace(substitutes)
    if any(translated.diff(s).free_symbols & set(substitutes.values()) for s in substitutes.values()):
        problem = f"{state.name} moves the mechanism, and its rate is not linear in the speeds"
        faults.append(Fault(problem, state.where, "velocities must be linear in the speeds: write its rate so"))
    input_symbols = {i.symbol for i in definition.inputs}
    inputs_without_rate = [
        i
        for i in sorted(collect_expression_symbols(rate).functions_of_time & input_symbols, key=str)
        if differentiate_by_time(i) not in input_symbols
    ]
    if order > 1 and inputs_without_rate:
        names = ", ".join(map(str, inputs_without_rate))
        problem = f"{state.name} stands in positions, and its rate contains {names}: accelerations need its derivative"
        faults.append(Fault(problem, state.where, f"give the derivative as an input too: {names}.diff()"))
    return faults


# ---------------------------------------------------------------------- quaternions


def _quaternion_rates(definition: CheckedModel, equations: Sequence[sm.Expr]) -> dict[sm.Expr, sm.Expr]:
    """Return dependent speed that is the rate of one coordinate of a unit quaternion → that rate."""
    mechanics = definition.mechanics
    groups = [
        group_coordinates
        for phi in mechanics_source.holonomic_constraints(mechanics)
        if (group_coordinates := _unit_length_coordinates(phi, definition))
    ]
    if not groups:
        return {}
    frame = mechanics_source.inertial_frame(mechanics)
    q = [coordinate.symbol for coordinate in definition.coordinates]
    substitutes = dict(zip(q, sm.symbols(f"e:{len(q)}", cls=sm.Dummy), strict=True))
    rotations = [dcm.xreplace(substitutes) for dcm in collect_direction_cosines(frame)] if frame is not None else []
    quaternion_groups = {
        frozenset(group) for group in find_quaternion_coordinates(rotations, list(substitutes.values()))
    }
    rates_of_speeds: dict[sm.Expr, sm.Expr] = {}
    for group_coordinates in groups:
        if frozenset(q.index(c) for c in group_coordinates) not in quaternion_groups:
            continue
        rates = {differentiate_by_time(c) for c in group_coordinates}
        pairs = {
            u: rate
            for u in mechanics_source.speeds(mechanics).all
            for rate in rates
            if _contains_equation(equations, u, rate)
        }
        if len(pairs) == 1 and pairs.keys() <= set(mechanics_source.speeds(mechanics).dependent):
            rates_of_speeds |= pairs
    return rates_of_speeds


def _unit_length_coordinates(phi: sm.Expr, definition: CheckedModel) -> list[sm.Expr]:
    """Return the four coordinates e of a row c (e·e − 1); empty for any other row."""
    coordinates = [c.symbol for c in definition.coordinates if sm.sympify(phi).has(c.symbol)]
    if len(coordinates) != 4:
        return []
    substitutes = {c: sm.Dummy() for c in coordinates}
    translated, symbols = sm.sympify(phi).xreplace(substitutes), list(substitutes.values())
    if translated.free_symbols != set(symbols) or not translated.is_polynomial(*symbols):
        return []
    factor = translated.coeff(symbols[0], 2)
    difference = translated - factor * (sm.Add(*(symbol**2 for symbol in symbols)) - 1)
    return coordinates if factor.is_number and factor != 0 and sm.expand(difference) == 0 else []


def _contains_equation(equations: Sequence[sm.Expr], speed: sm.Expr, rate: sm.Expr) -> bool:
    """Return whether one of the equations is c (speed − rate) = 0."""
    return any(
        sm.sympify(equation).has(speed, rate) and sm.expand(sm.sympify(equation).xreplace({speed: rate})) == 0
        for equation in equations
    )


def _unit_length_rate(definition: CheckedModel, rate: sm.Expr) -> sm.Expr:
    """Return e·e' of the quaternion that has the coordinate with this rate."""
    for phi in mechanics_source.holonomic_constraints(definition.mechanics):
        coordinates = _unit_length_coordinates(phi, definition)
        if any(differentiate_by_time(c) == rate for c in coordinates):
            return sm.Add(*(c * differentiate_by_time(c) for c in coordinates))
    raise AssertionError(rate)


def _with_rates_as_outputs(definition: CheckedModel, replaced_speeds: dict[sm.Expr, sm.Expr]) -> CheckedModel:
    """Return the definition with speeds that were replaced as outputs of the same names."""
    removed_speeds = [speed for speed in definition.speeds if speed.symbol in replaced_speeds]
    if not removed_speeds:
        return definition
    outputs = tuple(
        Output(
            expression=replaced_speeds[speed.symbol],
            **{name: getattr(speed, name) for name in _QUANTITY_FIELDS if name not in {"minimum", "maximum"}},
        )
        for speed in removed_speeds
    )
    speeds = tuple(speed for speed in definition.speeds if speed.symbol not in replaced_speeds)
    return replace(definition, speeds=speeds, outputs=(*definition.outputs, *outputs))
