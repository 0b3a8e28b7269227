"""Reactions: wrenches that joints and contacts transmit, by the Newton-Euler equations of the bodies beyond the cut.

With all bodies B beyond the cut, P the point about which torques are taken,

    R = sum_B m a - sum F                       F, T: loads on these bodies; forces of constraints (-λ times where they
    S = sum_B [ r_PB × m a + H' ] - sum [ r_PF × F + T ]                            act) count as loads

are the force and the torque on them through the cut. The sums run from the leaves of the tree of joints to its root,
each joint adding one body to what its children transmit: n joints cost n steps. They need u' and multipliers only, so
they are the same for every formulation; the component along a free direction of a joint is zero by the equations of
motion themselves.

Source: Newton and Euler; Featherstone, Rigid Body Dynamics Algorithms, 2008, section 5.3 (recursive Newton-Euler).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.formulations.applied_loads import (
    express_in_inertial_frame,
    split_load_into_vectors,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, ForceLoad, Mechanism, TorqueLoad
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import Joint
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    ZERO,
    add_vector_components,
    cross_product,
    multiply_matrix_by_vector,
    scale_components,
)
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics


@dataclass(frozen=True, slots=True)
class Wrench:
    """A force in N, and the torque about a point in N·m; in the inertial frame's components."""

    force: Components
    torque: Components


_ZERO_WRENCH = Wrench(ZERO, ZERO)


