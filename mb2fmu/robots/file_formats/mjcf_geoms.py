"""Geoms of an MJCF file: shapes, and the mass and inertia that they give their body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from mb2fmu.robots.description.robot_description import Array, GeometryKind, LinkGeometry, LinkInertia, Pose
from mb2fmu.robots.description.solid_inertia import (
    HomogeneousSolid,
    MeshInertiaRule,
    SolidInertiaError,
    form_primitive_solid_inertia,
)
from mb2fmu.robots.file_formats.mesh_solids import (
    MeshFileAccess,
    MeshVertexTransformation,
    form_file_triangle_solid,
    form_mesh_file_solid,
)
from mb2fmu.robots.file_formats.mjcf_settings_and_poses import (
    ORIENTATION_ATTRIBUTES,
    MjcfCompilerSettings,
    check_mjcf_attributes,
    format_name_attribute,
    read_choice_attribute,
    read_mjcf_element_pose,
    rotation_aligning_z,
    rotation_from_quaternion,
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
_MESH_INERTIA_RULES = ("legacy", "convex", "exact", "shell")
_WATER_DENSITY = 1000.0
"""Density of a geom that gives none, kg/m³; of a shell kg/m²."""


@dataclass(frozen=True, slots=True, eq=False)
class MjcfMeshAsset:
    """A mesh of ``<asset>``: its file as the robot's file has it, else its vertices and triangles; and its mass.

    ``unknown_mass_reason`` says what of it is not honoured; empty where all is.
    """

    file: str
    placement: MeshVertexTransformation
    rule: MeshInertiaRule
    vertices: Array
    faces: npt.NDArray[np.int64]
    unknown_mass_reason: str = ""

    def weigh(self, files: MeshFileAccess) -> HomogeneousSolid:
        """Return its solid, or its shell; an ``SolidInertiaError`` says why there is none."""
        if self.unknown_mass_reason:
            raise SolidInertiaError(self.unknown_mass_reason)
        if self.file:
            return form_mesh_file_solid(self.file, files, self.rule, self.placement)
        return form_file_triangle_solid(self.vertices, self.faces, self.rule, self.placement)


@dataclass(frozen=True, slots=True, eq=False)
class MeshAndMaterialAssets:
    """Meshes by name, materials (name → colour), and what reads files of meshes."""

    meshes: Mapping[str, MjcfMeshAsset]
    colors: Mapping[str, str]
    files: MeshFileAccess


@dataclass(frozen=True, slots=True, eq=False)
class GeomWithMass:
    """A shape, and its mass in the body's frame; ``inertial`` is None where it has no mass.

    ``unknown_mass_reason`` says why the mass is not known; empty where it is.
    """

    shape: LinkGeometry | None
    inertial: LinkInertia | None
    unknown_mass_reason: str = ""


def read_mjcf_assets(root: XmlElement, compiler: MjcfCompilerSettings, files: MeshFileAccess) -> MeshAndMaterialAssets:
    """Read all assets: meshes, materials, their colours."""
    meshes, colors = {}, {}
    for section in root.children("asset"):
        for mesh in section.children("mesh"):
            file = mesh.attribute("file")
            name = mesh.attribute("name") or file.rpartition("/")[2].rpartition(".")[0]
            place = f"{compiler.mesh_folder.rstrip('/')}/{file}" if compiler.mesh_folder and file else file
            meshes[name] = _read_mesh_asset(mesh, place)
        for material in section.children("material"):
            colors[material.attribute("name")] = _read_geom_color(material)
    return MeshAndMaterialAssets(meshes, colors, files)


def _read_mesh_asset(element: XmlElement, file: str) -> MjcfMeshAsset:
    """Read a mesh; what of it is not honoured matters only where a body gets its mass from it."""
    turn = np.array(element.vector("refquat", (1.0, 0.0, 0.0, 0.0)))
    origin = np.array(element.vector("refpos", (0.0, 0.0, 0.0)))
    reference = Pose(rotation_from_quaternion(turn / (np.linalg.norm(turn) or 1.0)), origin)
    rule = read_choice_attribute(element, "inertia", _MESH_INERTIA_RULES)
    vertices, corners = (_read_number_table(element, word) for word in ("vertex", "face"))
    unknown = [word for word in ("builtin", "plugin") if element.attribute(word) or element.children(word)]
    unknown += ["maxhullvert"] if rule == "convex" and element.number("maxhullvert", -1.0) > 0 else []
    return MjcfMeshAsset(
        file,
        MeshVertexTransformation(element.vector("scale", (1.0, 1.0, 1.0)), reference, single_precision=True),
        cast("MeshInertiaRule", rule),
        vertices,
        corners.astype(np.int64),
        f"{' and '.join(unknown)} of the mesh is not honoured: write the inertia out" if unknown else "",
    )


def _read_number_table(element: XmlElement, name: str) -> Array:
    """Return the numbers of an attribute in rows of three."""
    text = element.attribute(name)
    count = len(text.split())
    if count % 3:
        element.faults.add(element.line, f"{name} of <mesh> has {count} numbers", "give three for each")
        return np.zeros((0, 3))
    numbers = element.read_numbers(text, name, count) if text else None
    return np.array(numbers or ()).reshape(-1, 3)


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
    if kind in _SIZE_COUNTS and element.attribute("mesh"):
        what = f"<geom{format_name_attribute(element)}> is fitted to a mesh as a {kind} and gives its body mass"
        return GeomWithMass(shape, None, f"{what}, which is not computed")
    try:
        return GeomWithMass(shape, _read_inertia(element, kind, size, pose, assets))
    except SolidInertiaError as error:
        what = f"<geom{format_name_attribute(element)}> is a {kind} and gives its body mass, which is not known"
        return GeomWithMass(shape, None, f"{what}: {error}")


def _read_size_and_pose(element: XmlElement, kind: str, compiler: MjcfCompilerSettings) -> tuple[Array, Pose]:
    """Return radii and half lengths, and the pose; ``fromto`` gives the length and the z axis."""
    count, text = _SIZE_COUNTS.get(kind, 0), element.attribute("size")
    if not count:
        return np.ones(3), read_mjcf_element_pose(element, compiler)
    along = element.attribute("fromto")
    if along and kind != "sphere":
        ends = np.array(element.vector("fromto", (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)))
        step = ends[3:] - ends[:3]
        length = float(np.linalg.norm(step))
        radius = _read_first_sizes(element, text, 1)[0]
        if length == 0.0:
            element.faults.add(
                element.line, f"fromto of <geom{format_name_attribute(element)}> has no length", "give two points"
            )
            length, step = 1.0, np.array([0.0, 0.0, 1.0])
        half = [radius] * (count - 1) + [length / 2]
        return np.array(half), Pose(rotation_aligning_z(step / length), (ends[:3] + ends[3:]) / 2)
    return _read_first_sizes(element, text, count), read_mjcf_element_pose(element, compiler)


def _read_first_sizes(element: XmlElement, text: str, count: int) -> Array:
    """Return the first numbers of ``size``; more may follow, which this kind does not use."""
    found = element.read_numbers(" ".join(text.split()[:count]), "size", count)
    sizes = np.array(found or (1.0,) * count)
    if np.any(sizes <= 0):
        element.faults.add(
            element.line, f'size of <geom{format_name_attribute(element)}> is "{text}"', "give lengths > 0"
        )
        return np.ones(count)
    return sizes


def _read_inertia(
    element: XmlElement, kind: str, size: Array, pose: Pose, assets: MeshAndMaterialAssets
) -> LinkInertia:
    """Return mass and inertia of a solid in its body's frame, from ``mass``, else ``density``; or say that none is."""
    name = element.attribute("mesh")
    if kind not in _SIZE_COUNTS and (kind != "mesh" or name not in assets.meshes):
        raise SolidInertiaError("no file of it is read" if kind != "mesh" else f"the mesh {name!r} is none of <asset>")
    solid = form_primitive_solid_inertia(kind, size) if kind != "mesh" else assets.meshes[name].weigh(assets.files)
    if solid.open_edges:
        what = (
            f'the mesh {name} is not watertight ({solid.open_edges:,} open edges): inertia="legacy" gives it a volume'
        )
        element.faults.note(f'{what} all the same, as in MuJoCo; close it, or choose inertia="convex"')
    given = element.attribute("mass")
    mass = element.number("mass") if given else element.number("density", _WATER_DENSITY) * solid.volume
    return solid.weigh(mass, pose, element.line)


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
        asset = assets.meshes[mesh]
        if not asset.file:
            element.faults.note(f"the mesh {mesh}, which is written out in the file, is not drawn")
            return None
        return LinkGeometry("mesh", asset.placement.scale, pose, color, asset.file, touches, element.line)
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
