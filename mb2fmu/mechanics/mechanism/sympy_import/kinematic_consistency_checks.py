"""Check a mechanism's kinematics numerically at random points, and decide which given velocities are used.

SymPy accepts ``set_ang_vel(N, 3*u*N.z)`` beside q' = u and silently gives nine times the inertia. So every angular
velocity is compared with its direction cosines and every velocity against the derivative of its position. A velocity
that agrees on the velocity constraints only (rolling contacts) uses its constraint already: that is legal, and
recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    COMPARISON_TOLERANCE,
    ROUND_OFF_TOLERANCE,
    RandomStateSample,
    append_auxiliary_speeds,
    count_independent_rows,
    differ_beyond_roundoff,
    draw_random_states,
    format_vector_components,
    free_parameter_values,
    max_angular_velocity,
    row_lengths_above_round_off,
    set_random_mechanism_state,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ConstraintForceApplication,
    ForceLoad,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.sympy_import.point_velocities import choose_point_velocities
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

__all__ = [
    "check_kinematics_and_choose_velocities",
    "find_nonintegrable_velocities",
    "find_start_speed_faults",
    "free_parameter_values",
    "matches_lagrangian_kinetic_energy",
]

Array = npt.NDArray[np.float64]

_CANCELLED_ENERGY_FRACTION = 1e-30
"""Kinetic energy at a typical speed, as a part of the largest such energy, that is the square of round-off."""
_DIFFERENCE_STEP = 1e-5  # of typical magnitudes of coordinates, for central differences


def check_kinematics_and_choose_velocities(
    draft: Mechanism, user_velocities: Mapping[int, VectorTerms], *, origins_found: Collection[int]
) -> Mechanism:
    """Check the kinematics, and decide for each point whether its velocity is derived or taken as given.

    Args:
        draft: Mechanism whose located points have velocities derived from their positions.
        user_velocities: Point number → velocity in N as set by the user.
        origins_found: As for :func:`choose_point_velocities`.

    Returns:
        The mechanism with settled velocities.

    Raises:
        MechanismError: With every contradiction, a mass matrix that is singular, and fixed start values that
            contradict a velocity constraint.
    """
    derived = MechanismEvaluator(draft, rates=True)
    samples, nonzero_samples = draw_random_states(derived), draw_random_states(derived, without_zeros=True)
    faults = _frame_faults(draft, derived, nonzero_samples) + _inertia_faults(draft, derived, samples)
    checked, velocity_faults = choose_point_velocities(
        draft, derived, nonzero_samples, user_velocities, origins_found=origins_found
    )
    faults += velocity_faults
    if not faults:
        numeric = derived if checked is draft else MechanismEvaluator(checked)
        faults += _mass_faults(numeric, samples) + _constraint_force_faults(checked, samples)
        faults += _force_application_faults(numeric, samples)
        faults += (
            [] if checked.position_rows else find_start_speed_faults(checked)
        )  # positions are solved for first (solve_loop_closure_start_values)
    if faults:
        raise MechanismError("the mechanism contradicts itself:", faults)
    return replace(checked, prescribed=_is_prescribed(numeric, samples))


def _is_prescribed(numeric: MechanismEvaluator, samples: list[RandomStateSample]) -> bool:
    """Return whether velocities of bodies and loaded points contain motion that no generalized speed causes.

    v = J u + v_t with A u + b = 0 is one if J d = v_t, A d = b has a solution d: then v = J (u + d), A (u + d) = 0.
    """
    m = numeric.mechanism
    points = {body.masscenter for body in m.bodies} | {load.point for load in m.loads if isinstance(load, ForceLoad)}
    points |= {point for load in m.loads if isinstance(load, PathwayLoad) for point in load.points}
    frames = {body.frame for body in m.bodies if body.frame >= 0}
    frames |= {load.frame for load in m.loads if isinstance(load, (TorqueLoad, TorqueActuatorLoad))}
    n = len(m.u)
    for sample in samples:
        set_random_mechanism_state(numeric, replace(sample, u=np.zeros(n)), on_constraints=False)
        A, b, _ = numeric.velocity_constraint_terms()
        velocities = [*(numeric.points[i].velocity for i in points), *(numeric.frames[i].omega for i in frames)]
        prescribed_velocities = np.concatenate([*velocities, b])
        if not np.any(prescribed_velocities):
            continue
        partials = [*(numeric.points[i].partials for i in points), *(numeric.frames[i].partials for i in frames)]
        rows = np.concatenate([*(J[:, :n] for J in partials), A])
        residual = prescribed_velocities - rows @ np.linalg.lstsq(rows, prescribed_velocities, rcond=None)[0]
        if np.max(np.abs(residual)) > COMPARISON_TOLERANCE * np.max(np.abs(prescribed_velocities)):
            return True
    return False


def _frame_faults(m: Mechanism, numeric: MechanismEvaluator, samples: list[RandomStateSample]) -> list[Fault]:
    """Return frames whose given angular velocity is not the rate of their direction cosines at some sample."""
    faults: dict[int, Fault] = {}
    for sample in samples:
        set_random_mechanism_state(numeric, sample, on_constraints=True)
        for i, frame in enumerate(m.frames[1:], start=1):
            if i in faults or not frame.oriented:
                continue
            relative = numeric.frames[i].omega - numeric.frames[frame.parent].omega
            given_velocity, derived_velocity = numeric.frames[i].rotation.T @ relative, numeric.omega_from_rotation(i)
            if differ_beyond_roundoff(given_velocity, derived_velocity, max_angular_velocity(numeric)):
                problem = (
                    f"the angular velocity of frame {frame.name} in {m.frames[frame.parent].name} is given as "
                    f"{format_vector_components(given_velocity)} where its direction cosines turn with "
                    f"{format_vector_components(derived_velocity)} "
                    f"(components in {frame.name}, at a random state)"
                )
                faults[i] = Fault(problem, remedy="correct set_ang_vel, the orientation, or the kinematic equations")
    return [faults[i] for i in sorted(faults)]


def _inertia_faults(m: Mechanism, numeric: MechanismEvaluator, samples: list[RandomStateSample]) -> list[Fault]:
    """Return bodies of unknown orientation whose inertia changes when they turn.

    Their inertia is written in the axes of another frame, in which they turn with the angular velocity s:
    s × I - I × s vanishes for a body of revolution about s only.
    """
    faults = []
    for body in m.bodies:
        if body.inertia is None or m.frames[body.frame].oriented:
            continue
        frame, axes = body.frame, m.frames[body.frame].parent
        parameters = [*m.p, *(calculated.symbol for calculated in m.calculated_parameters)]
        inertia = lambdify_for_numpy(parameters, body.inertia)
        for sample in samples:
            set_random_mechanism_state(numeric, sample, on_constraints=True)
            body_motion, axes_motion = numeric.frames[frame], numeric.frames[axes]
            inertia_values = np.asarray(inertia(*sample.parameters), dtype=float)
            transported_inertia = np.cross(
                body_motion.rotation.T @ (body_motion.omega - axes_motion.omega), inertia_values, axisb=0, axisc=0
            )
            if np.max(np.abs(transported_inertia + transported_inertia.T)) > COMPARISON_TOLERANCE * np.max(
                np.abs(inertia_values)
            ):
                name = m.frames[frame].name
                problem = (
                    f"frame {name} of body {body.name} has an angular velocity only, and its inertia turns with it"
                )
                faults.append(Fault(problem, remedy=f"orient {name}, or let it spin about an axis of revolution"))
                break
    return faults


def _mass_faults(numeric: MechanismEvaluator, samples: list[RandomStateSample]) -> list[Fault]:
    """Return a fault unless the mass matrix over the independent speeds is positive definite."""
    m = numeric.mechanism
    n, units = len(m.u), estimate_characteristic_units(m.declared)
    speed_sizes = np.array([units.typical(speed) for speed in m.declared.speeds])
    massless_direction: Array | None = None
    for sample in samples:
        set_random_mechanism_state(numeric, sample, on_constraints=True)
        M = numeric.unconstrained_mass_and_forcing()[0][:n, :n]
        scale = _mass_scale(np.diag(M), numeric.mass_matrix_scale()[:n], speed_sizes)
        A = numeric.velocity_constraint_terms()[0] / scale
        basis = (
            np.linalg.svd(A / row_lengths_above_round_off(A)[:, None])[2][count_independent_rows(A) :].T
            if len(A)
            else np.eye(n)
        )
        reduced = basis.T @ (M / np.outer(scale, scale)) @ basis
        if _is_positive_definite(reduced):
            return []
        values, vectors = np.linalg.eigh(reduced)
        if values.size == 0 or values[0] > 1e-13 * max(values[-1], 1e-300):
            return []
        massless_direction = basis @ vectors[:, 0] / scale
    assert massless_direction is not None
    names = [
        speed.name
        for speed, share in zip(m.u, np.abs(massless_direction), strict=True)
        if share > 0.1 * np.max(np.abs(massless_direction))
    ]
    problem = f"the mass matrix is singular or not positive definite: {', '.join(names)} moves no mass and no inertia"
    return [
        *_negative_masses(numeric),
        Fault(problem, remedy="give mass or inertia (not zero, not negative) to what these speeds move"),
    ]


def _mass_scale(diagonal: Array, uncancelled: Array, speed_sizes: Array) -> Array:
    """Return the square roots of M's diagonal; those of what cancelled in it where only round-off is left.

    Args:
        diagonal: Of M.
        uncancelled: The same, if nothing cancelled (:meth:`MechanismEvaluator.mass_matrix_scale`).
        speed_sizes: Typical speeds; what cancels within one expression is small beside the other speeds' energies.
    """
    largest_energy = np.max(np.abs(diagonal) * speed_sizes**2, initial=0.0)
    round_off = np.maximum(
        ROUND_OFF_TOLERANCE**2 * uncancelled, _CANCELLED_ENERGY_FRACTION * largest_energy / speed_sizes**2
    )
    squares = np.where(np.abs(diagonal) > round_off, np.abs(diagonal), uncancelled)
    return np.sqrt(np.where(squares > 0.0, squares, (largest_energy or 1.0) / speed_sizes**2))


def _negative_masses(numeric: MechanismEvaluator) -> Iterator[Fault]:
    """Yield masses, and moments of inertia about the axes of a body's frame, that are below zero as declared."""
    m = numeric.mechanism
    symbols = (*m.p, *(calculated.symbol for calculated in m.calculated_parameters))
    values = dict(zip(symbols, map(sm.Float, numeric.parameters(free_parameter_values(m))), strict=True))
    for body in m.bodies:
        moments = [] if body.inertia is None else [body.inertia[i, i] for i in range(3)]
        for quantity_name, quantity in (("mass", body.mass), *(("moment of inertia", moment) for moment in moments)):
            expression = sm.sympify(quantity)
            number = expression.xreplace(values)
            if number.is_number and number < 0:
                expression_text = f"{expression} = " if expression.free_symbols else ""
                yield Fault(f"the {quantity_name} of body {body.name} is negative: {expression_text}{float(number):g}")


