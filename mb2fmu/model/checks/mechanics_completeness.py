"""Check that mechanics are complete and match the declarations: coordinates, speeds, equations, bodies.

Check that a speed which is q' itself is in the unit of q per second: right numbers would mean something else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import LagrangesMethod, Point, System

from mb2fmu.errors import Fault
from mb2fmu.model.checks.expression_symbols import collect_expression_symbols, differentiate_by_time
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import AuxiliaryState, ConstraintForce, Coordinate, Speed, format_symbol_as_word
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.parts_mechanics_source import Parts
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics
from mb2fmu.units import BASE_UNITS, derive_rate_unit, format_base_units, parse_unit

_ANGLE_INDEX = BASE_UNITS.index("rad")


def find_speed_unit_faults(model: Model) -> Iterator[Fault]:
    """Yield speeds that a kinematic equation (or their symbol) says to be q', in another unit than q per second.

    Radians count as pure numbers here, and where q or u is in 1, as what is not declared, nothing is compared. Where a
    number stands between q' and u, it may convert: then only the kind of quantity is compared.
    """
    if isinstance(model.mechanics, RecordBasedMechanics):  # its units are those of its joints
        return
    coordinates = set(mechanics_source.coordinates(model.mechanics))
    places = {
        item.symbol: item for item in model.declared if isinstance(item, Coordinate) and item.symbol in coordinates
    }
    speeds = {item.symbol: item for item in model.declared if isinstance(item, Speed)}
    for q, place in places.items():
        if (speed := speeds.get(differentiate_by_time(q))) is not None:
            yield from _compare_rate_units(place, speed, factor=1)
    rates = {differentiate_by_time(q): place for q, place in places.items()}
    for row in mechanics_source.kinematic_equations(model.mechanics):
        terms = dict(term.as_coeff_Mul()[::-1] for term in sm.Add.make_args(sm.sympify(row)))
        rate, u = (next((t for t in terms if t in known), None) for known in (rates, speeds))
        if len(terms) == 2 and rate is not None and u is not None and rate != u:
            yield from _compare_rate_units(rates[rate], speeds[u], factor=-terms[u] / terms[rate])


def _compare_rate_units(place: Coordinate, speed: Speed, *, factor: sm.Expr | int) -> Iterator[Fault]:
    """Yield a fault if q' = factor · u cannot be in the units of both."""
    if "1" in {place.unit, speed.unit}:
        return
    try:
        wanted, given = parse_unit(derive_rate_unit(place.unit)), parse_unit(speed.unit)
    except ValueError:  # reported by the checks of single units
        return
    kinds = [tuple(p for i, p in enumerate(unit.exponents) if i != _ANGLE_INDEX) for unit in (wanted, given)]
    if kinds[0] == kinds[1] and (abs(factor) != 1 or math.isclose(wanted.factor, given.factor, rel_tol=1e-12)):
        return
    what = f"{speed.name} is {place.name}' by the kinematic equations, and is in {given.name}"
    what += f", though {place.name} is in {place.unit}"
    remedy = f"give {speed.name} the unit {wanted.name}, or {place.name} another one"
    if wanted.factor != 1.0 == given.factor:  # the numbers of the place are not those of the equations
        start = f'"{place.start:g} {place.unit}"'
        remedy = f"declare {place.name} in {format_base_units(place.unit)}; its number may have its own unit: {start}"
    yield Fault(what, speed.where, remedy)


def find_mechanics_faults(model: Model) -> list[Fault]:
    """Return faults of parts that are missing from the mechanics, or differ between mechanics and declarations."""
    speeds = mechanics_source.speeds(model.mechanics)
    coordinates = mechanics_source.coordinates(model.mechanics)
    return [
        *_start_faults(model, Coordinate, "coordinate", coordinates, '0.0, "rad"'),
        *_start_faults(model, Speed, "speed", speeds.all, '0.0, "rad/s"'),
        *_duplicate_faults(model, coordinates, speeds.all),
        *_kinematic_faults(model, coordinates, speeds.all),
        *find_speed_unit_faults(model),
        *_constraint_faults(model, speeds),
        *_joint_faults(model, coordinates, speeds.all),
        *_body_faults(model),
        *_origin_faults(model),
        *_constraint_force_faults(model, speeds),
    ]


