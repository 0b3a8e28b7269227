"""``find_cut_joint``: what lies on either side of a joint that is to be opened, and along which axes it is free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.records.mechanism_records import Load, Mechanism
from mb2fmu.systems.splitting.body_motion_states import (
    MechanismStateDependencies,
    list_frames_turned_by_load,
    list_load_frames,
    list_load_points,
)
from mb2fmu.systems.splitting.exchanged_part_forces import find_axes_of_point_and_frame_motion, make_variable_identifier
from mb2fmu.systems.wired_system import CouplingError

_FAULT_REMEDY = "write frames and points beyond the joint relative to its frame and point"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutJoint:
    """A joint that is opened, and what lies on either side of it.

    Attributes:
        mechanism: The whole mechanism.
        name: Name of the joint.
        point: Number of the joint's point.
        is_outer_body: 1 for each body beyond the joint, 0 for the others.
        dependencies: States that frames, points and bodies depend on.
        inner_states: States that move the bodies before the joint.
        outer_states: States that move only bodies beyond it.
        outer_points: Numbers of the points that are located from the joint's point.
        outer_frames: Numbers of the frames that outer states turn.
        joint_frame: Number of the inner frame from which outer ones are counted; -1: none is.
        free_translations: Axes of N along which the point moves.
        free_rotations: Axes of N about which the frame turns.
    """

    mechanism: Mechanism
    name: str
    point: int
    is_outer_body: tuple[int, ...]
    dependencies: MechanismStateDependencies
    inner_states: frozenset[sm.Symbol]
    outer_states: frozenset[sm.Symbol]
    outer_points: frozenset[int]
    outer_frames: frozenset[int]
    joint_frame: int = -1
    free_translations: tuple[int, ...] = ()
    free_rotations: tuple[int, ...] = ()

    @property
    def identifier(self) -> str:
        """The name in letters, digits and _."""
        return make_variable_identifier(self.name)

    def acts_on_outer_side(self, load: Load) -> bool:
        """Return whether a load acts on anything beyond the joint."""
        return bool(
            {*list_load_points(load)} & self.outer_points or {*list_frames_turned_by_load(load)} & self.outer_frames
        )


def find_cut_joint(mechanism: Mechanism, name: str, is_outer_body: Sequence[int], point: int) -> CutJoint:
    """Return both sides of a joint, and its free axes.

    Args:
        mechanism: The mechanism.
        name: Name of the joint.
        is_outer_body: 1 for each body beyond the joint, 0 for the others.
        point: Number of the joint's point.

    Raises:
        CouplingError: If the outer side is not located relative to one point and one frame of the inner side.
    """
    joint = _find_sides(mechanism, name, is_outer_body, point)
    joint_frame, problems = _find_joint_frame(joint)
    problems += _find_crossing_loads(joint, joint_frame)
    if problems:
        faults = [Fault(problem, name, _FAULT_REMEDY) for problem in problems]
        raise CouplingError(f"{mechanism.declared.name} cannot be opened at {name}:", faults)
    translation, rotation = find_axes_of_point_and_frame_motion(mechanism, point, max(joint_frame, 0))
    return replace(
        joint,
        joint_frame=joint_frame,
        free_translations=tuple(axis for axis in range(3) if translation[axis]),
        free_rotations=tuple(axis for axis in range(3) if rotation[axis]) if joint_frame > 0 else (),
    )


def _find_sides(mechanism: Mechanism, name: str, is_outer_body: Sequence[int], point: int) -> CutJoint:
    """Return states, points and frames of both sides, without the joint's frame and axes."""
    dependencies = MechanismStateDependencies(mechanism)
    states: tuple[set[sm.Symbol], set[sm.Symbol]] = set(), set()
    for body, is_outer in zip(mechanism.bodies, is_outer_body, strict=True):
        states[bool(is_outer)].update(dependencies.body_states(body))
    inner_states, outer_states = frozenset(states[0]), frozenset(states[1] - states[0])
    points, frames = range(len(mechanism.points)), enumerate(dependencies.frame_states)
    return CutJoint(
        mechanism=mechanism,
        name=name,
        point=point,
        is_outer_body=tuple(is_outer_body),
        dependencies=dependencies,
        inner_states=inner_states,
        outer_states=outer_states,
        outer_points=frozenset(k for k in points if k != point and point in list(dependencies.ancestors(k))),
        outer_frames=frozenset(k for k, frame_states in frames if frame_states & outer_states),
    )


def _find_joint_frame(joint: CutJoint) -> tuple[int, list[str]]:
    """Return the inner frame relative to which outer frames are written, and what prevents opening the joint.

    The frame is -1 where outer frames and points refer to no moving frame of the inner side.
    """
    mechanism, carrying_frames, problems = joint.mechanism, set[int](), list[str]()
    for number in sorted(joint.outer_frames):
        frame = mechanism.frames[number]
        referenced_frames = {
            frame.parent,
            frame.reference,
            *(referenced_frame for referenced_frame, _ in frame.angular_velocity),
        }
        carrying_frames |= {
            referenced_frame
            for referenced_frame in referenced_frames - joint.outer_frames
            if joint.dependencies.frame_states[referenced_frame]
        }
        if (
            joint.dependencies.states_in(
                frame.rotation, *(component for _, cs in frame.angular_velocity for component in cs)
            )
            & joint.inner_states
        ):
            problems.append(f"the frame {frame.name} turns with states before the joint by itself")
    for number in sorted(joint.outer_points):
        for terms in (mechanism.points[number].position, mechanism.points[number].velocity):
            for referenced_frame, components in terms or ():
                if (
                    any(components)
                    and referenced_frame not in joint.outer_frames
                    and joint.dependencies.frame_states[referenced_frame]
                ):
                    carrying_frames.add(referenced_frame)
                if joint.dependencies.states_in(*components) & joint.inner_states:
                    problems.append(
                        f"the point {mechanism.points[number].name} moves with states before the joint by itself"
                    )
    if len(carrying_frames) > 1:
        names = ", ".join(mechanism.frames[number].name for number in sorted(carrying_frames))
        problems.append(f"what hangs on it is written in several frames before it: {names}")
    return min(carrying_frames, default=-1), problems


def _find_crossing_loads(joint: CutJoint, joint_frame: int) -> Iterator[str]:
    """Yield what is wrong with each load on the outer side that also needs another inner body than the joint's."""
    for load in joint.mechanism.loads:
        if joint.acts_on_outer_side(load):
            other_frames = [
                number for number in list_load_frames(load) if number not in {0, joint_frame, *joint.outer_frames}
            ]
            if any(joint.dependencies.frame_states[number] for number in other_frames) or any(
                number not in {0, joint.point, *joint.outer_points} for number in list_load_points(load)
            ):
                yield f"{load.name} acts across the joint on another body than the one that holds it"
