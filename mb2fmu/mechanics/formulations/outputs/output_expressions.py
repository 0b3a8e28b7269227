"""Outputs: the user's expressions in plain symbols, and requested kinematic, load and energy quantities.

Outputs of several bodies together and of one body against another.

centre of mass      Σ m r / Σ m          its velocity    Σ m v / Σ m
momentum            Σ m v                about a point P or the centre of mass    Σ (r - r_P) × m v + I ω
of P in frame A     v_P - v_Q - ω_A × (r_P - r_Q), Q fixed in A
of B in frame A     α_B - α_A - ω_A × (ω_B - ω_A), the rate that A sees

Equations of motion as outputs: M, Jacobians, gravity efforts, and efforts of a given motion (inverse dynamics).

    M u' = f(q, u, r, t),   gravity effort = f without weights - f,   inverse effort = M a - f without drives

all along the speeds, before constraints. A recursion sweeps its links for them; every other formulation projects
Newton's and Euler's laws of each body on the partial velocities (Kane and Levinson, Dynamics, 1985, ch. 2).

Quaternions and Euler angles out of a direction cosine matrix.

Conventions as in docs/reference/notation.md: ``A_C_B`` takes components in B to components in A; quaternion (w, x,
y, z), unit length, w >= 0; Euler angles of a body-fixed sequence ijk: ``A_C_B`` = R_i(a) R_j(b) R_k(c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import assert_never

import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import DIAGNOSTIC_SYMBOLS, OutputExpression
from mb2fmu.mechanics.formulations.applied_loads import (
    express_in_inertial_frame,
    form_actuator_magnitude,
    form_load_power,
    list_applied_loads,
)
from mb2fmu.mechanics.formulations.energies.energy_and_power import (
    kinetic_energy,
    potential_energy,
    potential_energy_of_loads,
)
from mb2fmu.mechanics.formulations.outputs.reaction_wrenches import ReactionWrenches
from mb2fmu.mechanics.formulations.requested_recursion_quantities import RequestedRecursionQuantities
from mb2fmu.mechanics.mechanism.records.mechanism_records import Body, Components, ForceLoad, Mechanism, TorqueLoad
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import (
    ExpressionOutput,
    RequestedOutput,
    UnavailableOutput,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import invert_block_matrix
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    ZERO,
    add_vector_components,
    cross_product,
    dot_product,
    multiply_matrix_by_vector,
    scale_components,
)
from mb2fmu.mechanics.mechanism.symbolic.gravity_detection import find_gravity
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model.quantity_declarations import DeclaredVariable, OutputLevel

AXIS_SUFFIXES = (".x", ".y", ".z")
_DIAGNOSTIC_KINDS = {
    "position_residual": DIAGNOSTIC_SYMBOLS.position_residual,
    "velocity_residual": DIAGNOSTIC_SYMBOLS.velocity_residual,
    "constraint_rank": DIAGNOSTIC_SYMBOLS.rank,
    "constraint_condition": DIAGNOSTIC_SYMBOLS.condition,
}


@lru_cache(64)  # several formulations request the same matrix
def quaternion_from_matrix(C: sm.ImmutableMatrix) -> tuple[sm.Expr, sm.Expr, sm.Expr, sm.Expr]:
    """Return unit quaternion of a direction cosine matrix.

    The largest of the four components is taken from the diagonal and the others from it, so that nothing is lost by
    cancellation anywhere (Shepperd, J. Guidance and Control 1, 1978, 223-224).
    """
    trace = C[0, 0] + C[1, 1] + C[2, 2]
    squares = [1 + trace, *(1 + 2 * C[i, i] - trace for i in range(3))]  # 4w², 4x², 4y², 4z²
    differences = (C[2, 1] - C[1, 2], C[0, 2] - C[2, 0], C[1, 0] - C[0, 1])
    sums = {(0, 1): C[0, 1] + C[1, 0], (0, 2): C[0, 2] + C[2, 0], (1, 2): C[1, 2] + C[2, 1]}
    candidates = [[squares[0], *differences]]
    for i in range(3):
        row = [differences[i], *(squares[1 + i] if j == i else sums[min(i, j), max(i, j)] for j in range(3))]
        sign = sm.Piecewise((1, differences[i] >= 0), (-1, True))
        candidates.append([sign * part for part in row])
    # The largest square is at least 1; the others, whose branches are not taken, must not divide by zero either.
    # SymPy would try to find out which of both is larger, by factoring their difference.
    scales = [1 / (2 * sm.sqrt(sm.Max(square, 1, evaluate=square.is_number))) for square in squares]
    largest = [sm.And(*(squares[i] >= squares[j] for j in range(4) if j != i)) for i in range(3)]
    first = next((i for i, condition in enumerate(largest) if condition == sm.true), 3)
    possible = [i for i in range(first) if largest[i] != sm.false]
    parts = []
    for part in range(4):
        values = [candidates[i][part] * scales[i] for i in (*possible, first)]
        branches = zip(values, (*(largest[i] for i in possible), sm.true), strict=True)
        parts.append(sm.Piecewise(*branches, evaluate=False) if possible else values[0])
    return (parts[0], parts[1], parts[2], parts[3])


def euler_angles_from_matrix(C: sm.ImmutableMatrix, sequence: str) -> tuple[sm.Expr, sm.Expr, sm.Expr]:
    """Return angles of a body-fixed sequence.

    Args:
        C: ``A_C_B``.
        sequence: Three axes such as ``zxy`` or ``313``, neighbours different.

    Returns:
        (a, b, c) in rad: a, c in (-π, π]; b in [-π/2, π/2] for three different axes, in [0, π] otherwise.

    Raises:
        ValueError: If it is no sequence of axes.
    """
    axes = sequence.lower().translate(str.maketrans("123", "xyz"))
    if len(axes) != 3 or set(axes) - set("xyz") or axes[0] == axes[1] or axes[1] == axes[2]:
        raise ValueError(f"{sequence!r} is not a body-fixed rotation sequence")
    i, j, k = ("xyz".index(axis) for axis in axes)
    if i != k:
        e = sm.LeviCivita(i, j, k)
        return sm.atan2(-e * C[j, k], C[k, k]), sm.asin(e * C[i, k]), sm.atan2(-e * C[i, j], C[i, i])
    third = 3 - i - j
    e = sm.LeviCivita(i, j, third)
    return sm.atan2(C[j, i], -e * C[third, i]), sm.acos(C[i, i]), sm.atan2(C[i, j], e * C[i, third])


def _form_vector_output(request: RequestedOutput, k: SymbolicKinematics) -> Components:
    """Return the vector that is requested, components in the inertial frame.

    Raises:
        FormulationError: If a body's mass centre is nowhere, or the bodies have no mass.
    """
    if request.kind == "angular_acceleration":
        return _angular_acceleration(request.subject[0], request.relative_to, k)
    if request.kind == "relative_velocity":
        point, origin = request.subject
        return _relative_velocity(point, origin, request.relative_to or 0, k)
    bodies = [k.mechanism.bodies[i] for i in request.subject] or list(k.mechanism.bodies)
    _check_located(request, bodies, k)
    if request.kind == "linear_momentum":
        return linear_momentum(bodies, k)
    if request.kind == "angular_momentum":
        return angular_momentum(bodies, request.relative_to, k)
    return _mass_weighted_mean(bodies, k.position if request.kind == "centre_of_mass" else k.velocity)


def _subtract(a: Components, b: Components) -> Components:
    """Return a − b by components."""
    return add_vector_components(a, scale_components(sm.S.NegativeOne, b))


def _angular_acceleration(frame: int, base: int | None, k: SymbolicKinematics) -> Components:
    """Return α of a frame as seen in a base frame: α_f − α_b − ω_b × (ω_f − ω_b); the absolute one without base."""
    if not base:
        return k.alpha(frame)
    swing = cross_product(k.omega(base), _subtract(k.omega(frame), k.omega(base)))
    return _subtract(_subtract(k.alpha(frame), k.alpha(base)), swing)


def _relative_velocity(point: int, origin: int, base: int, k: SymbolicKinematics) -> Components:
    """Return a point's velocity against an origin, as seen in a turning base: v_P − v_O − ω_b × r."""
    arm = _subtract(k.position(point), k.position(origin))
    return _subtract(_subtract(k.velocity(point), k.velocity(origin)), cross_product(k.omega(base), arm))


