"""Check a mechanism's kinematics numerically at random points, and decide which given velocities are used.

SymPy accepts ``set_ang_vel(N, 3*u*N.z)`` beside q' = u and silently gives nine times the inertia. So every angular
velocity is compared with its direction cosines and every velocity against the derivative of its position. A velocity
that agrees on the velocity constraints only (rolling contacts) uses its constraint already: that is legal, and
remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism import NumericMechanism
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    COMPARISON_TOLERANCE,
    StateSample,
    append_auxiliary_speeds,
    draw_random_states,
    format_vector,
    free_parameter_values,
    max_angular_velocity,
    set_random_state,
    vectors_differ,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceApplication,
    ForceLoad,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.sympy_import.point_velocities import choose_point_velocities
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

__all__ = [
    "check_kinematics",
    "find_nonintegrable_velocities",
    "free_parameter_values",
    "kinetic_energy_matches",
    "start_faults",
]

Array = npt.NDArray[np.float64]

_DIFFERENCE_STEP = 1e-5  # of typical magnitudes of coordinates, for central differences


def check_kinematics(
    draft: Mechanism, user_velocities: Mapping[int, VectorTerms], *, origins_found: Collection[int]
) -> Mechanism:
    """Check the kinematics, and decide for each point whether its velocity is derived or taken as given.

    Args:
        draft: With the velocities of located points derived from their positions.
        user_velocities: Point number → velocity in N as set by the user.
        origins_found: As for :func:`choose_point_velocities`.

    Returns:
        The mechanism with settled velocities.

    Raises:
        MechanismError: With every contradiction, a mass matrix that is singular, and fixed start values that
            contradict a velocity constraint.
    """
    derived = NumericMechanism(draft, rates=True)
    samples, nonzero = draw_random_states(derived), draw_random_states(derived, without_zeros=True)
    faults = _frame_faults(draft, derived, nonzero) + _inertia_faults(draft, derived, samples)
    settled, more = choose_point_velocities(draft, derived, nonzero, user_velocities, origins_found=origins_found)
    faults += more
    if not faults:
        numeric = derived if settled is draft else NumericMechanism(settled)
        faults += _mass_faults(numeric, samples) + _constraint_force_faults(settled, samples)
        faults += _force_application_faults(numeric, samples)
        faults += [] if settled.position_rows else start_faults(settled)  # positions are solved for first (close_loops)
    if faults:
        raise MechanismError("the mechanism contradicts itself:", faults)
    return replace(settled, prescribed=_is_prescribed(numeric, samples))


def _is_prescribed(numeric: NumericMechanism, samples: list[StateSample]) -> bool:
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
        set_random_state(numeric, replace(sample, u=np.zeros(n)), on_constraints=False)
        A, b, _ = numeric.constraints()
        rest = [*(numeric.points[i].velocity for i in points), *(numeric.frames[i].omega for i in frames)]
        wanted = np.concatenate([*rest, b])
        if not np.any(wanted):
            continue
        partials = [*(numeric.points[i].partials for i in points), *(numeric.frames[i].partials for i in frames)]
        rows = np.concatenate([*(J[:, :n] for J in partials), A])
        missing = wanted - rows @ np.linalg.lstsq(rows, wanted, rcond=None)[0]
        if np.max(np.abs(missing)) > COMPARISON_TOLERANCE * np.max(np.abs(wanted)):
            return True
    return False


def _frame_faults(m: Mechanism, numeric: NumericMechanism, samples: list[StateSample]) -> list[Fault]:
    """Return frames whose given angular velocity is not the rate of their direction cosines at some sample."""
    faults: dict[int, Fault] = {}
    for sample in samples:
        set_random_state(numeric, sample, on_constraints=True)
        for i, frame in enumerate(m.frames[1:], start=1):
            if i in faults or not frame.oriented:
                continue
            relative = numeric.frames[i].omega - numeric.frames[frame.parent].omega
            given, derived = numeric.frames[i].rotation.T @ relative, numeric.omega_from_rotation(i)
            if vectors_differ(given, derived, max_angular_velocity(numeric)):
                what = (
                    f"the angular velocity of frame {frame.name} in {m.frames[frame.parent].name} is given as "
                    f"{format_vector(given)} where its direction cosines turn with {format_vector(derived)} "
                    f"(components in {frame.name}, at a random state)"
                )
                faults[i] = Fault(what, remedy="correct set_ang_vel, the orientation, or the kinematic equations")
    return [faults[i] for i in sorted(faults)]


def _inertia_faults(m: Mechanism, numeric: NumericMechanism, samples: list[StateSample]) -> list[Fault]:
    """Return bodies of unknown orientation whose inertia changes when they turn.

    Their inertia is written in the axes of another frame, in which they turn with the angular velocity s:
    s × I - I × s vanishes for a body of revolution about s only.
    """
    faults = []
    for body in m.bodies:
        if body.inertia is None or m.frames[body.frame].oriented:
            continue
        frame, axes = body.frame, m.frames[body.frame].parent
        parameters = [*m.p, *(a.symbol for a in m.calculated_parameters)]
        inertia = sm.lambdify(parameters, body.inertia)
        for sample in samples:
            set_random_state(numeric, sample, on_constraints=True)
            moving, still = numeric.frames[frame], numeric.frames[axes]
            I = np.asarray(inertia(*sample.parameters), dtype=float)
            turned = np.cross(moving.rotation.T @ (moving.omega - still.omega), I, axisb=0, axisc=0)
            if np.max(np.abs(turned + turned.T)) > COMPARISON_TOLERANCE * np.max(np.abs(I)):
                name = m.frames[frame].name
                what = f"frame {name} of body {body.name} has an angular velocity only, and its inertia turns with it"
                faults.append(Fault(what, remedy=f"orient {name}, or let it spin about an axis of revolution"))
                break
    return faults


def _mass_faults(numeric: NumericMechanism, samples: list[StateSample]) -> list[Fault]:
    """Return a fault unless the mass matrix over the independent speeds is positive definite."""
    m = numeric.mechanism
    n = len(m.u)
    worst: Array | None = None
    for sample in samples:
        set_random_state(numeric, sample, on_constraints=True)
        M = numeric.dynamics()[0][:n, :n]
        A = numeric.constraints()[0]
        basis = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :].T if len(A) else np.eye(n)
        scale = np.sqrt(np.abs(np.diag(M))) + (np.abs(np.diag(M)) == 0)
        reduced = basis.T @ (M / np.outer(scale, scale)) @ basis
        if _is_positive_definite(reduced):
            return []
        values, vectors = np.linalg.eigh(reduced)
        if values.size == 0 or values[0] > 1e-13 * max(values[-1], 1e-300):
            return []
        worst = basis @ vectors[:, 0] / scale
    assert worst is not None
    names = [u.name for u, share in zip(m.u, np.abs(worst), strict=True) if share > 0.1 * np.max(np.abs(worst))]
    what = f"the mass matrix is singular or not positive definite: {', '.join(names)} moves no mass and no inertia"
    return [
        *_negative_masses(numeric),
        Fault(what, remedy="give mass or inertia (not zero, not negative) to what these speeds move"),
    ]


def _negative_masses(numeric: NumericMechanism) -> Iterator[Fault]:
    """Yield masses, and moments of inertia about the axes of a body's frame, that are below zero as declared."""
    m = numeric.mechanism
    symbols = (*m.p, *(a.symbol for a in m.calculated_parameters))
    values = dict(zip(symbols, map(sm.Float, numeric.parameters(free_parameter_values(m))), strict=True))
    for body in m.bodies:
        moments = [] if body.inertia is None else [body.inertia[i, i] for i in range(3)]
        for word, quantity in (("mass", body.mass), *(("moment of inertia", moment) for moment in moments)):
            expression = sm.sympify(quantity)
            number = expression.xreplace(values)
            if number.is_number and number < 0:
                said = f"{expression} = " if expression.free_symbols else ""
                yield Fault(f"the {word} of body {body.name} is negative: {said}{float(number):g}")


