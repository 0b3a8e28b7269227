"""Geoms of an MJCF file: shapes, and the mass and inertia that they give their body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mb2fmu.robots.description.robot_description import Array, GeometryKind, LinkGeometry, LinkInertia, Pose
from mb2fmu.robots.file_formats.mjcf_settings_and_poses import (
    ORIENTATION_ATTRIBUTES,
    MjcfCompilerSettings,
    check_mjcf_attributes,
    describe_element_name,
    read_choice_attribute,
    read_element_pose,
    rotation_aligning_z,
)
from mb2fmu.robots.file_formats.strict_xml import XmlElement

_GEOM_TYPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "plane", "hfield", "sdf")
_SIZE_COUNTS = {"sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}
_HONOURED_ATTRIBUTES = ("type", "size", "fromto", "pos", *ORIENTATION_ATTRIBUTES, "mass", "density", "group", "rgba",
                        "material", "mesh",
             "contype", "conaffinity")  # fmt: skip
_HARMLESS_ATTRIBUTES = ("adhesion", "castshadow", "condim", "fitscale", "fluidcoef", "friction", "gap", "hfield",
                        "margin",
             "priority", "solimp", "solmix", "solref", "surfacevel", "fluidshape")  # fmt: skip
_WATER_DENSITY = 1000.0
"""Density of a geom that gives none, kg/m³."""


@dataclass(frozen=True, slots=True, eq=False)
class MeshAndMaterialAssets:
    """Meshes (name → file and scale) and materials (name → colour)."""

    meshes: Mapping[str, tuple[str, tuple[float, ...]]]
    colors: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class GeomWithMass:
    """A shape, and its mass in the body's frame; ``inertial`` is None where it has no mass.

    ``unknown_mass_reason`` says why the mass is not known; empty where it is.
    """

    shape: LinkGeometry | None
    inertial: LinkInertia | None
    unknown_mass_reason: str = ""


def read_mjcf_assets(root: XmlElement, compiler: MjcfCompilerSettings) -> MeshAndMaterialAssets:
    """Read all assets: meshes, materials, their colours."""
    meshes, colors = {}, {}
    for section in root.children("asset"):
        for mesh in section.children("mesh"):
            file = mesh.attribute("file")
            name = mesh.attribute("name") or file.rpartition("/")[2].rpartition(".")[0]
            place = f"{compiler.mesh_folder.rstrip('/')}/{file}" if compiler.mesh_folder and file else file
            meshes[name] = (place, mesh.vector("scale", (1.0, 1.0, 1.0)))
        for material in section.children("material"):
            colors[material.attribute("name")] = _read_geom_color(material)
    return MeshAndMaterialAssets(meshes, colors)


def _read_geom_color(element: XmlElement) -> str:
    """Return the colour of ``rgba``; empty where there is none."""
    if not element.attribute("rgba"):
        return ""
    parts = element.vector("rgba", (0.5, 0.5, 0.5, 1.0))
    return "#" + "".join(f"{round(255 * min(max(part, 0.0), 1.0)):02x}" for part in parts[:3])


def read_mjcf_geom(
    element: XmlElement, at: Pose, compiler: MjcfCompilerSettings, assets: MeshAndMaterialAssets, *, weighed: bool
) -> GeomWithMass:
    """Read one geom.

    Args:
        element: ``<geom>``.
        at: Of the frame that it is written in, in the body's.
        compiler: Settings.
        assets: Of the file.
        weighed: Whether the body's inertia comes from its geoms. What has a mass that is not computed is not refused
            here: the body may stand still.
    """
    check_mjcf_attributes(element, _HONOURED_ATTRIBUTES, _HARMLESS_ATTRIBUTES)
    kind = read_choice_attribute(element, "type", _GEOM_TYPES)
    size, placed = _read_size_and_pose(element, kind, compiler)
    pose = at @ placed
    group = int(element.number("group"))
    shape = _read_drawn_shape(element, kind, size, pose, assets)
    if (
        not weighed
        or not compiler.inertia_groups[0] <= group <= compiler.inertia_groups[1]
        or kind in {"plane", "hfield"}
    ):
        return GeomWithMass(shape, None)
    given = element.attribute("mass")
    if (element.number("mass") if given else element.number("density", _WATER_DENSITY)) == 0.0:
        return GeomWithMass(shape, None)
    if kind not in _SIZE_COUNTS or element.attribute("mesh"):  # a shape with a mesh is fitted to it
        what = f"<geom{describe_element_name(element)}> is a {kind} and gives its body mass, "
        what += "which is not computed from files"
        return GeomWithMass(
            shape, None, what if kind not in _SIZE_COUNTS else what.replace("is a", "is fitted to a mesh as a")
        )
    return GeomWithMass(shape, _read_inertia(element, kind, size, pose))


def _read_size_and_pose(element: XmlElement, kind: str, compiler: MjcfCompilerSettings) -> tuple[Array, Pose]:
    """Return radii and half lengths, and the pose; ``fromto`` gives the length and the z axis."""
    count, text = _SIZE_COUNTS.get(kind, 0), element.attribute("size")
    if not count:
        return np.ones(3), read_element_pose(element, compiler)
    along = element.attribute("fromto")
    if along and kind != "sphere":
        ends = np.array(element.vector("fromto", (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)))
        step = ends[3:] - ends[:3]
        length = float(np.linalg.norm(step))
        radius = _read_first_sizes(element, text, 1)[0]
        if length == 0.0:
            element.faults.add(
                element.line, f"fromto of <geom{describe_element_name(element)}> has no length", "give two points"
            )
            length, step = 1.0, np.array([0.0, 0.0, 1.0])
        half = [radius] * (count - 1) + [length / 2]
        return np.array(half), Pose(rotation_aligning_z(step / length), (ends[:3] + ends[3:]) / 2)
    return _read_first_sizes(element, text, count), read_element_pose(element, compiler)


def _read_first_sizes(element: XmlElement, text: str, count: int) -> Array:
    """Return the first numbers of ``size``; more may follow, which this kind does not use."""
    found = element.read_numbers(" ".join(text.split()[:count]), "size", count)
    sizes = np.array(found or (1.0,) * count)
    if np.any(sizes <= 0):
        element.faults.add(
            element.line, f'size of <geom{describe_element_name(element)}> is "{text}"', "give lengths > 0"
        )
        return np.ones(count)
    return sizes


def _read_inertia(element: XmlElement, kind: str, size: Array, pose: Pose) -> LinkInertia:
    """Return mass and inertia of a solid shape in its body's frame; from ``mass``, else from ``density``."""
    volume, per_mass = solid_volume_and_moments(kind, size)
    mass = element.number("mass") if element.attribute("mass") else element.number("density", _WATER_DENSITY) * volume
    moments = pose.rotation @ np.diag(mass * per_mass) @ pose.rotation.T
    return LinkInertia(mass, pose.position, (moments + moments.T) / 2, element.line)