def _mass_weighted_sum(bodies: Iterable[Body], of: Callable[[int], Components]) -> Components:
    """Return the sum of mass times a quantity of the mass centre."""
    total = ZERO
    for body in bodies:
        total = add_vector_components(total, scale_components(body.mass, of(body.masscenter)))
    return total


def _mass_weighted_mean(bodies: list[Body], of: Callable[[int], Components]) -> Components:
    """Return the mean of a point quantity over bodies, weighted by their masses."""
    return scale_components(1 / sm.Add(*(body.mass for body in bodies)), _mass_weighted_sum(bodies, of))


def linear_momentum(bodies: Iterable[Body], k: SymbolicKinematics) -> Components:
    """Return Σ m v in N, kg·m/s."""
    return _mass_weighted_sum(bodies, k.velocity)


def angular_momentum(bodies: list[Body], about: int | None, k: SymbolicKinematics) -> Components:
    """Return the angular momentum of all bodies about a point (None: mass centre), components in N, kg·m²/s."""
    place = (
        k.position(about) if about is not None else k.name_components(_mass_weighted_mean(bodies, k.position), "r_com")
    )
    total = ZERO
    for body in bodies:
        arm = _subtract(k.position(body.masscenter), place)
        total = add_vector_components(
            total, cross_product(arm, scale_components(body.mass, k.velocity(body.masscenter)))
        )
        if body.inertia is not None and not body.inertia.is_zero_matrix:
            R = k.rotation(body.frame)
            w = k.name_components(multiply_matrix_by_vector(R.T, k.omega(body.frame)), f"wb_{body.name}")
            total = add_vector_components(
                total, multiply_matrix_by_vector(R, multiply_matrix_by_vector(body.inertia, w))
            )
    return total


