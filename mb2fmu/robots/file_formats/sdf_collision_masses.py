"""Shapes of an SDF file, and the mass that ``<collision>`` gives a link (``<inertial auto="true">``, SDF 1.11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mb2fmu.robots.description.inertia_check_and_repair import combine_inertias
from mb2fmu.robots.description.robot_description import GeometryKind, LinkInertia, Pose
from mb2fmu.robots.description.solid_inertia import HomogeneousSolid, SolidInertiaError, form_primitive_solid_inertia
from mb2fmu.robots.file_formats.mesh_solids import MeshFileAccess, MeshVertexTransformation, form_mesh_file_solid
from mb2fmu.robots.file_formats.strict_xml import XmlElement

_WATER_DENSITY = 1000.0
"""Of a collision shape that gives its link mass, by the standard, kg/m³."""


@dataclass(frozen=True, slots=True)
class SdfCollisionMassCalculator:
    """Computes masses of links from their collision shapes.

    Attributes:
        files: Find and read meshes.
        read_pose: ``<collision>`` → its pose on the link.
    """

    files: MeshFileAccess
    read_pose: Callable[[XmlElement], Pose]

    def weigh_link(self, link: XmlElement, inertial: XmlElement) -> tuple[LinkInertia | None, str]:
        """Return the inertia of a link; or None and why it is not known.

        A density of the collision has precedence over that of the ``<inertial>``; a mass of the ``<inertial>`` scales
        the sum, as since libsdformat 15.2. Pose and moments of the ``<inertial>`` count for nothing.
        """
        name = link.attribute("name")
        try:
            total = combine_inertias((Pose(), part) for part in self._weigh_collisions(link, inertial))
        except SolidInertiaError as error:
            return None, f"link {name} gets its mass from a <collision>, and it is not known: {error}"
        if total is None:
            return None, f"link {name} has <inertial auto>, and no <collision> that would give it mass"
        mass = read_xml_child_number(inertial, "mass", total.mass)
        if mass <= 0:
            return None, f"link {name} has <inertial auto>, and its mass is {mass:g} kg"
        return replace(total, mass=mass, inertia=mass / total.mass * total.inertia, line=inertial.line), ""

    def _weigh_collisions(self, link: XmlElement, inertial: XmlElement) -> Iterator[LinkInertia]:
        """Yield the inertia of each shape in the link's frame."""
        usual = read_xml_child_number(inertial, "density", _WATER_DENSITY)
        for collision in link.children("collision"):
            density = read_xml_child_number(collision, "density", usual)
            if density <= 0:
                raise SolidInertiaError(f"its density is {density:g} kg/m³")
            pose, geometry = self.read_pose(collision), collision.child("geometry")
            for shape in geometry.list_elements() if geometry else ():
                solid = self._form_solid(shape)
                yield solid.weigh(density * solid.volume, pose, collision.line)

    def _form_solid(self, shape: XmlElement) -> HomogeneousSolid:
        """Return the solid of a shape; an ``SolidInertiaError`` says why there is none."""
        kind, sizes, mesh = read_sdf_shape_sizes(shape)
        if kind is None:
            raise SolidInertiaError(f"<{shape.name}> is no solid that is computed")
        if kind != "mesh":
            halves = {"box": (0.5, 0.5, 0.5), "cylinder": (1.0, 0.5), "capsule": (1.0, 0.5)}.get(kind, (1.0,))
            return form_primitive_solid_inertia(kind, np.array(sizes) * np.array(halves))
        if shape.child("submesh") is not None:
            raise SolidInertiaError("<submesh> is not honoured")
        return form_mesh_file_solid(mesh, self.files, "exact", MeshVertexTransformation(sizes))


def read_xml_element_text(element: XmlElement | None) -> str:
    """Return an element's text, stripped; empty without an element."""
    return "" if element is None else (element.node.text or "").strip()


def read_xml_child_number(element: XmlElement, name: str, default: float) -> float:
    """Return the number in a child; bounds may be infinite."""
    child = element.child(name)
    if child is None:
        return default
    found = child.read_numbers(read_xml_element_text(child), "the text", 1, infinite=element.name == "limit")
    return default if found is None else found[0]


def read_sdf_shape_sizes(shape: XmlElement) -> tuple[GeometryKind | None, tuple[float, ...], str]:
    """Return kind, sizes, and the file of a mesh."""
    match shape.name:
        case "box" | "ellipsoid":
            part = shape.child("size" if shape.name == "box" else "radii", required=True)
            numbers = part.read_numbers(read_xml_element_text(part), "the text", 3) if part else None
            return ("box" if shape.name == "box" else "ellipsoid"), numbers or (1.0, 1.0, 1.0), ""
        case "cylinder" | "capsule":
            sizes = (read_xml_child_number(shape, "radius", 1.0), read_xml_child_number(shape, "length", 1.0))
            return ("cylinder" if shape.name == "cylinder" else "capsule"), sizes, ""
        case "sphere":
            return "sphere", (read_xml_child_number(shape, "radius", 1.0),), ""
        case "mesh":
            scale = shape.child("scale")
            numbers = scale.read_numbers(read_xml_element_text(scale), "the text", 3) if scale else None
            return (
                "mesh",
                numbers or (1.0, 1.0, 1.0),
                read_xml_element_text(shape.child("uri", required=True)).replace("model://", "package://"),
            )
    return None, (), ""
