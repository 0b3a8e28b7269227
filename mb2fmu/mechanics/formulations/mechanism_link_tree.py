"""Group a mechanism's frames and points into rigid links; motion between two links is a local relation.

Frames that never turn against each other share their axes. A point that is displaced by constants in some axes is
fixed in the link that has these axes and in which the point before it is fixed; where there is no such link, one is
made: a turn about the point before. A displacement that varies makes a link of its own, which does not turn. Massless
links that only carry one other link are merged with it (a free body: displaced and turned in one step).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import sympy as sm

from mb2fmu.mechanics.equations.link_recursion import (
    Components,
    FrameRelation,
    LinkFixedPoint,
    LinkOffsetTerm,
    RecursionLink,
    SpeedLinearVector,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    Mechanism,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    time_derivative,
    total_time_derivative,
)
from mb2fmu.model.expression_traversal import partial_derivative

ZERO: Components = (sm.S.Zero, sm.S.Zero, sm.S.Zero)
PossibleAttachments = dict[int, LinkFixedPoint]
"""Axes → where a point is fixed in a link with these axes; the first is the one it came by."""


@dataclass(frozen=True, slots=True)
class MechanismLinkTree:
    """Links, and the link of each frame and point.

    Attributes:
        frames: As numbered in the mechanism.
        links: Link 0 is the ground.
        points: Where each point of the mechanism is fixed.
        bodies: Where the mass centre of each body is fixed, in a link that turns as the body does.
        link_of_axes: Axes → a link that has them.
    """

    frames: tuple[FrameRelation, ...]
    links: tuple[RecursionLink, ...]
    points: tuple[LinkFixedPoint, ...]
    bodies: tuple[LinkFixedPoint, ...]
    link_of_axes: Mapping[int, int]


class LocalTimeDerivatives:
    """Time derivatives of local expressions.

    Args:
        mechanism: Whose coordinates move.
        q_dot: Names of q'.
    """

    def __init__(self, mechanism: Mechanism, q_dot: Sequence[sm.Expr]) -> None:
        self._m = mechanism
        self._q_dot = dict(zip(mechanism.q, q_dot, strict=True))
        self._index = {q: k for k, q in enumerate(mechanism.q)}
        self._speed = {u: j for j, u in enumerate(mechanism.u)}
        self._K: dict[int, dict[int, sm.Expr]] = {}
        for (k, j), entry in mechanism.kinematics.matrix.todok().items():
            self._K.setdefault(k, {})[j] = entry
        self._k0 = {k: offset for (k, _), offset in mechanism.kinematics.offset.todok().items()}
        self._moving_symbols = {*mechanism.q, *dict(mechanism.inputs_with_rates), mechanism.t}
        self._zero_auxiliary_speeds = dict.fromkeys(mechanism.u_auxiliary, sm.S.Zero)

    def is_constant(self, components: Iterable[sm.Expr]) -> bool:
        """Return True if the expression contains no coordinate, no prescribing input and no time."""
        return all(c.is_Number or self._moving_symbols.isdisjoint(c.free_symbols) for c in components)

    def linearize_velocity(self, frame: int, components: Components) -> SpeedLinearVector:
        """Return a velocity, linear in u; auxiliary speeds are zero."""
        at_zero_speeds = (
            tuple(c.xreplace(self._zero_auxiliary_speeds) for c in components)
            if self._zero_auxiliary_speeds
            else components
        )
        speed_columns = sorted({self._speed[s] for c in at_zero_speeds for s in c.free_symbols if s in self._speed})
        columns = {
            j: _as_components(partial_derivative(c, self._m.u[j]) for c in at_zero_speeds) for j in speed_columns
        }
        rest = dict.fromkeys((self._m.u[j] for j in speed_columns), sm.S.Zero)
        return self._collect_linear_vector(frame, columns, _as_components(c.xreplace(rest) for c in at_zero_speeds))

    def differentiate_position(self, frame: int, components: Components) -> SpeedLinearVector:
        """Return the rate of a position's components in their frame."""
        columns: dict[int, list[sm.Expr]] = {}
        known_rates = {self._m.t: sm.S.One, **dict(self._m.inputs_with_rates)}
        offset = [total_time_derivative(c, known_rates) for c in components]
        for i, c in enumerate(components):
            for q in sorted(c.free_symbols & self._index.keys(), key=self._index.__getitem__):
                k, change = self._index[q], partial_derivative(c, q)
                for j, entry in self._K.get(k, {}).items():
                    column = columns.setdefault(j, [sm.S.Zero] * 3)
                    column[i] += change if entry is sm.S.One else change * entry
                if k in self._k0:
                    offset[i] += change * self._k0[k]
        return self._collect_linear_vector(
            frame, {j: _as_components(columns[j]) for j in sorted(columns)}, _as_components(offset)
        )

    def _collect_linear_vector(
        self, frame: int, columns: Mapping[int, Components], offset: Components
    ) -> SpeedLinearVector:
        """Collect a velocity that is linear in the speeds: columns, offset, and terms of its derivative without u̇."""
        nonzero_columns = tuple((j, column) for j, column in columns.items() if any(c != 0 for c in column))
        bias = list(self._differentiate_components(offset))
        for j, column in nonzero_columns:
            for i, change in enumerate(self._differentiate_components(column)):
                if change is not sm.S.Zero:
                    bias[i] += change * self._m.u[j]
        return SpeedLinearVector(frame, nonzero_columns, offset, _as_components(bias))

    def _differentiate_components(self, components: Components) -> Components:
        """Return the time derivative of components in their own frame; constants give the shared zero."""
        if self.is_constant(components):
            return ZERO
        return _as_components(self._differentiate_component(c) for c in components)

    def _differentiate_component(self, c: sm.Expr) -> sm.Expr:
        """Return the total time derivative of one component: by q (with q' = K u + k0), driven motion, and t."""
        q = [s for s in self._m.q if s in c.free_symbols]
        rate_of_input = dict(self._m.inputs_with_rates)
        return time_derivative(
            c, [*q, *rate_of_input], [*(self._q_dot[s] for s in q), *rate_of_input.values()], self._m.t
        )