def _check_located(request: RequestedOutput, bodies: list[Body], k: SymbolicKinematics) -> None:
    """Refuse a sum over bodies whose mass centres have no position, or that have no mass at all."""
    if request.kind in {"centre_of_mass", "angular_momentum"}:
        unlocated_names = [body.name for body in bodies if not k.mechanism.points[body.masscenter].located]
        if unlocated_names:
            problem = f"no chain of positions leads from the origin to the mass centre of {', '.join(unlocated_names)}"
            raise FormulationError("", [Fault(problem, remedy="locate it by set_pos or locatenew")])
    if all(body.mass == 0 for body in bodies):
        problem = f"{request.name}: the bodies have no mass"
        raise FormulationError("", [Fault(problem, remedy="request bodies with a mass")])


class _JointSpaceQuantities:
    """Quantities along the speeds of one mechanism, each computed once.

    Args:
        kinematics: Takes the names.
    """

    def __init__(self, kinematics: SymbolicKinematics) -> None:
        self._k, self._m = kinematics, kinematics.mechanism

    def form_output(self, request: RequestedOutput) -> sm.Expr:
        """Return an entry of M or of a Jacobian, or an effort along a speed."""
        subject = request.subject
        if request.kind == "mass_matrix":
            return self._form_mass_matrix[subject]
        if request.kind in {"gravity_effort", "inverse_effort"}:
            return (self._form_gravity_efforts if request.kind == "gravity_effort" else self._form_inverse_efforts)[
                subject[0]
            ]
        node, speed = subject
        assert request.component is not None
        of_point = request.kind == "partial_velocity"
        partials = self._k.velocity_partials(node) if of_point else self._k.omega_partials(node)
        return partials.get(speed, ZERO)[request.component]

    @cached_property
    def _form_mass_matrix(self) -> sm.MatrixBase:
        """Form M, in speeds: the sum over bodies of partial velocities times momenta."""
        k, n = self._k, len(self._m.u)
        if isinstance(k, RequestedRecursionQuantities):
            return k.mass_matrix()
        M = sm.zeros(n, n)
        for body in self._m.bodies:
            for columns, momenta in self._form_momenta(body):
                for i in columns:
                    for j in momenta:
                        M[i, j] += dot_product(columns[i], momenta[j])
        return M

    def _form_momenta(self, body: Body) -> list[tuple[dict[int, Components], dict[int, Components]]]:
        """Return partial velocities and the momenta that they cause; the same for partial angular velocities."""
        k, n = self._k, len(self._m.u)
        v = {j: column for j, column in k.velocity_partials(body.masscenter).items() if j < n}
        momenta = [
            (
                v,
                {
                    j: k.name_components(scale_components(body.mass, column), f"mJv_{body.name}")
                    for j, column in v.items()
                },
            )
        ]
        if body.inertia is not None and not body.inertia.is_zero_matrix:
            w = {j: column for j, column in k.omega_partials(body.frame).items() if j < n}
            momenta.append((w, {j: self._form_angular_momentum(body, column, "IJw") for j, column in w.items()}))
        return momenta

    def _form_angular_momentum(self, body: Body, turning: Components, hint: str) -> Components:
        """Return the inertia times a vector, both in N."""
        k, R = self._k, self._k.rotation(body.frame)
        return k.name_components(
            multiply_matrix_by_vector(
                R, multiply_matrix_by_vector(body.inertia, multiply_matrix_by_vector(R.T, turning))
            ),
            f"{hint}_{body.name}",
        )

    @cached_property
    def _form_gravity_efforts(self) -> tuple[sm.Expr, ...]:
        """Form the generalized efforts of gravity, speed by speed."""
        k, m = self._k, self._m
        if isinstance(k, RequestedRecursionQuantities):
            return k.gravity_efforts()
        efforts = [sm.S.Zero] * len(m.u)
        for number in find_gravity(m).weight_loads:
            load = m.loads[number]
            assert isinstance(load, ForceLoad)
            for j, column in k.velocity_partials(load.point).items():
                efforts[j] -= dot_product(load.force[0][1], column)
        return tuple(efforts)

    @cached_property
    def _form_inverse_efforts(self) -> tuple[sm.Expr, ...]:
        """Form the efforts that given accelerations need: inertia, less passive forces and loads."""
        k, m = self._k, self._m
        if isinstance(k, RequestedRecursionQuantities):
            return k.inverse_efforts()
        request = m.inverse_dynamics
        assert request is not None, "the reader gives it"
        efforts = [self._form_mass_matrix[i, :].dot(request.accelerations) for i in range(len(m.u))]
        for j, force in enumerate(request.passive_forces):
            efforts[j] -= force
        for body in m.bodies:
            rate = k.name_components(scale_components(body.mass, k.acceleration0(body.masscenter)), f"ma_{body.name}")
            terms = [(k.velocity_partials(body.masscenter), rate)]
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                omega = k.omega(body.frame)
                turning = add_vector_components(
                    self._form_angular_momentum(body, k.alpha0(body.frame), "Ia"),
                    cross_product(omega, self._form_angular_momentum(body, omega, "Iw")),
                )
                terms.append((k.omega_partials(body.frame), k.name_components(turning, f"Hdot_{body.name}")))
            for partials, momentum_rate in terms:
                for j, column in partials.items():
                    efforts[j] += dot_product(column, momentum_rate)
        for load in list_applied_loads(k):
            for j, column in load.partials.items():
                efforts[j] -= dot_product(column, load.vector)
        return tuple(efforts)


