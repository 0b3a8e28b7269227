"""Inertia of a group of particles as polynomials of their coordinates η, whose coefficients need parameters only.

The displacement of each particle in the axes of its link is s = Σ_γ c_γ p_γ(η), with components c_γ of its own and
polynomials p_γ of the group. All that inertia needs are sums over the particles, such as h = Σ m s, P = Σ m s sᵀ,
Σ m s × ∂s/∂η_i and Σ m ∂s/∂η_i · ∂s/∂η_j. They are polynomials of η, too, with the coefficients Σ m c_γ c_δ (a Gram
matrix): their cost does not grow with the number of particles.

Source: R. Schwertassek, O. Wallrapp, Dynamik flexibler Mehrkörpersysteme, Vieweg 1999, ch. 6 (these sums, for modes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np

from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkKinematicsLowering
from mb2fmu.compiler.lowering.recursion.regrouped_link_inertias import (
    RigidInertia,
    _form_rigid_inertias,
    regroup_link_inertias,
)
from mb2fmu.compiler.lowering.recursion.spatial_algebra import SpatialVector
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import Matrix, Vector
from mb2fmu.mechanics.equations.link_recursion import LinkFixedPoint, ParticleGroup

Exponents = tuple[int, ...]
Polynomial = dict[Exponents, int]
"""Exponents of η → node of the coefficient."""
Term = tuple[int, int]
"""A component of s (3: the number 1), and γ: the number of a polynomial of this component."""
FieldDerivative = tuple[int, tuple[int, ...]]
"""A component of s, or the number 1, and the coordinates by which it is differentiated."""

_ONE = 3
_ROUND_OFF = 1e-14
"""Share of √(Σ m c_γ² · Σ m c_δ²) below which Σ m c_γ c_δ is a rounding error."""


def form_particle_group_inertias(kinematics: LinkKinematicsLowering) -> list[ParticleGroupInertia]:
    """Return the inertias of all groups."""
    return [ParticleGroupInertia(kinematics, group) for group in kinematics.recursion.particle_groups]


def form_link_inertias_with_particle_groups(
    kinematics: LinkKinematicsLowering, links: list[int], groups: Sequence[ParticleGroupInertia]
) -> dict[int, RigidInertia]:
    """Return the inertia of each link, with its groups of particles as they lie; what is constant is regrouped."""
    g = kinematics.algebra
    none = RigidInertia(g.zero, g.null, (g.null, g.null, g.null))
    inertias = _form_rigid_inertias(kinematics, {number for group in groups for number in group.particles})
    for group in groups:
        inertias[group.link] = inertias.get(group.link, none).plus(group.inertia_at_rest(), g)
    result = regroup_link_inertias(kinematics, links, inertias)
    for group in groups:
        if group.link in result:
            result[group.link] = result[group.link].plus(group.inertia_by_deformation(), g)
    return result


class ParticleGroupInertia:
    """What a group of particles adds to the inertia and the forces of its link and its speeds.

    Args:
        kinematics: Of the links.
        group: Which particles.
    """

    def __init__(self, kinematics: LinkKinematicsLowering, group: ParticleGroup) -> None:
        self._k = kinematics
        self._g = kinematics.algebra
        self._b = kinematics.b
        self.link = group.link
        self.speeds = group.speeds
        self.particles = tuple(group.particles)
        self._eta = kinematics.walker.lower(group.coordinates)
        bodies = kinematics.recursion.bodies
        self._masses = kinematics.walker.lower([bodies[number].mass for number in group.particles])
        self._polynomials: dict[Term, dict[Exponents, float]] = {}
        self._components: dict[Term, list[int]] = {}  # c_γ of each particle
        for axis, powers in enumerate(self._lower_displacements(group)):
            for gamma, (exponents, polynomial) in enumerate(self._find_independent_powers(powers).items()):
                self._polynomials[axis, gamma] = polynomial
                self._components[axis, gamma] = powers[exponents]
        self._gram: dict[tuple[Term, Term], int] = {}
        self._moments_of_terms: dict[tuple[Term, int], int] = {}
        self._bias_of_terms: dict[tuple[Term, int], int] = {}

    def _lower_displacements(self, group: ParticleGroup) -> tuple[dict[Exponents, list[int]], ...]:
        """Return for each component of s, and for the number 1, the coefficients of the powers of η."""
        k, b = self._k, self._b
        count, rest = len(group.particles), (0,) * len(group.speeds)
        origin = k.point_position_in_link(LinkFixedPoint(group.link))
        result: tuple[dict[Exponents, list[int]], ...] = ({}, {}, {}, {rest: [self._g.one] * count})
        for p, terms in enumerate(group.particles.values()):
            vectors = [(term.exponents, k.in_axes(term.frame, k.lower(term.components))) for term in terms]
            for exponents, vector in [(rest, origin), *vectors]:
                for axis, component in enumerate(vector):
                    if component != self._g.zero:
                        row = result[axis].setdefault(exponents, [self._g.zero] * count)
                        row[p] = b.add(row[p], component)
        return result

    def _find_independent_powers(self, powers: dict[Exponents, list[int]]) -> dict[Exponents, dict[Exponents, float]]:
        """Return the powers of η whose coefficients are independent, with the polynomials that they then stand for.

        A beam shortens alike by bending in either plane: so η_1² + η_3² is one of them. Coefficients of parameters are
        taken as independent.
        """
        alone = {exponents: {exponents: 1.0} for exponents in powers}
        values = [[self._b.value(node) for node in row] for row in (self._masses, *powers.values())]
        if len(powers) < 2 or any(value is None for row in values for value in row):
            return alone
        import scipy.linalg  # takes long to import, and models without flexible bodies do without

        masses, *rows = np.array(values, dtype=float)
        columns = (rows * np.sqrt(masses)).T
        sizes = np.linalg.norm(columns, axis=0)
        _, R, order = scipy.linalg.qr(columns / sizes, mode="economic", pivoting=True)
        rank = int(np.sum(np.abs(np.diag(R)) > _ROUND_OFF))
        names = list(powers)
        result = {names[i]: alone[names[i]] for i in sorted(order[:rank])}
        shares = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])
        for n, i in enumerate(order[rank:]):
            for m, j in enumerate(order[:rank]):
                nearest = round(shares[m, n])
                share = nearest if abs(shares[m, n] - nearest) < _ROUND_OFF else shares[m, n]
                if share:
                    result[names[j]][names[i]] = float(share * sizes[i] / sizes[j])
        return result

    # --- inertia -----------------------------------------------------------------------------------------------------

    def inertia_at_rest(self) -> RigidInertia:
        """Return the inertia at η = 0, which needs parameters only."""
        mass = self._integrate((_ONE, ()), (_ONE, ()))
        return RigidInertia(self._evaluate(mass), *self._moments(deformed=False))

    def inertia_by_deformation(self) -> RigidInertia:
        """Return the inertia less that at η = 0."""
        return RigidInertia(self._g.zero, *self._moments(deformed=True))

    def _moments(self, *, deformed: bool) -> tuple[Vector, Matrix]:
        """Return h and P: their constant terms, or all others."""

        def moment(first: int, second: int) -> int:
            """Return Σ m f h of two components."""
            terms = self._integrate((first, ()), (second, ()))
            rest = self._evaluate({e: c for e, c in terms.items() if not any(e)})
            return self._b.sub(self._contract((first, ()), second), rest) if deformed else rest

        x, y, z = ((moment(i, 0), moment(i, 1), moment(i, 2)) for i in range(3))
        return (moment(_ONE, 0), moment(_ONE, 1), moment(_ONE, 2)), (x, y, z)

    @cached_property
    def momenta(self) -> tuple[SpatialVector, ...]:
        """Momentum by each speed, about the link's origin: Σ m s × ∂s/∂η_i and Σ m ∂s/∂η_i."""
        pushes = [self._vector((i,), _ONE) for i in range(len(self.speeds))]
        return tuple((self._axial(C), push) for C, push in zip(self._first_moments, pushes, strict=True))

    @cached_property
    def _first_moments(self) -> tuple[Matrix, ...]:
        """Σ m ∂s/∂η_i sᵀ for each i."""
        count = len(self.speeds)
        x, y, z = ([self._vector((i,), axis) for i in range(count)] for axis in range(3))
        return tuple(self._g.transpose((x[i], y[i], z[i])) for i in range(count))

    def _vector(self, by: tuple[int, ...], axis: int) -> Vector:
        """Return Σ m ∂s s_a for a derivative of s and a component, or Σ m ∂s."""
        return self._contract((0, by), axis), self._contract((1, by), axis), self._contract((2, by), axis)

    def modal_mass(self, i: int, j: int) -> int:
        """Return Σ m ∂s/∂η_i · ∂s/∂η_j."""
        return self._evaluate(*(self._integrate((a, (i,)), (a, (j,))) for a in range(3)))

    # --- forces ------------------------------------------------------------------------------------------------------

    def inertia_force(self) -> tuple[SpatialVector, list[int]]:
        """Return what the rates of η add to the link's rate of momentum at u' = 0, and the inertia force of each speed.

        With v = Σ ∂s/∂η_i η_i', w = Σ ∂²s/∂η_i∂η_j η_i' η_j', and a, Ω, ω of the link: torque Σ m s × (2 ω × v + w),
        force Σ m (2 ω × v + w), and Σ m ∂s/∂η_i · (a + Ω s + 2 ω × v + w).
        """
        g, b, k = self._g, self._b, self._k
        axes = k.axes(self.link)
        W, a = k.rotational_acceleration_matrix(axes), k.acceleration(self.link)
        twice = g.scale(b.constant(2.0), k.omega(axes))
        push, D = g.null, (g.null, g.null, g.null)  # Σ m v and Σ m v sᵀ
        for rate, momentum, C in zip(self._rates, self.momenta, self._first_moments, strict=True):
            push = g.add(push, g.scale(rate, momentum[1]))
            D = g.add_matrices(D, (g.scale(rate, C[0]), g.scale(rate, C[1]), g.scale(rate, C[2])))
        trace = b.add(b.add(D[0][0], D[1][1]), D[2][2])
        x, y, z, w = ((self._bias((f, ()), 0), self._bias((f, ()), 1), self._bias((f, ()), 2)) for f in range(4))
        torque = g.add(g.sub(g.scale(trace, twice), g.apply(D, twice)), self._axial(g.transpose((x, y, z))))
        along = []
        for i, (momentum, C) in enumerate(zip(self.momenta, self._first_moments, strict=True)):
            parts = [g.dot(momentum[1], a), g.dot(twice, self._gyration(i))]
            parts += [b.add(g.dot(C[r], W[r]), self._bias((r, (i,)), r)) for r in range(3)]
            along.append(b.sum(parts))
        return (torque, g.add(g.cross(twice, push), w)), along

    @property
    def _rates(self) -> list[int]:
        """η'."""
        return [self._k.speed(j) for j in self.speeds]

    def _gyration(self, i: int) -> Vector:
        """Return Σ m v × ∂s/∂η_i."""
        total = self._g.null
        for j, rate in enumerate(self._rates):
            if j != i:
                total = self._g.add(total, self._g.scale(rate, self._coupling(j, i)))
        return total

    def _coupling(self, j: int, i: int) -> Vector:
        """Return Σ m ∂s/∂η_j × ∂s/∂η_i."""
        if j > i:
            return self._g.neg(self._coupling(i, j))
        terms = []
        for a in range(3):
            first, last = (a + 1) % 3, (a + 2) % 3
            plus, minus = self._integrate((first, (j,)), (last, (i,))), self._integrate((last, (j,)), (first, (i,)))
            terms.append(self._b.sum(self._terms(plus), self._terms(minus)))
        return (terms[0], terms[1], terms[2])

    def _bias(self, field: FieldDerivative, axis: int) -> int:
        """Return Σ m f w_a for a field f and the component a of w."""
        return self._contract_with(field, lambda term: self._bias_of_term(term, axis))

    def _bias_of_term(self, term: Term, axis: int) -> int:
        """Return Σ m c_γ w_a."""
        if (term, axis) not in self._bias_of_terms:
            b, rates, parts = self._b, self._rates, []
            for j in range(len(rates)):
                for k in range(j + 1):
                    both = b.mul(b.constant(1.0 if j == k else 2.0), b.mul(rates[j], rates[k]))
                    for other, factor, exponents in self._derivative((axis, (j, k))):
                        share = b.mul(b.constant(factor), self._gram_entry(term, other))
                        parts.append(b.mul(b.mul(share, both), self._power(exponents)))
            self._bias_of_terms[term, axis] = b.sum(parts)
        return self._bias_of_terms[term, axis]

    # --- sums over the particles -------------------------------------------------------------------------------------

    def _contract(self, field: FieldDerivative, axis: int) -> int:
        """Return Σ m f s_a for a field f and a component of s, or for the number 1."""
        return self._contract_with(field, lambda term: self._moment_of_term(term, axis))

    def _contract_with(self, field: FieldDerivative, of_term: Callable[[Term], int]) -> int:
        """Return a sum that is linear in a field, from that of each of its terms."""
        b = self._b
        parts = []
        for term in dict.fromkeys(term for term, _, _ in self._derivative(field)):
            slopes = [
                b.mul(b.constant(factor), self._power(exponents))
                for other, factor, exponents in self._derivative(field)
                if other == term
            ]
            parts.append(b.mul(b.sum(slopes), of_term(term)))
        return b.sum(parts)

    def _moment_of_term(self, term: Term, axis: int) -> int:
        """Return Σ m c_γ s_a."""
        if (term, axis) not in self._moments_of_terms:
            self._moments_of_terms[term, axis] = self._contract_with(
                (axis, ()), lambda other: self._gram_entry(term, other)
            )
        return self._moments_of_terms[term, axis]

    def _integrate(self, first: FieldDerivative, second: FieldDerivative) -> Polynomial:
        """Return Σ m f h of two fields."""
        b = self._b
        sums: dict[Exponents, list[int]] = {}
        for left, m, alpha in self._derivative(first):
            for right, n, beta in self._derivative(second):
                exponents = tuple(x + y for x, y in zip(alpha, beta, strict=True))
                sums.setdefault(exponents, []).append(b.mul(b.constant(m * n), self._gram_entry(left, right)))
        return {exponents: b.sum(entries) for exponents, entries in sums.items()}

    def _derivative(self, field: FieldDerivative) -> Iterator[tuple[Term, float, Exponents]]:
        """Yield the terms of a derivative of a field: γ, factor and exponents of a part of p_γ's derivative."""
        axis, by = field
        for term, polynomial in self._polynomials.items():
            for exponents, share in polynomial.items() if term[0] == axis else ():
                factor, left = share, list(exponents)
                for i in by:
                    factor, left[i] = factor * left[i], left[i] - 1
                if factor:
                    yield term, factor, tuple(left)

    def _gram_entry(self, left: Term, right: Term) -> int:
        """Return Σ m c_γ c_δ; zero where it is a rounding error."""
        key = (left, right) if left <= right else (right, left)
        if key not in self._gram:
            entry = self._sum_products(*key)
            value, *sizes = (self._b.value(node) for node in (entry, *(self._sum_products(one, one) for one in key)))
            if value is not None and None not in sizes:
                size = math.sqrt(math.prod(size for size in sizes if size is not None))
                entry = self._g.zero if abs(value) < _ROUND_OFF * size else entry
            self._gram[key] = entry
        return self._gram[key]

    def _sum_products(self, left: Term, right: Term) -> int:
        """Return Σ m c_γ c_δ as it is."""
        b = self._b
        rows = zip(self._masses, self._components[left], self._components[right], strict=True)
        return b.sum(b.mul(m, b.mul(x, y)) for m, x, y in rows)

    def _evaluate(self, *polynomials: Polynomial) -> int:
        """Return the value of a sum of polynomials."""
        return self._b.sum(self._terms(*polynomials))

    def _terms(self, *polynomials: Polynomial) -> list[int]:
        """Return the terms of a sum of polynomials."""
        b, total = self._b, dict[Exponents, int]()
        for polynomial in polynomials:
            for exponents, coefficient in polynomial.items():
                total[exponents] = b.add(total.get(exponents, self._g.zero), coefficient)
        return [b.mul(coefficient, self._power(exponents)) for exponents, coefficient in total.items()]

    def _power(self, exponents: Exponents) -> int:
        """Return η^α."""
        return self._b.product(x for x, n in zip(self._eta, exponents, strict=True) for _ in range(n))

    def _axial(self, C: Matrix) -> Vector:
        """Return Σ m s × f of C = Σ m f sᵀ."""
        sub = self._b.sub
        return sub(C[2][1], C[1][2]), sub(C[0][2], C[2][0]), sub(C[1][0], C[0][1])
