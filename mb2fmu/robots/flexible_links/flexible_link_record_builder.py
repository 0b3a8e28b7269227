"""Frames, points, bodies and loads of links that bend, as records of the mechanism.

They are those of ``FlexibleBody``, by the same names: so the check against the nodes finds them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sympy as sm
from sympy.physics.mechanics import RigidBody
from sympy.physics.vector import Point, ReferenceFrame, Vector

from mb2fmu.mechanics.mechanism.records.appearance_records import DrawnFlexibleMesh
from mb2fmu.mechanics.mechanism.records.dyadic_components import dyadic_components
from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components, VectorTerms
from mb2fmu.mechanics.mechanism.records.mechanism_records import Body, ForceLoad, Frame, KinematicPoint
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap
from mb2fmu.model.declarations.appearance_declarations import AppearanceItem, FlexibleMeshShape
from mb2fmu.robots.flexible_links.flexible_link import FlexibleLink


@dataclass(slots=True)
class FlexibleLinkRecordBuilder:
    """Writes the records of links that bend.

    Attributes:
        frames: Of the mechanism; grow.
        points: Of the mechanism; grow.
        plain: Translates the modal coordinates and speeds.
        frame_of: SymPy's frame of a body or section → its number.
        point_of: SymPy's point → its number.
    """

    frames: list[Frame]
    points: list[KinematicPoint]
    plain: DynamicsymbolMap
    frame_of: dict[ReferenceFrame, int] = field(default_factory=dict)
    point_of: dict[Point, int] = field(default_factory=dict)

    def place_link(self, link: FlexibleLink, frame: int, origin: int) -> None:
        """Number a body's frame and origin; the points that move in it are located from there.

        Args:
            link: That bends.
            frame: Frame with the axes of the body's.
            origin: Point at the origin of the body's frame.
        """
        body = link.body
        self.frame_of[body.frame()] = frame
        self.points.append(KinematicPoint(body.point().name, origin, (), None, located=True))
        self.point_of[body.point()] = len(self.points) - 1

    def add_section(self, link: FlexibleLink, node: int) -> tuple[int, int]:
        """Return the numbers of the frame and the point that move with a node."""
        frames = link.body.section_frames(node)
        speeds = {q.diff(): u for q, u in zip(link.body.q, link.body.u, strict=True)}
        for base, section in itertools.pairwise(frames):
            if section not in self.frame_of:
                self.frame_of[section] = len(self.frames)
                rotation = sm.ImmutableMatrix(3, 3, list(map(self.plain, base.dcm(section))))
                omega = self._read_vector(section.ang_vel_in(base).xreplace(speeds))
                number = self.frame_of[base]
                self.frames.append(Frame(section.name, number, rotation, number, omega))
        return self.frame_of[frames[-1]], self._find_point(link, link.body.point(node))

    def form_bodies(self, link: FlexibleLink) -> Iterator[Body]:
        """Yield the rigid body and the particles of a link."""
        for body in link.body.bodies:
            centre, mass = self._find_point(link, body.masscenter), sm.Rational(float(body.mass))
            if isinstance(body, RigidBody):
                entries = list(map(self.plain, dyadic_components(body.central_inertia, body.frame)))
                yield Body(body.name, centre, self.frame_of[body.frame], mass, sm.ImmutableMatrix(3, 3, entries))
            else:
                yield Body(body.name, centre, -1, mass, None)

    def form_loads(self, link: FlexibleLink, body: int) -> Iterator[ForceLoad]:
        """Yield stiffness and damping: two opposite forces of each mode on the rigid body, of this number."""
        for number, (point, force) in enumerate(link.body.loads, 1):
            name = f"elastic load {number} of {link.body.name} at {point.name}"
            yield ForceLoad(name, self._find_point(link, point), self._read_vector(force), body)

    def form_bendings(self, appearance: Sequence[AppearanceItem]) -> Iterator[DrawnFlexibleMesh]:
        """Yield the surfaces of links that bend."""
        for item in appearance:
            if isinstance(item, FlexibleMeshShape) and item.origin in self.point_of:
                yield DrawnFlexibleMesh(
                    body=str(item.body.name),
                    point=self.point_of[item.origin],
                    frame=self.frame_of[item.body.frame],
                    carriers=tuple(self.point_of[carrier] for carrier in item.carriers),
                    vertices=item.vertices,
                    faces=item.faces,
                    shapes=item.shapes,
                    scale=item.scale,
                    color=item.color,
                    opacity=item.opacity,
                )

    def _find_point(self, link: FlexibleLink, point: Point) -> int:
        """Return the number of a point of a body, which is made at the first request."""
        if point not in self.point_of:
            origin = link.body.point()
            place = self._read_vector(point.pos_from(origin))
            self.points.append(KinematicPoint(point.name, self.point_of[origin], place, None, located=True))
            self.point_of[point] = len(self.points) - 1
        return self.point_of[point]

    def _read_vector(self, vector: Vector) -> VectorTerms:
        """Return a vector as components in the frames that it is written in."""
        terms: list[tuple[int, Components]] = []
        for components, frame in vector.args if vector != 0 else ():
            x, y, z = map(self.plain, components)
            terms.append((self.frame_of[frame], (x, y, z)))
        return tuple(terms)