def form_output_expressions(kinematics: SymbolicKinematics) -> tuple[OutputExpression, ...]:
    """Return all outputs as scalars, in declared order.

    Raises:
        FormulationError: With every request that the mechanism cannot answer.
    """
    scalars: list[tuple[DeclaredVariable, str, sm.Expr]] = []
    reactions, joint_space = ReactionWrenches(kinematics), _JointSpaceQuantities(kinematics)
    faults: list[Fault] = []
    for item in kinematics.mechanism.outputs:
        try:
            if isinstance(item, ExpressionOutput):
                scalars.append((item, item.name, item.expression))
            elif isinstance(item, UnavailableOutput):
                faults.append(Fault(item.problem, item.where, item.remedy))
            else:
                answers = _expand_request(item, kinematics, reactions, joint_space)
                scalars += [(item, name, expression) for name, expression in answers]
        except FormulationError as error:
            faults += [Fault(fault.what, item.where, fault.remedy) for fault in error.faults]
    if faults:  # one line of the model may request several outputs: a reaction's force and its torque
        raise FormulationError("some outputs cannot be computed:", list(dict.fromkeys(faults)))
    moving = kinematics.speed_dependent_symbols() | {DIAGNOSTIC_SYMBOLS.velocity_residual}
    late = kinematics.acceleration_symbols | {a.symbol for a in kinematics.late_assignments}
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


def _output_error(problem: str, remedy: str = "") -> FormulationError:
    """Return the error of an output that cannot be given, with its remedy."""
    return FormulationError("", [Fault(problem, remedy=remedy)])


