"""Outputs: the user's expressions in plain symbols, and requested kinematic, load and energy quantities."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import DIAGNOSTIC_SYMBOLS, OutputExpression
from mb2fmu.mechanics.formulations.energies.energy_and_power import kinetic_energy, load_potential, potential_energy
from mb2fmu.mechanics.formulations.generalized_forces import express_in_inertial_frame, load_magnitude, load_power
from mb2fmu.mechanics.formulations.outputs.joint_space_quantities import JOINT_SPACE_KINDS, JointSpaceQuantities
from mb2fmu.mechanics.formulations.outputs.multi_body_outputs import MULTI_BODY_KINDS, form_vector_output
from mb2fmu.mechanics.formulations.outputs.reaction_wrenches import ReactionWrenches
from mb2fmu.mechanics.formulations.rotation_conversions import euler_angles_from_matrix, quaternion_from_matrix
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, ForceLoad, Mechanism, TorqueLoad
from mb2fmu.mechanics.mechanism.records.plain_symbols import invert_blocks
from mb2fmu.mechanics.mechanism.records.requested_quantities import ExpressionOutput, RequestedOutput, UnavailableOutput
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import (
    NamedKinematics,
    add_components,
    dot_product,
    multiply_matrix,
    scale_components,
)
from mb2fmu.model.quantity_declarations import OutputLevel, Quantity

AXIS_SUFFIXES = (".x", ".y", ".z")
_DIAGNOSTIC_KINDS = {
    "position_residual": DIAGNOSTIC_SYMBOLS.position_residual,
    "velocity_residual": DIAGNOSTIC_SYMBOLS.velocity_residual,
    "constraint_rank": DIAGNOSTIC_SYMBOLS.rank,
    "constraint_condition": DIAGNOSTIC_SYMBOLS.condition,
}


def form_outputs(kinematics: NamedKinematics) -> tuple[OutputExpression, ...]:
    """Return all outputs as scalars, in declared order.

    Raises:
        FormulationError: With every request that the mechanism cannot answer.
    """
    scalars: list[tuple[Quantity, str, sm.Expr]] = []
    reactions, joint_space = ReactionWrenches(kinematics), JointSpaceQuantities(kinematics)
    faults: list[Fault] = []
    for item in kinematics.mechanism.outputs:
        try:
            if isinstance(item, ExpressionOutput):
                scalars.append((item, item.name, item.expression))
            elif isinstance(item, UnavailableOutput):
                faults.append(Fault(item.what, item.where, item.remedy))
            else:
                answers = _expand_request(item, kinematics, reactions, joint_space)
                scalars += [(item, name, expression) for name, expression in answers]
        except FormulationError as error:
            faults += [Fault(fault.what, item.where, fault.remedy) for fault in error.faults]
    if faults:  # one line of the model may ask for several outputs: a reaction's force and its torque
        raise FormulationError("some outputs cannot be computed:", list(dict.fromkeys(faults)))
    moving = kinematics.moving() | {DIAGNOSTIC_SYMBOLS.velocity_residual}
    late = kinematics.accelerated | {a.symbol for a in kinematics.late}
    return tuple(
        OutputExpression(
            name=name,
            expression=expression,
            level=_output_level(expression, moving, late),
            unit=item.unit,
            display_unit=item.display_unit,
            nominal=item.nominal,
            description=item.description,
            events=not (isinstance(item, RequestedOutput) and item.kind == "orientation"),
            drives=item.drives if isinstance(item, ExpressionOutput) else None,
        )
        for item, name, expression in scalars
    )


def _output_level(expression: sm.Expr, moving: set[sm.Symbol], late: set[sm.Symbol]) -> OutputLevel:
    """Return the level that an output needs: position, velocity, or acceleration (multipliers included)."""
    symbols = expression.free_symbols
    if symbols & late:
        return "acceleration"
    return "velocity" if symbols & moving else "position"


def _output_error(what: str, remedy: str = "") -> FormulationError:
    """Return the error of an output that cannot be given, with its remedy."""
    return FormulationError("", [Fault(what, remedy=remedy)])


def _expand_request(  # noqa: C901 (one case per family of kinds)
    request: RequestedOutput, k: NamedKinematics, reactions: ReactionWrenches, joint_space: JointSpaceQuantities
) -> Iterator[tuple[str, sm.Expr]]:
    """(name, expression) of each scalar of a request."""
    m = k.mechanism
    match request.kind:
        case "position" | "velocity" | "acceleration" | "angular_velocity":
            yield from _vector_output(request, k)
        case _ if request.kind in MULTI_BODY_KINDS:
            yield from _component_outputs(request, form_vector_output(request, k), k)
        case _ if request.kind in JOINT_SPACE_KINDS:
            yield request.name, joint_space.answer(request)
        case "orientation":
            yield from _orientation_output(request, k)
        case "distance":
            a, b = request.subject
            d = add_components(k.position(b), scale_components(sm.S.NegativeOne, k.position(a)))
            yield request.name, sm.sqrt(dot_product(d, d))
        case "force" | "power":
            yield from _load_output(request, k)
        case "reaction_force" | "reaction_torque" | "joint_effort" | "multiplier" | "momentum":
            yield from _dynamic_output(request, k, reactions)
        case "position_residual" | "velocity_residual" | "constraint_rank" | "constraint_condition":
            yield from _diagnostic_output(request, m)
        case "kinetic_energy":
            yield request.name, kinetic_energy(k)
        case "coordinate_momentum" | "jacobi_integral":
            yield request.name, _canonical_momentum(request, k)
        case _:
            yield request.name, _known_potential(k) + (kinetic_energy(k) if request.kind == "total_energy" else 0)


def _known_potential(k: NamedKinematics) -> sm.Expr:
    """V in J.

    Raises:
        FormulationError: If it is not known.
    """
    potential = potential_energy(k)
    if potential is None:
        elements = k.mechanism.element_of_load
        unknown = load_potential(k).unknown
        names = [f"{name} of {elements[name]}" if name in elements else name for name in unknown]
        raise _output_error(
            f"the potential energy is not known: nothing tells whether these have one: {', '.join(names)}",
            "give that of all loads by model.potential_energy(...), 0 if there is none",
        )
    return potential


def _vector_output(request: RequestedOutput, k: NamedKinematics) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the components of a position, velocity, acceleration or angular velocity."""
    if request.kind == "angular_velocity":
        vector = k.omega(request.subject[0])
        if request.relative_to is not None:
            vector = add_components(vector, scale_components(sm.S.NegativeOne, k.omega(request.relative_to)))
    elif request.kind == "position":
        vector = k.position(request.subject[0])
        if request.relative_to is not None:
            vector = add_components(vector, scale_components(sm.S.NegativeOne, k.position(request.relative_to)))
    else:
        point = request.subject[0]
        vector = k.velocity(point) if request.kind == "velocity" else k.acceleration(point)
    yield from _component_outputs(request, vector, k)


