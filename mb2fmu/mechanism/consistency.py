"""Checks a mechanism's kinematics numerically at random points, and settles which velocities are used.

SymPy accepts ``set_ang_vel(N, 3*u*N.z)`` beside q' = u and silently gives nine times the inertia. So every angular
velocity is held against its direction cosines and every velocity against the derivative of its position. A velocity
that agrees on the velocity constraints only (rolling contacts) uses its constraint already: that is legal, and
remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.physics.mechanics import System

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanism.numeric import NumericMechanism
from mb2fmu.mechanism.records import Act, ForceLoad, Mechanism, PathwayLoad, Place, VectorTerms
from mb2fmu.model import mechanics as door
from mb2fmu.model.definition import Parts

Array = npt.NDArray[np.float64]
SAMPLES = 3
ATTEMPTS = 20
TOLERANCE = 1e-8


@dataclass(frozen=True, slots=True)
class Sample:
    """One random state: anywhere (``u``), and with the speeds moved onto the velocity constraints (``u_on``)."""

    t: float
    q: Array
    u: Array
    u_on: Array
    z: Array
    r: Array
    parameters: Array


def settle_kinematics(draft: Mechanism, user_velocities: Mapping[int, VectorTerms]) -> Mechanism:
    """Checks the kinematics, and decides for each point whether its velocity is derived or taken as given.

    Args:
        draft: With the velocities of located points derived from their positions.
        user_velocities: Point number → velocity in N as set by the user.

    Returns:
        The mechanism with settled velocities.

    Raises:
        MechanismError: With every contradiction, a mass matrix that is singular, and fixed start values that
            contradict a velocity constraint.
    """
    derived = NumericMechanism(draft, rates=True)
    samples = _samples(derived)
    faults = _frame_faults(draft, derived, samples) + _inertia_faults(draft, derived, samples)
    settled, more = _settle_points(draft, derived, samples, user_velocities)
    faults += more
    if not faults:
        numeric = derived if settled is draft else NumericMechanism(settled)
        faults += _mass_faults(numeric, samples) + _start_faults(settled) + _constraint_force_faults(settled, samples)
        faults += _act_faults(numeric, samples)
    if faults:
        raise MechanismError("the mechanism contradicts itself:", faults)
    return settled


def parameter_values(mechanism: Mechanism) -> list[float]:
    """Values of the free parameters as declared."""
    return [float(p.value) for p in mechanism.definition.parameters if not p.calculated]


def _samples(numeric: NumericMechanism) -> list[Sample]:
    """Random states near the start, where everything is finite."""
    m = numeric.mechanism
    generator = np.random.default_rng(20090)
    start = np.array([c.start for c in m.definition.coordinates])
    nominal = np.array(parameter_values(m))
    samples: list[Sample] = []
    for _ in range(ATTEMPTS):
        p = nominal * (1 + 0.1 * generator.uniform(-1, 1, nominal.shape))
        q = start + generator.uniform(-0.7, 0.7, start.shape)
        u = generator.uniform(-1, 1, len(m.u))
        z = np.array([s.start for s in m.definition.auxiliary_states]) * (1 + 0.1 * generator.uniform(-1, 1, len(m.z)))
        r = np.array([i.start for i in m.definition.inputs]) + generator.uniform(-0.1, 0.1, len(m.r))
        t = float(generator.uniform(0.1, 1))
        with np.errstate(all="ignore"):
            parameters = numeric.parameters(p)
            numeric.set(t, q, _with_auxiliary(m, u), z, r, parameters)
            A, b, _ = numeric.constraints()
            finite = np.isfinite(A).all() and all(np.isfinite(pt.velocity).all() for pt in numeric.points)
        if finite:
            u_on = u - np.linalg.pinv(A) @ (A @ u + b) if len(A) else u
            samples.append(Sample(t, q, u, u_on, z, r, parameters))
        if len(samples) == SAMPLES:
            return samples
    what = "positions and velocities are not finite at any of the states tried near the start values"
    raise MechanismError("the mechanism cannot be evaluated:", [Fault(what, remedy="check parameter and start values")])


def _with_auxiliary(m: Mechanism, u: Array) -> Array:
    return np.concatenate([u, np.zeros(len(m.u_auxiliary))])


def _move(numeric: NumericMechanism, sample: Sample, *, on_constraints: bool) -> None:
    u = sample.u_on if on_constraints else sample.u
    numeric.set(sample.t, sample.q, _with_auxiliary(numeric.mechanism, u), sample.z, sample.r, sample.parameters)


def _far(a: Array, b: Array) -> bool:
    return bool(np.max(np.abs(a - b)) > TOLERANCE * (1 + np.max(np.abs(a)) + np.max(np.abs(b))))


def _frame_faults(m: Mechanism, numeric: NumericMechanism, samples: list[Sample]) -> list[Fault]:
    faults: dict[int, Fault] = {}
    for sample in samples:
        _move(numeric, sample, on_constraints=True)
        for i, frame in enumerate(m.frames[1:], start=1):
            if i in faults or not frame.oriented:
                continue
            relative = numeric.frames[i].omega - numeric.frames[frame.parent].omega
            given, derived = numeric.frames[i].rotation.T @ relative, numeric.omega_from_rotation(i)
            if _far(given, derived):
                what = (
                    f"the angular velocity of frame {frame.name} in {m.frames[frame.parent].name} is given as "
                    f"{_numbers(given)} where its direction cosines turn with {_numbers(derived)} "
                    f"(components in {frame.name}, at a random state)"
                )
                faults[i] = Fault(what, remedy="mend set_ang_vel, the orientation, or the kinematic equations")
    return [faults[i] for i in sorted(faults)]


def _inertia_faults(m: Mechanism, numeric: NumericMechanism, samples: list[Sample]) -> list[Fault]:
    """Bodies whose orientation nobody knows must look the same however far they have turned.

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
            _move(numeric, sample, on_constraints=True)
            moving, still = numeric.frames[frame], numeric.frames[axes]
            I = np.asarray(inertia(*sample.parameters), dtype=float)
            turned = np.cross(moving.rotation.T @ (moving.omega - still.omega), I, axisb=0, axisc=0)
            if np.max(np.abs(turned + turned.T)) > TOLERANCE * np.max(np.abs(I)):
                name = m.frames[frame].name
                what = f"frame {name} of body {body.name} has an angular velocity only, and its inertia turns with it"
                faults.append(Fault(what, remedy=f"orient {name}, or let it spin about an axis of revolution"))
                break
    return faults


