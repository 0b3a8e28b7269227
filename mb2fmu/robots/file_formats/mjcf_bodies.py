"""Bodies and joints of an MJCF file, as links and joints.

A body with several joints becomes a chain: each joint turns about its anchor in the axes that those before it left, and
only the last link of the chain has mass. A joint's position is MuJoCo's: 0 there is 0 here, wherever the file draws it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mb2fmu.robots.description.inertia_check_and_repair import combine_inertias
from mb2fmu.robots.description.robot_description import (
    UNBOUNDED_RANGE,
    Array,
    JointLimits,
    LinkInertia,
    Pose,
    RobotJoint,
    RobotJointKind,
    RobotLink,
    form_massless_link_name,
)
from mb2fmu.robots.file_formats.mjcf_geoms import (
    GeomWithMass,
    MeshAndMaterialAssets,
    apply_minimum_inertia,
    read_mjcf_geom,
)
from mb2fmu.robots.file_formats.mjcf_settings_and_poses import (
    ORIENTATION_ATTRIBUTES,
    MjcfCompilerSettings,
    check_mjcf_attributes,
    format_name_attribute,
    read_choice_attribute,
    read_mjcf_element_pose,
)
from mb2fmu.robots.file_formats.strict_xml import XmlElement, XmlFaultCollector
from mb2fmu.robots.tree.articulated_tree import rotation_about_axis

WORLD_LINK = "world"
_JOINT_TYPES = ("hinge", "slide", "ball", "free")
_JOINT_KINDS: dict[str, RobotJointKind] = {
    "hinge": "revolute",
    "slide": "prismatic",
    "ball": "ball",
    "free": "floating",
}
_BODY_ATTRIBUTES = ("pos", *ORIENTATION_ATTRIBUTES, "childclass")
_JOINT_ATTRIBUTES = ("type", "pos", "axis", "ref", "springref", "stiffness", "damping", "armature", "frictionloss",
                     "range",
              "limited", "actuatorfrcrange", "actuatorfrclimited")  # fmt: skip
_SOLVER_ATTRIBUTES = ("group", "margin", "solimpfriction", "solimplimit", "solreffriction", "solreflimit")
_IGNORED_ELEMENTS = {"camera", "light"}
_UNSUPPORTED_ELEMENTS = {
    "attach": "write the bodies of the other model out",
    "composite": "write the bodies out",
    "flexcomp": "flexible bodies are no part of it",
    "plugin": "what it does is not in the file",
    "replicate": "write the bodies out",
}
_MIN_VECTOR_LENGTH = 1e-12


@dataclass(slots=True, eq=False)
class MjcfBodyReader:
    """Links and joints read from the bodies of a file.

    Attributes:
        compiler: Settings.
        assets: Meshes and materials.
        links: One per body, joint of a chain, and named site.
        joints: One per joint, and one of kind ``fixed`` for each body without joints.
        reference_positions: Joint → position that the file draws it at (``ref``).
        drawn_poses: Body or site → where the file draws it in the world.
    """

    compiler: MjcfCompilerSettings
    assets: MeshAndMaterialAssets
    faults: XmlFaultCollector
    links: list[RobotLink] = field(default_factory=list)
    joints: list[RobotJoint] = field(default_factory=list)
    reference_positions: dict[str, float] = field(default_factory=dict)
    drawn_poses: dict[str, Pose] = field(default_factory=lambda: {WORLD_LINK: Pose()})
    _taken_names: Counter[str] = field(default_factory=Counter)
    _still: set[str] = field(default_factory=lambda: {WORLD_LINK})

    def read_worldbody(self, root: XmlElement) -> None:
        """Read ``<worldbody>``, whose link is the root."""
        worlds = root.children("worldbody")
        if not worlds:
            self.faults.add(root.line, "there is no <worldbody>", "add one: the bodies stand in it")
        names = [str(node.get("name")) for world in worlds for node in world.node.iter("body") if node.get("name")]
        self._taken_names.update({WORLD_LINK, *names})
        shapes = []
        for world in worlds:
            check_mjcf_attributes(world, ("pos", "childclass"), ORIENTATION_ATTRIBUTES)
            shapes += [g.shape for g in self._read_contents(world, WORLD_LINK, Pose(), weighed=False) if g.shape]
        self.links.insert(0, RobotLink(WORLD_LINK, None, tuple(shapes), worlds[0].line if worlds else 0))
        self._scale_masses()

    def _choose_name(self, element: XmlElement, instead: str) -> str:
        """Return the name of an element, or a new unique one."""
        own = element.attribute("name")
        if own:
            return own
        self._taken_names[instead] += 1
        number = self._taken_names[instead]
        return instead if number == 1 else self._choose_name(element, f"{instead}_{number}")

    def _read_contents(self, element: XmlElement, link: str, at: Pose, *, weighed: bool) -> list[GeomWithMass]:
        """Return the geoms of a body or frame; bodies, frames and sites in it are read as well."""
        found = []
        for child in element.list_elements():
            match child.name:
                case "geom":
                    found.append(read_mjcf_geom(child, at, self.compiler, self.assets, weighed=weighed))
                    self._check_known_mass(child, link, found[-1])
                case "frame":
                    check_mjcf_attributes(child, _BODY_ATTRIBUTES)
                    if child.children("joint") or child.children("freejoint"):
                        self.faults.add(child.line, "<frame> has a joint", "move it into the body")
                    found += self._read_contents(
                        child, link, at @ read_mjcf_element_pose(child, self.compiler), weighed=weighed
                    )
                case "body":
                    self._read_body(child, link, at)
                case "site":
                    self._add_site(child, link, at)
                case "joint" | "freejoint" | "inertial":
                    if element.name == "worldbody":
                        self.faults.add(child.line, f"<worldbody> has <{child.name}>", "move it into a body")
                case name if name in _IGNORED_ELEMENTS:
                    self.faults.note(f"<{name}> is left out: it does not move the robot")
                case name:
                    remedy = _UNSUPPORTED_ELEMENTS.get(name, "correct the word, or remove it")
                    self.faults.add(
                        child.line,
                        f"<{name}> in <{element.name}{format_name_attribute(element)}> is not honoured",
                        remedy,
                    )
        return found

    def _check_known_mass(self, element: XmlElement, link: str, geom: GeomWithMass) -> None:
        """Add a fault for a mass that is not known, unless nothing depends on it: the link stands in the world."""
        if geom.unknown_mass_reason and (link not in self._still or self.compiler.total_mass > 0):
            self.faults.add(element.line, geom.unknown_mass_reason, 'give the body an <inertial>, or the geom mass="0"')

    def _add_site(self, element: XmlElement, link: str, at: Pose) -> None:
        """Add a named site as a link without mass, for outputs and loops."""
        name = element.attribute("name")
        if not name or self._taken_names[name]:
            return
        self._taken_names[name] += 1
        self.links.append(RobotLink(name, line=element.line))
        origin = at @ read_mjcf_element_pose(element, self.compiler)
        self.drawn_poses[name] = self.drawn_poses[link] @ origin
        joint = RobotJoint(
            name=f"{name} (site)", kind="fixed", parent=link, child=name, origin=origin, line=element.line
        )
        self.joints.append(joint)

    def _read_body(self, element: XmlElement, parent: str, at: Pose) -> None:
        """Read a body with its joints, mass and geoms; it comes before its children."""
        check_mjcf_attributes(element, _BODY_ATTRIBUTES, ("sleep", "simple", "fuse"))
        name = self._choose_name(element, "body")
        place = len(self.links)
        chain = [child for child in element.list_elements() if child.name in {"joint", "freejoint"}]
        pose = at @ read_mjcf_element_pose(element, self.compiler)
        self.drawn_poses[name] = self.drawn_poses[parent] @ pose
        self._add_joint_chain(chain, parent, name, pose, element.line)
        if not chain and parent in self._still:
            self._still.add(name)
        inertials = element.children("inertial")
        weighed = self.compiler.inertia_from_geoms == "true" or (
            self.compiler.inertia_from_geoms == "auto" and not inertials
        )
        place = len(self.links) if not chain else place + len(chain) - 1
        geoms = self._read_contents(element, name, Pose(), weighed=weighed)
        inertial = self._read_inertial(inertials[0]) if inertials and not weighed else None
        if weighed:
            inertial = combine_inertias([(Pose(), geom.inertial) for geom in geoms if geom.inertial])
            inertial = replace(inertial, line=element.line) if inertial else None
        inertial = apply_minimum_inertia(inertial, self.compiler, element.line)
        shapes = tuple(geom.shape for geom in geoms if geom.shape)
        unweighed = next((geom.unknown_mass_reason for geom in geoms if geom.unknown_mass_reason), "")
        self.links.insert(place, RobotLink(name, inertial, shapes, element.line, unweighed))

    def _read_inertial(self, element: XmlElement) -> LinkInertia:
        """Read mass and inertia about the centre of mass, turned into the body's axes."""
        check_mjcf_attributes(element, ("pos", *ORIENTATION_ATTRIBUTES, "mass", "diaginertia", "fullinertia"))
        pose, mass = read_mjcf_element_pose(element, self.compiler), element.number("mass", required=True)
        if element.attribute("fullinertia"):
            if any(element.attribute(word) for word in ORIENTATION_ATTRIBUTES):
                self.faults.add(element.line, "<inertial> has fullinertia and an orientation", "leave one")
            xx, yy, zz, xy, xz, yz = element.vector("fullinertia", (0.0,) * 6)
            inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        else:
            inertia = np.diag(element.vector("diaginertia", (0.0, 0.0, 0.0), required=True))
        turned = pose.rotation @ inertia @ pose.rotation.T
        return LinkInertia(mass, pose.position, (turned + turned.T) / 2, element.line)

    def _add_joint_chain(self, chain: Sequence[XmlElement], parent: str, name: str, pose: Pose, line: int) -> None:
        """Add the joints of one body, each about its anchor; links between them have no mass."""
        if not chain:
            joint = RobotJoint(name=f"{name} (fixed)", kind="fixed", parent=parent, child=name, origin=pose, line=line)
            self.joints.append(joint)
            return
        anchor = np.zeros(3)
        for k, element in enumerate(chain):
            last = k == len(chain) - 1
            kind = "free" if element.name == "freejoint" else read_choice_attribute(element, "type", _JOINT_TYPES)
            if kind == "free":
                self._add_free_joint(element, chain, parent, name, pose)
                return
            at = np.array(element.vector("pos", (0.0, 0.0, 0.0))) if kind != "slide" else anchor
            child = form_massless_link_name(name, f"joint {k + 1}") if not last or np.any(at) else name
            own = self._read_joint(element, kind, name)
            own = replace(own, parent=parent, child=child, origin=pose @ Pose(position=at - anchor) @ own.origin)
            self.joints.append(own)
            if child != name:
                self.links.append(RobotLink(child, line=element.line))
            parent, pose, anchor = child, Pose(), at
        if parent != name:
            joint = RobotJoint(
                name=f"{name} (anchor)", kind="fixed", parent=parent, child=name, origin=Pose(position=-anchor),
                line=line,
            )  # fmt: skip
            self.joints.append(joint)

    def _add_free_joint(
        self, element: XmlElement, chain: Sequence[XmlElement], parent: str, name: str, pose: Pose
    ) -> None:
        """Add a free joint; its position is that in the world."""
        if len(chain) > 1 or parent != WORLD_LINK:
            what = f"body {name} has a free joint, and {'another one' if len(chain) > 1 else 'a parent'}"
            self.faults.add(element.line, what, "let only bodies of the world be free, by one joint")
        check_mjcf_attributes(element, _JOINT_ATTRIBUTES, (*_SOLVER_ATTRIBUTES, "align"))
        if element.attribute("align") == "true":
            self.faults.note(f"align of body {name} is left out: its pose and speeds are those of its axes in the file")
        if element.name == "joint":
            for key in ("damping", "armature", "stiffness"):
                if element.number(key):
                    what = f"{key} of the free joint of body {name} is not honoured"
                    self.faults.add(element.line, what, "write <freejoint/>, which has none")
        own = self._choose_name(element, f"{name}_free")
        self._note_friction(own, element.number("frictionloss"))
        joint = RobotJoint(
            name=own, kind="floating", parent=parent, child=name, start_pose=pose, driven=False, line=element.line
        )
        self.joints.append(joint)

    def _read_joint(self, element: XmlElement, kind: str, body: str) -> RobotJoint:
        """Return a joint without its pose."""
        check_mjcf_attributes(element, _JOINT_ATTRIBUTES, _SOLVER_ATTRIBUTES)
        turns = kind in {"hinge", "ball"}
        name = self._choose_name(element, f"{body}_{kind}")
        angle = self.compiler.to_radians if kind == "hinge" else float
        axis = np.array(element.vector("axis", (0.0, 0.0, 1.0)))
        length = float(np.linalg.norm(axis))
        if length < _MIN_VECTOR_LENGTH:
            if kind != "ball":
                self.faults.add(element.line, f"the axis of joint {name} is zero", "give a direction")
            axis, length = np.array([0.0, 0.0, 1.0]), 1.0
        axis = axis / length
        zero, rest = angle(element.number("ref")), angle(element.number("springref"))
        values = {key: element.number(key) for key in ("stiffness", "damping", "armature", "frictionloss")}
        for key, value in values.items():
            if value < 0:
                self.faults.add(element.line, f"{key} of joint {name} is {value:g}", "give a number ≥ 0")
        if kind == "ball":
            if values["stiffness"]:
                what = f"stiffness of the ball joint {name} is not honoured"
                self.faults.add(element.line, what, "remove it, or make three hinges of the ball")
            self._note_friction(name, values["frictionloss"])
        self.reference_positions[name] = zero
        lower, upper = self._read_range(element, "range", "limited", name)
        bounds = JointLimits(lower=angle(lower), upper=angle(upper)) if kind != "ball" else JointLimits()
        if kind == "ball" and np.isfinite(upper):
            self.faults.note(f"the range of the ball joint {name} is left out")
        return RobotJoint(
            name=name, kind=_JOINT_KINDS[kind], parent="", child="",
            origin=_zero_position_pose(axis, zero, slides=not turns),
            axis=axis, limits=bounds, damping=values["damping"], friction=values["frictionloss"],
            stiffness=values["stiffness"], spring_reference=rest, armature=values["armature"], start=zero,
            actuated=self._read_range(element, "actuatorfrcrange", "actuatorfrclimited", name), driven=False,
            line=element.line,
        )  # fmt: skip

    def _note_friction(self, joint: str, friction: float) -> None:
        """Note dry friction of a joint with several coordinates, which is left out."""
        if friction:
            self.faults.note(f"dry friction of joint {joint} is left out: it has more than one coordinate")

    def _read_range(self, element: XmlElement, key: str, switch: str, name: str) -> tuple[float, float]:
        """Return the lower and upper bound of a joint's range, in rad or m."""
        return read_mjcf_active_limits(element, key, switch, name, self.compiler)

    def _scale_masses(self) -> None:
        """Scale masses and inertias so that the total mass is that of ``settotalmass``."""
        total, wanted = sum(link.inertial.mass for link in self.links if link.inertial), self.compiler.total_mass
        if wanted <= 0 or total <= 0:
            return
        factor = wanted / total
        self.links = [
            replace(link, inertial=_scale_inertia(link.inertial, factor)) if link.inertial else link
            for link in self.links
        ]


