"""The picture of a mechanism's graph: SVG that a browser shows, without script or network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from markupsafe import escape

from mb2fmu.mechanism.mechanism_graph import GROUND, Bond, MechanismGraph

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1a2230;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".name{font-weight:600;font-size:13px}.small{font-size:11px;fill:#5a6577}.middle{text-anchor:middle}"
    ".body{fill:#eef2f8;stroke:#1a2230;stroke-width:1.2}.ground{fill:#d9d9d9;stroke:#555}"
    ".joint{fill:none;stroke:#1a2230;stroke-width:1.8}.load{fill:none;stroke:#b0413e;stroke-width:1.5}"
    ".loop{fill:none;stroke:#7a3fa0;stroke-width:1.5;stroke-dasharray:5 4}.sensor{fill:#2c8a4b}.pin{fill:#b0413e}"
    ".of-load{fill:#b0413e}.of-loop{fill:#7a3fa0}"
)
_WIDTH, _GAP, _ROW, _HEAD, _SPACE, _MARGIN, _LANE = 170.0, 120.0, 17.0, 28.0, 26.0, 16.0, 24.0
_MOST = 8
"""Rows of loads and sensors in a box; what is more is counted."""


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    height: float

    @property
    def right(self) -> float:
        """Horizontal place of the right edge."""
        return self.left + _WIDTH

    @property
    def bottom(self) -> float:
        """Vertical place of the lower edge, downwards."""
        return self.top + self.height

    @property
    def middle(self) -> float:
        """Height of the middle of its head, where joints end."""
        return self.top + _HEAD / 2


def graph_picture(graph: MechanismGraph) -> str:
    """The picture as an SVG document: bodies from the ground outwards, left to right.

    Args:
        graph: Of a mechanism.
    """
    places = _places(graph)
    others = [bond for bond in graph.bonds if bond.kind != "joint"]
    low = max(box.bottom for box in places.values())
    width = max(box.right for box in places.values()) + _MARGIN
    height = low + _LANE * (len(others) + 1) + _MARGIN
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    title = escape(f"{graph.name}: bodies, joints, loads, constraints, sensors")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{title}</title><style>{_STYLE}</style>']
    parts.append(f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>')
    for bond in graph.bonds:
        if bond.kind == "joint":
            parts += _joint(bond, places[bond.parent], places[bond.child])
    for lane, bond in enumerate(others):
        parts += _below(bond, places[bond.parent], places[bond.child], low + _LANE * (lane + 1), lane)
    for number, box in sorted(places.items()):
        parts += _box(graph, number, box)
    return "".join([*parts, "</svg>\n"])


def _rows(graph: MechanismGraph, number: int) -> list[tuple[str, str]]:
    """(class, text) of what stands in a box."""
    rows = [("pin", name) for name in graph.loads[number]] + [("sensor", name) for name in graph.sensors[number]]
    return rows if len(rows) <= _MOST else [*rows[: _MOST - 1], ("", f"… and {len(rows) - _MOST + 1} more")]


def _places(graph: MechanismGraph) -> dict[int, _Box]:
    """Boxes by body: one column per distance from the ground, children below one another.

    What is reached from the ground by no joints, or around a ring of them only, stands beside the ground's children.
    """
    parents: dict[int, int] = {}
    for bond in graph.bonds:
        if bond.kind == "joint" and bond.child not in parents and not _above(parents, bond.parent, bond.child):
            parents[bond.child] = bond.parent
    for number in range(len(graph.bodies)):
        parents.setdefault(number, GROUND)
    children: dict[int, list[int]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    depth, order, stack = {GROUND: 0}, [GROUND], list(reversed(children.get(GROUND, [])))
    while stack:
        number = stack.pop()
        depth[number] = depth[parents[number]] + 1
        order.append(number)
        stack += reversed(children.get(number, []))
    ends: dict[int, float] = {}
    places: dict[int, _Box] = {}
    for number in order:
        column = depth[number]
        height = _HEAD + _ROW * len(_rows(graph, number)) + 4.0
        above = places[parents[number]].top if number != GROUND else _MARGIN
        top = max(above, ends.get(column, _MARGIN))
        places[number] = _Box(_MARGIN + column * (_WIDTH + _GAP), top, height)
        ends[column] = top + height + _SPACE
    return places


def _above(parents: Mapping[int, int], number: int, wanted: int) -> bool:
    """Whether a body stands between another one and the ground, or is that one."""
    while number != wanted and number in parents:
        number = parents[number]
    return number == wanted


def _joint(bond: Bond, a: _Box, b: _Box) -> Iterator[str]:
    """Draw a joint as a curve from box a to box b, with its name and coordinates."""
    middle = (a.right + b.left) / 2
    bend = f"C{middle:.1f} {a.middle:.1f} {middle:.1f} {b.middle:.1f} {b.left:.1f} {b.middle:.1f}"
    way = f"M{a.right:.1f} {a.middle:.1f}{bend}"
    yield f'<path class="joint" d="{way}"/><circle cx="{b.left:.1f}" cy="{b.middle:.1f}" r="4" fill="#1a2230"/>'
    if bond.name:
        yield f'<text class="small middle" x="{middle:.1f}" y="{b.middle - 7:.1f}">{_cut(bond.name, 18)}</text>'
    if bond.coordinates:
        text = _cut(", ".join(bond.coordinates), 18)
        yield f'<text class="middle" x="{middle:.1f}" y="{b.middle + 17:.1f}" font-style="italic">{text}</text>'


def _below(bond: Bond, a: _Box, b: _Box, low: float, lane: int) -> Iterator[str]:
    """A load or a constraint between two bodies, in a lane of its own below all boxes."""
    shift = 14.0 + 9.0 * (lane % 14)
    start, end = a.left + shift, b.left + shift + (5.0 if a is not b else 20.0)
    yield f'<path class="{bond.kind}" d="M{start:.1f} {a.bottom:.1f}V{low:.1f}H{end:.1f}V{b.bottom:.1f}"/>'
    x = (min(start, end) + max(start, end)) / 2
    anchor = "middle" if abs(end - start) > _WIDTH / 2 else "after"
    x = x if anchor == "middle" else max(start, end) + 6.0
    yield f'<text class="of-{bond.kind} {anchor}" x="{x:.1f}" y="{low - 4:.1f}">{_cut(bond.name, 44)}</text>'


def _box(graph: MechanismGraph, number: int, box: _Box) -> Iterator[str]:
    """Draw a body, or the ground, as a box with its joints and sensors as rows."""
    kind, name = ("ground", "ground") if number == GROUND else ("body", graph.bodies[number])
    yield (
        f'<rect class="{kind}" x="{box.left:.1f}" y="{box.top:.1f}" width="{_WIDTH:.0f}" height="{box.height:.1f}" '
        f'rx="5"/><text class="name middle" x="{box.left + _WIDTH / 2:.1f}" y="{box.top + 18:.1f}">'
        f"{_cut(name, 22)}</text>"
    )
    for row, (mark, text) in enumerate(_rows(graph, number)):
        y = box.top + _HEAD + _ROW * row + 8
        if mark == "pin":
            yield f'<path class="pin" d="M{box.left + 8:.1f} {y - 5:.1f}l8 4l-8 4z"/>'
        elif mark:
            yield f'<circle class="sensor" cx="{box.left + 12:.1f}" cy="{y - 1:.1f}" r="4"/>'
        yield f'<text x="{box.left + 22:.1f}" y="{y + 3:.1f}">{_cut(text, 20)}</text>'


def _cut(text: str, most: int) -> str:
    """Return escaped text, cut to so many characters."""
    return str(escape(text if len(text) <= most else text[: most - 1] + "…"))