def _settle_points(
    draft: Mechanism, derived: NumericMechanism, samples: list[Sample], given: Mapping[int, VectorTerms]
) -> tuple[Mechanism, list[Fault]]:
    """Compares given with derived velocities of located points."""
    given = {i: velocity for i, velocity in given.items() if draft.points[i].located}
    if not given:
        return draft, []
    trial = tuple(replace(p, velocity=given.get(i, p.velocity)) for i, p in enumerate(draft.points))
    taken = NumericMechanism(replace(draft, points=trial))
    anywhere, on_constraints = _agreeing(derived, taken, samples, set(given))
    points, faults, by_constraint = list(draft.points), [], []
    lost: set[int] = set()
    matters, contact_allowed = _moving_points(draft), _origin_was_found(draft)
    only_loaded = {load.point for load in draft.loads if isinstance(load, ForceLoad)} - _points_of_lengths(draft)
    for i in sorted(given):
        place = points[i]
        if i in anywhere:
            if _prefer_given(draft, place, given[i]):
                points[i] = replace(place, velocity=given[i])
        elif i in on_constraints:
            points[i] = replace(place, velocity=given[i])
            by_constraint.append(place.name)
        elif contact_allowed and place.parent in {0, *lost}:
            # what was found as the origin is a contact point of zero velocity, not a point fixed in N
            points[i] = replace(place, velocity=given[i], located=False)
            lost.add(i)
            by_constraint.append(place.name)
        elif i in only_loaded and (_is_auxiliary(draft, given[i]) or _is_particle(i, derived, taken, samples)):
            points[i] = replace(place, velocity=given[i], passing=True)
        elif i in matters:
            faults.append(_velocity_fault(i, derived, taken, samples[0]))
    for i, place in enumerate(points):
        if place.parent in lost and place.located:
            points[i] = replace(place, located=False)
            lost.add(i)
    return replace(draft, points=tuple(points), given_by_constraint=tuple(by_constraint)), faults


