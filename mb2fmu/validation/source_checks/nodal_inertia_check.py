"""Flexible bodies against the full nodal mass matrix, in numbers: a wrong reduction is a wrong inertia.

The bodies of the imported mechanism are a rigid body and particles; FMU and reference have these alike. Here the masses
m_pq, mode shapes φ, sections and second-order displacements S of *all nodes* are taken as they were given. At random
states the generalized inertia of a flexible body, from its nodes and from its parts,

    Σ_pq m_pq J_pᵀ J_q + Σ_p Σ_ij Σ_p,ij A_piᵀ A_pj     against     Σ_parts (m Jᵀ J + Ωᵀ I Ω)

has to be the same in each entry, and so has its first moment of mass; with J the partial velocities of node p, A
those of the arms of its section, of the order of S. The generalized forces of its loads have to be -(K η + C η') along
the modal speeds, and zero along all others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    RandomStateSample,
    draw_random_states,
    free_parameter_values,
)
from mb2fmu.model import CheckedModel

if TYPE_CHECKING:
    from mb2fmu.model.flexible import FlexibleBody

Floats = npt.NDArray[np.float64]
INERTIA_TOLERANCE = 1e-9
"""Of the geometric mean of two diagonal entries; the reduction is exact to 1e-12."""


def compute_nodal_inertia_errors(
    definition: CheckedModel, mechanism: Mechanism, body: FlexibleBody
) -> Iterator[tuple[float, str]]:
    """Yield (error over bound, place) of a flexible body's inertia, first moment and modal forces at random states.

    Args:
        definition: The checked model.
        mechanism: The mechanism imported from it.
        body: Whose nodes are taken.
    """
    numeric = MechanismEvaluator(mechanism)
    isolated = _isolate_loads(mechanism, body)
    samples = draw_random_states(numeric)
    nominal = numeric.parameters(free_parameter_values(mechanism))
    place = _FlexibleBodyIndices(definition, mechanism, body)
    if place.frame < 0:
        yield math.inf, f"rotation of {body.name}, which was read as particles"
        return
    for number, sample in enumerate(samples):
        for each in (numeric, isolated):
            _set_state(each, sample, nominal)
        nodal, nodal_moment = place.sum_nodal_inertia(numeric, sample.q)
        parts, parts_moment = place.sum_equivalent_inertia(numeric)
        scale = np.sqrt(np.abs(np.diag(nodal)))
        bounds = INERTIA_TOLERANCE * (np.outer(scale, scale) + 1e-6 * np.max(scale) ** 2)
        yield _largest(np.abs(nodal - parts) / bounds), f"inertia of {body.name} at state {number + 1}"
        size = float(np.linalg.norm(nodal_moment)) + body.data.total_mass * float(np.max(np.abs(body.data.nodes)))
        moment_error = np.abs(nodal_moment - parts_moment) / (INERTIA_TOLERANCE * size)
        yield _largest(moment_error), f"mass centre of {body.name} at state {number + 1}"
        forces = isolated.generalized_forces([0.0] * len(mechanism.constraint_forces))[: len(mechanism.u)]
        expected, sizes = place.modal_forces(sample)
        force_error = np.abs(forces - expected) / (INERTIA_TOLERANCE * np.max(sizes))
        yield _largest(force_error), f"modal forces of {body.name} at state {number + 1}"


class _FlexibleBodyIndices:
    """Numbers of a flexible body's frame, points and speeds in the mechanism."""

    def __init__(self, definition: CheckedModel, mechanism: Mechanism, body: FlexibleBody) -> None:
        self.data = body.data
        points = {point.name: number for number, point in enumerate(mechanism.points)}
        names = {part.name for part in body.bodies}
        self.parts = [part for part in mechanism.bodies if part.name in names]
        self.origin = points[body.point().name]
        self.frame = max(part.frame for part in self.parts)  # particles have none
        coordinates = [item.symbol for item in definition.coordinates]
        speeds = [item.symbol for item in definition.speeds]
        self.eta = [coordinates.index(q) for q in body.q]
        self.rates = [speeds.index(u) for u in body.u]
        self.n_u = len(mechanism.u)
        values = {item.symbol: item.value for item in definition.parameters}
        self.stiffness = _substitute_values(body.data.stiffness, body.stiffness_symbols, values)
        self.damping = _substitute_values(body.data.damping, body.damping_symbols, values)
        numeric = MechanismEvaluator(mechanism)
        self.masses, self.inertias = _part_values(mechanism, self.parts, numeric)

    def sum_nodal_inertia(self, numeric: MechanismEvaluator, q: Floats) -> tuple[Floats, Floats]:
        """Return the generalized inertia of all nodes, shape (n_u, n_u), and the first moment of their mass."""
        data, eta = self.data, q[self.eta]
        frame, origin = numeric.frames[self.frame], numeric.points[self.origin]
        fields, place = data.modes, data.nodes + np.einsum("knj,k->nj", data.modes, eta)
        if data.second_order is not None:
            fields = fields + np.einsum("klnj,l->knj", data.second_order, eta)
            place = place + np.einsum("klnj,k,l->nj", data.second_order, eta, eta) / 2.0
        R, spin = frame.rotation, frame.partials[:, : self.n_u]
        J = _turn_arms(spin, place @ R.T) + origin.partials[None, :, : self.n_u]
        J[:, :, self.rates] += np.einsum("ij,knj->nik", R, fields)
        weighted = (data.mass @ J.reshape(len(J), -1)).reshape(J.shape)
        inertia = np.einsum("nia,nib->ab", J, weighted, optimize=True)
        moment = np.sum(data.mass @ (place @ R.T + origin.position), axis=0)
        if data.rotational_inertia is not None and data.rotations is not None:
            seconds = np.trace(data.rotational_inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3) / 2.0
            seconds = seconds - data.rotational_inertia
            arms = [self._list_arm_partials(axis, R, spin, eta) for axis in np.eye(3)]
            for i, j in np.ndindex(3, 3):
                A, B = arms[i], arms[j]
                inertia += np.einsum("n,nia,nib->ab", seconds[:, i, j], A, B, optimize=True)
        return inertia, moment

    def _list_arm_partials(self, axis: Floats, R: Floats, spin: Floats, eta: Floats) -> Floats:
        """Return the partial velocities of an arm e + Σ (ψ_k × e) η_k of each section, shape (n, 3, n_u).

        With second-order displacements the arm has ½ Σ ψ_k × (ψ_l × e) η_k η_l, too, of the pairs that count.
        """
        psi = self.data.rotations
        assert psi is not None
        fields = np.cross(psi, axis)
        arms = axis + np.einsum("knj,k->nj", fields, eta)
        if self.data.second_order is not None:
            second_order_turn = np.cross(psi[:, None], np.cross(psi, axis)[None])
            second_order_turn = (
                (second_order_turn + second_order_turn.swapaxes(0, 1))
                / 2.0
                * self.data.second_order_pairs()[:, :, None, None]
            )
            arms = arms + np.einsum("klnj,k,l->nj", second_order_turn, eta, eta) / 2.0
            fields = fields + np.einsum("klnj,l->knj", second_order_turn, eta)
        J = _turn_arms(spin, arms @ R.T)
        J[:, :, self.rates] += np.einsum("ij,knj->nik", R, fields)
        return J

    def sum_equivalent_inertia(self, numeric: MechanismEvaluator) -> tuple[Floats, Floats]:
        """Return the same of the rigid body and the particles."""
        inertia, moment = np.zeros((self.n_u, self.n_u)), np.zeros(3)
        for part, mass, central in zip(self.parts, self.masses, self.inertias, strict=True):
            point = numeric.points[part.masscenter]
            J = point.partials[:, : self.n_u]
            inertia += mass * J.T @ J
            moment += mass * point.position
            if central is not None:
                R = numeric.frames[part.frame].rotation
                spin = numeric.frames[part.frame].partials[:, : self.n_u]
                inertia += spin.T @ R @ central @ R.T @ spin
        return inertia, moment

    def modal_forces(self, sample: RandomStateSample) -> tuple[Floats, Floats]:
        """Return the generalized forces -(K η + C η') of all speeds, and the sizes of their terms."""
        eta, rate = sample.q[self.eta], sample.u[self.rates]
        forces, sizes = np.zeros(self.n_u), np.zeros(self.n_u)
        forces[self.rates] = -(self.stiffness @ eta + self.damping @ rate)
        sizes[self.rates] = np.abs(self.stiffness) @ np.abs(eta) + np.abs(self.damping) @ np.abs(rate)
        return forces, sizes


