"""Laws of motion for an FMU's own runs, which need no start value, guess or projection of mb2fmu.

x' is compared at points that are projected onto the constraints, and the reference begins where the FMU does. If both
begin beside a declared constraint, each agrees with the other. So two laws are checked at the states as the FMU shows
them, at its start too, by the source objects:

- *constraints*: every declared row φ(q, t) = 0 and A u + b = 0 holds, first of all at the start;
- *momentum*: where all bodies can be shifted together along an axis of the inertial frame, the sum of m r over their
  positions moves by the resultant F of the loads alone, S(t) = S(0) + t P(0) + ∫ (t − s) F(s) ds: so a free body's
  centre falls with g. Velocities enter at the start only; neither q' = K u + k0 nor u' is used.

Integrals are trapezoidal sums over every and over every second point; their difference is allowed for. Loads with
tables bend, so the points between are evaluated as well, at states of Hermite's cubics through the FMU's states and the
objects' rates, and the differences are summed by magnitude: a bend in a pair of steps errs by no more than its own.
A quaternion that an experiment begins with at another length than 1 means the orientation that it has at length 1.

Momentum is not judged where communication points are too far apart to show the motion: a force that turns once from one
to the next looks constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Speed
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.reference.variable_scales import ERROR_BOUND_FACTOR, ROUND_OFF_ALLOWANCE
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult
from mb2fmu.validation.source_checks.numeric_kane_equations import NumericKaneEquations, SympySourceMotion
from mb2fmu.validation.source_checks.source_kinematics_evaluation import SympySourceKinematicsEvaluator
from mb2fmu.validation.source_checks.source_symbol_slots import Floats, SympySourceSymbolSlots

Flags = npt.NDArray[np.bool_]
ExperimentRun = tuple[ExperimentValues, FmuSimulationResult]
LawError = tuple[float, str]
"""Error over bound; quantity and time."""

_START_TOLERANCE = 1e-6
"""Of a row's scale: start values are solved for, whatever the tolerance of an integration is."""
_LAW_POINTS = 50
"""Of a run, from its start on, at which a law is checked."""
_LARGEST_TURN_RAD, _LARGEST_UNSEEN_PART = 0.5, 0.9
"""From point to point: rad, and the part of the fastest change that may be missing of what rates at both say."""
_SMOOTHNESS_FRACTION = 0.02  # of what moves: as much may half as many points change
_SUBSTEPS_OF_BENT_LOADS = 16
_UNIT_LENGTH_TOLERANCE = 1e-9
_FREE_SHIFT_TOLERANCE = 1e-9  # of the shift: what of it constraints and joints refuse