def _agreeing(
    derived: NumericMechanism, taken: NumericMechanism, samples: list[Sample], points: set[int]
) -> tuple[set[int], set[int]]:
    """Points whose velocities agree anywhere, and those that agree where the velocity constraints hold."""
    anywhere, on_constraints = set(points), set(points)
    for sample in samples:
        for on, agreeing in ((False, anywhere), (True, on_constraints)):
            _move(derived, sample, on_constraints=on)
            _move(taken, sample, on_constraints=on)
            agreeing -= {i for i in agreeing if _far(taken.points[i].velocity, derived.points[i].velocity)}
    return anywhere, on_constraints


def _points_of_lengths(m: Mechanism) -> set[int]:
    """Points whose position is more than where something acts: mass centres, and ends of pathways."""
    ends = (load.points for load in m.loads if isinstance(load, PathwayLoad))
    return {body.masscenter for body in m.bodies}.union(*ends)


def _is_auxiliary(m: Mechanism, given: VectorTerms) -> bool:
    """Whether a velocity is made of auxiliary speeds only: what acts there is brought to light, and moves nothing."""
    components = [c for _, cs in given for c in cs]
    zero = dict.fromkeys(m.u_auxiliary, sm.S.Zero)
    return any(c != 0 for c in components) and all(c.xreplace(zero) == 0 for c in components)


def _is_particle(i: int, derived: NumericMechanism, taken: NumericMechanism, samples: list[Sample]) -> bool:
    """Whether the given velocity is that of the particle of a body which is at the point now: v_G + w_B × (r - r_G).

    So ``v2pt_theory`` from the centre of a wheel gives the velocity of what touches the ground, while the point where
    it touches moves along the ground. Everywhere, or where the velocity constraints hold.
    """
    m = derived.mechanism
    bodies = {
        (body.masscenter, body.frame) for body in m.bodies if body.frame >= 0 and m.points[body.masscenter].located
    }
    agreeing = {False: set(bodies), True: set(bodies)}
    for sample in samples:
        for on, left in agreeing.items():
            _move(derived, sample, on_constraints=on)
            _move(taken, sample, on_constraints=on)
            position, velocity = derived.points[i].position, taken.points[i].velocity
            for centre, frame in sorted(left):
                arm = position - derived.points[centre].position
                particle = derived.points[centre].velocity + np.cross(derived.frames[frame].omega, arm)
                if _far(velocity, particle):
                    left.discard((centre, frame))
    return any(agreeing.values())


def _origin_was_found(m: Mechanism) -> bool:
    """True if nobody named the origin: a KanesMethod's is the nearest point of zero velocity."""
    mechanics = m.definition.mechanics
    return not isinstance(mechanics, (System, Parts)) and door.origin(mechanics) is not None


def _velocity_fault(i: int, derived: NumericMechanism, taken: NumericMechanism, sample: Sample) -> Fault:
    _move(derived, sample, on_constraints=True)
    _move(taken, sample, on_constraints=True)
    m = derived.mechanism
    what = (
        f"the velocity of point {m.points[i].name} is given as {_numbers(taken.points[i].velocity)} where its position "
        f"moves with {_numbers(derived.points[i].velocity)} (components in {m.frames[0].name}, at a random state)"
    )
    return Fault(what, remedy="mend set_vel, the position, or the kinematic equations")


def _moving_points(m: Mechanism) -> set[int]:
    """Points whose velocity enters the dynamics."""
    numbers = {body.masscenter for body in m.bodies}
    for load in m.loads:
        numbers |= set(getattr(load, "points", ())) | {getattr(load, "point", 0)}
    return numbers


def _prefer_given(m: Mechanism, place: Place, given: VectorTerms) -> bool:
    """True where the user's velocity says more (auxiliary speeds), or is the simpler of two equal expressions."""
    components = [c for _, cs in given for c in cs]
    if any(c.free_symbols & set(m.u_auxiliary) for c in components):
        return True
    offsets = [c for _, cs in place.position or () for c in cs]
    constant = not any(c.free_symbols & {*m.q, *m.r, m.t} for c in offsets)
    frames = {frame for frame, _ in place.position or ()}
    if constant and frames != {0}:
        return False
    return bool(sum(sm.count_ops(c) for c in components) <= sum(sm.count_ops(c) for c in offsets))