def build_mechanism_link_tree(mechanism: Mechanism, rates: LocalTimeDerivatives) -> MechanismLinkTree:
    """Return the links of a mechanism."""
    return _LinkTreeBuilder(mechanism, rates).build()


@dataclass(slots=True)
class _LinkTreeBuilder:
    """Makes the links of a mechanism from its frames and points."""

    m: Mechanism
    rates: LocalTimeDerivatives
    frames: list[FrameRelation] = field(default_factory=list)
    links: list[RecursionLink] = field(default_factory=list)
    attachments_of_point: list[PossibleAttachments] = field(default_factory=list)
    needed_points: set[int] = field(default_factory=set)
    points_on_body: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Axes of a body → points that are fixed in it, from its mass centre inwards."""

    def build(self) -> MechanismLinkTree:
        """Return the links of all frames and points that bodies, loads and outputs want, from the ground outwards."""
        self._read_frames()
        self.needed_points = {self.frames[frame].axes for frame in self._list_torque_frames()}
        self.points_on_body = {
            self.frames[body.frame].axes: [*self._list_points_fixed_in_body(body)]
            for body in self.m.bodies
            if body.frame >= 0
        }
        self.links = [RecursionLink("ground", -1, 0, ())]
        for i in range(len(self.m.points)):
            self.attachments_of_point.append(self._find_attachments(i))
        bodies = [self._attach_body(body) for body in self.m.bodies]
        of_axes = {0: 0}
        for number, link in enumerate(self.links):
            of_axes.setdefault(link.frame, number)
        for axes in sorted(self.needed_points - set(of_axes)):
            of_axes[axes] = self._make_massless_link(axes, of_axes)
        points = [next(iter(attachments.values())) for attachments in self.attachments_of_point]
        return self._merge_massless_links(points, bodies, of_axes)

    def _attach_body(self, body: Body) -> LinkFixedPoint:
        """Return the attachment of a body's mass centre to a link; a particle takes any link that its point has."""
        attachments = self.attachments_of_point[body.masscenter]
        return (
            self._find_link(attachments, self.frames[body.frame].axes)
            if body.frame >= 0
            else next(iter(attachments.values()))
        )

    # --- frames ------------------------------------------------------------------------------------------------------

    def _read_frames(self) -> None:
        """Relate each frame to its parent; frames with a constant rotation share the axes of their parent."""
        for i, frame in enumerate(self.m.frames):
            is_fixed = i == 0 or (frame.oriented and self.rates.is_constant(frame.rotation))
            axes = 0 if i == 0 else self.frames[frame.parent].axes if is_fixed else i
            spin = () if is_fixed else tuple(self.rates.linearize_velocity(k, c) for k, c in frame.angular_velocity)
            self.frames.append(FrameRelation(frame.name, frame.parent, axes, frame.rotation, frame.reference, spin))

    def _list_torque_frames(self) -> Iterable[int]:
        """Yield frames that torques act on."""
        for load in self.m.loads:
            if isinstance(load, (TorqueLoad, TorqueActuatorLoad)):
                yield load.frame
            if isinstance(load, TorqueActuatorLoad) and load.reaction >= 0:
                yield load.reaction

    def _list_points_fixed_in_body(self, body: Body) -> Iterable[int]:
        """Yield the points between a body's mass centre and the joint that carries it."""
        i = body.masscenter
        while i >= 0:
            yield i
            place = self.m.points[i]
            terms = place.position or ()
            axes = {self.frames[frame].axes for frame, _ in terms}
            if not place.located or not axes <= {self.frames[body.frame].axes}:
                return
            if not all(self.rates.is_constant(components) for _, components in terms):
                return
            i = place.parent

    # --- points ------------------------------------------------------------------------------------------------------

    def _find_attachments(self, i: int) -> PossibleAttachments:
        """Find where point ``i`` is attached: by its given velocity, or by its place against its parent."""
        place = self.m.points[i]
        if i == 0:
            return {0: LinkFixedPoint(0)}
        if place.velocity is not None and (not place.located or self._prefers_given_velocity(i)):
            return self._make_link_with_given_velocity(i)
        assert place.position is not None
        parent_attachments = self.attachments_of_point[place.parent]
        if not place.located and place.parent < 0:
            return self._make_link_with_given_velocity(i)
        return self._attach_displaced_point(parent_attachments, place.position, place.name)

    def _attach_displaced_point(
        self, attachments: PossibleAttachments, terms: VectorTerms, name: str
    ) -> PossibleAttachments:
        """Return the homes of a point that is displaced from another."""
        constant_terms = [term for term in terms if self.rates.is_constant(term[1])]
        moving_terms = [term for term in terms if not self.rates.is_constant(term[1])]
        constant_terms.sort(key=lambda term: self.frames[term[0]].axes not in attachments)
        attachable_terms = [term for term in constant_terms if self.frames[term[0]].axes in attachments]
        for frame, components in attachable_terms[:1]:
            attachments = self._attach_fixed_point(attachments, frame, components)
        for frame, components in moving_terms:
            attachment = self._find_link(attachments, self.frames[frame].axes)
            displacement = LinkOffsetTerm(frame, components, self.rates.differentiate_position(frame, components))
            axes = self.frames[frame].axes
            attachments = {
                axes: LinkFixedPoint(self._add_link(name, attachment.link, axes, (*attachment.offset, displacement)))
            }
        for frame, components in (term for term in constant_terms if term not in attachable_terms[:1]):
            attachments = self._attach_fixed_point(attachments, frame, components)
        return attachments

    def _attach_fixed_point(
        self, attachments: PossibleAttachments, frame: int, components: Components
    ) -> PossibleAttachments:
        """Return where a point that is fixed in a frame is: on that frame's link, one displacement further."""
        axes = self.frames[frame].axes
        attachment = self._find_link(attachments, axes)
        return {axes: LinkFixedPoint(attachment.link, (*attachment.offset, LinkOffsetTerm(frame, components)))}

    def _find_link(self, attachments: PossibleAttachments, axes: int) -> LinkFixedPoint:
        """Return where a point is fixed on a link with these axes; a new link if there is none."""
        if axes in attachments:
            return attachments[axes]
        attachment = next(iter(attachments.values()))
        for between in self._find_intermediate_axes(axes, self.links[attachment.link].frame, attachments):
            if between not in attachments:
                attachments[between] = LinkFixedPoint(
                    self._add_link(self.frames[between].name, attachment.link, between, attachment.offset)
                )
            attachment = attachments[between]
        attachments[axes] = LinkFixedPoint(
            self._add_link(self.frames[axes].name, attachment.link, axes, attachment.offset)
        )
        return attachments[axes]

    def _find_intermediate_axes(self, axes: int, target_axes: int, attachments: PossibleAttachments) -> list[int]:
        """Return axes between a link's and those it is made from that are links of their own, outermost last.

        Those that torques act on; those of bodies that the same point belongs to (where three hinges meet in a point,
        as in hips and wrists of robots, each turns its own link); and all of them unless three speeds turn the last
        one, which then spans space.
        """
        chain = []
        axes_on_path = axes
        while axes_on_path not in {target_axes, 0}:
            chain.append(axes_on_path)
            axes_on_path = self.frames[self.frames[axes_on_path].reference].axes
        speeds = {j for k in chain for vector in self.frames[k].spin for j, _ in vector.columns}
        return [
            k
            for k in reversed(chain[1:])
            if len(speeds) != 3 or k in self.needed_points or self._is_on_body(attachments, k)
        ]

    def _is_on_body(self, attachments: PossibleAttachments, axes: int) -> bool:
        """Return whether a point is fixed in the body that has these axes."""
        return any(
            i < len(self.attachments_of_point) and self.attachments_of_point[i] is attachments
            for i in self.points_on_body.get(axes, ())
        )

    def _prefers_given_velocity(self, i: int) -> bool:
        """Return whether to take the user's velocity: it uses a constraint, is a particle's, or is simpler."""
        place = self.m.points[i]
        if place.is_instantaneous or place.name in self.m.points_using_constraints:
            return True
        assert place.position is not None
        assert place.velocity is not None
        derived = [
            self.rates.differentiate_position(frame, c) for frame, c in place.position if not self.rates.is_constant(c)
        ]
        if not derived or all(self._has_constant_components(vector) for vector in derived):
            return False
        return all(
            self._has_constant_components(self.rates.linearize_velocity(frame, c)) for frame, c in place.velocity
        )

    def _has_constant_components(self, vector: SpeedLinearVector) -> bool:
        """Return whether a velocity has constant components in its frame."""
        return all(self.rates.is_constant(column) for _, column in vector.columns)

    def _make_link_with_given_velocity(self, i: int) -> PossibleAttachments:
        """Return a link whose origin has the velocity that the user gave."""
        place = self.m.points[i]
        assert place.velocity is not None
        velocity = tuple(self.rates.linearize_velocity(frame, c) for frame, c in place.velocity)
        attachment = LinkFixedPoint(0)
        offset: tuple[LinkOffsetTerm, ...] = ()
        if place.located:
            attachment = next(iter(self.attachments_of_point[place.parent].values()))
            offset = tuple(LinkOffsetTerm(frame, c) for frame, c in place.position or ())
        axes = self.links[attachment.link].frame
        return {
            axes: LinkFixedPoint(
                self._add_link(place.name, attachment.link, axes, (*attachment.offset, *offset), velocity)
            )
        }

    def _make_massless_link(self, axes: int, of_axes: dict[int, int]) -> int:
        """Return a massless link for a frame that nothing but torques act on."""
        axes_on_path = axes
        while axes_on_path not in of_axes:
            axes_on_path = self.frames[self.frames[axes_on_path].reference].axes
        return self._find_link(
            {self.links[of_axes[axes_on_path]].frame: LinkFixedPoint(of_axes[axes_on_path])}, axes
        ).link

    def _add_link(
        self,
        name: str,
        parent: int,
        axes: int,
        offset: tuple[LinkOffsetTerm, ...],
        velocity: tuple[SpeedLinearVector, ...] | None = None,
    ) -> int:
        """Add a link and return its number; `velocity` is given where the joint prescribes it."""
        self.links.append(RecursionLink(name, parent, axes, offset, velocity))
        return len(self.links) - 1

    # --- merging -----------------------------------------------------------------------------------------------------

    def _merge_massless_links(
        self, points: list[LinkFixedPoint], bodies: list[LinkFixedPoint], of_axes: dict[int, int]
    ) -> MechanismLinkTree:
        """Merge a massless prismatic link into the revolute link that carries it: a free body, a screw."""
        needed_links = {place.link for place in (*points, *bodies) if place.offset} | {place.link for place in bodies}
        needed_links |= {of_axes[axes] for axes in self.needed_points}
        merged_into: dict[int, int] = {}
        for number in range(len(self.links) - 1, 0, -1):
            children = [i for i, link in enumerate(self.links) if link.parent == number and i not in merged_into]
            link = self.links[number]
            if number in needed_links or len(children) != 1 or self.links[children[0]].offset:
                continue
            child = children[0]
            if not self._is_screw_or_free(link, self.links[child]):
                continue
            merged_into[number] = child
            self.links[child] = replace(
                self.links[child], parent=link.parent, offset=link.offset, velocity=link.velocity
            )
        remaining_links = [i for i in range(len(self.links)) if i not in merged_into]
        new = {old: number for number, old in enumerate(remaining_links)}
        new |= {old: new[child] for old, child in merged_into.items()}
        new[-1] = -1
        links = [replace(self.links[i], parent=new[self.links[i].parent]) for i in remaining_links]
        points = [replace(place, link=new[place.link]) for place in points]
        bodies = [replace(place, link=new[place.link]) for place in bodies]
        of_axes = {axes: new[link] for axes, link in of_axes.items()}
        massive = self._find_loaded_links(links, points, bodies, of_axes)
        links = [replace(link, carries_mass_or_load=i in massive) for i, link in enumerate(links)]
        return MechanismLinkTree(tuple(self.frames), tuple(links), tuple(points), tuple(bodies), of_axes)

    def _is_screw_or_free(self, link: RecursionLink, child: RecursionLink) -> bool:
        """Return whether a link slides in three directions, or by the speed that turns its child (a screw)."""
        if link.frame != self.links[link.parent].frame:
            return False
        vectors = link.velocity or [d.rate for d in link.offset if d.rate is not None]
        sliding = {j for vector in vectors for j, _ in vector.columns}
        turning = {j for vector in self.frames[child.frame].spin for j, _ in vector.columns}
        return len(sliding) == 3 or bool(sliding and sliding <= turning)

    def _find_loaded_links(
        self,
        links: list[RecursionLink],
        points: list[LinkFixedPoint],
        bodies: list[LinkFixedPoint],
        of_axes: dict[int, int],
    ) -> set[int]:
        """Return the links with mass or loads on them or after them."""
        massive = {place.link for place in bodies} | {of_axes[axes] for axes in self.needed_points}
        for load in self.m.loads:
            numbers = [*getattr(load, "points", ()), *([load.point] if hasattr(load, "point") else [])]
            massive |= {points[number].link for number in numbers}
        for number in range(len(links) - 1, 0, -1):
            if number in massive:
                massive.add(links[number].parent)
        return massive


def _as_components(components: Iterable[sm.Expr]) -> Components:
    """Return three components as a tuple of fixed length."""
    x, y, z = components
    return (x, y, z)