def _is_positive_definite(M: Array) -> bool:
    """Return True if Cholesky's method succeeds on M minus its singular margin; much cheaper than ``eigh``."""
    margin = 1e-13 * np.trace(M)  # no eigenvalue of a positive definite M is more than its trace
    try:
        np.linalg.cholesky(M - margin * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(margin) and len(M))


def _constraint_force_faults(m: Mechanism, samples: list[RandomStateSample]) -> list[Fault]:
    """Return unknown forces that do work on the motion, or that the auxiliary speeds do not determine."""
    count, n = len(m.constraint_forces), len(m.u)
    if not count:
        return []
    numeric, units = MechanismEvaluator(m), estimate_characteristic_units(m.declared)
    # As large as what acts beside it: the difference of a much larger force and itself plus 1 is round-off.
    size = units.magnitude("N")
    speeds = np.array([units.typical(speed) for speed in m.declared.speeds])
    # The power at an auxiliary speed, whose unit nobody says: of a force, or of a torque in natural units.
    auxiliary = np.full(len(m.u_auxiliary), units.magnitude("m/s"))
    columns, powers, other_powers, is_linear = [], [], [], True
    for sample in samples:
        set_random_mechanism_state(numeric, sample, on_constraints=True)
        base = numeric.generalized_forces([0.0] * count)
        column = np.array([numeric.generalized_forces((size * unit).tolist()) - base for unit in np.eye(count)])
        factors = np.linspace(1.3, 2.1, count)  # not 0 nor 1, which a square leaves as they are
        together = numeric.generalized_forces((size * factors).tolist()) - base
        is_linear &= bool(
            np.all(np.abs(together - factors @ column) <= COMPARISON_TOLERANCE * np.max(np.abs(together)))
        )
        columns.append(column / size)
        powers.append(np.abs(column) * np.concatenate([speeds, auxiliary]))
        other_powers.append(np.abs(base[:n]) * speeds)
    if not is_linear:
        problem = f"loads are not linear in the constraint forces {', '.join(map(str, m.constraint_forces))}"
        return [Fault(problem, remedy="declare each force as it acts; compute what else depends on it as an output")]
    faults = []
    for i, symbol in enumerate(m.constraint_forces):
        force_power = max(float(np.max(force_powers[i])) for force_powers in powers)
        does_work = [
            force_powers[i, :n] > COMPARISON_TOLERANCE * (force_power + other_power)
            for force_powers, other_power in zip(powers, other_powers, strict=True)
        ]
        if np.any(does_work):
            worked_at = ", ".join(str(m.u[j]) for j in np.flatnonzero(np.any(does_work, axis=0)))
            problem = f"{symbol} is declared a constraint force, but it does work at the speeds {worked_at}"
            remedy = "apply it at a point or frame that only auxiliary speeds move"
            if m.auxiliary_rows is not None and not any(np.any(column[i, n:]) for column in columns):
                remedy = (
                    "auxiliary speeds stand in the constraints and move no point where it acts: leave both out, and "
                )
                remedy += f"request the force of the constraint, model.constraint(row, multiplier={symbol}, acts=[…])"
            faults.append(Fault(problem, remedy=remedy))
    if not faults and any(count_independent_rows(column[:, n:] * auxiliary) < count for column in columns):
        names = ", ".join(map(str, m.constraint_forces))
        problem = f"the auxiliary speeds do not determine {names}"
        faults.append(Fault(problem, remedy="give each unknown force an auxiliary speed along it"))
    return faults


