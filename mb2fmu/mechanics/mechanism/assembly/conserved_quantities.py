"""Find conserved quantities numerically, and evaluate them at a state. No expression is formed.

    p_r = ∂T/∂q'_r = (K⁻ᵀ ∂T/∂u)_r   kept where T does not depend on q_r, Σ Q_r = 0, and no constraint works along q_r
    P = Σ m v,  H = Σ r × m v + I ω  kept along axes of N along which Σ m a, Σ r × m a + (I ω)' vanish
    h = Σ q'_r p_r - T + V           kept where T does not depend on t, Σ Q_r q'_r + dV/dt = 0, and no constraint works

with q' = K u + k0 and Q = K⁻ᵀ F. T is compared at points that are far from each other, so nothing is differentiated;
dV/dt is a central difference of eighth order along the motion. All conditions are tested at random states, parameters
and inputs, to :data:`ZERO_TOLERANCE` of the largest term.

Source: Lanczos, The Variational Principles of Mechanics, ch. V; Goldstein, Classical Mechanics, sect. 2.6 and 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    RandomStateSample,
    append_auxiliary_speeds,
    draw_random_states,
    free_parameter_values,
    set_random_mechanism_state,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import find_nonintegrable_velocities
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Floats = npt.NDArray[np.float64]
PotentialFunction = Callable[[float, Floats, Floats], float]
"""V in J of t, q and all parameters."""
ZERO_TOLERANCE = 1e-9
_POTENTIAL_RATE_TOLERANCE = 1e-7
"""Tolerance of dV/dt, which is a difference quotient."""
_PROBE_OFFSETS = (0.31, -0.83)
"""Distances from a sample, relative to typical magnitudes, at which T is evaluated again."""
_DIFFERENCE_STEP = 0.02
_EIGHTH_ORDER_WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
_MOMENTUM_UNITS = {"rad": "kg.m2/s", "m": "kg.m/s"}


@dataclass(frozen=True, slots=True)
class ConservedQuantity:
    """One conserved quantity: name, unit, index among all candidates."""

    name: str
    unit: str
    candidate_index: int


class ConservedQuantities:
    """Conserved quantities of one mechanism with bodies.

    Args:
        mechanism: A mechanism with bodies; for a Lagrangian alone see ``lagrangian_conserved_quantities``.
        potential: V; None where none is known: then no energy integral is looked for.
        free_parameters: Values of the free parameters of the experiment in which they are compared; None: as declared.
            A momentum may be conserved only because a spring's stiffness is 0.

    ``quantities`` are those that there are; ``conserved_components``: which components of P and H are among them.
    """

    def __init__(
        self, mechanism: Mechanism, potential: PotentialFunction | None, free_parameters: Sequence[float] | None = None
    ) -> None:
        self.mechanism, self._potential = mechanism, potential
        self._free_parameters = free_parameter_values(mechanism) if free_parameters is None else free_parameters
        self._numeric = MechanismEvaluator(mechanism)
        m = mechanism
        constants = [
            constant for b in m.bodies for constant in (b.mass, *(b.inertia if b.inertia is not None else sm.zeros(3)))
        ]
        self._mass_function = lambdify_for_numpy([*m.p, *(a.symbol for a in m.calculated_parameters)], constants)
        has_one_speed_per_coordinate = len(m.q) == len(m.u) and not m.u_auxiliary and not m.points_using_constraints
        self._has_coordinate_momenta = (
            bool(m.q) and has_one_speed_per_coordinate and not find_nonintegrable_velocities(m)
        )
        self._is_located = all(m.points[body.masscenter].located for body in m.bodies)
        self.conserved_components: tuple[bool, ...] = (False,) * 6
        self.quantities: tuple[ConservedQuantity, ...] = tuple(self._find_conserved())

    def evaluate(
        self, t: float, q: Floats, u: Floats, z: Floats, r: Floats, free_parameters: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return the values of the integrals, the sums of the sizes of their terms, and what is rounded; shapes (n,).

        A component of P or H is rounded as the largest one is: a body that falls is driven aside by round-off of g.

        Args:
            t: Time in s.
            q: Coordinates.
            u: Speeds, dependent ones too.
            z: Auxiliary states.
            r: Inputs.
            free_parameters: Parameters that are not calculated.
        """
        parameters = self._numeric.parameters(free_parameters)
        self._numeric.set_state(t, q, append_auxiliary_speeds(self.mechanism, u), z, r, parameters)
        values, sizes = self._evaluate_candidates(t, q, u, parameters, with_components=any(self.conserved_components))
        indices = [quantity.candidate_index for quantity in self.quantities]
        rounded_sizes = sizes.copy()
        rounded_sizes[:6] = np.repeat(np.max(sizes[:6].reshape(2, 3), axis=1), 3)
        return values[indices], sizes[indices], rounded_sizes[indices]

    # ------------------------------------------------------------------ values

    def _evaluate_candidates(
        self, t: float, q: Floats, u: Floats, parameters: Floats, *, with_components: bool
    ) -> tuple[Floats, Floats]:
        """Return P, H, p and h at the present state, and the sums of the sizes of their terms.

        ``with_components``: P and H are wanted, else they are nan.
        """
        values, sizes, momenta_by_speed = self._evaluate_bodies(u, parameters, with_components=with_components)
        if not self._has_coordinate_momenta:
            return values, sizes
        K, k0 = self._numeric.kinematic_matrices()
        momenta_by_coordinate = np.linalg.solve(K.T, momenta_by_speed.T).T
        p, p_size = momenta_by_coordinate.sum(axis=0), np.abs(momenta_by_coordinate).sum(axis=0)
        values, sizes = np.append(values, p), np.append(sizes, p_size)
        rates, T = K @ u + k0, self._numeric.kinetic_energy()
        V = 0.0 if self._potential is None else self._potential(t, q, parameters)
        h_size = float(np.abs(p * rates).sum()) + T + abs(V)
        return np.append(values, float(p @ rates) - T + V), np.append(sizes, h_size)

    def _evaluate_bodies(
        self, u: Floats, parameters: Floats, *, with_components: bool
    ) -> tuple[Floats, Floats, Floats]:
        """Return P and H, the sums of the sizes of their terms, shapes (6,); and m v · v_r, I ω · ω_r, (2 n, n_u).

        A term is the contribution of one speed to one body: for a falling body whose speeds are along its own axes, the
        contributions along the ground's axes cancel, but their errors do not.
        """
        n = len(self.mechanism.u)
        (position, velocity, J), (rotation, omega, W) = self._numeric.stack_body_velocities()
        masses, inertias = self._evaluate_masses(parameters, rotation)
        J, W = J[:, :, :n], W[:, :, :n]
        momenta, spins = masses * velocity, (inertias @ omega[:, :, None])[:, :, 0]
        values, sizes = np.full((2, 6), np.nan)
        if with_components:
            momentum_sizes = masses * _term_sizes(velocity, J, u)
            values[:3], sizes[:3] = momenta.sum(axis=0), momentum_sizes.sum(axis=0)
        if with_components and self._is_located:
            spin_sizes = (np.abs(inertias) @ _term_sizes(omega, W, u)[:, :, None])[:, :, 0]
            values[3:] = (np.cross(position, momenta) + spins).sum(axis=0)
            sizes[3:] = (_moment_sizes(np.abs(position), momentum_sizes) + spin_sizes).sum(axis=0)
        by_speed = (np.einsum("bi,bij->bj", part, partials) for part, partials in ((momenta, J), (spins, W)))
        return values, sizes, np.concatenate(list(by_speed))

    def _evaluate_masses(self, parameters: Floats, rotation: Floats) -> tuple[Floats, Floats]:
        """Return the bodies' masses, shape (n, 1), and inertias along the axes of N, shape (n, 3, 3).

        Args:
            parameters: Values of all parameters.
            rotation: Of the bodies' frames, shape (n, 3, 3).
        """
        numbers = np.array(self._mass_function(*parameters), dtype=float).reshape(-1, 10)
        return numbers[:, :1], rotation @ numbers[:, 1:].reshape(-1, 3, 3) @ rotation.transpose(0, 2, 1)

    # ------------------------------------------------------------------ search

    def _find_conserved(self) -> list[ConservedQuantity]:
        """Return the quantities that keep their value at all random samples, with names and units."""
        m = self.mechanism
        if not m.bodies:
            return []
        samples = draw_random_states(self._numeric, self._free_parameters)
        names = [f"momentum of all bodies along N.{axis}" for axis in "xyz"]
        names += [f"angular momentum of all bodies about N.{axis} through the origin" for axis in "xyz"]
        units = ["kg.m/s"] * 3 + ["kg.m2/s"] * 3
        conserved = self._find_conserved_components(samples)
        self.conserved_components = tuple(conserved)
        if self._has_coordinate_momenta:
            names += [f"momentum of {coordinate.name}, which is ignorable" for coordinate in m.declared.coordinates]
            units += [derive_momentum_unit(coordinate.unit) for coordinate in m.declared.coordinates]
            quadratic = self._is_sum_of_energies(samples)
            names.append("energy T + V" if quadratic else "Jacobi's integral T2 - T0 + V")
            units.append("J")
            conserved = [*conserved, *self._find_conserved_momenta(samples), self._is_energy_conserved(samples)]
        return [
            ConservedQuantity(n, u, i) for i, (n, u, k) in enumerate(zip(names, units, conserved, strict=True)) if k
        ]

    def _find_conserved_components(self, samples: Sequence[RandomStateSample]) -> list[bool]:
        """Return which of the 6 components of momentum and angular momentum are kept and not identically zero."""
        m = self.mechanism
        if not self._is_located or m.prescribed:
            return [False] * 6
        conserved = np.ones(6, dtype=bool)
        is_nonzero = np.zeros(6, dtype=bool)
        for sample in samples:
            rates, largest = self._evaluate_momentum_rates(sample)
            values, sizes = self._evaluate_candidates(
                sample.t, sample.q, sample.u_constrained, sample.parameters, with_components=True
            )
            conserved &= np.abs(rates) <= ZERO_TOLERANCE * largest
            is_nonzero |= np.abs(values[:6]) > ZERO_TOLERANCE * np.repeat(np.max(sizes[:6].reshape(2, 3), axis=1), 3)
        if m.holonomic:  # samples do not lie on closed loops, and off them their forces have a moment
            conserved[3:] = False
        return [bool(component) for component in conserved & is_nonzero]

    def _evaluate_momentum_rates(self, sample: RandomStateSample) -> tuple[Floats, Floats]:
        """Return P' and H' with loads and constraint forces only, and the largest of their terms; shape (6,)."""
        m, numeric = self.mechanism, self._numeric
        set_random_mechanism_state(numeric, sample, on_constraints=True)
        n = len(m.u)
        M, f = numeric.unconstrained_mass_and_forcing([0.0] * len(m.constraint_forces))
        A, _, gamma = numeric.velocity_constraint_terms()
        matrix = np.block([[M[:n, :n], A.T], [A, np.zeros((len(A), len(A)))]])
        u_dot = np.linalg.lstsq(matrix, np.concatenate([f[:n], -gamma]), rcond=None)[0][:n]
        u_dot = append_auxiliary_speeds(m, u_dot)
        (position, _, J), (rotation, omega, W) = numeric.stack_body_velocities()
        acceleration0, alpha0 = numeric.stack_body_accelerations()
        masses, inertias = self._evaluate_masses(sample.parameters, rotation)
        forces, alpha = masses * (acceleration0 + J @ u_dot), alpha0 + W @ u_dot
        moments = (inertias @ np.stack([alpha, omega], axis=2)).transpose(2, 0, 1)
        moments = np.cross(position, forces) + moments[0] + np.cross(omega, moments[1])
        rate_array = np.concatenate([forces, moments], axis=1)
        largest = np.max(np.abs(rate_array).reshape(-1, 2, 3), axis=(0, 2))
        return rate_array.sum(axis=0), np.repeat(np.maximum(largest, np.finfo(float).tiny), 3)

    def _find_conserved_momenta(self, samples: Sequence[RandomStateSample]) -> list[bool]:
        """Return for each coordinate whether its momentum is kept: T ignores it, and no force works along it.

        None where inputs prescribe motion: whoever sets one need not set its rate to its derivative.
        """
        m, units = self.mechanism, estimate_characteristic_units(self.mechanism.declared)
        if m.prescribed and m.inputs_with_rates:
            return [False] * len(m.q)
        sizes = [units.typical(coordinate) for coordinate in m.declared.coordinates]
        conserved = np.ones(len(m.q), dtype=bool)
        for sample in samples:
            set_random_mechanism_state(self._numeric, sample, on_constraints=True)
            K, k0 = self._numeric.kinematic_matrices()
            rates = K @ sample.u_constrained + k0
            forces, terms = self._evaluate_coordinate_forces(K)
            conserved &= np.abs(forces) <= ZERO_TOLERANCE * terms
            conserved &= ~find_coordinates_with_constraint_work(self._numeric, K)
            for r, size in enumerate(sizes):
                other_points = [(sample.t, sample.q + offset * size * np.eye(len(m.q))[r]) for offset in _PROBE_OFFSETS]
                conserved[r] = conserved[r] and self._has_same_kinetic_energy(sample, rates, other_points)
        return [bool(is_conserved) for is_conserved in conserved]

    def _evaluate_coordinate_forces(self, K: Floats) -> tuple[Floats, Floats]:
        """Return Q_r, and the sum of the sizes of its terms, at the present state."""
        n, zeros = len(self.mechanism.u), [0.0] * len(self.mechanism.constraint_forces)
        inverse_transpose = np.linalg.inv(K).T
        forces, sizes = self._numeric.generalized_forces(zeros)[:n], self._numeric.force_magnitude_sums(zeros)[:n]
        return inverse_transpose @ forces, np.abs(inverse_transpose) @ sizes

    def _has_same_kinetic_energy(
        self, sample: RandomStateSample, rates: Floats, other_points: Sequence[tuple[float, Floats]]
    ) -> bool:
        """Return whether T is the same at other times and places for the same q'."""
        numeric, (T, *points) = self._numeric, [(sample.t, sample.q), *other_points]
        energies = []
        for t, q in (T, *points):
            numeric.set_state(
                t,
                q,
                append_auxiliary_speeds(self.mechanism, sample.u_constrained),
                sample.z,
                sample.r,
                sample.parameters,
            )
            K, k0 = numeric.kinematic_matrices()
            u = np.asarray(np.linalg.solve(K, rates - k0), dtype=np.float64)
            numeric.set_state(t, q, append_auxiliary_speeds(self.mechanism, u), sample.z, sample.r, sample.parameters)
            energies.append(numeric.kinetic_energy())
        return bool(np.ptp(energies) <= ZERO_TOLERANCE * np.max(energies))

    def _is_sum_of_energies(self, samples: Sequence[RandomStateSample]) -> bool:
        """Return whether h is T + V, at all samples."""
        for sample in samples:
            set_random_mechanism_state(self._numeric, sample, on_constraints=True)
            K, k0 = self._numeric.kinematic_matrices()
            p = np.linalg.solve(K.T, self._numeric.momenta()[: len(self.mechanism.u)])
            T = self._numeric.kinetic_energy()
            if not abs(float(p @ (K @ sample.u_constrained + k0)) - 2 * T) <= ZERO_TOLERANCE * T:
                return False
        return True

    def _is_energy_conserved(self, samples: Sequence[RandomStateSample]) -> bool:
        """Return whether h keeps its value."""
        m, V = self.mechanism, self._potential
        if V is None or m.inputs_with_rates:
            return False
        time_unit = estimate_characteristic_units(m.declared).magnitude("s")
        for sample in samples:
            set_random_mechanism_state(self._numeric, sample, on_constraints=True)
            K, k0 = self._numeric.kinematic_matrices()
            if has_working_constraints(self._numeric):
                return False
            rates = K @ sample.u_constrained + k0
            forces, terms = self._evaluate_coordinate_forces(K)
            potential_change, size = potential_energy_rate(V, sample, rates, _DIFFERENCE_STEP * time_unit)
            allowed = _POTENTIAL_RATE_TOLERANCE * (float(terms @ np.abs(rates)) + size)
            if not abs(float(forces @ rates) + potential_change) <= allowed:
                return False  # also where a force has no value
            if not self._has_same_kinetic_energy(
                sample, rates, [(sample.t + offset * time_unit, sample.q) for offset in _PROBE_OFFSETS]
            ):
                return False
        return True