def _component_outputs(
    request: RequestedOutput, vector: Components, k: NamedKinematics
) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the components of a vector of the inertial frame, in the requested frame."""
    if request.expressed_in is not None:
        vector = multiply_matrix(k.rotation(request.expressed_in).T, vector)
    yield from zip((request.name + axis for axis in AXIS_SUFFIXES), vector, strict=True)


def _orientation_output(request: RequestedOutput, k: NamedKinematics) -> Iterator[tuple[str, sm.Expr]]:
    """Yield how a frame is turned against another: quaternion, angles, or direction cosines."""
    rotation = k.rotation(request.subject[0])
    if request.relative_to is not None:
        rotation = k.rotation(request.relative_to).T * rotation
        rotation = sm.ImmutableMatrix(rotation).applyfunc(lambda e: k.name(e, f"C_{request.name}"))
    if request.representation == "quaternion":
        yield from zip(
            (request.name + part for part in (".w", *AXIS_SUFFIXES)), quaternion_from_matrix(rotation), strict=True
        )
        return
    try:
        angles = euler_angles_from_matrix(rotation, request.representation)
    except ValueError as error:
        raise _output_error(str(error), "use quaternion, or three axes such as zxy") from None
    yield from zip((f"{request.name}[{i}]" for i in (1, 2, 3)), angles, strict=True)


def _load_output(request: RequestedOutput, k: NamedKinematics) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the power of a load, its vector in the inertial frame, or its size along a pathway."""
    m = k.mechanism
    number = request.subject[0]
    load = m.loads[number]
    if request.kind == "power":
        yield request.name, load_power(number, k)
    elif isinstance(load, (ForceLoad, TorqueLoad)):
        vector = express_in_inertial_frame(load.force if isinstance(load, ForceLoad) else load.torque, k)
        yield from zip((request.name + axis for axis in AXIS_SUFFIXES), vector, strict=True)
    else:
        yield request.name, load_magnitude(load, k)