def _force_application_faults(numeric: MechanismEvaluator, samples: list[RandomStateSample]) -> list[Fault]:
    """Return constraints whose row is not the sum of the velocities along their vectors."""
    m = numeric.mechanism
    faults = []
    for i, applications in enumerate(m.force_applications):
        for sample in samples if applications else ():
            set_random_mechanism_state(numeric, sample, on_constraints=True)
            rows, total = numeric.velocity_constraint_terms()[0], np.zeros(len(m.u))
            row = rows[i]
            for application in applications:
                total += (
                    numeric.evaluate_vector(application.vector)
                    @ _application_partials(numeric, application)[:, : len(m.u)]
                )
            if differ_beyond_roundoff(total, row, float(np.max(np.abs(rows)))):
                assert m.velocity_constraints is not None
                problem = (
                    f"what constraint {m.velocity_constraints.names[i]} acts on moves with "
                    f"{format_vector_components(total)} per speed, "
                    f"the constraint's own row is {format_vector_components(row)} (at a random state)"
                )
                remedy = "the velocities of the points along the vectors must add up to the row: correct acts"
                remedy += _frame_hint(m, applications)
                faults.append(Fault(problem, remedy=remedy))
                break
    return faults


def _frame_hint(m: Mechanism, applications: Sequence[ConstraintForceApplication]) -> str:
    """Return a hint if a body was given in place of its frame."""
    centres = {body.masscenter: body for body in m.bodies if body.frame >= 0}
    bodies = [
        centres[application.point_or_frame]
        for application in applications
        if not application.is_torque and application.point_or_frame in centres
    ]
    if not bodies:
        return ""
    frame_list = ", ".join(f"{m.frames[body.frame].name} of {body.name}" for body in bodies)
    return f"; on a body or its mass centre acts a force, a torque on its frame ({frame_list})"