def _origin_faults(model: Model) -> Iterator[Fault]:
    """Yield a fault if the origin is ambiguous: two points qualify, none is named, events change their distance."""
    if isinstance(model.mechanics, (System, Parts, RecordBasedMechanics)):
        return
    origin, frame = mechanics_source.origin(model.mechanics), mechanics_source.inertial_frame(model.mechanics)
    if not isinstance(origin, Point):
        return
    states = {item.symbol for item in model.declared if isinstance(item, AuxiliaryState)}
    jumping = {symbol for event in model.declared_events for symbol in event.settings} & states
    for point in mechanics_source.list_points_joined_by_positions(origin):
        if point is origin or point._vel_dict.get(frame) != 0:  # noqa: SLF001  (as SymPy was given it; asking writes)
            continue
        names = sorted(
            str(s) for measures, _ in point.pos_from(origin).args for s in measures.atoms(AppliedUndef) & jumping
        )
        if names:
            what = f"{origin.name} and {point.name} have velocity zero, and events change their distance by {names[0]}"
            what += f": which is the origin is not said; the potential energy would count from {origin.name}"
            yield Fault(what, model.where, f"say it: Parts(…, origin={point.name}, …), or a System of sympy")


def _start_faults(
    model: Model, kind: type[Coordinate | Speed], word: str, of_mechanics: Sequence[sm.Expr], example: str
) -> Iterator[Fault]:
    """Yield faults of start values: every coordinate and speed needs one, nothing else may have one."""
    declared = {item.symbol: item for item in model.declared if isinstance(item, kind)}
    known = set(of_mechanics)
    units = {item.symbol: item.unit for item in model.declared if isinstance(item, Coordinate)}
    for symbol in of_mechanics:
        if symbol not in declared:
            unit = units.get(symbol.expr) if isinstance(symbol, sm.Derivative) else None
            value = f'0.0, "{unit}/s"' if unit else example
            line = f"model.{word}({format_symbol_for_model_file(symbol)}, {value})"
            yield Fault(f"the {word} {format_symbol_as_word(symbol)} has no start value", model.where, f"add  {line}")
    names = ", ".join(map(format_symbol_as_word, of_mechanics)) or "none"
    for symbol, item in declared.items():
        if symbol not in known:
            what = f"{symbol} is declared as a {word}, but the mechanics have it not among theirs ({names})"
            yield Fault(what, item.where, _suggest_symbol(model, word, symbol))


def _suggest_symbol(model: Model, word: str, symbol: sm.Expr) -> str:
    """Return the symbol that was probably meant by a declaration that matches nothing."""
    other = "speed" if word == "coordinate" else "coordinate"
    speeds = mechanics_source.speeds(model.mechanics)
    if symbol in (speeds.all if word == "coordinate" else mechanics_source.coordinates(model.mechanics)):
        return f"it is a {other}: model.{other}({format_symbol_for_model_file(symbol)}, …)"
    if symbol in speeds.auxiliary:
        return "it is an auxiliary speed, which is always zero: leave the declaration out"
    if isinstance(model.mechanics, LagrangesMethod) and word == "speed":
        return "the speeds of a LagrangesMethod are the q' themselves: model.speed(q.diff(), …)"
    return f"remove the line, or add {format_symbol_as_word(symbol)} to the {word}s of the mechanics"


def _duplicate_faults(model: Model, coordinates: Sequence[sm.Expr], speeds: Sequence[sm.Expr]) -> Iterator[Fault]:
    """Yield parts that stand twice in ``Parts``; SymPy checks its own objects."""
    everything = [*coordinates, *speeds]
    for symbol, count in Counter(everything).items():
        if count > 1:
            what = f"{symbol} stands twice among the coordinates and speeds of the mechanics"
            yield Fault(what, model.where, "a quantity is one coordinate or one speed")


def _kinematic_faults(model: Model, coordinates: Sequence[sm.Expr], speeds: Sequence[sm.Expr]) -> Iterator[Fault]:
    """Yield a fault for each q' that no kinematic equation determines, or for a wrong number of equations."""
    if isinstance(model.mechanics, RecordBasedMechanics):  # its kinematics are those of its joints
        return
    equations = mechanics_source.kinematic_equations(model.mechanics)
    moving = set(speeds)
    wanted = [q for q in coordinates if differentiate_by_time(q) not in moving]
    appearing = {
        function for row in equations for function, order in collect_expression_symbols(row).derivatives if order == 1
    }
    undetermined = [q for q in wanted if q not in appearing]
    for q in undetermined:
        word = format_symbol_as_word(q)
        what = f"no kinematic equation determines {word}'"
        remedy = f"add one, such as  {word}.diff() - u  for a speed u (kd_eqs, kdes, kinematic_equations)"
        yield Fault(what, model.where, remedy)
    if len(equations) != len(wanted) and not undetermined:
        what = f"there are {len(equations)} kinematic equations for {len(wanted)} coordinates"
        yield Fault(what, model.where, "give one equation per coordinate")
    for number, row in enumerate(equations, 1):
        inside = collect_expression_symbols(row)
        second = sorted(str(f) for f, order in inside.derivatives if order > 1 or f in moving)
        if second:
            what = f"kinematic equation {number} contains accelerations: of {', '.join(second)}"
            yield Fault(what, model.where, "it relates q' and u only")