def _turn_arms(spin: Floats, arms: Floats) -> Floats:
    """Return the partial velocities Ω_j × r of arms, shape (n, 3, n_u)."""
    return np.asarray(np.cross(spin.T[None, :, :], arms[:, None, :]).transpose(0, 2, 1))


def _set_state(numeric: MechanismEvaluator, sample: RandomStateSample, parameters: Floats) -> None:
    """Move a mechanism to a sample, with parameters as declared; auxiliary speeds are zero."""
    u = np.concatenate([sample.u, np.zeros(len(numeric.mechanism.u_auxiliary))])
    numeric.set_state(sample.t, sample.q, u, sample.z, sample.r, parameters)


def _isolate_loads(mechanism: Mechanism, body: FlexibleBody) -> MechanismEvaluator:
    """Return the mechanism with the loads of one flexible body only: those whose potential it declares."""
    carriers = {load[0].name for load in body.loads[::2]}
    names = next(
        names
        for names, _ in mechanism.known_potentials
        if any(name.endswith(f"at {c}") for name in names for c in carriers)
    )
    loads = tuple(load for load in mechanism.loads if load.name in names)
    return MechanismEvaluator(replace(mechanism, loads=loads, potential_forces=(), lagrangian=None))


def _substitute_values(matrix: Floats, symbols: Sequence[sm.Symbol], values: Mapping[Any, Any]) -> Floats:
    """Return a modal matrix with the values of the parameters on its diagonal."""
    changed = matrix.copy()
    for k, symbol in enumerate(symbols):
        changed[k, k] = float(values.get(symbol, matrix[k, k]))
    return changed


def _part_values(
    mechanism: Mechanism, parts: Sequence[Any], numeric: MechanismEvaluator
) -> tuple[list[float], list[Floats | None]]:
    """Return masses and central inertias of the parts, as the mechanism has them."""
    symbols = [*mechanism.p, *(calculated.symbol for calculated in mechanism.calculated_parameters)]
    values = dict(zip(symbols, map(sm.Float, numeric.parameters(free_parameter_values(mechanism))), strict=True))
    masses = [float(sm.sympify(part.mass).xreplace(values)) for part in parts]
    inertias = [
        None if part.inertia is None else np.array(part.inertia.xreplace(values).tolist(), dtype=float)
        for part in parts
    ]
    return masses, inertias


def _largest(errors: Floats) -> float:
    """Return the largest entry; infinite where one is no number."""
    return float(np.max(errors)) if np.all(np.isfinite(errors)) else float("inf")