def solid_volume_and_moments(kind: str, size: Array) -> tuple[float, Array]:
    """Return volume in m³, and the central moments of inertia per mass, m², of a homogeneous solid.

    Args:
        kind: ``sphere``, ``capsule``, ``cylinder``, ``ellipsoid``, ``box``.
        size: Radius; radius and half length; half axes or half edges, m.
    """
    match kind:
        case "sphere":
            r = float(size[0])
            return 4 / 3 * np.pi * r**3, np.full(3, 0.4 * r**2)
        case "ellipsoid":
            squares = size**2
            return 4 / 3 * np.pi * float(np.prod(size)), (np.sum(squares) - squares) / 5
        case "box":
            squares = size**2
            return 8 * float(np.prod(size)), (np.sum(squares) - squares) / 3
    r, half = map(float, size)
    tube, across = np.pi * r**2 * 2 * half, r**2 / 4 + half**2 / 3
    if kind == "cylinder":
        return tube, np.array([across, across, r**2 / 2])
    ball = 4 / 3 * np.pi * r**3  # two half balls, whose mass centres are 3/8 r beyond the ends
    ends = 0.4 * r**2 + half**2 + 0.75 * half * r
    volume = tube + ball
    side = (tube * across + ball * ends) / volume
    return volume, np.array([side, side, (tube * r**2 / 2 + ball * 0.4 * r**2) / volume])


def _read_drawn_shape(
    element: XmlElement, kind: str, size: Array, pose: Pose, assets: MeshAndMaterialAssets
) -> LinkGeometry | None:
    """Return how a geom is drawn; None, with a note or fault, if it cannot be."""
    if kind in {"plane", "hfield", "sdf"}:
        element.faults.note(f"geoms that are a {kind} are not drawn")
        return None
    touches = element.number("contype", 1.0) != 0 or element.number("conaffinity", 1.0) != 0
    color = _read_geom_color(element) or assets.colors.get(element.attribute("material"), "")
    mesh = element.attribute("mesh")
    if kind == "mesh":
        if mesh not in assets.meshes:
            element.faults.add(element.line, f"the mesh {mesh!r} is none of <asset>", "correct the name")
            return None
        file, scale = assets.meshes[mesh]
        if not file:
            element.faults.note(f"the mesh {mesh}, which is written out in the file, is not drawn")
            return None
        return LinkGeometry("mesh", scale, pose, color, file, touches, element.line)
    known: dict[str, tuple[GeometryKind, tuple[float, ...]]] = {
        "sphere": ("sphere", tuple(size)),
        "ellipsoid": ("ellipsoid", tuple(size)),
        "box": ("box", tuple(2 * size)),
    }
    long: GeometryKind = "capsule" if kind == "capsule" else "cylinder"
    drawn_kind, sizes = known.get(kind) or (long, (float(size[0]), 2 * float(size[-1])))
    return LinkGeometry(drawn_kind, tuple(map(float, sizes)), pose, color, "", touches, element.line)


def apply_minimum_inertia(
    inertial: LinkInertia | None, compiler: MjcfCompilerSettings, line: int
) -> LinkInertia | None:
    """Return a body's inertia with the minimum masses and moments of ``<compiler>``."""
    if inertial is None and (compiler.min_mass > 0 or compiler.min_inertia > 0):
        inertial = LinkInertia(0.0, np.zeros(3), np.zeros((3, 3)), line)
    if inertial is None:
        return None
    moments, axes = np.linalg.eigh(inertial.inertia)
    moments = moments if compiler.min_inertia <= 0 else np.maximum(moments, compiler.min_inertia)
    if compiler.balance_inertia and moments[0] + moments[1] < moments[2]:
        moments = np.full(3, np.mean(moments))
    elif compiler.min_inertia <= 0:
        return replace(inertial, mass=max(inertial.mass, compiler.min_mass))
    return replace(inertial, mass=max(inertial.mass, compiler.min_mass), inertia=axes @ np.diag(moments) @ axes.T)
