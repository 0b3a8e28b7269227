"""Appearance of a robot: the shapes of its links as ``AppearanceRecords``, and their mesh files.

Cylinders and spheres are placed by a point and a direction; boxes by a frame where they are turned. Of a mesh, turn and
scale are put into its triangles when they are read, so that no frame is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sympy as sm

from mb2fmu.mechanics.mechanism.records.appearance_records import (
    AppearanceRecords,
    DrawnJoint,
    DrawnShape,
    JointKind,
    MeshPlacement,
    ShapeKind,
)
from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components
from mb2fmu.robots.description.robot_description import Array, LinkGeometry, Pose, RobotDescription, RobotLink
from mb2fmu.robots.file_formats.mesh_file_search import MeshNotFoundError, find_mesh_file
from mb2fmu.robots.tree.articulated_tree import RobotPartTree
from mb2fmu.robots.tree.robot_mechanics_records import RobotMechanics

Y_AXIS: Components = (sm.S.Zero, sm.S.One, sm.S.Zero)


@dataclass(slots=True)
class FrameAndPointLookup:
    """Numbers of frames and points of the mechanism.

    Attributes:
        find_frame: (part, pose in its axes) → frame that has the pose's axes.
        part_frame: Part → frame of its axes.
        part_origin: Part → point.
        make_components: Three numbers as SymPy's.
    """

    find_frame: Callable[[int, Pose], int]
    part_frame: list[int]
    part_origin: list[int]
    make_components: Callable[[Array], Components]


def _select_drawn_geometries(
    description: RobotDescription, tree: RobotPartTree
) -> Iterator[tuple[int, RobotLink, LinkGeometry, Pose]]:
    """Yield (part, link, shape, pose in the part's axes): visual shapes, or collision shapes of links without."""
    for link in description.links:
        part, pose = tree.location_of_link[link.name]
        visual = [shape for shape in link.shapes if not shape.collision]
        for shape in visual or link.shapes:
            yield part, link, shape, pose @ shape.pose


def list_mesh_uses(
    description: RobotDescription, tree: RobotPartTree, packages: Mapping[str, str]
) -> tuple[tuple[MeshPlacement, ...], tuple[str, ...]]:
    """Return every use of a mesh file that is there, and a note for each one that is not."""
    uses, notes = [], []
    for number, (_, _, shape, pose) in enumerate(_select_drawn_geometries(description, tree)):
        if shape.kind != "mesh":
            continue
        try:
            path = find_mesh_file(shape.mesh, description.source or Path(), packages)
        except MeshNotFoundError as error:
            notes.append(f"a mesh is not drawn: {error}")
            continue
        turned = (pose.rotation @ np.diag(shape.sizes)).ravel().tolist()
        uses.append(MeshPlacement(_mesh_key(number, shape), path, tuple(turned)))
    return tuple(uses), tuple(notes)


def form_robot_appearance(robot: RobotMechanics, numbers: FrameAndPointLookup) -> AppearanceRecords:
    """Return all shapes, and the axes of hinges and slides."""
    there = {mesh.key for mesh in robot.meshes}
    shapes = [
        drawn
        for number, (part, link, shape, pose) in enumerate(_select_drawn_geometries(robot.description, robot.tree))
        for drawn in _shape_records(number, part, link, shape, pose, numbers)
        if not drawn.mesh or drawn.mesh in there
    ]
    joints = []
    for i, part in enumerate(robot.tree.parts[1:], 1):
        if part.coordinate is not None:
            axis = [sm.S.Zero] * 3
            axis[part.axis] = sm.S.One
            kind = part.moving_joint.kind
            along: Components = (axis[0], axis[1], axis[2])
            shown: JointKind = "pin" if kind == "revolute" else "slide"
            joints.append(
                DrawnJoint(part.moving_joint.name, shown, numbers.part_origin[i], numbers.part_frame[i], along)
            )
    return AppearanceRecords(
        shapes=tuple(shapes), joints=tuple(joints), meshes=robot.meshes, notes=robot.missing_mesh_notes
    )


def _mesh_key(number: int, shape: LinkGeometry) -> str:
    """Return a shape's key: one per link and mesh file."""
    return f"{number}:{shape.mesh}"


def _shape_records(
    number: int, part: int, link: RobotLink, shape: LinkGeometry, pose: Pose, numbers: FrameAndPointLookup
) -> Iterator[DrawnShape]:
    """Yield the record of one shape; a capsule becomes a cylinder and two spheres."""

    def made(
        kind: ShapeKind,
        sizes: tuple[float, ...],
        at: Pose,
        *,
        frame: int = -1,
        along: Components = Y_AXIS,
        mesh: str = "",
    ) -> DrawnShape:
        """Return the record of one solid, with its place in the scene."""
        own = numbers.part_frame[part]
        turned = frame not in (-1, own)
        offset = at.rotation.T @ at.position if turned else at.position
        return DrawnShape(
            body=link.name,
            point=numbers.part_origin[part],
            frame=frame if turned else own,
            kind=kind,
            sizes=tuple(sm.Float(size) for size in sizes),
            mesh=mesh,
            offset=numbers.make_components(offset),
            along=along,
            color=shape.color,
            opacity=1.0,
            where=f"line {shape.line}",
        )

    z = numbers.make_components(pose.rotation[:, 2])
    match shape.kind:
        case "cylinder":
            yield made("cylinder", shape.sizes[::-1], pose, along=z)
        case "sphere":
            yield made("sphere", shape.sizes, pose)
        case "capsule":
            radius, length = shape.sizes
            yield made("cylinder", (length, radius), pose, along=z)
            for side in (-0.5, 0.5):
                yield made("sphere", (radius,), pose @ Pose(position=np.array([0.0, 0.0, side * length])))
        case "box" | "ellipsoid":
            yield made(shape.kind, shape.sizes, pose, frame=numbers.find_frame(part, pose))
        case "mesh":
            yield made("mesh", (1.0,), pose, mesh=_mesh_key(number, shape))