def _application_partials(numeric: MechanismEvaluator, application: ConstraintForceApplication) -> Array:
    """Return the partial velocities of the place where a constraint's force acts, shape (3, n_u)."""
    if application.is_torque:
        return numeric.frames[application.point_or_frame].partials
    point = numeric.points[application.point_or_frame]
    if application.body < 0:
        return point.partials
    body = numeric.mechanism.bodies[application.body]
    centre = numeric.points[body.masscenter]
    if body.frame < 0:
        return centre.partials
    arm = point.position - centre.position
    return centre.partials + np.cross(numeric.frames[body.frame].partials, arm, axisa=0, axisc=0)


def find_start_speed_faults(m: Mechanism) -> list[Fault]:
    """Return fixed start values of dependent speeds that violate the velocity constraints."""
    dependent = [i for i in range(len(m.u)) if i not in m.u_independent]
    if not dependent or m.velocity_constraints is None:
        return []
    numeric = MechanismEvaluator(m)
    declared = m.declared
    u = np.array([state.start for state in declared.speeds])
    numeric.set_state(
        0.0,
        np.array([coordinate.start for coordinate in declared.coordinates]),
        append_auxiliary_speeds(m, u),
        np.array([state.start for state in declared.auxiliary_states]),
        np.array([i.start for i in declared.inputs]),
        numeric.parameters(free_parameter_values(m)),
    )
    A, b, _ = numeric.velocity_constraint_terms()
    independent = list(m.u_independent)
    A_dep, characteristic_units = A[:, dependent], estimate_characteristic_units(declared)
    units = np.array([characteristic_units.typical(speed) for speed in declared.speeds])
    scaled = A_dep * units[dependent]
    lengths = row_lengths_above_round_off(A * units)  # of whole rows: what is round-off beside them determines no speed
    if np.linalg.cond(scaled / lengths[:, None]) > 1e12:
        names = ", ".join(m.u[i].name for i in dependent)
        problem = f"{names} cannot be the dependent speeds at the start: the constraints do not determine them there"
        return [Fault(problem, remedy="choose other dependent speeds, or another start")]
    solution = np.linalg.solve(A_dep, -(A[:, independent] @ u[independent] + b))
    faults = []
    for value, i in zip(solution, dependent, strict=True):
        speed = declared.speeds[i]
        if speed.kind == "fixed" and abs(value - speed.start) > 1e-9 * (units[i] + abs(value)):
            problem = (
                f"the fixed start value {speed.start:g} of {speed.name} contradicts the velocity constraints, "
                f"which give {value:.12g}"
            )
            faults.append(
                Fault(problem, speed.where, 'say kind="guess" for a dependent speed, or correct the start values')
            )
    return faults


