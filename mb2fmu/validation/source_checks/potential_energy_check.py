"""The potential energy that was found from the loads, against the loads themselves, in numbers.

FMU and reference have one closed form of V, so their agreement says nothing of it. At random places, at rest and
without inputs, dV/dt along random directions that constraints allow has to be minus the power of the loads there, by
the mechanism in numbers (a point's velocity may follow from its position by a rolling condition only):

    |V'(q) K u + F(q) u|  ≤  1e-7 (Σ |F_i| |u_i| + round-off) + 10 · what two steps of the difference disagree by

Loads without a potential (a force that follows a body, one that depends on time) are no part of V. They are recognized
by the work that they do on closed paths, and only looked for where V does not fit all loads.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.assembly.conserved_quantities import PotentialFunction, potential_energy_rate
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import RandomStateSample, draw_random_states
from mb2fmu.mechanics.mechanism.records.mechanism_records import Load
from mb2fmu.model import CheckedModel
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Floats = npt.NDArray[np.float64]
_RATE_TOLERANCE = 1e-7
_TIME_STEP_FRACTION = 0.02
_STEP_REFINEMENT = 8.0
_DIRECTION_COUNT = 4
_MAX_SUMMED_LOADS = 4
"""Loads without a potential of their own whose sums are tried."""
_CIRCLE_POINTS = 64
_CIRCLE_RADIUS = 0.2
_WORK_TOLERANCE = 1e-3
"""Of the sum of magnitudes on a closed way: more is done by a load without potential only."""
_POTENTIAL_OUTPUT_KINDS = {"potential_energy", "total_energy"}


@dataclass(frozen=True, slots=True)
class PotentialEnergyFit:
    """How a potential energy fits the loads.

    Attributes:
        points: At how many places and directions.
        ratio: Largest error over its bound.
        reason_not_judged: Why it could not be judged; empty if it could.
    """

    points: int
    ratio: float
    reason_not_judged: str = ""


def is_potential_requested(definition: CheckedModel) -> bool:
    """Return whether an output is V or contains it."""
    return any(
        isinstance(output, OutputRequest) and output.kind in _POTENTIAL_OUTPUT_KINDS for output in definition.outputs
    )


def compare_potential_with_loads(mechanism: Mechanism, potential: PotentialFunction) -> PotentialEnergyFit:
    """Compare V with the loads.

    Args:
        mechanism: With bodies.
        potential: V of t, q and all parameters.
    """
    forces_at_rest = _GeneralizedForcesAtRest(mechanism, potential)
    ratio = forces_at_rest.compute_ratio(())
    if ratio <= 1.0:
        return PotentialEnergyFit(forces_at_rest.points, ratio)
    loads_without_potential = forces_at_rest.find_loads_without_potential()
    if len(loads_without_potential) > _MAX_SUMMED_LOADS:
        return PotentialEnergyFit(
            forces_at_rest.points, ratio, f"{len(loads_without_potential)} loads have no potential of their own"
        )
    combinations = (
        loads
        for n in range(1, len(loads_without_potential) + 1)
        for loads in itertools.combinations(loads_without_potential, n)
    )
    return PotentialEnergyFit(forces_at_rest.points, min([ratio, *map(forces_at_rest.compute_ratio, combinations)]))


class _GeneralizedForcesAtRest:
    """Generalized forces at rest and without inputs, at random places."""

    def __init__(self, mechanism: Mechanism, potential: PotentialFunction) -> None:
        passive = [
            f - drive_force for f, drive_force in zip(mechanism.potential_forces, mechanism.drive_forces, strict=False)
        ]
        self.m = replace(mechanism, potential_forces=tuple(passive)) if passive else mechanism
        self._potential, self._numeric = potential, MechanismEvaluator(self.m)
        self._isolated_mechanisms: dict[str, MechanismEvaluator] = {}
        self._generator = np.random.default_rng(11)
        natural_units = estimate_characteristic_units(mechanism.declared)
        self._q = np.array([natural_units.typical(c) for c in mechanism.declared.coordinates])
        sizes = np.array([natural_units.typical(s) for s in mechanism.declared.speeds])
        self._step = _TIME_STEP_FRACTION * natural_units.magnitude("s")
        self._samples = [
            (sample, sizes * self._generator.uniform(-1, 1, sizes.shape))
            for sample in draw_random_states(self._numeric)
            for _ in range(_DIRECTION_COUNT)
        ]
        self.points = len(self._samples)

    def compute_ratio(self, left_out: Sequence[Load]) -> float:
        """Return the largest error over its bound, some loads left out."""
        worst = 0.0
        for sample, direction in self._samples:
            force, size = self._compute_forces(self._numeric, sample, sample.q)
            for load in left_out:
                force = force - self._compute_forces(self._isolate_load(load), sample, sample.q)[0]
            u = self._make_admissible(direction)
            rates = self._numeric.kinematic_matrices()[0] @ u
            rate, noise = potential_energy_rate(self._potential, sample, rates, self._step)
            rate_small_step, noise_small_step = potential_energy_rate(
                self._potential, sample, rates, self._step / _STEP_REFINEMENT
            )
            if not np.isfinite([rate, rate_small_step]).all():
                continue
            bound = _RATE_TOLERANCE * (float(size @ np.abs(u)) + noise + noise_small_step) + 10.0 * abs(
                rate - rate_small_step
            )
            error = abs(float(force @ u) + rate_small_step)
            worst = max(worst, error / bound if bound > 0.0 else (0.0 if error == 0.0 else np.inf))
        return worst

    def _make_admissible(self, u: Floats) -> Floats:
        """Return the nearest speeds with A u = 0, at the state that is set."""
        A = self._numeric.velocity_constraint_terms()[0]
        return u - np.linalg.pinv(A, rcond=_RATE_TOLERANCE) @ (A @ u) if len(A) else u

    def find_loads_without_potential(self) -> list[Load]:
        """Return loads that do work on closed ways, or depend on time; all that act where u does not follow from q'.

        With quaternions ways that close are not to be had; a V that lacks one load as a whole is not noticed there.
        """
        has_one_speed_per_rate = len(self.m.q) == len(self.m.u)
        return [
            load
            for load in self.m.loads
            if (self._does_work_on_circle(load) if has_one_speed_per_rate else self._has_effect(load))
            or self._depends_on_time(load)
        ]

    def _has_effect(self, load: Load) -> bool:
        """Return whether a load does anything at rest."""
        return any(
            np.any(self._compute_forces(self._isolate_load(load), sample, sample.q)[1]) for sample, _ in self._samples
        )

    def _does_work_on_circle(self, load: Load) -> bool:
        """Return whether a load does work once round a circle, at any sample."""
        numeric = self._isolate_load(load)
        for sample, _ in self._samples:
            a, b = (self._q * self._generator.uniform(-1, 1, self._q.shape) for _ in range(2))
            total, size = 0.0, 0.0
            for angle in np.arange(_CIRCLE_POINTS) * (2.0 * np.pi / _CIRCLE_POINTS):
                q = sample.q + _CIRCLE_RADIUS * (a * np.cos(angle) + b * np.sin(angle))
                force, _ = self._compute_forces(numeric, sample, q)
                u = np.linalg.solve(numeric.kinematic_matrices()[0], b * np.cos(angle) - a * np.sin(angle))
                total, size = total + float(force @ u), size + float(np.abs(force) @ np.abs(u))
            if abs(total) > _WORK_TOLERANCE * size:
                return True
        return False

    def _depends_on_time(self, load: Load) -> bool:
        """Return whether a load is another one at another time."""
        numeric = self._isolate_load(load)
        for sample, _ in self._samples:
            forces_now, size = self._compute_forces(numeric, sample, sample.q)
            forces_later, _ = self._compute_forces(numeric, replace(sample, t=1.7 * sample.t), sample.q)
            if np.max(np.abs(forces_later - forces_now), initial=0.0) > _RATE_TOLERANCE * np.max(size, initial=0.0):
                return True
        return False

    def _isolate_load(self, load: Load) -> MechanismEvaluator:
        """Return the mechanism with this load only."""
        if load.name not in self._isolated_mechanisms:
            mechanism = replace(self.m, loads=(load,), potential_forces=(), lagrangian=None)
            self._isolated_mechanisms[load.name] = MechanismEvaluator(mechanism)
        return self._isolated_mechanisms[load.name]

    def _compute_forces(
        self, numeric: MechanismEvaluator, sample: RandomStateSample, q: Floats
    ) -> tuple[Floats, Floats]:
        """Return the generalized forces of the speeds, and the sums of their terms' magnitudes."""
        m, n = self.m, len(self.m.u)
        numeric.set_state(sample.t, q, np.zeros(len(m.u_all)), sample.z, 0.0 * sample.r, sample.parameters)
        zeros = [0.0] * len(m.constraint_forces)
        return numeric.generalized_forces(zeros)[:n], numeric.force_magnitude_sums(zeros)[:n]