class ReactionWrenches:
    """Reactions of one mechanism, each computed once.

    Args:
        kinematics: Takes the names; those that depend on u' go to its ``late``.
    """

    def __init__(self, kinematics: SymbolicKinematics) -> None:
        self._k = kinematics
        self._m: Mechanism = kinematics.mechanism
        self._own_wrenches: list[Wrench] | None = None
        self._carried_bodies: dict[int, list[int]] | None = None
        self._wrenches_beyond: dict[int, Wrench] = {}
        self._children: dict[int, list[Joint]] = {}
        self._inward_joints: dict[int, Joint] = {}
        for joint in self._m.joints:
            self._children.setdefault(joint.parent, []).append(joint)
            self._inward_joints[joint.child] = joint

    def form_joint_wrench(self, number: int, at: int | None) -> Wrench:
        """Return the wrench of the joint's parent on its child; torque about ``at`` (else the joint's point on it)."""
        joint = self._m.joints[number]
        unknown = [
            name
            for name, applications in zip(self._constraint_names(), self._m.force_applications, strict=True)
            if not applications
        ]
        if unknown:
            raise _reaction_error(
                f"the reaction of joint {joint.name} depends on where the force of {', '.join(unknown)} acts",
                self._m.form_acts_remedy(unknown[0]),
            )
        wrench = self._form_wrench_through_joint(joint.child)
        return self._move_wrench(wrench, joint.point, joint.point if at is None else at)

    def form_bodies_wrench(self, numbers: Sequence[int], at: int | None) -> Wrench:
        """Return the wrench of everything but loads on the bodies together; torque about point ``at``."""
        if at is None:
            raise _reaction_error("the torque of a reaction needs its point", "add at=point")
        for record in self._m.flexible_bodies:
            parts = {record.body, *record.particles}
            if parts & {*numbers} and not parts <= {*numbers}:
                name = self._m.bodies[record.body].name
                raise _reaction_error(
                    f"the reaction of a part of {name} is none", "name the FlexibleBody, not its bodies"
                )
        total = _ZERO_WRENCH
        for number in numbers:
            moved_wrench = self._move_wrench(self._form_body_wrenches()[number], self._m.bodies[number].masscenter, at)
            total = Wrench(
                add_vector_components(total.force, moved_wrench.force),
                add_vector_components(total.torque, moved_wrench.torque),
            )
        return total

    def _constraint_names(self) -> Sequence[str]:
        """Return the names of the constraint rows; none where nothing is constrained."""
        constraints = self._m.velocity_constraints
        return constraints.names if constraints else ()

    def _form_wrench_through_joint(self, body: int) -> Wrench:
        """Return the wrench through the joint of ``body`` on it and all beyond it, about the joint's point on it."""
        order, stack = [], [body]
        while stack:  # no recursion: chains may be long
            number = stack.pop()
            if number in self._wrenches_beyond:
                continue
            order.append(number)
            stack += [child for child, _ in self._list_next_bodies(number)]
        for number in reversed(order):
            joint_point = self._find_joint_point(number)
            total = self._move_wrench(
                self._form_body_wrenches()[number], self._m.bodies[number].masscenter, joint_point
            )
            for child, child_point in self._list_next_bodies(number):
                moved_wrench = self._move_wrench(self._wrenches_beyond[child], child_point, joint_point)
                total = Wrench(
                    add_vector_components(total.force, moved_wrench.force),
                    add_vector_components(total.torque, moved_wrench.torque),
                )
            name = self._inward_joints[number].name if number in self._inward_joints else self._m.bodies[number].name
            self._wrenches_beyond[number] = Wrench(
                self._k.name_components_late(total.force, f"R_{name}"),
                self._k.name_components_late(total.torque, f"S_{name}"),
            )
        return self._wrenches_beyond[body]

    def _find_joint_point(self, number: int) -> int:
        """Return the point of a body where its joint holds it; its mass centre, if it is fixed to another body."""
        joint = self._inward_joints.get(number)
        return joint.point if joint else self._m.bodies[number].masscenter

    def _list_next_bodies(self, number: int) -> list[tuple[int, int]]:
        """Return (body, point where it is held) of the bodies after one: held by joints, or fixed to it."""
        if self._carried_bodies is None:
            self._carried_bodies = self._find_bodies_without_joint()
        after = [joint.child for joint in self._children.get(number, ())]
        return [(child, self._find_joint_point(child)) for child in (*after, *self._carried_bodies.get(number, ()))]

    def _find_bodies_without_joint(self) -> dict[int, list[int]]:
        """Return bodies without a joint, by the body with a joint in which their mass centres are fixed."""
        body_lookup = _BodyLookup(self._m, set(self._inward_joints))
        bodies_of_carrier: dict[int, list[int]] = {}
        for number, body in enumerate(self._m.bodies):
            if number in self._inward_joints:
                continue
            carrier = body_lookup.body_of_point(body.masscenter)
            if carrier is not None:
                bodies_of_carrier.setdefault(carrier, []).append(number)
                continue
            point = body.masscenter
            while carrier is None and self._m.points[point].parent >= 0:
                point = self._m.points[point].parent
                carrier = body_lookup.body_of_point(point)
            if carrier is not None and carrier >= 0:
                raise _reaction_error(
                    f"{body.name} moves against {self._m.bodies[carrier].name}, and no joint says what holds it",
                    "connect it by a joint, or request that of bodies: output_reaction(name, [body, …], at=point)",
                )
        return bodies_of_carrier

    def _move_wrench(self, wrench: Wrench, old: int, new: int) -> Wrench:
        """Return a wrench about another point."""
        if old == new:
            return wrench
        if self._find_root_point(old) != self._find_root_point(new):
            names = " to ".join(self._m.points[i].name for i in (old, new))
            raise _reaction_error(f"no chain of positions leads from {names}", "locate them by set_pos or locatenew")
        arm = add_vector_components(self._k.position(old), scale_components(sm.S.NegativeOne, self._k.position(new)))
        if not any(arm):
            return wrench
        return Wrench(
            wrench.force,
            add_vector_components(wrench.torque, cross_product(self._k.name_components(arm, "arm"), wrench.force)),
        )

    def _find_root_point(self, point: int) -> int:
        """Return the point that the chain of positions of ``point`` begins at; the origin where it is located."""
        while self._m.points[point].parent >= 0:
            point = self._m.points[point].parent
        return point

    def _form_body_wrenches(self) -> list[Wrench]:
        """Return for each body the wrench beyond its loads: inertia less loads, about its mass centre."""
        if self._own_wrenches is None:
            body_lookup = _BodyLookup(self._m)
            wrenches = [self._form_inertia_wrench(i) for i in range(len(self._m.bodies))]
            for at, torque, vector, description, body in self._list_applied_vectors():
                number = (
                    body if body >= 0 else body_lookup.body_of_frame(at) if torque else body_lookup.body_of_point(at)
                )
                if number is None:
                    place = self._m.frames[at].name if torque else self._m.points[at].name
                    raise _reaction_error(
                        f"{description} acts on {place}, which is fixed to no body: the reactions are not determined",
                        "apply it to a point or frame of a body",
                    )
                if number < 0:
                    continue
                load = Wrench(ZERO, vector) if torque else Wrench(vector, ZERO)
                if not torque:
                    load = self._move_wrench(load, at, self._m.bodies[number].masscenter)
                wrenches[number] = Wrench(
                    add_vector_components(wrenches[number].force, scale_components(sm.S.NegativeOne, load.force)),
                    add_vector_components(wrenches[number].torque, scale_components(sm.S.NegativeOne, load.torque)),
                )
            self._own_wrenches = [
                Wrench(
                    self._k.name_components_late(w.force, f"need_{b.name}"),
                    self._k.name_components_late(w.torque, f"turn_{b.name}"),
                )
                for w, b in zip(wrenches, self._m.bodies, strict=True)
            ]
        return self._own_wrenches

    def _form_inertia_wrench(self, number: int) -> Wrench:
        """m a, and H' about the mass centre."""
        k, body = self._k, self._m.bodies[number]
        force = scale_components(body.mass, k.acceleration(body.masscenter))
        if body.inertia is None or body.inertia.is_zero_matrix:
            return Wrench(force, ZERO)
        R = k.rotation(body.frame)
        w = k.name_components(multiply_matrix_by_vector(R.T, k.omega(body.frame)), f"wb_{body.name}")
        momentum = k.name_components(multiply_matrix_by_vector(body.inertia, w), f"Hb_{body.name}")
        alpha = k.name_components_late(multiply_matrix_by_vector(R.T, k.alpha(body.frame)), f"alb_{body.name}")
        rate = add_vector_components(multiply_matrix_by_vector(body.inertia, alpha), cross_product(w, momentum))
        return Wrench(force, multiply_matrix_by_vector(R, k.name_components_late(rate, f"Hrate_{body.name}")))

    def _list_applied_vectors(self) -> Iterable[tuple[int, bool, Components, str, int]]:
        """Yield (point or frame, whether a torque, vector in N, name, its body or -1): loads and constraint forces."""
        for load in self._m.loads:
            body = load.body if isinstance(load, (ForceLoad, TorqueLoad)) else -1
            for at, torque, vector in split_load_into_vectors(load, self._k):
                yield at, torque, vector, f"load {load.name}", body
        for name, symbol, applications in zip(
            self._constraint_names(), self._m.multipliers, self._m.force_applications, strict=True
        ):
            for application in applications:
                vector = scale_components(-symbol, express_in_inertial_frame(application.vector, self._k))
                yield (
                    application.point_or_frame,
                    application.is_torque,
                    vector,
                    f"the force of {name}",
                    application.body,
                )