def find_nonintegrable_velocities(m: Mechanism) -> list[str]:
    """Return the names of bodies whose mass centre's velocity is not the derivative of any position.

    Located points have been compared with their positions already. For the others v = J u, J = ∂v/∂u, must satisfy
    ∂w_i/∂q_j = ∂w_j/∂q_i for the columns w_i of J K⁻¹ (a curl that vanishes), tested by central differences.
    """
    unlocated_bodies = [body for body in m.bodies if not m.points[body.masscenter].located]
    if not unlocated_bodies:
        return []
    numeric = MechanismEvaluator(m)
    nonintegrable: dict[str, None] = {}
    sizes = np.array([estimate_characteristic_units(m.declared).typical(item) for item in m.declared.coordinates])
    for sample in draw_random_states(numeric):
        columns = []
        for coordinate_number in range(len(m.q)):
            sides = []
            for sign in (1, -1):
                shifted_sample = replace(
                    sample, q=sample.q + sign * _DIFFERENCE_STEP * sizes * np.eye(len(m.q))[coordinate_number]
                )
                set_random_mechanism_state(numeric, shifted_sample, on_constraints=False)
                inverse = np.linalg.inv(numeric.kinematic_matrices()[0])
                sides.append(
                    [
                        numeric.points[body.masscenter].partials[:, : len(m.u)] @ inverse * sizes
                        for body in unlocated_bodies
                    ]
                )
            columns.append(
                [(forward - backward) / (2 * _DIFFERENCE_STEP) for forward, backward in zip(*sides, strict=True)]
            )
        for body_number, body in enumerate(unlocated_bodies):
            derivatives = np.array([column[body_number] for column in columns])  # [k, axis, i] = ∂w_i/∂q_k
            asymmetry = np.max(np.abs(derivatives - derivatives.transpose(2, 1, 0)))
            if asymmetry > 1e-6 * (np.max(np.abs(derivatives)) + np.max(np.abs(sides[0][body_number]))):
                nonintegrable[body.name] = None
    return list(nonintegrable)


def matches_lagrangian_kinetic_energy(m: Mechanism) -> bool:
    """Return True if the bodies' kinetic energy is the part of the Lagrangian that vanishes at q' = 0.

    Otherwise the bodies are not those that the Lagrangian speaks of, or a prescribed motion moves them.
    """
    assert m.lagrangian is not None
    numeric = MechanismEvaluator(m)
    arguments = [m.t, *m.q, *m.u, *m.z, *m.r, *m.p, *(calculated.symbol for calculated in m.calculated_parameters)]
    lagrangian = lambdify_for_numpy(arguments, m.lagrangian.expression)
    for sample in draw_random_states(numeric):
        set_random_mechanism_state(numeric, sample, on_constraints=False)
        values = [
            float(lagrangian(sample.t, *sample.q, *speeds, *sample.z, *sample.r, *sample.parameters))
            for speeds in (sample.u, 0 * sample.u)
        ]
        difference, kinetic = np.array([values[0] - values[1]]), np.array([numeric.kinetic_energy()])
        if differ_beyond_roundoff(difference, kinetic, max(abs(value) for value in values)):
            return False
    return True