class LawsOfMotionCheck:
    """Judges runs by the source objects. Call it within ``keep_mechanics_untouched``.

    Args:
        definition: The checked model.
        symbols: Slots of its symbols.
        judge_constraints: Of the objects.
        kinematics: Of the objects; None: constraints alone are judged.
        scales: How far each of ``symbols.q`` and ``symbols.u`` moves.
        has_bent_loads: Whether loads have tables.
        quaternions: Numbers of coordinates (in the definition's order) that form quaternions.
    """

    def __init__(
        self,
        definition: CheckedModel,
        symbols: SympySourceSymbolSlots,
        constraints: SympySourceKinematicsEvaluator,
        kinematics: NumericKaneEquations | None,
        scales: tuple[Floats, Floats],
        *,
        has_bent_loads: bool = False,
        quaternions: Sequence[Sequence[int]] = (),
    ) -> None:
        self._substeps = _SUBSTEPS_OF_BENT_LOADS if has_bent_loads else 1
        self._symbols, self._constraints, self._kinematics, self._scales = symbols, constraints, kinematics, scales
        d, slot = definition, symbols.slot
        self._quaternions = [(group, [slot[d.coordinates[i].symbol] for i in group]) for group in quaternions]
        states: list[Coordinate | Speed | AuxiliaryState] = [*d.coordinates, *d.speeds, *d.auxiliary_states]
        self._names = {slot[item.symbol]: item.name for item in states}

    def judge_constraints(self, runs: Sequence[ExperimentRun]) -> Iterator[LawError]:
        """Yield how far the declared constraint that holds worst is from that, point by point."""
        for run, simulation in runs:
            points = _choose_point_indices(len(run.time))
            states = [self._values(run, simulation, k) for k in points]
            residuals, scales = self._constraints.residuals_and_scales(states, *self._scales)
            if not residuals.shape[1]:
                return
            relative_bounds = np.full(len(points), ERROR_BOUND_FACTOR * run.tolerance)
            relative_bounds[0] = min(_START_TOLERANCE, relative_bounds[0])
            bound = (relative_bounds[:, None] + ROUND_OFF_ALLOWANCE) * np.max(scales, axis=0)
            yield from _find_worst_ratios(np.abs(residuals), bound, run.time[points], "constraint")

    def judge_momentum(self, runs: Sequence[ExperimentRun]) -> Iterator[LawError]:
        """Yield how far the bodies' common centre is from where its momentum and the loads take it, point by point."""
        for run, simulation in runs:
            if self._kinematics is None or not run.has_constant_inputs or len(run.time) < 2 * 2 + 1:
                continue
            points = np.arange(min(_LAW_POINTS, (len(run.time) - 1) // 2 * 2) + 1)
            states = [self._values(run, simulation, k) for k in points.tolist()]
            motions = [self._kinematics.evaluate_motion(states[0])]
            if not any(shift is not None for shift in _find_rigid_shifts(motions[0])):
                continue
            motions += self._kinematics.evaluate_motions(states[1:])
            centres = [motion.centres for motion in motions if motion.centres is not None]
            slots = [self._symbols.slot[symbol] for symbol in (*self._symbols.q, *self._symbols.u)]
            q_and_u = np.array(states)[:, slots]
            time, relative_bound = run.time[points], ERROR_BOUND_FACTOR * run.tolerance
            if len(centres) == len(points) and _is_resolved(
                q_and_u, motions, time, relative_bound * np.concatenate(self._scales)
            ):
                loads = _SympySourceMotionAlongRun(time, motions, self._substeps)
                if self._substeps > 1:
                    loads = self._refine(loads, states)
                yield from _judge_momentum(loads, np.array(centres), relative_bound)

    def _refine(
        self, loads: _SympySourceMotionAlongRun, states: Sequence[Sequence[float]]
    ) -> _SympySourceMotionAlongRun:
        """Return the loads at points between, too; values of the slots are those of each communication point."""
        assert self._kinematics is not None
        slots = [self._symbols.slot[symbol] for symbol in (*self._symbols.q, *self._symbols.u)]
        further = [slot for slot in self._names if slot not in slots]
        refined = [loads.motions[0]]
        for k, step in enumerate(np.diff(loads.time)):
            ends = np.array([[state[slot] for slot in (*slots, *further)] for state in states[k : k + 2]])
            rates = np.array(
                [
                    np.concatenate([motion.q_dot, motion.u_dot, self._symbols.z_dot(state)])
                    for motion, state in zip(loads.motions[k : k + 2], states[k : k + 2], strict=True)
                ]
            )
            between = []
            for part in np.arange(1, self._substeps) / self._substeps:
                values = list(states[k])
                values[0] = float(loads.time[k] + part * step)
                for slot, value in zip((*slots, *further), _interpolate(ends, step * rates, part), strict=True):
                    values[slot] = float(value)
                between.append(self._symbols.complete_values(values))
            refined += self._kinematics.evaluate_motions(between)
            refined.append(loads.motions[k + 1])
        return replace(loads, motions=refined)

    def _values(self, run: ExperimentValues, simulation: FmuSimulationResult, k: int) -> list[float]:
        """Return the slots' values at a communication point, as the FMU shows its states; without q'."""
        s, values = self._symbols, [0.0] * len(self._symbols.slot)
        values[0] = float(run.time[k])
        for slot, name in self._names.items():
            values[slot] = float(simulation[name][k])
        for symbols, numbers in ((s.r, run.inputs_at(k).tolist()), (s.p, run.parameters)):
            for symbol, number in zip(symbols, numbers, strict=True):
                values[s.slot[symbol]] = number
        for group, slots in self._quaternions:
            if abs(math.hypot(*(run.q[i] for i in group)) - 1.0) > _UNIT_LENGTH_TOLERANCE:
                length = math.hypot(*(values[slot] for slot in slots))
                for slot in slots:
                    values[slot] /= length
        return s.complete_values(values)


def _choose_point_indices(count: int) -> list[int]:
    """Return the first point and others up to the last one."""
    return [int(k) for k in np.unique(np.linspace(0, count - 1, _LAW_POINTS + 1).astype(np.int64))]


def _find_worst_ratios(error: Floats, bound: Floats, time: Floats, description: str) -> Iterator[LawError]:
    """Yield the worst ratio at each point, and of which column; what is no number fails."""
    ratios = np.divide(error, bound, out=np.where(error > 0.0, np.inf, 0.0), where=bound > 0.0)
    ratios = np.where(np.isfinite(error), ratios, np.inf)
    for k, j in enumerate(np.argmax(ratios, axis=1).tolist()):
        yield float(ratios[k, j]), f"{description} {j + 1}, {error[k, j]:.3g} off at t = {time[k]:.4g} s"


def _find_rigid_shifts(motion: SympySourceMotion) -> list[Floats | None]:
    """Return for each axis the speeds that shift all bodies along it at 1 m/s; None where they cannot be shifted."""
    J, W, A = motion.partials
    J = J[_find_moving_bodies(motion)]
    rows = np.concatenate([J.reshape(-1, J.shape[-1]), W.reshape(-1, W.shape[-1]), A])
    shifts: list[Floats | None] = []
    for axis in np.eye(3):
        target_velocities = np.concatenate([np.tile(axis, len(J)), np.zeros(rows.shape[0] - 3 * len(J))])
        speeds = np.linalg.lstsq(rows, target_velocities, rcond=None)[0]
        shifts.append(speeds if np.max(np.abs(rows @ speeds - target_velocities)) <= _FREE_SHIFT_TOLERANCE else None)
    return shifts


def _is_resolved(states: Floats, motions: Sequence[SympySourceMotion], time: Floats, noise: Floats) -> bool:
    """Return whether no body turns far from point to point, and (q, u) changes there by what its rates at both say.

    It may change by more: then the FMU does not do what the objects say, which is to be found.

    Args:
        states: q and u, shape (n_t, n).
        motions: There.
        time: Shape (n_t,).
        noise: What changes of q and u say nothing, shape (n,).
    """
    rates = np.array([np.concatenate([motion.q_dot, motion.u_dot]) for motion in motions])
    step = np.diff(time)
    largest_turn = max(float(np.max(np.abs(motion.omegas))) for motion in motions) * float(np.max(step))
    missing_change = np.abs(rates[1:] + rates[:-1]) / 2.0 * step[:, None] - np.abs(np.diff(states, axis=0))
    largest = np.max(np.abs(rates), axis=0) * float(np.max(step))
    return largest_turn <= _LARGEST_TURN_RAD and bool(np.all(missing_change <= _LARGEST_UNSEEN_PART * largest + noise))


def _find_moving_bodies(motion: SympySourceMotion) -> Flags:
    """Return which bodies' mass centres any speed moves."""
    return np.asarray(np.any(motion.partials[0] != 0.0, axis=(1, 2)))


def _interpolate(ends: Floats, changes: Floats, part: float) -> Floats:
    """Return Hermite's cubic at a part of a step.

    Args:
        ends: Values at both ends, shape (2, n).
        changes: Rates there times the step, shape (2, n).
        part: From 0 to 1.
    """
    p, left = part, 1.0 - part
    onto, along = p**2 * (3.0 - 2.0 * p), np.array([p * left**2, -(p**2) * left])
    values: Floats = (1.0 - onto) * ends[0] + onto * ends[1] + along @ changes
    return values


@dataclass(frozen=True, slots=True)
class _SympySourceMotionAlongRun:
    """The objects' motion along a run.

    Attributes:
        time: Of the communication points, shape (n_t,).
        motions: At these, and at equal parts of each step between.
        substeps: Parts of each step; 1: there are no points between.
    """

    time: Floats
    motions: Sequence[SympySourceMotion]
    substeps: int

    def integrate_twice(self, F: Floats) -> tuple[Floats, Floats]:
        """Return ∫ (t − s) F(s) ds at each second communication point, and what it may be off.

        Args:
            F: At all points, shape ((n_t − 1) substeps + 1,).
        """
        fractions = np.arange(self.substeps) / self.substeps
        time = np.append((self.time[:-1, None] + fractions * np.diff(self.time)[:, None]).ravel(), self.time[-1])
        fine, coarse = _integrate_twice(F, time), _integrate_twice(F[::2], time[::2])
        difference = (fine[::2] - coarse)[:: self.substeps]
        error = np.maximum.accumulate(np.abs(difference))
        if self.substeps > 1:
            # A bend in a pair of steps leaves in the first integral at most 2/3 of how the pair's two sums differ.
            step = np.diff(time[::2])
            slips = np.abs(F[:-2:2] - 2.0 * F[1:-1:2] + F[2::2]) * step / 4.0
            error = np.append(0.0, np.cumsum(np.cumsum(slips) * step))[:: self.substeps]
        return fine[:: 2 * self.substeps] + difference / 3.0, error


def _judge_momentum(loads: _SympySourceMotionAlongRun, centres: Floats, tolerance: float) -> Iterator[LawError]:
    """Yield the worst error over bound at each second point, of the axes along which all bodies can always be shifted.

    Args:
        loads: And motion, by the objects.
        centres: Of the bodies, shape (n_t, n_b, 3).
        tolerance: Allowed part of what moves.
    """
    motions, time = loads.motions, loads.time
    shifts = [_find_rigid_shifts(motion) for motion in motions]
    m = motions[0].masses * _find_moving_bodies(motions[0])
    S = np.einsum("b,tba->ta", m, centres)
    P = m @ motions[0].velocities
    even_times = time[::2]
    error, integration_error, free_axes = np.zeros((len(even_times), 3)), np.zeros((len(even_times), 3)), []
    # Of each body by itself: in the sum all may cancel.
    scale = m @ (np.ptp(centres, axis=0) + even_times[-1] * np.abs(motions[0].velocities))
    for axis in range(3):
        axis_speeds = [speeds for shift in shifts if (speeds := shift[axis]) is not None]
        if len(axis_speeds) < len(shifts):
            continue
        free_axes.append(axis)
        F = np.array([motion.forces @ speeds for motion, speeds in zip(motions, axis_speeds, strict=True)])
        integrals, integration_error[:, axis] = loads.integrate_twice(F)
        scale[axis] += np.max(np.abs(integrals))
        error[:, axis] = np.abs(S[::2, axis] - S[0, axis] - even_times * P[axis] - integrals)
    sizes = float(np.max(m @ np.max(np.abs(centres), axis=0))) + np.max(scale)
    if not free_axes or np.max(integration_error[:, free_axes]) > _SMOOTHNESS_FRACTION * np.max(scale):
        return  # loads change too fast for sums over these points
    bound = tolerance * np.max(scale) + ROUND_OFF_ALLOWANCE * sizes + integration_error
    yield from _find_worst_ratios(error[:, free_axes], bound[:, free_axes], even_times, "sum of m r along free axis")


def _integrate_twice(F: Floats, time: Floats) -> Floats:
    """Return ∫ (t − s) F(s) ds at all times: exact where F is constant."""
    step = np.diff(time)
    first = np.concatenate([[0.0], np.cumsum((F[1:] + F[:-1]) / 2.0 * step)])
    increments = first[:-1] * step + (2.0 * F[:-1] + F[1:]) / 6.0 * step**2
    return np.concatenate([[0.0], np.cumsum(increments)])
