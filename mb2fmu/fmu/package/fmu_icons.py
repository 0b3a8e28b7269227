"""Pictures of an FMU, drawn from the model's diagram: what importers show of it in a list or a block diagram.

A diagram that is a drawing (SVG) is used as it is; one that is text, or none, becomes a plain card with the model's
name and the text. An icon must be known at a glance at 64 pixels: it is the drawing in a square without letters and
construction lines, with stronger strokes; or, where there is no drawing, the initials of the model's name.

The same diagram gives the same bytes with the same version of the renderer: it brings its own rasterizer, only the
fonts named here are used, and those of the system never.
"""

from __future__ import annotations

import re
import textwrap
from copy import deepcopy
from functools import lru_cache
from html import escape
from pathlib import Path

from lxml import etree

from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmiVersion, FmuInterface

ICON_SIZE_PX = 400
PICTURE_SIZE_PX = 1000
"""Of the longer side, in pixels; the other follows from the drawing."""

_LENGTH_PATTERN = re.compile(r"\d+(\.\d+)?(px)?")
_SVG_TAG = "{http://www.w3.org/2000/svg}svg"
_FONT_FOLDER = Path(__file__).with_name("fonts")
"""DejaVu 2.37: sans (upright, oblique, bold), serif (upright, italic), monospaced."""

_SHAPE_TAGS = {"path", "line", "polyline", "polygon", "circle", "ellipse", "rect", "image", "use"}
_ICON_STROKE_WIDTH = 4.0
"""In units of the drawing; those of the project are some 250 units wide."""
_CARD_LINE_HEIGHT = 18
_CARD_MARGIN = 16
_CARD_COLUMNS = 48


def make_fmu_pictures(interface: FmuInterface, diagram: str) -> InMemoryFileTree:
    """Return the pictures of an FMU.

    Args:
        interface: Names the FMU; its standard says where pictures stand.
        diagram: As the model has it: SVG, text, or nothing.

    Returns:
        The icon as PNG and SVG, beside ``terminalsAndIcons.xml``; a larger picture as ``model.png`` (FMI 2.0) or
        ``documentation/diagram.png`` and ``.svg`` (FMI 3.0).
    """
    drawing = _parse_diagram(diagram)
    icon = _serialize_svg(
        _center_in_square(_simplify_for_icon(drawing))
        if drawing is not None
        else etree.fromstring(_draw_initials(interface))
    )
    if drawing is None:
        drawing = etree.fromstring(_draw_name_card(interface, diagram).encode())
    files = {"terminalsAndIcons/icon.png": rasterize_svg(icon, ICON_SIZE_PX), "terminalsAndIcons/icon.svg": icon}
    return InMemoryFileTree({**files, **_large_picture_files(interface.target.fmi, drawing)})


def _large_picture_files(fmi: FmiVersion, drawing: etree._Element) -> dict[str, bytes]:
    """Return the large picture under the names that the FMI version gives it."""
    written = _serialize_svg(drawing)
    picture = rasterize_svg(written, _picture_width(drawing))
    if fmi == "2":
        return {"model.png": picture}
    return {"documentation/diagram.png": picture, "documentation/diagram.svg": written}


def _picture_width(drawing: etree._Element) -> int:
    """Return the width in pixels at which no side is longer than ``PICTURE_SIZE_PX``; time goes with the pixels."""
    corners = re.split(r"[\s,]+", drawing.get("viewBox", "").strip())
    width, height = corners[2:] if len(corners) == 4 else (drawing.get(name, "") for name in ("width", "height"))
    if not (_LENGTH_PATTERN.fullmatch(width) and _LENGTH_PATTERN.fullmatch(height)):
        return PICTURE_SIZE_PX
    across, down = (float(number.removesuffix("px")) for number in (width, height))
    return max(1, round(PICTURE_SIZE_PX * min(1.0, across / down))) if down > 0.0 else PICTURE_SIZE_PX


def _parse_diagram(diagram: str) -> etree._Element | None:
    """Return the diagram as a separate SVG document without entities; None if it is not SVG."""
    text = diagram.strip()
    if "<svg" not in text:
        return None
    if "xmlns=" not in text:
        text = text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:
        return None
    if root.tag != _SVG_TAG or root.getroottree().docinfo.doctype:
        return None
    return root


