"""``FlexibleLinkSetting``: the elastic data of one link, as a table of the side file has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mb2fmu.model.flexible.beam_section import BeamSection

BEAM_NUMBERS = ("length", "E", "rho")
"""Arguments of ``FlexibleBody.beam`` that every beam needs, beside section and modes."""

_BEAM_WORDS = {*BEAM_NUMBERS, "section", "modes", "up_to", "axis", "G", "theory", "rotary_inertia", "foreshortening"}
_COMMON_WORDS = {"file", "damping", "offset", "rpy", "nodes", "scale"}
_SECTIONS: Mapping[frozenset[str], tuple[str, ...]] = {
    frozenset({"radius"}): ("inner_radius",),
    frozenset({"width", "height"}): (),
    frozenset({"area", "I_y", "I_z"}): ("torsion_constant", "shear_coefficient"),
}
"""Words that a section needs → words that it may have beside them."""

_FILE_ENDINGS = (".npz", ".sid_fem", ".sid")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlexibleLinkSetting:
    """Elastic data of one link: those of a beam, or a file.

    Attributes:
        file: ``.npz`` with arrays, or ``.SID_FEM``, seen from the robot's folder; empty: a beam.
        beam: Arguments of ``FlexibleBody.beam`` but section and damping; empty: a file.
        section: Of the beam.
        outline: For pictures: radius of a round section, or edges of a rectangular one, m.
        damping: As ``FlexibleBody`` takes it; None: as the file says, else none.
        offset: Origin of the body's frame in the link's, m.
        rpy: Roll, pitch, yaw of the body's frame in the link's, rad.
        nodes: Joint → the node that it hangs on, by number or name; the nearest one unless given.
        scale: By how much pictures enlarge the displacements.
    """

    file: str = ""
    beam: Mapping[str, Any] = field(default_factory=dict)
    section: BeamSection | None = None
    outline: Mapping[str, Any] = field(default_factory=dict)
    damping: Any = None
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    nodes: Mapping[str, int | str] = field(default_factory=dict)
    scale: float = 1.0


def read_flexible_links(value: Any) -> dict[str, FlexibleLinkSetting]:
    """Return link → its elastic data, from the table ``flexible`` of a side file.

    Raises:
        TypeError: If it is no table of tables.
        ValueError: If a table has too little, too much or something else.
    """
    if not isinstance(value, Mapping) or not all(isinstance(table, Mapping) for table in value.values()):
        raise TypeError("links that bend are tables of the side file: [flexible.LINK]")
    return {link: _read_link(link, table) for link, table in value.items()}


def _read_link(link: str, table: Mapping[str, Any]) -> FlexibleLinkSetting:
    """Return the elastic data of one link."""
    strange = set(table) - _BEAM_WORDS - _COMMON_WORDS
    if strange:
        words = ", ".join(sorted(_BEAM_WORDS | _COMMON_WORDS))
        raise ValueError(f"[flexible.{link}] has {', '.join(sorted(strange))}; it may have {words}")
    needed = [word for word in (*BEAM_NUMBERS, "section", "modes") if word not in table]
    beam = {word: table[word] for word in table if word in _BEAM_WORDS}
    if ("file" in table) == bool(beam):
        data = "file and those of a beam" if beam else "no elastic data"
        remedy = f"give file = 'data.npz' or 'data.SID_FEM', or {', '.join((*BEAM_NUMBERS, 'section'))} and modes"
        raise ValueError(f"[flexible.{link}] has {data}: {remedy}")
    if beam and needed:
        raise ValueError(f"the beam [flexible.{link}] lacks {', '.join(needed)}")
    common = _read_common_words(link, table)
    if not beam:
        file = table["file"]
        if not isinstance(file, str) or not file.lower().endswith(_FILE_ENDINGS):
            raise ValueError(f"[flexible.{link}] names the file {file!r}: it is a .npz or a .SID_FEM")
        return FlexibleLinkSetting(file=file, **common)
    section, outline = _read_section(link, beam.pop("section"))
    return FlexibleLinkSetting(beam=beam, section=section, outline=outline, **common)


def _read_common_words(link: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table says of any kind of data: damping, place, nodes, scale."""
    common: dict[str, Any] = {"damping": table["damping"]} if "damping" in table else {}
    for word in ("offset", "rpy"):
        if word in table:
            numbers = table[word]
            if not (isinstance(numbers, list | tuple) and len(numbers) == 3 and all(map(_is_number, numbers))):
                raise ValueError(f"{word} of [flexible.{link}] is {numbers!r}: it is three numbers")
            common[word] = tuple(map(float, numbers))
    if "nodes" in table:
        nodes = table["nodes"]
        if not isinstance(nodes, Mapping) or not all(isinstance(node, int | str) for node in nodes.values()):
            raise ValueError(f"nodes of [flexible.{link}] are {nodes!r}: give {{ JOINT = NODE }}")
        common["nodes"] = dict(nodes)
    if "scale" in table:
        if not _is_number(table["scale"]) or not table["scale"] > 0:
            raise ValueError(f"scale of [flexible.{link}] is {table['scale']!r}: it is a number > 0")
        common["scale"] = float(table["scale"])
    return common


def _read_section(link: str, table: Any) -> tuple[BeamSection, dict[str, Any]]:
    """Return a cross-section, and how it is drawn."""
    forms = "{ radius, inner_radius }, { width, height } or { area, I_y, I_z, torsion_constant, shear_coefficient }"
    if not isinstance(table, Mapping):
        raise TypeError(f"the section of [flexible.{link}] is {table!r}: give {forms}")
    needed = next((words for words in _SECTIONS if words <= set(table)), None)
    if needed is None or set(table) - needed - {*_SECTIONS[needed]}:
        raise ValueError(f"the section of [flexible.{link}] has {', '.join(table)}: give {forms}")
    wrong = [word for word, number in table.items() if not _is_number(number) or not number > 0]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} of the section of [flexible.{link}]: give numbers > 0, in SI units")
    numbers = {word: float(number) for word, number in table.items()}
    if "radius" in numbers:
        if not numbers.get("inner_radius", 0.0) < numbers["radius"]:
            raise ValueError(f"inner_radius of the section of [flexible.{link}] is not below its radius")
        return BeamSection.circle(**numbers), {"radius": numbers["radius"]}
    if "width" in numbers:
        return BeamSection.rectangle(**numbers), {"box": (numbers["width"], numbers["height"])}
    section = BeamSection(**numbers)
    edges = (math.sqrt(12.0 * section.I_z / section.area), math.sqrt(12.0 * section.I_y / section.area))
    return section, {"box": edges}  # the rectangle with these moments


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