def _mass_faults(numeric: NumericMechanism, samples: list[Sample]) -> list[Fault]:
    """The mass matrix over the independent speeds must be positive definite."""
    m = numeric.mechanism
    n = len(m.u)
    worst: Array | None = None
    for sample in samples:
        _move(numeric, sample, on_constraints=True)
        M = numeric.dynamics()[0][:n, :n]
        A = numeric.constraints()[0]
        basis = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :].T if len(A) else np.eye(n)
        scale = np.sqrt(np.abs(np.diag(M))) + (np.abs(np.diag(M)) == 0)
        reduced = basis.T @ (M / np.outer(scale, scale)) @ basis
        if _surely_positive(reduced):
            return []
        values, vectors = np.linalg.eigh(reduced)
        if values.size == 0 or values[0] > 1e-13 * max(values[-1], 1e-300):
            return []
        worst = basis @ vectors[:, 0] / scale
    assert worst is not None
    names = [u.name for u, share in zip(m.u, np.abs(worst), strict=True) if share > 0.1 * np.max(np.abs(worst))]
    what = f"the mass matrix is singular or not positive definite: {', '.join(names)} moves no mass and no inertia"
    return [Fault(what, remedy="give mass or inertia (not zero, not negative) to what these speeds move")]


def _surely_positive(M: Array) -> bool:
    """True if Cholesky's method succeeds on M less what singular ones would have, for a fraction of ``eigh``'s time."""
    margin = 1e-13 * np.trace(M)  # no eigenvalue of a positive definite M is more than its trace
    try:
        np.linalg.cholesky(M - margin * np.eye(len(M)))
    except np.linalg.LinAlgError:
        return False
    return bool(np.isfinite(margin) and len(M))


def _constraint_force_faults(m: Mechanism, samples: list[Sample]) -> list[Fault]:
    """Unknown forces must do no work on the motion, and the auxiliary speeds must determine them."""
    count, n = len(m.constraint_forces), len(m.u)
    if not count:
        return []
    numeric = NumericMechanism(m)
    columns = []
    for sample in samples:
        _move(numeric, sample, on_constraints=True)
        base = numeric.generalized_forces([0.0] * count)
        columns.append(np.array([numeric.generalized_forces(list(unit)) - base for unit in np.eye(count)]))
    faults = []
    for i, symbol in enumerate(m.constraint_forces):
        moved = max(float(np.max(np.abs(column[i, :n]))) for column in columns)
        if moved > TOLERANCE:
            what = f"{symbol} is declared a constraint force, but it moves the mechanism"
            faults.append(Fault(what, remedy="apply it at a point or frame that only auxiliary speeds move"))
    if not faults and any(np.linalg.matrix_rank(column[:, n:]) < count for column in columns):
        names = ", ".join(map(str, m.constraint_forces))
        what = f"the auxiliary speeds do not determine {names}"
        faults.append(Fault(what, remedy="give each unknown force an auxiliary speed along it"))
    return faults


def _act_faults(numeric: NumericMechanism, samples: list[Sample]) -> list[Fault]:
    """The points' and frames' velocities along a constraint's vectors must add up to its row."""
    m = numeric.mechanism
    faults = []
    for i, acts in enumerate(m.acts):
        for sample in samples if acts else ():
            _move(numeric, sample, on_constraints=True)
            wanted, total = numeric.constraints()[0][i], np.zeros(len(m.u))
            for act in acts:
                total += numeric.vector(act.vector) @ _act_partials(numeric, act)[:, : len(m.u)]
            if _far(total, wanted):
                assert m.velocity_constraints is not None
                what = (
                    f"what constraint {m.velocity_constraints.names[i]} acts on moves with {_numbers(total)} per "
                    f"speed, the constraint's own row is {_numbers(wanted)} (at a random state)"
                )
                remedy = "the velocities of the points along the vectors must add up to the row: mend acts"
                remedy += _frame_instead(m, acts)
                faults.append(Fault(what, remedy=remedy))
                break
    return faults


def _frame_instead(m: Mechanism, acts: Sequence[Act]) -> str:
    """A body may have been given where its frame was meant."""
    centres = {body.masscenter: body for body in m.bodies if body.frame >= 0}
    bodies = [centres[act.at] for act in acts if not act.torque and act.at in centres]
    if not bodies:
        return ""
    named = ", ".join(f"{m.frames[body.frame].name} of {body.name}" for body in bodies)
    return f"; on a body or its mass centre acts a force, a torque on its frame ({named})"