def _is_positive_definite(M: Array) -> bool:
    """Return True if Cholesky's method succeeds on M minus its singular margin; much cheaper than ``eigh``."""
    margin = 1e-13 * np.trace(M)  # no eigenvalue of a positive definite M is more than its trace
    try:
        np.linalg.cholesky(M - margin * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(margin) and len(M))


def _constraint_force_faults(m: Mechanism, samples: list[StateSample]) -> list[Fault]:
    """Return unknown forces that do work on the motion, or that the auxiliary speeds do not determine."""
    count, n = len(m.constraint_forces), len(m.u)
    if not count:
        return []
    numeric, natural = NumericMechanism(m), estimate_characteristic_units(m.declared)
    # As large as what acts beside it: the difference of a much larger force and itself plus 1 is round-off.
    size = natural.magnitude("N")
    speeds = np.array([natural.typical(speed) for speed in m.declared.speeds])
    # The power at an auxiliary speed, whose unit nobody says: of a force, or of a torque in natural units.
    auxiliary = np.full(len(m.u_auxiliary), natural.magnitude("m/s"))
    columns, powers, others = [], [], []
    for sample in samples:
        set_random_state(numeric, sample, on_constraints=True)
        base = numeric.generalized_forces([0.0] * count)
        column = np.array([numeric.generalized_forces((size * unit).tolist()) - base for unit in np.eye(count)])
        columns.append(column / size)
        powers.append(np.abs(column) * np.concatenate([speeds, auxiliary]))
        others.append(np.abs(base[:n]) * speeds)
    faults = []
    for i, symbol in enumerate(m.constraint_forces):
        least = max(float(np.max(each[i])) for each in powers)
        if any(
            np.any(each[i, :n] > COMPARISON_TOLERANCE * (least + other))
            for each, other in zip(powers, others, strict=True)
        ):
            what = f"{symbol} is declared a constraint force, but it moves the mechanism"
            remedy = "apply it at a point or frame that only auxiliary speeds move"
            if m.auxiliary_rows is not None and not any(np.any(each[i, n:]) for each in columns):
                remedy = (
                    "auxiliary speeds stand in the constraints and move no point where it acts: leave both out, and "
                )
                remedy += f"ask for the force of the constraint, model.constraint(row, multiplier={symbol}, acts=[…])"
            faults.append(Fault(what, remedy=remedy))
    if not faults and any(np.linalg.matrix_rank(column[:, n:]) < count for column in columns):
        names = ", ".join(map(str, m.constraint_forces))
        what = f"the auxiliary speeds do not determine {names}"
        faults.append(Fault(what, remedy="give each unknown force an auxiliary speed along it"))
    return faults