def _constraint_faults(model: Model, speeds: mechanics_source.GeneralizedSpeeds) -> Iterator[Fault]:
    """Yield a fault if the number of dependent speeds does not fit the velocity constraints."""
    mechanics = model.mechanics
    velocity, holonomic = (
        len(mechanics_source.velocity_constraints(mechanics)),
        len(mechanics_source.holonomic_constraints(mechanics)),
    )
    if isinstance(mechanics, LagrangesMethod):
        if velocity >= len(mechanics_source.coordinates(mechanics)):
            coordinates = len(mechanics_source.coordinates(mechanics))
            what = f"the LagrangesMethod has {velocity} constraints and {coordinates} coordinates"
            yield Fault(what, model.where, "as many constraints as coordinates leave nothing to move")
        return
    dependent = len(mechanics_source.dependent_coordinates(mechanics))
    named = len(speeds.dependent)
    if named > velocity or (velocity and not named and not holonomic):
        what = f"there are {velocity} velocity constraints (holonomic ones included) and {named} dependent speeds"
        yield Fault(what, model.where, "name one dependent speed (u_dep, u_dependent) per constraint")
    if dependent > holonomic:
        what = f"there are {holonomic} holonomic constraints and {dependent} dependent coordinates"
        yield Fault(what, model.where, "name no more dependent coordinates (q_dep, q_dependent) than constraints")


def _joint_faults(model: Model, coordinates: Sequence[sm.Expr], speeds: Sequence[sm.Expr]) -> Iterator[Fault]:
    """Yield coordinates and speeds of joints that the system does not have."""
    for joint in mechanics_source.joints(model.mechanics):
        for word, own, of_system in (("coordinate", joint.coordinates, coordinates), ("speed", joint.speeds, speeds)):
            for symbol in own:
                if symbol not in of_system:
                    what = f"the {word} {format_symbol_as_word(symbol)} of joint {joint.name} is not in the system"
                    yield Fault(
                        what, model.where, f"add it: system.add_{word}s({format_symbol_for_model_file(symbol)})"
                    )


def _body_faults(model: Model) -> Iterator[Fault]:
    """Yield missing bodies, and masses or inertias that change with time."""
    mechanics = model.mechanics
    if isinstance(mechanics, RecordBasedMechanics):  # whoever recorded it has judged them
        return
    if isinstance(mechanics, LagrangesMethod):
        if mechanics_source.loads(mechanics) and mechanics_source.inertial_frame(mechanics) is None:
            what = "the LagrangesMethod has loads, but no inertial frame"
            yield Fault(what, model.where, "give it: LagrangesMethod(…, forcelist=…, frame=N)")
        return
    if not mechanics_source.bodies(mechanics):
        remedy = "add the bodies; a KanesMethod has them after kanes_equations(bodies, loads), or by bodies=… when made"
        yield Fault("the mechanics have no body that can move", model.where, remedy)
    for body in mechanics_source.bodies(mechanics):
        for what, quantity in (("mass", body.mass), ("inertia", getattr(body, "inertia", (None,))[0])):
            if quantity is None:
                continue
            terms = [quantity] if what == "mass" else [term[0] for term in getattr(quantity, "args", ())]
            varying = {str(f) for term in terms for f in collect_expression_symbols(term).functions_of_time}
            if varying or any(collect_expression_symbols(term).time for term in terms):
                text = f"the {what} of body {body.name} changes with {', '.join(sorted(varying)) or 'time'}"
                yield Fault(text, model.where, "mass and inertia are made of parameters only")


def _constraint_force_faults(model: Model, speeds: mechanics_source.GeneralizedSpeeds) -> Iterator[Fault]:
    """Yield constraint forces that nothing determines: each needs an auxiliary speed."""
    forces = [item for item in model.declared if isinstance(item, ConstraintForce)]
    if len(forces) > len(speeds.auxiliary):
        what = f"there are {len(forces)} constraint forces and {len(speeds.auxiliary)} auxiliary speeds"
        remedy = "give the point (or frame) of each force an auxiliary speed, and name it (u_auxiliary, u_aux)"
        yield Fault(what, forces[0].where, remedy)


def format_symbol_for_model_file(symbol: sm.Expr) -> str:
    """Return a symbol as one writes it in a model file: ``q``, ``q.diff()``."""
    if isinstance(symbol, sm.Derivative):
        count = f"t, {symbol.derivative_count}" if symbol.derivative_count > 1 else ""
        return f"{format_symbol_as_word(symbol.expr)}.diff({count})"
    return format_symbol_as_word(symbol)
