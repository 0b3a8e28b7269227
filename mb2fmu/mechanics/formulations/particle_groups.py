"""Find particles that move in one link by polynomials of the same coordinates, which composite bodies take together.

A flexible body is many particles whose displacements are linear, or quadratic, in its modal coordinates. Together they
are an inertia that is a polynomial of these coordinates, which costs much less than a link for each particle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sympy as sm
from sympy.utilities.iterables import connected_components

from mb2fmu.mechanics.equations.link_recursion import (
    Components,
    LinkBody,
    LinkOffsetTerm,
    ParticleDisplacementTerm,
    ParticleGroup,
)
from mb2fmu.mechanics.formulations.mechanism_link_tree import LocalTimeDerivatives, MechanismLinkTree
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism

_MAX_DEGREE = 2
"""Of displacements, as those of flexible bodies; inertias then have the fourth degree."""

_Powers = tuple[tuple[sm.Expr, int], ...]
_Polynomial = list[tuple[int, _Powers, Components]]
"""Terms of a displacement: frame, (coordinate, exponent) pairs, components."""


def find_particle_groups(
    mechanism: Mechanism, tree: MechanismLinkTree, bodies: Sequence[LinkBody], rates: LocalTimeDerivatives
) -> tuple[ParticleGroup, ...]:
    """Return the groups of particles that share coordinates, two or more in each."""
    speeds = _find_speeds_that_are_rates(mechanism)
    displacement_of_coordinate: dict[int, dict[int, _Polynomial]] = {}
    for number, body in enumerate(bodies):
        displacement = _read_displacement(body, tree, speeds, rates)
        if displacement is not None:
            displacement_of_coordinate.setdefault(tree.links[body.masscenter.link].parent, {})[number] = displacement
    return tuple(
        group
        for link, particles in displacement_of_coordinate.items()
        for group in _split_by_coordinates(link, particles, speeds)
    )


def _find_speeds_that_are_rates(mechanism: Mechanism) -> dict[sm.Expr, int]:
    """Return coordinate → number of the speed that is its rate; coordinates of other kinds have none."""
    rows: dict[int, dict[int, sm.Expr]] = {}
    for (k, j), entry in mechanism.kinematics.matrix.todok().items():
        rows.setdefault(k, {})[j] = entry
    offset = mechanism.kinematics.offset
    return {mechanism.q[k]: j for k, row in rows.items() for j in row if row == {j: 1} and offset[k, 0] == 0}


def _read_displacement(
    body: LinkBody, tree: MechanismLinkTree, speeds: Mapping[sm.Expr, int], rates: LocalTimeDerivatives
) -> _Polynomial | None:
    """Return a particle's displacement from the origin of the link before it; None if it is of another kind."""
    link = tree.links[body.masscenter.link]
    if body.inertia is not None or link.velocity is not None or link.parent < 0:
        return None
    offset = (*link.offset, *body.masscenter.offset)
    axes = {tree.frames[displacement.frame].axes for displacement in offset}
    if not axes <= {link.frame} or link.frame != tree.links[link.parent].frame:
        return None
    terms = [term for displacement in offset for term in _expand(displacement, speeds)]
    moves = any(powers for _, powers, _ in terms)
    plain = all(sum(n for _, n in powers) <= _MAX_DEGREE and rates.is_constant(c) for _, powers, c in terms)
    return terms if moves and plain else None


def _expand(displacement: LinkOffsetTerm, speeds: Mapping[sm.Expr, int]) -> _Polynomial:
    """Return the terms of a displacement; what is no power of a coordinate stays in the components."""
    terms: dict[_Powers, list[sm.Expr]] = {}
    for i, component in enumerate(displacement.components):
        for term in sm.Add.make_args(component if displacement.rate is None else sm.expand(component)):
            factors = [factor.as_base_exp() for factor in sm.Mul.make_args(term)]
            powers = tuple((base, int(n)) for base, n in factors if base in speeds and n.is_Integer and n > 0)
            rest = sm.Mul(*(base**n for base, n in factors if (base, n) not in powers))
            terms.setdefault(powers, [sm.S.Zero] * 3)[i] += rest
    return [(displacement.frame, powers, (x, y, z)) for powers, (x, y, z) in terms.items()]


def _split_by_coordinates(
    link: int, particles: Mapping[int, _Polynomial], speeds: Mapping[sm.Expr, int]
) -> Iterator[ParticleGroup]:
    """Yield the groups of a link: particles of different groups have no coordinate in common."""
    used_coordinates = {
        number: {coordinate for _, powers, _ in terms for coordinate, _ in powers}
        for number, terms in particles.items()
    }
    pairs = [
        (a, b)
        for a in used_coordinates
        for b in used_coordinates
        if a < b and used_coordinates[a] & used_coordinates[b]
    ]
    for members in connected_components((list(used_coordinates), pairs)):
        coordinates = sorted(set().union(*(used_coordinates[number] for number in members)), key=speeds.__getitem__)
        if len(members) < 2:
            continue
        yield ParticleGroup(
            link,
            tuple(coordinates),
            tuple(speeds[coordinate] for coordinate in coordinates),
            {
                number: tuple(
                    ParticleDisplacementTerm(frame, tuple(dict(powers).get(q, 0) for q in coordinates), components)
                    for frame, powers, components in particles[number]
                )
                for number in sorted(members)
            },
        )