def _force_application_faults(numeric: NumericMechanism, samples: list[StateSample]) -> list[Fault]:
    """Return constraints whose row is not the sum of the velocities along their vectors."""
    m = numeric.mechanism
    faults = []
    for i, acts in enumerate(m.acts):
        for sample in samples if acts else ():
            set_random_state(numeric, sample, on_constraints=True)
            rows, total = numeric.constraints()[0], np.zeros(len(m.u))
            wanted = rows[i]
            for act in acts:
                total += numeric.vector(act.vector) @ _application_partials(numeric, act)[:, : len(m.u)]
            if vectors_differ(total, wanted, float(np.max(np.abs(rows)))):
                assert m.velocity_constraints is not None
                what = (
                    f"what constraint {m.velocity_constraints.names[i]} acts on moves with {format_vector(total)} per "
                    f"speed, the constraint's own row is {format_vector(wanted)} (at a random state)"
                )
                remedy = "the velocities of the points along the vectors must add up to the row: correct acts"
                remedy += _frame_hint(m, acts)
                faults.append(Fault(what, remedy=remedy))
                break
    return faults


def _frame_hint(m: Mechanism, acts: Sequence[ForceApplication]) -> str:
    """Return the hint that a body was given where its frame was meant."""
    centres = {body.masscenter: body for body in m.bodies if body.frame >= 0}
    bodies = [centres[act.at] for act in acts if not act.torque and act.at in centres]
    if not bodies:
        return ""
    named = ", ".join(f"{m.frames[body.frame].name} of {body.name}" for body in bodies)
    return f"; on a body or its mass centre acts a force, a torque on its frame ({named})"


def _application_partials(numeric: NumericMechanism, act: ForceApplication) -> Array:
    """Return the partial velocities of the place where a constraint's force acts, shape (3, n_u)."""
    if act.torque:
        return numeric.frames[act.at].partials
    point = numeric.points[act.at]
    if act.body < 0:
        return point.partials
    body = numeric.mechanism.bodies[act.body]
    centre = numeric.points[body.masscenter]
    if body.frame < 0:
        return centre.partials
    arm = point.position - centre.position
    return centre.partials + np.cross(numeric.frames[body.frame].partials, arm, axisa=0, axisc=0)