def read_mjcf_active_limits(
    element: XmlElement, key: str, switch: str, name: str, compiler: MjcfCompilerSettings
) -> tuple[float, float]:
    """Return the active bounds: where ``switch`` says so, else where they are given."""
    limited = read_choice_attribute(element, switch, ("auto", "true", "false"))
    if not element.attribute(key):
        if limited == "true":
            element.faults.add(element.line, f"{switch} of {name} is true, and there is no {key}", f"give {key}")
        return UNBOUNDED_RANGE
    lower, upper = element.vector(key, (0.0, 0.0))
    if limited == "auto" and not compiler.limited:
        what = f"{name} has {key}, and neither {switch} nor autolimits says whether it acts"
        element.faults.add(element.line, what, f'give {switch}="true" or "false"')
    if limited == "false":
        return UNBOUNDED_RANGE
    if lower >= upper:
        element.faults.add(element.line, f"{key} of {name} is {lower:g} … {upper:g}", "give the lower bound first")
    return lower, upper


def _zero_position_pose(axis: Array, zero: float, *, slides: bool) -> Pose:
    """Return the pose of a joint at position 0, if the file draws it at ``zero``."""
    if not zero:
        return Pose()
    return Pose(position=-zero * axis) if slides else Pose(rotation_about_axis(axis, -zero))


def _scale_inertia(inertial: LinkInertia, factor: float) -> LinkInertia:
    """Return mass and inertia times a factor."""
    return replace(inertial, mass=factor * inertial.mass, inertia=factor * inertial.inertia)