def _serialize_svg(drawing: etree._Element) -> bytes:
    """Return an SVG as bytes."""
    return etree.tostring(drawing, encoding="UTF-8", xml_declaration=True) + b"\n"


def _simplify_for_icon(drawing: etree._Element) -> etree._Element:
    """Return the drawing without details that are unreadable when small: letters, dashed and thin lines.

    A drawing of nothing but such things stays as it is.
    """
    copy = deepcopy(drawing)
    for element in list(copy.iter(etree.Element)):
        letters = etree.QName(element).localname in {"text", "tspan", "textPath"}
        parent = element.getparent()
        if parent is not None and (letters or element.get("stroke-dasharray", "none") != "none"):
            parent.remove(element)  # none of ours has a tail that matters: text stands in text elements only
    seen = [e for e in copy.iter(etree.Element) if etree.QName(e).localname in _SHAPE_TAGS]
    if len(seen) <= 1:  # a background at most
        return deepcopy(drawing)
    for element in seen:
        width = element.get("stroke-width", "1" if element.get("stroke") else "")
        if _LENGTH_PATTERN.fullmatch(width) and float(width.removesuffix("px")) < _ICON_STROKE_WIDTH:
            element.set("stroke-width", str(_ICON_STROKE_WIDTH))
    return copy


def _center_in_square(drawing: etree._Element) -> etree._Element:
    """Return the drawing in the middle of a square, so that an icon is not distorted."""
    copy = deepcopy(drawing)
    size = [copy.get(name, "") for name in ("width", "height")]
    if "viewBox" not in copy.attrib and all(_LENGTH_PATTERN.fullmatch(number) for number in size):
        copy.set("viewBox", f"0 0 {size[0].removesuffix('px')} {size[1].removesuffix('px')}")
    if "viewBox" in copy.attrib:
        copy.set("width", str(ICON_SIZE_PX))
        copy.set("height", str(ICON_SIZE_PX))
    return copy


def _draw_initials(interface: FmuInterface) -> bytes:
    """Return two letters or digits: DoublePendulum is DP, chain Ch."""
    name = interface.model_name
    capitals = "".join(re.findall(r"[A-Z0-9]", name))
    letters = capitals if len(capitals) > 1 else name.replace("_", "")
    shown = letters[0].upper() + letters[1:2] if letters else "?"
    size = ICON_SIZE_PX
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" width="{size}" height="{size}" font-family="sans-serif">
<rect x="3" y="3" width="94" height="94" rx="14" fill="white" stroke="#1f4e79" stroke-width="6"/>
<text x="50" y="67" font-size="48" font-weight="bold" text-anchor="middle" fill="#1f4e79">{escape(shown)}</text>
</svg>
""".encode()


def _draw_name_card(interface: FmuInterface, text: str) -> str:
    """Return a card with name, description and text in a frame."""
    body = text.strip("\n").splitlines() or textwrap.wrap(interface.description, _CARD_COLUMNS)
    width = 2 * _CARD_MARGIN + 11 * max([len(interface.model_name), *(len(line) for line in body)])
    height = 2 * _CARD_MARGIN + _CARD_LINE_HEIGHT * (len(body) + 2)
    left, step = _CARD_MARGIN, _CARD_LINE_HEIGHT
    lines = "\n".join(
        f'<text x="{left}" y="{left + step * (i + 3)}" xml:space="preserve">{escape(line)}</text>'
        for i, line in enumerate(body)
    )
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="monospace" font-size="15">
<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="6" fill="white" stroke="#333" stroke-width="2"/>
<text x="{left}" y="{left + step}" font-size="17" font-weight="bold">{escape(interface.model_name)}</text>
{lines}
</svg>
"""


@lru_cache(64)  # about 0.1 s each, the same for both FMI versions of a model and for one that is built again
def rasterize_svg(drawing: bytes, width: int) -> bytes:
    """Return the drawing as PNG, ``width`` pixels wide."""
    import resvg_py

    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=drawing.decode(),
            width=width,
            skip_system_fonts=True,
            font_files=[str(path) for path in sorted(_FONT_FOLDER.glob("*.ttf"))],
            font_family="DejaVu Sans",
            sans_serif_family="DejaVu Sans",
            serif_family="DejaVu Serif",
            monospace_family="DejaVu Sans Mono",
        )
    )