def _expand_request(  # noqa: C901 (one case per family of kinds)
    request: RequestedOutput, k: SymbolicKinematics, reactions: ReactionWrenches, joint_space: _JointSpaceQuantities
) -> Iterator[tuple[str, sm.Expr]]:
    """(name, expression) of each scalar of a request."""
    m = k.mechanism
    match request.kind:
        case "position" | "velocity" | "acceleration" | "angular_velocity":
            yield from _vector_output(request, k)
        case (
            "angular_acceleration" | "relative_velocity" | "centre_of_mass" | "centre_of_mass_velocity"
            | "linear_momentum" | "angular_momentum"
        ):  # fmt: skip
            yield from _component_outputs(request, _form_vector_output(request, k), k)
        case "mass_matrix" | "gravity_effort" | "inverse_effort" | "partial_velocity" | "partial_angular_velocity":
            yield request.name, joint_space.form_output(request)
        case "orientation":
            yield from _orientation_output(request, k)
        case "distance":
            a, b = request.subject
            d = add_vector_components(k.position(b), scale_components(sm.S.NegativeOne, k.position(a)))
            yield request.name, sm.sqrt(dot_product(d, d))
        case "force" | "power":
            yield from _load_output(request, k)
        case "reaction_force" | "reaction_torque" | "joint_effort" | "multiplier" | "momentum":
            yield from _dynamic_output(request, k, reactions)
        case "position_residual" | "velocity_residual" | "constraint_rank" | "constraint_condition":
            yield from _diagnostic_output(request, m)
        case "kinetic_energy" | "potential_energy" | "total_energy":
            potential = _known_potential(k) if request.kind != "kinetic_energy" else sm.S.Zero
            yield request.name, potential + (kinetic_energy(k) if request.kind != "potential_energy" else 0)
        case "coordinate_momentum" | "jacobi_integral":
            yield request.name, _canonical_momentum(request, k)
        case _:
            assert_never(request.kind)


def _known_potential(k: SymbolicKinematics) -> sm.Expr:
    """V in J.

    Raises:
        FormulationError: If it is not known.
    """
    potential = potential_energy(k)
    if potential is None:
        elements = k.mechanism.element_of_load
        unknown = potential_energy_of_loads(k).unknown_loads
        names = [f"{name} of {elements[name]}" if name in elements else name for name in unknown]
        raise _output_error(
            f"the potential energy is not known: nothing shows whether these have one: {', '.join(names)}",
            "give that of all loads by model.potential_energy(...), 0 if there is none",
        )
    return potential


def _vector_output(request: RequestedOutput, k: SymbolicKinematics) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the components of a position, velocity, acceleration or angular velocity."""
    if request.kind == "angular_velocity":
        vector = k.omega(request.subject[0])
        if request.relative_to is not None:
            vector = add_vector_components(vector, scale_components(sm.S.NegativeOne, k.omega(request.relative_to)))
    elif request.kind == "position":
        vector = k.position(request.subject[0])
        if request.relative_to is not None:
            vector = add_vector_components(vector, scale_components(sm.S.NegativeOne, k.position(request.relative_to)))
    else:
        point = request.subject[0]
        vector = k.velocity(point) if request.kind == "velocity" else k.acceleration(point)
    yield from _component_outputs(request, vector, k)


def _component_outputs(
    request: RequestedOutput, vector: Components, k: SymbolicKinematics
) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the components of a vector of the inertial frame, in the requested frame."""
    if request.expressed_in is not None:
        vector = multiply_matrix_by_vector(k.rotation(request.expressed_in).T, vector)
    yield from zip((request.name + axis for axis in AXIS_SUFFIXES), vector, strict=True)


def _orientation_output(request: RequestedOutput, k: SymbolicKinematics) -> Iterator[tuple[str, sm.Expr]]:
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


def _load_output(request: RequestedOutput, k: SymbolicKinematics) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the power of a load, its vector in the inertial frame, or its size along a pathway."""
    m = k.mechanism
    number = request.subject[0]
    load = m.loads[number]
    if request.kind == "power":
        yield request.name, form_load_power(number, k)
    elif isinstance(load, (ForceLoad, TorqueLoad)):
        vector = express_in_inertial_frame(load.force if isinstance(load, ForceLoad) else load.torque, k)
        yield from zip((request.name + axis for axis in AXIS_SUFFIXES), vector, strict=True)
    else:
        yield request.name, form_actuator_magnitude(load, k)


def _diagnostic_output(request: RequestedOutput, m: Mechanism) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the symbol of a constraint diagnostic; refuse it where nothing is constrained."""
    if m.velocity_constraints is None:
        raise _output_error(f"{request.name}: the mechanism has no constraints", "leave output_diagnostics out")
    if m.holonomic or request.kind != "position_residual":
        yield request.name, _DIAGNOSTIC_KINDS[request.kind]