def _term_sizes(velocities: Floats, partials: Floats, u: Floats) -> Floats:
    """Return the sums of the sizes of velocities' terms by component, shape (n, 3): those of speeds, and the rest."""
    return np.asarray(np.abs(partials) @ np.abs(u) + np.abs(velocities - partials @ u))


def _moment_sizes(arms: Floats, sizes: Floats) -> Floats:
    """Return the sums of the sizes of the terms of arm × momentum, both given by sizes; shapes (n, 3)."""
    (x, y, z), (a, b, c) = arms.T, sizes.T
    return np.stack([y * c + z * b, z * a + x * c, x * b + y * a], axis=1)


def derive_momentum_unit(unit: str) -> str:
    """Return the unit of ∂T/∂q', q in ``unit``."""
    return _MOMENTUM_UNITS.get(unit, f"J.s/({unit})")


def find_coordinates_with_constraint_work(numeric: MechanismEvaluator, K: Floats) -> npt.NDArray[np.bool_]:
    """Return the coordinates along which constraint forces do work at the present state; q' = K u + k0."""
    A, _, _ = numeric.velocity_constraint_terms()
    if not len(A):
        return np.zeros(len(K), dtype=bool)
    constraint_effects = np.abs(np.linalg.solve(K.T, A.T))
    return np.asarray(np.max(constraint_effects, axis=1) > ZERO_TOLERANCE * np.max(constraint_effects))


def has_working_constraints(numeric: MechanismEvaluator) -> bool:
    """Return whether constraints do work: A u + b = 0 with b ≠ 0."""
    A, b, _ = numeric.velocity_constraint_terms()
    return bool(len(A) and np.any(np.abs(b) > ZERO_TOLERANCE * np.max(np.abs(A))))


def potential_energy_rate(
    V: PotentialFunction, sample: RandomStateSample, rates: Floats, step: float
) -> tuple[float, float]:
    """Return dV/dt along q' at a sample, and the magnitude of its round-off."""
    total, size = 0.0, 0.0
    for k, weight in _EIGHTH_ORDER_WEIGHTS:
        potential_ahead, potential_behind = (
            V(sample.t + sign * k * step, sample.q + sign * k * step * rates, sample.parameters) for sign in (1, -1)
        )
        total += weight * (potential_ahead - potential_behind) / step
        size += abs(weight) * (abs(potential_ahead) + abs(potential_behind)) / step * 1e-8
    return total, size
