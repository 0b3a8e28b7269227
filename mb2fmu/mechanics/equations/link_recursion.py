"""Recursion: a mechanism as links in tree order; local relations between neighbours, evaluated link by link.

A link is what moves as one rigid thing: an origin and axes. Everything is said relative to what comes before it, in
plain symbols, so that nothing is ever composed symbolically; ``lowering`` evaluates the recursion as nodes.

With ω, v the angular velocity and the velocity of a link's origin, both in the link's own axes, p its parent,

    ω = [C ω_p]         + Σ s_j u_j + s_t          C: parent's components → own components
    v = [C (v_p + ω_p × r)] + Σ d_j u_j + d_t      r: from the parent's origin to this one

where either bracket may be missing: speeds may be absolute (angles of rods from the vertical, velocities in N).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import sympy as sm

Components = tuple[sm.Expr, sm.Expr, sm.Expr]
QuantityKind = Literal[
    "rotation",
    "angular velocity",
    "position",
    "velocity",
    "acceleration",
    "angular acceleration",
    "pathway",
    "kinetic energy",
    "mass matrix",
    "forcing",
    "gravity effort",
    "inverse effort",
]


@dataclass(frozen=True, slots=True)
class SpeedLinearVector:
    """Components in one frame, linear in the speeds: sum of columns[j] u_j + offset.

    Attributes:
        frame: Number of the frame whose components they are.
        columns: (speed's index, components); zero ones are left out.
        offset: What is there without any speed (prescribed motion).
        bias: Rate of the components at u' = 0, as seen in the frame.
    """

    frame: int
    columns: tuple[tuple[int, Components], ...]
    offset: Components
    bias: Components


@dataclass(frozen=True, slots=True)
class FrameRelation:
    """One reference frame relative to frames before it.

    Attributes:
        name: As the user named it.
        parent: Number of the frame it is oriented in; -1 for N.
        axes: Number of the first frame that it never turns against: frames with equal ``axes`` are one rigid frame.
        rotation: Components in the parent = ``rotation`` @ components in this frame.
        reference: Number of the frame ``spin`` is relative to.
        spin: Angular velocity in ``reference``, rad/s; empty where it is fixed in its parent.
    """

    name: str
    parent: int
    axes: int
    rotation: sm.ImmutableMatrix
    reference: int
    spin: tuple[SpeedLinearVector, ...]


@dataclass(frozen=True, slots=True)
class LinkOffsetTerm:
    """Components of a position in a frame, m, and their rate, m/s; no rate: they are constant."""

    frame: int
    components: Components
    rate: SpeedLinearVector | None = None


@dataclass(frozen=True, slots=True)
class RecursionLink:
    """Axes and origin that a part of the mechanism is fixed to.

    Attributes:
        name: Of its frame, or of the point that is its origin.
        parent: Number of the link before it; -1 for link 0, the ground.
        frame: Number of the frame whose axes it has (a first frame, see ``FrameRelation.axes``).
        offset: Its origin from the parent's origin.
        velocity: Of its origin in N where it is given, not following from ``offset``; None otherwise.
        carries_mass_or_load: True if mass or a load is fixed to it or to a link after it.
    """

    name: str
    parent: int
    frame: int
    offset: tuple[LinkOffsetTerm, ...]
    velocity: tuple[SpeedLinearVector, ...] | None = None
    carries_mass_or_load: bool = False


@dataclass(frozen=True, slots=True)
class LinkFixedPoint:
    """A point fixed in a link: constant displacements from the link's origin."""

    link: int
    offset: tuple[LinkOffsetTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkBody:
    """Mass that is fixed to a link.

    Attributes:
        name: Of the body.
        masscenter: Where the mass centre is.
        frame: Number of the frame of ``inertia``; -1 for a particle.
        mass: kg.
        inertia: Central inertia in ``frame``, shape (3, 3), kg·m²; None for a particle.
    """

    name: str
    masscenter: LinkFixedPoint
    frame: int
    mass: sm.Expr
    inertia: sm.ImmutableMatrix | None


@dataclass(frozen=True, slots=True)
class LinkForce:
    """A force (N) at a point: terms (frame, components)."""

    at: LinkFixedPoint
    force: tuple[tuple[int, Components], ...]


@dataclass(frozen=True, slots=True)
class LinkTorque:
    """A torque (N·m) on a link: terms (frame, components); ``reaction``: the link that takes its opposite, or -1."""

    link: int
    torque: tuple[tuple[int, Components], ...]
    reaction: int = -1
    magnitude: sm.Expr | None = None


@dataclass(frozen=True, slots=True)
class LinkPathwayForce:
    """A force along straight segments through points, expansile positive, N.

    Attributes:
        number: Of the pathway; its length and rate are quantities.
        points: Numbers from end to end.
        force: May contain the symbols of length and rate.
    """

    number: int
    points: tuple[int, ...]
    force: sm.Expr


LinkLoad = LinkForce | LinkTorque | LinkPathwayForce


@dataclass(frozen=True, slots=True)
class ParticleDisplacementTerm:
    """A term of a particle's displacement: components in a frame (m per power of η) times the powers of η."""

    frame: int
    exponents: tuple[int, ...]
    components: Components


@dataclass(frozen=True, slots=True)
class ParticleGroup:
    """Particles that move in the axes of one link, by polynomials of the same coordinates η, as a flexible body's do.

    Attributes:
        link: Number of the link.
        coordinates: η.
        speeds: Number of the speed that is the rate of each.
        particles: Number of the body → terms of its displacement from the link's origin.
    """

    link: int
    coordinates: tuple[sm.Expr, ...]
    speeds: tuple[int, ...]
    particles: Mapping[int, tuple[ParticleDisplacementTerm, ...]]


@dataclass(frozen=True, slots=True)
class RecursionQuantity:
    """Symbols that stand for something the recursion evaluates, in components of N.

    Attributes:
        kind: What. ``rotation``: N_C_B of a frame; ``pathway``: length and rate; matrices row by row.
        number: Of the frame, point or pathway; 0 where there is only one.
        symbols: Stand for it.
        given_expressions: Of an ``inverse effort``: an acceleration per speed, then the generalized forces that act on
            their own.
    """

    kind: QuantityKind
    number: int
    symbols: tuple[sm.Symbol, ...]
    given_expressions: tuple[sm.Expr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecursion:
    """All local relations of one mechanism.

    Attributes:
        frames: Frame 0 is N.
        links: Link 0 is the ground; parents come first.
        points: Where the mechanism's points are fixed, by their numbers; point 0 is the origin.
        bodies: All bodies.
        loads: All loads but ``gravity``.
        gravity: Acceleration that acts on every mass, components in N, m/s²; None where there is none, or where the
            weights are among ``loads``.
        generalized_forces: More forces in the rows of the speeds; empty, or one per speed.
        pathways: Number of a pathway → (points from end to end).
        quantities: What the equations name of it.
        particle_groups: Bodies that composite bodies take together; each body is in one of them at most.
    """

    frames: tuple[FrameRelation, ...]
    links: tuple[RecursionLink, ...]
    points: tuple[LinkFixedPoint, ...]
    bodies: tuple[LinkBody, ...]
    loads: tuple[LinkLoad, ...]
    gravity: Components | None = None
    generalized_forces: tuple[sm.Expr, ...] = ()
    pathways: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    quantities: tuple[RecursionQuantity, ...] = ()
    particle_groups: tuple[ParticleGroup, ...] = ()

    def list_carrying_links(self) -> list[int]:
        """Return the links but the ground that carry mass or a load, apart from what is in particle groups."""
        grouped = {number for group in self.particle_groups for number in group.particles}
        carrying_links = {body.masscenter.link for number, body in enumerate(self.bodies) if number not in grouped}
        carrying_links |= {group.link for group in self.particle_groups}
        for load in self.loads:
            match load:
                case LinkForce():
                    carrying_links.add(load.at.link)
                case LinkTorque():
                    carrying_links |= {load.link, load.reaction}
                case LinkPathwayForce():
                    carrying_links |= {self.points[point].link for point in load.points}
        for number in range(len(self.links) - 1, 0, -1):
            if number in carrying_links:
                carrying_links.add(self.links[number].parent)
        return sorted(number for number in carrying_links if number > 0)

    def list_angular_velocity_terms(self, link: int) -> tuple[tuple[SpeedLinearVector, ...], bool]:
        """Return the terms of a link's angular velocity, and whether the parent's angular velocity is added."""
        parent = self.links[link].parent
        parent_frame = self.links[parent].frame if parent >= 0 else 0
        terms: list[SpeedLinearVector] = []
        frame = self.links[link].frame
        while frame not in {parent_frame, 0}:
            terms += self.frames[frame].spin
            frame = self.frames[self.frames[frame].reference].axes
        return tuple(terms), frame == parent_frame

    def list_joint_speeds(self, link: int) -> frozenset[int]:
        """Return speeds that move a link relative to its predecessor."""
        record = self.links[link]
        vectors = [*self.list_angular_velocity_terms(link)[0], *(record.velocity or ())]
        if record.velocity is None:
            vectors += [d.rate for d in record.offset if d.rate is not None]
        return frozenset(j for vector in vectors for j, _ in vector.columns)


@dataclass(frozen=True, slots=True)
class ArticulatedBodyStructure:
    """u' by articulated bodies: one sweep over the links for any generalized forces, and no mass matrix.

    Attributes:
        joints: Per link the speeds that move it, and per group of particles; no speed is in two of them.
        geared_links: Links on the ground that one speed each moves, which moves a joint too (motors, flywheels):
            inertia and force along that joint, and nothing else.
    """

    joints: tuple[tuple[int, ...], ...]
    geared_links: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        joint_speeds = [j for joint in self.joints for j in joint]
        assert len(joint_speeds) == len(set(joint_speeds)), "a speed moves two links"
