"""Write the models in an SDF model as its own links, joints and frames, as SDF 1.8 names them: ``inner::link``.

The frame of an inner model becomes an explicit frame with the model's name, attached to its canonical link. A model
that is included with ``merge`` keeps its names, and its frame is called ``_merged__inner__model__`` (SDF 1.9).
"""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from mb2fmu.robots.file_formats.sdf_frames import MODEL, WORLD
from mb2fmu.robots.file_formats.strict_xml import XmlElement, XmlFaultCollector

MODEL_ELEMENTS = {"pose", "link", "joint", "frame", "static", "model"}
IGNORED_ELEMENTS = {"plugin", "self_collide", "allow_auto_disable", "enable_wind", "sensor", "light", "gripper",
                    "audio_sink", "audio_source", "battery", "particle_emitter", "projector", "must_be_base_link",
                    "physics"}  # fmt: skip
MERGE_ATTRIBUTE = "{mb2fmu}merge"
"""Attribute of a model that was included with ``merge``."""
PLACEMENT_ATTRIBUTE = "{mb2fmu}placement_frame"
"""Attribute of the frame of an inner model: frame that has the pose in its place."""
_TRUE = {"true", "1"}
_SEPARATOR = "::"


def flatten_nested_models(model: etree._Element, faults: XmlFaultCollector) -> None:
    """Replace the models in a model by their links, joints and frames, behind those of the model; merged ones in place.

    Args:
        model: Is changed.
        faults: Take what is wrong in the models inside.
    """
    nested_parts: list[etree._Element] = []
    for inner in model.findall("model"):
        element = XmlElement(inner, faults)
        element.check_allowed(MODEL_ELEMENTS, IGNORED_ELEMENTS)
        element.attribute("name", required=True)
        if (inner.findtext("static") or "").strip() in _TRUE:
            faults.add(element.line, f"{inner.get('name')}, a model in a model, is static", "remove <static>")
        flatten_nested_models(inner, faults)
        place = model.index(inner)
        model.remove(inner)
        if inner.get(MERGE_ATTRIBUTE) is None:
            nested_parts += _list_parts(inner)
        else:
            model[place:place] = _list_parts(inner)
    if nested_parts and model.find("link") is None and not model.get("canonical_link"):
        model.set("canonical_link", nested_parts[0].get("name") or "")  # of a model without links: that of the first
    model.extend(nested_parts)


def _list_parts(inner: etree._Element) -> list[etree._Element]:
    """Return a model's parts, and first the model as its own frame, with names as the model around it sees them."""
    name = (inner.get("name") or "").strip()
    is_merged = inner.get(MERGE_ATTRIBUTE) is not None
    scope = (
        _NestedModelNameScope("", f"_merged__{name}__model__")
        if is_merged
        else _NestedModelNameScope(name + _SEPARATOR, name)
    )
    parts = [part for part in inner if part.tag in {"link", "joint", "frame"}]
    first = inner.find("link")
    canonical = inner.get("canonical_link") or ("" if first is None else first.get("name") or "")
    pose = inner.find("pose")
    inner.tag = "frame"
    inner[:] = [inner.makeelement("pose") if pose is None else pose]
    inner[0].set("relative_to", inner[0].get("relative_to") or MODEL)
    inner.set("name", scope.frame)
    inner.set("attached_to", scope.outer_name_of(canonical))
    if frame := inner.get("placement_frame"):
        inner.set(PLACEMENT_ATTRIBUTE, scope.outer_name_of(frame))
    for part in parts:
        scope.rename(part)
    return [inner, *parts]


@dataclass(frozen=True, slots=True)
class _NestedModelNameScope:
    """The names of an inner model.

    Attributes:
        prefix: Of its names, seen from the model around it.
        frame: Its own frame, likewise.
    """

    prefix: str
    frame: str

    def outer_name_of(self, name: str) -> str:
        """Return a name of the inner model, seen from the model around it."""
        if name.strip() in {"", MODEL}:
            return self.frame
        return name if name.strip() == WORLD else self.prefix + name.strip()

    def rename(self, part: etree._Element) -> None:
        """Rename a link, joint or frame, and all that it refers to; what refers to the model by default says so."""
        part.set("name", self.prefix + (part.get("name") or "").strip())
        if part.tag == "frame":
            part.set("attached_to", self.outer_name_of(part.get("attached_to", "")))
            if frame := part.get(PLACEMENT_ATTRIBUTE):
                part.set(PLACEMENT_ATTRIBUTE, self.outer_name_of(frame))
        elif part.tag == "link" and part.find("pose") is None:
            etree.SubElement(part, "pose")
        for pose in part.iter("pose"):
            if pose.get("relative_to") or (part.tag == "link" and pose.getparent() is part):
                pose.set("relative_to", self.outer_name_of(pose.get("relative_to", "")))
        for end in (*part.findall("parent"), *part.findall("child")):
            end.text = self.outer_name_of(end.text or "") if (end.text or "").strip() else end.text
        for axis in part.iter("axis", "axis2"):
            self._rename_axis(axis)

    def _rename_axis(self, axis: etree._Element) -> None:
        """Rename what an axis refers to; one along the model's axes names the frame that these are now."""
        if (mimic := axis.find("mimic")) is not None and mimic.get("joint"):
            mimic.set("joint", self.prefix + mimic.get("joint", "").strip())
        xyz, along_model = axis.find("xyz"), axis.find("use_parent_model_frame")
        if along_model is not None and (along_model.text or "").strip().lower() in _TRUE:
            axis.remove(along_model)
            if xyz is None:
                xyz = etree.SubElement(axis, "xyz")
                xyz.text = "0 0 1"
            xyz.set("expressed_in", xyz.get("expressed_in") or MODEL)
        if xyz is not None and xyz.get("expressed_in"):
            xyz.set("expressed_in", self.outer_name_of(xyz.get("expressed_in", "")))