def _diagnostic_output(request: RequestedOutput, m: Mechanism) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the symbol of a constraint diagnostic; refuse it where nothing is constrained."""
    if m.velocity_constraints is None:
        raise _output_error(f"{request.name}: the mechanism has no constraints", "leave output_diagnostics out")
    if m.holonomic or request.kind != "position_residual":
        yield request.name, _DIAGNOSTIC_KINDS[request.kind]


def _dynamic_output(
    request: RequestedOutput, k: NamedKinematics, reactions: ReactionWrenches
) -> Iterator[tuple[str, sm.Expr]]:
    """Yield outputs that need accelerations or constraint forces."""
    if request.kind == "multiplier":
        yield request.name, _multiplier_symbol(request.subject[0], k.mechanism)
    elif request.kind == "momentum":
        yield request.name, _speed_momentum(request.subject[0], k)
    elif request.kind == "joint_effort":
        yield request.name, _joint_effort_output(request, k, reactions)
    else:
        yield from _reaction_output(request, k, reactions)


def _reaction_output(
    request: RequestedOutput, k: NamedKinematics, reactions: ReactionWrenches
) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the components of a joint's or a group's reaction force (N) or torque (N·m)."""
    subject = request.subject
    at = request.relative_to
    wrench = reactions.of_joint(subject[0], at) if request.of_joint else reactions.bodies_wrench(subject, at)
    vector = wrench.force if request.kind == "reaction_force" else wrench.torque
    yield from _component_outputs(request, vector, k)


def _joint_effort_output(request: RequestedOutput, k: NamedKinematics, reactions: ReactionWrenches) -> sm.Expr:
    """Return the effort of a drive along its joint and the joints that follow it: the reaction along the axis."""
    total = sm.S.Zero
    for number in request.subject:
        joint, wrench = k.mechanism.joints[number], reactions.of_joint(number, None)
        assert joint.axis is not None, "the reader gives it"
        along = express_in_inertial_frame((joint.axis,), k)
        total += joint.factor * (dot_product(along, wrench.torque if joint.turns else wrench.force) + joint.passive)
    return total


def _multiplier_symbol(row: int, m: Mechanism) -> sm.Symbol:
    """Look up the symbol of a multiplier; refuse it where velocities already use the constraint."""
    if m.given_by_constraint:
        names = ", ".join(m.given_by_constraint)
        raise _output_error(
            f"the velocity of {names} already uses a constraint, whose force is then not in the equations",
            "give velocities that follow from positions, or leave them out",
        )
    return m.multipliers[row]


def _canonical_momentum(request: RequestedOutput, k: NamedKinematics) -> sm.Expr:
    """Return ∂T/∂q'_r = Σ_j (K⁻¹)_jr ∂T/∂u_j, or Jacobi's Σ u_j ∂T/∂u_j + Σ k0_r ∂T/∂q'_r - T + V."""
    m = k.mechanism
    if m.given_by_constraint:
        names = ", ".join(m.given_by_constraint)
        raise _output_error(
            f"{request.name}: the velocity of {names} already uses a constraint: T is not a function of q and q'",
            "give velocities that follow from positions",
        )
    moved = [r for r in range(len(m.q)) if m.kinematics.offset[r] != 0]
    wanted = request.subject if request.kind == "coordinate_momentum" else moved
    if wanted and len(m.q) != len(m.u):
        raise _output_error(
            f"{request.name}: {len(m.q)} coordinates and {len(m.u)} speeds: q' does not determine u",
            "ask for the momentum of a speed",
        )
    momenta = {j: k.name(_speed_momentum(j, k), f"p_{m.u[j].name}") for j in range(len(m.u))}
    inverse = invert_blocks(m.kinematics.matrix) if wanted else sm.zeros(0)

    def of_coordinate(r: int) -> sm.Expr:
        return sm.Add(*(inverse[j, r] * momenta[j] for j in momenta))

    if request.kind == "coordinate_momentum":
        return of_coordinate(request.subject[0])
    twice = [m.u[j] * momenta[j] for j in momenta] + [m.kinematics.offset[r] * of_coordinate(r) for r in moved]
    if m.lagrangian is not None and m.is_lagrangian_only:
        return sm.Add(*twice) - m.lagrangian.expression
    return sm.Add(*twice) - kinetic_energy(k) + _known_potential(k)


def _speed_momentum(j: int, k: NamedKinematics) -> sm.Expr:
    """dT/du = sum of m v · v_r + H · w_r."""
    m = k.mechanism
    if m.lagrangian is not None and m.is_lagrangian_only:
        return m.lagrangian.expression.diff(m.u[j])
    total = sm.S.Zero
    for body in m.bodies:
        column = k.velocity_partials(body.masscenter).get(j)
        if column is not None:
            total += body.mass * dot_product(column, k.velocity(body.masscenter))
        column = k.omega_partials(body.frame).get(j) if body.inertia is not None else None
        if column is not None and body.inertia is not None:
            R = k.rotation(body.frame)
            w = k.named(multiply_matrix(R.T, k.omega(body.frame)), f"wb_{body.name}")
            total += dot_product(multiply_matrix(R.T, column), multiply_matrix(body.inertia, w))
    return total