def _dynamic_output(
    request: RequestedOutput, k: SymbolicKinematics, reactions: ReactionWrenches
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
    request: RequestedOutput, k: SymbolicKinematics, reactions: ReactionWrenches
) -> Iterator[tuple[str, sm.Expr]]:
    """Yield the components of a joint's or a group's reaction force (N) or torque (N·m)."""
    subject = request.subject
    at = request.relative_to
    wrench = (
        reactions.form_joint_wrench(subject[0], at) if request.of_joint else reactions.form_bodies_wrench(subject, at)
    )
    vector = wrench.force if request.kind == "reaction_force" else wrench.torque
    yield from _component_outputs(request, vector, k)


def _joint_effort_output(request: RequestedOutput, k: SymbolicKinematics, reactions: ReactionWrenches) -> sm.Expr:
    """Return the effort of a drive along its joint and the joints that follow it: the reaction along the axis."""
    total = sm.S.Zero
    for number in request.subject:
        joint, wrench = k.mechanism.joints[number], reactions.form_joint_wrench(number, None)
        assert joint.axis is not None, "the reader gives it"
        along = express_in_inertial_frame((joint.axis,), k)
        total += joint.speed_factor * (
            dot_product(along, wrench.torque if joint.is_revolute else wrench.force) + joint.passive_effort
        )
    return total


def _multiplier_symbol(row: int, m: Mechanism) -> sm.Symbol:
    """Look up the symbol of a multiplier; refuse it where velocities already use the constraint."""
    if m.points_using_constraints:
        names = ", ".join(m.points_using_constraints)
        raise _output_error(
            f"the velocity of {names} already uses a constraint, whose force is then not in the equations",
            "give velocities that follow from positions, or leave them out",
        )
    return m.multipliers[row]


def _canonical_momentum(request: RequestedOutput, k: SymbolicKinematics) -> sm.Expr:
    """Return ∂T/∂q'_r = Σ_j (K⁻¹)_jr ∂T/∂u_j, or Jacobi's Σ u_j ∂T/∂u_j + Σ k0_r ∂T/∂q'_r - T + V."""
    m = k.mechanism
    if m.points_using_constraints:
        names = ", ".join(m.points_using_constraints)
        raise _output_error(
            f"{request.name}: the velocity of {names} already uses a constraint: T is not a function of q and q'",
            "give velocities that follow from positions",
        )
    coordinates_with_offset = [r for r in range(len(m.q)) if m.kinematics.offset[r] != 0]
    requested_coordinates = request.subject if request.kind == "coordinate_momentum" else coordinates_with_offset
    if requested_coordinates and len(m.q) != len(m.u):
        raise _output_error(
            f"{request.name}: {len(m.q)} coordinates and {len(m.u)} speeds: q' does not determine u",
            "request the momentum of a speed",
        )
    momenta = {j: k.name(_speed_momentum(j, k), f"p_{m.u[j].name}") for j in range(len(m.u))}
    inverse = invert_block_matrix(m.kinematics.matrix) if requested_coordinates else sm.zeros(0)

    def of_coordinate(r: int) -> sm.Expr:
        """Return ∂T/∂q'_r."""
        return sm.Add(*(inverse[j, r] * momenta[j] for j in momenta))

    if request.kind == "coordinate_momentum":
        return of_coordinate(request.subject[0])
    twice_kinetic_energy = [m.u[j] * momenta[j] for j in momenta] + [
        m.kinematics.offset[r] * of_coordinate(r) for r in coordinates_with_offset
    ]
    if m.lagrangian is not None and m.is_lagrangian_only:
        return sm.Add(*twice_kinetic_energy) - m.lagrangian.expression
    return sm.Add(*twice_kinetic_energy) - kinetic_energy(k) + _known_potential(k)


def _speed_momentum(j: int, k: SymbolicKinematics) -> sm.Expr:
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
            w = k.name_components(multiply_matrix_by_vector(R.T, k.omega(body.frame)), f"wb_{body.name}")
            total += dot_product(multiply_matrix_by_vector(R.T, column), multiply_matrix_by_vector(body.inertia, w))
    return total