def _act_partials(numeric: NumericMechanism, act: Act) -> Array:
    """Partial velocities of what a constraint's force acts on, shape (3, n_u)."""
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


def _start_faults(m: Mechanism) -> list[Fault]:
    """Fixed start values of dependent speeds must obey the velocity constraints."""
    dependent = [i for i in range(len(m.u)) if i not in m.u_independent]
    if not dependent or m.velocity_constraints is None or m.holonomic:
        return []  # loops are closed first (close_loops)
    numeric = NumericMechanism(m)
    d = m.definition
    u = np.array([s.start for s in d.speeds])
    numeric.set(
        0.0,
        np.array([c.start for c in d.coordinates]),
        _with_auxiliary(m, u),
        np.array([s.start for s in d.auxiliary_states]),
        np.array([i.start for i in d.inputs]),
        numeric.parameters(parameter_values(m)),
    )
    A, b, _ = numeric.constraints()
    independent = list(m.u_independent)
    A_dep = A[:, dependent]
    if np.linalg.cond(A_dep) > 1e12:
        names = ", ".join(m.u[i].name for i in dependent)
        what = f"{names} cannot be the dependent speeds at the start: the constraints do not determine them there"
        return [Fault(what, remedy="choose other dependent speeds, or another start")]
    solution = np.linalg.solve(A_dep, -(A[:, independent] @ u[independent] + b))
    faults = []
    for value, i in zip(solution, dependent, strict=True):
        speed = d.speeds[i]
        if speed.kind == "fixed" and abs(value - speed.start) > 1e-9 * (1 + abs(value)):
            what = (
                f"the fixed start value {speed.start:g} of {speed.name} contradicts the velocity constraints, "
                f"which give {value:.12g}"
            )
            faults.append(Fault(what, speed.where, 'say kind="guess" for a dependent speed, or mend the start values'))
    return faults


def velocities_integrable(m: Mechanism) -> list[str]:
    """Names of bodies whose mass centre's velocity is not the derivative of any position.

    Located points have been held against their positions already. For the others v = J u, J = ∂v/∂u, must satisfy
    ∂w_i/∂q_j = ∂w_j/∂q_i for the columns w_i of J K⁻¹ (a curl that vanishes), tested by central differences.
    """
    suspects = [body for body in m.bodies if not m.points[body.masscenter].located]
    if not suspects:
        return []
    numeric = NumericMechanism(m)
    bad: dict[str, None] = {}
    step = 1e-5
    for sample in _samples(numeric):
        columns = []
        for k in range(len(m.q)):
            sides = []
            for sign in (1, -1):
                moved = replace(sample, q=sample.q + sign * step * np.eye(len(m.q))[k])
                _move(numeric, moved, on_constraints=False)
                inverse = np.linalg.inv(numeric.kinematics()[0])
                sides.append([numeric.points[body.masscenter].partials[:, : len(m.u)] @ inverse for body in suspects])
            columns.append([(a - b) / (2 * step) for a, b in zip(*sides, strict=True)])
        for number, body in enumerate(suspects):
            slopes = np.array([column[number] for column in columns])  # [k, axis, i] = ∂w_i/∂q_k
            if np.max(np.abs(slopes - slopes.transpose(2, 1, 0))) > 1e-6 * (1 + np.max(np.abs(slopes))):
                bad[body.name] = None
    return list(bad)


def kinetic_energy_matches(m: Mechanism) -> bool:
    """True if the bodies' kinetic energy is the part of the Lagrangian that vanishes at q' = 0.

    Otherwise the bodies are not those that the Lagrangian speaks of, or a prescribed motion moves them.
    """
    assert m.lagrangian is not None
    numeric = NumericMechanism(m)
    arguments = [m.t, *m.q, *m.u, *m.z, *m.r, *m.p, *(a.symbol for a in m.calculated_parameters)]
    lagrangian = sm.lambdify(arguments, m.lagrangian.expression, modules=["scipy", "numpy"])
    for s in _samples(numeric):
        _move(numeric, s, on_constraints=False)
        values = [float(lagrangian(s.t, *s.q, *u, *s.z, *s.r, *s.parameters)) for u in (s.u, 0 * s.u)]
        if _far(np.array([values[0] - values[1]]), np.array([numeric.kinetic_energy()])):
            return False
    return True


def _numbers(vector: Array) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in vector) + ")"