class _BodyLookup:
    """Finds the body in which a point or frame is fixed: -1 is the ground, None means no body.

    Args:
        m: The mechanism.
        among: Numbers of the bodies that count; all unless given.
    """

    def __init__(self, m: Mechanism, among: set[int] | None = None) -> None:
        self._m = m
        self._body_numbers = set(range(len(m.bodies))) if among is None else among
        self._rigid = self._find_rigid_frames()
        self._flexible = [record for record in m.flexible_bodies if record.body in self._body_numbers]
        self._frame_body = {self._rigid[0]: -1}
        for record in self._flexible:
            self._frame_body |= {self._rigid[frame]: record.body for frame in record.points.values() if frame >= 0}
        sections = {*self._frame_body} if self._flexible else set()
        for number, body in enumerate(m.bodies):
            is_joint_end = body.frame >= 0 and body.mass == 0 and self._rigid[body.frame] in sections
            if body.frame >= 0 and number in self._body_numbers and not is_joint_end:
                self._frame_body[self._rigid[body.frame]] = number
        self._point_body = self._find_points_of_bodies()

    def body_of_frame(self, frame: int) -> int | None:
        """Return the body that a frame is fixed in."""
        return self._frame_body.get(self._rigid[frame])

    def body_of_point(self, point: int) -> int | None:
        """Return the body that a point is fixed in."""
        return self._point_body.get(point)

    def _find_rigid_frames(self) -> list[int]:
        """Return for each frame the first frame that it is turned from by constants only."""
        constants = {*self._m.p, *(a.symbol for a in self._m.calculated_parameters)}
        rigid: list[int] = []
        for i, frame in enumerate(self._m.frames):
            is_fixed = frame.parent >= 0 and frame.oriented and frame.rotation.free_symbols <= constants
            rigid.append(rigid[frame.parent] if is_fixed else i)
        return rigid

    def _find_points_of_bodies(self) -> dict[int, int]:
        """Return the points fixed in each body: from its mass centre along constant positions, nearest first."""
        m, neighbours = self._m, self._find_rigid_neighbours()
        body_of_point = {
            body.masscenter: number for number, body in enumerate(m.bodies) if number in self._body_numbers
        }
        body_of_point.setdefault(0, -1)
        frame_of_point = {
            point: m.bodies[number].frame if number >= 0 else 0 for point, number in body_of_point.items()
        }
        self._add_flexible_points(body_of_point, frame_of_point, neighbours)
        level = list(body_of_point)
        while level:
            after = []
            for point in level:
                for other in self._list_points_on(frame_of_point[point], neighbours.get(point, ())):
                    if other not in body_of_point:
                        body_of_point[other], frame_of_point[other] = body_of_point[point], frame_of_point[point]
                        after.append(other)
            level = after
        return body_of_point

    def _find_rigid_neighbours(self) -> dict[int, list[tuple[int, set[int]]]]:
        """Return the points at constant distances from each point, with the frames that these are written in."""
        constants = {*self._m.p, *(a.symbol for a in self._m.calculated_parameters)}
        neighbours: dict[int, list[tuple[int, set[int]]]] = {}
        for i, place in enumerate(self._m.points):
            terms = place.position
            if terms is None or place.parent < 0:
                continue
            if any(not c.free_symbols <= constants for _, cs in terms for c in cs):
                continue
            frames = {self._rigid[k] for k, cs in terms if any(cs)}
            neighbours.setdefault(i, []).append((place.parent, frames))
            neighbours.setdefault(place.parent, []).append((i, frames))
        return neighbours

    def _list_points_on(self, frame: int, neighbours: Sequence[tuple[int, set[int]]]) -> list[int]:
        """Return the neighbours of a point that are fixed in a frame; none where it is -1, as of a particle."""
        return [other for other, frames in neighbours if frames <= {self._rigid[frame]}] if frame >= 0 else []

    def _add_flexible_points(
        self,
        body_of_point: dict[int, int],
        frame_of_point: dict[int, int],
        neighbours: Mapping[int, Sequence[tuple[int, set[int]]]],
    ) -> None:
        """Add the points of flexible bodies, and those fixed in their sections, but where a body with mass is."""
        bodies = self._m.bodies
        for record in self._flexible:
            points_of_body = {bodies[number].masscenter: -1 for number in record.particles} | {**record.points}
            for point, frame in points_of_body.items():
                number = body_of_point.get(point)
                if number is None or (number >= 0 and bodies[number].mass == 0):
                    body_of_point[point], frame_of_point[point] = record.body, frame
                for other in self._list_points_on(frame, neighbours.get(point, ())):
                    if other not in body_of_point:
                        body_of_point[other], frame_of_point[other] = record.body, frame


def _reaction_error(problem: str, remedy: str) -> FormulationError:
    """Return the error of a reaction that cannot be given, with its remedy."""
    return FormulationError("", [Fault(problem, remedy=remedy)])