def start_faults(m: Mechanism) -> list[Fault]:
    """Return fixed start values of dependent speeds that violate the velocity constraints."""
    dependent = [i for i in range(len(m.u)) if i not in m.u_independent]
    if not dependent or m.velocity_constraints is None:
        return []
    numeric = NumericMechanism(m)
    d = m.declared
    u = np.array([s.start for s in d.speeds])
    numeric.set(
        0.0,
        np.array([c.start for c in d.coordinates]),
        append_auxiliary_speeds(m, u),
        np.array([s.start for s in d.auxiliary_states]),
        np.array([i.start for i in d.inputs]),
        numeric.parameters(free_parameter_values(m)),
    )
    A, b, _ = numeric.constraints()
    independent = list(m.u_independent)
    A_dep, natural = A[:, dependent], estimate_characteristic_units(d)
    units = np.array([natural.typical(speed) for speed in d.speeds])
    even = A_dep * units[dependent]
    lengths = np.linalg.norm(even, axis=1)
    if not np.all(lengths > 0.0) or np.linalg.cond(even / lengths[:, None]) > 1e12:
        names = ", ".join(m.u[i].name for i in dependent)
        what = f"{names} cannot be the dependent speeds at the start: the constraints do not determine them there"
        return [Fault(what, remedy="choose other dependent speeds, or another start")]
    solution = np.linalg.solve(A_dep, -(A[:, independent] @ u[independent] + b))
    faults = []
    for value, i in zip(solution, dependent, strict=True):
        speed = d.speeds[i]
        if speed.kind == "fixed" and abs(value - speed.start) > 1e-9 * (units[i] + abs(value)):
            what = (
                f"the fixed start value {speed.start:g} of {speed.name} contradicts the velocity constraints, "
                f"which give {value:.12g}"
            )
            faults.append(
                Fault(what, speed.where, 'say kind="guess" for a dependent speed, or correct the start values')
            )
    return faults


def find_nonintegrable_velocities(m: Mechanism) -> list[str]:
    """Return the names of bodies whose mass centre's velocity is not the derivative of any position.

    Located points have been compared with their positions already. For the others v = J u, J = ∂v/∂u, must satisfy
    ∂w_i/∂q_j = ∂w_j/∂q_i for the columns w_i of J K⁻¹ (a curl that vanishes), tested by central differences.
    """
    suspects = [body for body in m.bodies if not m.points[body.masscenter].located]
    if not suspects:
        return []
    numeric = NumericMechanism(m)
    bad: dict[str, None] = {}
    sizes = np.array([estimate_characteristic_units(m.declared).typical(item) for item in m.declared.coordinates])
    for sample in draw_random_states(numeric):
        columns = []
        for k in range(len(m.q)):
            sides = []
            for sign in (1, -1):
                moved = replace(sample, q=sample.q + sign * _DIFFERENCE_STEP * sizes * np.eye(len(m.q))[k])
                set_random_state(numeric, moved, on_constraints=False)
                inverse = np.linalg.inv(numeric.kinematics()[0])
                sides.append(
                    [numeric.points[body.masscenter].partials[:, : len(m.u)] @ inverse * sizes for body in suspects]
                )
            columns.append([(a - b) / (2 * _DIFFERENCE_STEP) for a, b in zip(*sides, strict=True)])
        for number, body in enumerate(suspects):
            slopes = np.array([column[number] for column in columns])  # [k, axis, i] = ∂w_i/∂q_k
            far_apart = np.max(np.abs(slopes - slopes.transpose(2, 1, 0)))
            if far_apart > 1e-6 * (np.max(np.abs(slopes)) + np.max(np.abs(sides[0][number]))):
                bad[body.name] = None
    return list(bad)


def kinetic_energy_matches(m: Mechanism) -> bool:
    """Return True if the bodies' kinetic energy is the part of the Lagrangian that vanishes at q' = 0.

    Otherwise the bodies are not those that the Lagrangian speaks of, or a prescribed motion moves them.
    """
    assert m.lagrangian is not None
    numeric = NumericMechanism(m)
    arguments = [m.t, *m.q, *m.u, *m.z, *m.r, *m.p, *(a.symbol for a in m.calculated_parameters)]
    lagrangian = sm.lambdify(arguments, m.lagrangian.expression, modules=["scipy", "numpy"])
    for s in draw_random_states(numeric):
        set_random_state(numeric, s, on_constraints=False)
        values = [float(lagrangian(s.t, *s.q, *u, *s.z, *s.r, *s.parameters)) for u in (s.u, 0 * s.u)]
        difference, kinetic = np.array([values[0] - values[1]]), np.array([numeric.kinetic_energy()])
        if vectors_differ(difference, kinetic, max(abs(value) for value in values)):
            return False
    return True
