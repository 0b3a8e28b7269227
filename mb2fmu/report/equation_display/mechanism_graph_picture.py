"""The picture of a mechanism's graph as SVG, without script or network."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import escape

from mb2fmu.mechanics.mechanism.symbolic.mechanism_graph import GROUND_NUMBER, MechanismGraph, MechanismGraphEdge

_SVG_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1a2230;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".name{font-weight:600;font-size:13px}.small{font-size:11px;fill:#5a6577}.middle{text-anchor:middle}.ends{text-anchor:end}"
    ".paper{fill:#fff}.body{fill:#eef2f8;stroke:#1a2230;stroke-width:1.2}.ground{fill:#d9d9d9;stroke:#555}.end{fill:#1a2230}"
    ".joint{fill:none;stroke:#1a2230;stroke-width:1.8}.load{fill:none;stroke:#b0413e;stroke-width:1.5}"
    ".loop{fill:none;stroke:#7a3fa0;stroke-width:1.5;stroke-dasharray:5 4}.sensor{fill:#2c8a4b}.pin{fill:#b0413e}"
    ".of-load{fill:#b0413e}.of-loop{fill:#7a3fa0}"
    "@media screen and (prefers-color-scheme:dark){"
    "text{fill:#e4e9f1;stroke:#1a2029}.small{fill:#9aa7ba}.paper{fill:#1a2029}.end{fill:#e4e9f1}"
    ".body{fill:#29313d;stroke:#e4e9f1}.ground{fill:#3d4552;stroke:#9aa7ba}.joint{stroke:#e4e9f1}"
    ".load{stroke:#ff9d94}.loop{stroke:#c79bf2}.sensor{fill:#6fd39a}.pin,.of-load{fill:#ff9d94}.of-loop{fill:#c79bf2}}"
)
"""Colours of the page about it (``page.css``), which an embedded picture cannot request; paper stays white."""
_BOX_WIDTH, _ROW_HEIGHT, _HEAD_HEIGHT, _BOX_SPACING, _MARGIN, _LANE_HEIGHT = 190.0, 17.0, 28.0, 26.0, 16.0, 24.0
_JOINT_BEND_WIDTH, _WIRE_SPACING, _LETTER_WIDTH = 40.0, 7.0, 6.9
"""How wide a joint bends, how far wires are apart, how wide a letter is about."""
_MAX_BOX_ROWS = 8
"""Rows of loads and sensors in a box; what is more is counted."""
_MAX_BODY_NAME_LETTERS, _MAX_JOINT_LETTERS, _MAX_WIRE_LETTERS, _MAX_ROW_LETTERS = 22, 24, 44, 22
"""Letters after which names of bodies, of joints, of wires, and of rows are cut."""


@dataclass(frozen=True, slots=True)
class _BodyBox:
    """A body's place; wires run down at ``bus`` on its right side, joints begin to bend at ``joint_bend_start``."""

    left: float
    top: float
    height: float
    joint_bend_start: float

    @property
    def right(self) -> float:
        """Horizontal place of the right edge."""
        return self.left + _BOX_WIDTH

    @property
    def bottom(self) -> float:
        """Vertical place of the lower edge, downwards."""
        return self.top + self.height

    @property
    def middle(self) -> float:
        """Height of the middle of its head, where joints end."""
        return self.top + _HEAD_HEIGHT / 2


def draw_mechanism_graph(graph: MechanismGraph) -> str:
    """Return the picture as an SVG document: bodies from the ground outwards, left to right.

    What acts between two bodies and what holds them together runs beside their columns and below all boxes.

    Args:
        graph: Of a mechanism.
    """
    parents = _find_parents(graph)
    joints = [bond for bond in graph.edges if bond.kind == "joint" and parents[bond.child] == bond.parent]
    wires = [bond for bond in graph.edges if bond not in joints]
    places, columns = _place_boxes(graph, parents, joints, wires)
    low = max(box.bottom for box in places.values())
    lines, labels = _draw_wires(wires, places, columns, low)
    right = max([max(box.joint_bend_start for box in places.values()), *(end for end, _ in labels)])
    width, height = right + _MARGIN, low + _LANE_HEIGHT * (len(wires) + 1) + _MARGIN
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    title = escape(f"{graph.name}: bodies, joints, loads, constraints, sensors")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img"><title>{title}</title><style>{_SVG_STYLE}</style>'
    ]
    parts.append(f'<rect width="{width:.0f}" height="{height:.0f}" class="paper"/>')
    parts += lines
    for bond in joints:
        parts += _draw_joint(bond, places[bond.parent], places[bond.child])
    for number, box in sorted(places.items()):
        parts += _draw_body_box(graph, number, box)
    return "".join([*parts, *(text for _, text in labels), "</svg>\n"])


def _list_box_rows(graph: MechanismGraph, number: int) -> list[tuple[str, str]]:
    """Return (class, text) of the rows in a box."""
    rows = [("pin", name) for name in graph.loads_of_body[number]] + [
        ("sensor", name) for name in graph.outputs_of_body[number]
    ]
    return (
        rows
        if len(rows) <= _MAX_BOX_ROWS
        else [*rows[: _MAX_BOX_ROWS - 1], ("", f"… and {len(rows) - _MAX_BOX_ROWS + 1} more")]
    )


def _find_parents(graph: MechanismGraph) -> dict[int, int]:
    """Return each body's parent in the picture; bodies without a chain of joints to the ground hang on the ground."""
    parents: dict[int, int] = {}
    for bond in graph.edges:
        if (
            bond.kind == "joint"
            and bond.child not in parents
            and not _is_ancestor_or_self(parents, bond.parent, bond.child)
        ):
            parents[bond.child] = bond.parent
    for number in range(len(graph.bodies)):
        parents.setdefault(number, GROUND_NUMBER)
    return parents


def _assign_columns(parents: Mapping[int, int]) -> dict[int, int]:
    """Return body → column (number of joints from the ground); order within a column is from top to bottom."""
    children: dict[int, list[int]] = defaultdict(list)
    for child, parent in parents.items():
        children[parent].append(child)
    columns, stack = {GROUND_NUMBER: 0}, list(reversed(children[GROUND_NUMBER]))
    while stack:
        number = stack.pop()
        columns[number] = columns[parents[number]] + 1
        stack += reversed(children[number])
    return columns


def _place_boxes(
    graph: MechanismGraph,
    parents: Mapping[int, int],
    joints: Sequence[MechanismGraphEdge],
    wires: Sequence[MechanismGraphEdge],
) -> tuple[dict[int, _BodyBox], dict[int, int]]:
    """Return boxes and columns by body: columns leave room for wires and names, children stand below."""
    columns = _assign_columns(parents)
    ends = Counter(number for bond in wires for number in (bond.parent, bond.child))
    crowd, letters = Counter[int](), Counter[int]()
    for number, count in ends.items():
        crowd[columns[number]] += count
    for bond in joints:
        column = columns[bond.child]
        letters[column] = max(letters[column], *(len(text) for text in _joint_texts(bond)))
    lefts, left = {}, _MARGIN
    for column in range(max(columns.values()) + 1):
        left += _JOINT_BEND_WIDTH + 20.0 + _LETTER_WIDTH * letters[column] if column else 0.0
        lefts[column] = left
        left += _BOX_WIDTH + _WIRE_SPACING * (crowd[column] + 1) * bool(crowd[column])
    filled: dict[int, float] = {}
    places: dict[int, _BodyBox] = {}
    for number, column in columns.items():
        height = (
            _HEAD_HEIGHT + 4.0 + max(_ROW_HEIGHT * len(_list_box_rows(graph, number)), _WIRE_SPACING * ends[number])
        )
        above = places[parents[number]].top if number != GROUND_NUMBER else _MARGIN
        top = max(above, filled.get(column, _MARGIN))
        bus = lefts[column] + _BOX_WIDTH + _WIRE_SPACING * (crowd[column] + 1) * bool(crowd[column])
        places[number] = _BodyBox(lefts[column], top, height, bus)
        filled[column] = top + height + _BOX_SPACING
    return places, columns


def _is_ancestor_or_self(parents: Mapping[int, int], number: int, wanted: int) -> bool:
    """Return whether a body lies between another one and the ground, or is that one."""
    while number != wanted and number in parents:
        number = parents[number]
    return number == wanted


def _joint_texts(bond: MechanismGraphEdge) -> tuple[str, str]:
    """Return the texts above and below a joint."""
    return _truncate_text(bond.name, _MAX_JOINT_LETTERS), _truncate_text(
        ", ".join(bond.coordinates), _MAX_JOINT_LETTERS
    )


def _draw_joint(bond: MechanismGraphEdge, a: _BodyBox, b: _BodyBox) -> Iterator[str]:
    """Draw a joint from box a to box b: it bends beside a, and leads straight to b, with name and coordinates there."""
    start, end = a.joint_bend_start, a.joint_bend_start + _JOINT_BEND_WIDTH
    middle = (start + end) / 2
    bend = f"C{middle:.1f} {a.middle:.1f} {middle:.1f} {b.middle:.1f} {end:.1f} {b.middle:.1f}"
    way = f"M{a.right:.1f} {a.middle:.1f}H{start:.1f}{bend}H{b.left:.1f}"
    yield f'<path class="joint" d="{way}"/><circle cx="{b.left:.1f}" cy="{b.middle:.1f}" r="4" class="end"/>'
    name, coordinates = map(escape, _joint_texts(bond))
    if name:
        yield f'<text class="small ends" x="{b.left - 8:.1f}" y="{b.middle - 7:.1f}">{name}</text>'
    if coordinates:
        text = f'y="{b.middle + 17:.1f}" font-style="italic">{coordinates}</text>'
        yield f'<text class="ends" x="{b.left - 8:.1f}" {text}'


def _draw_wires(
    wires: Sequence[MechanismGraphEdge], places: Mapping[int, _BodyBox], columns: Mapping[int, int], low: float
) -> tuple[list[str], list[tuple[float, str]]]:
    """Draw loads and constraints between bodies, each in its own lane below the boxes; return (right end, label)s."""
    lines, labels = [], []
    in_column, at_box = Counter[int](), Counter[int]()
    for lane, bond in enumerate(wires, 1):
        y, turns, stubs = low + _LANE_HEIGHT * lane, [], []
        for number in (bond.parent, bond.child):
            box = places[number]
            in_column[columns[number]] += 1
            at_box[number] += 1
            turns.append(box.right + _WIRE_SPACING * in_column[columns[number]])
            stubs.append((box.right, box.bottom - _WIRE_SPACING * at_box[number] + 1.0))
        (x0, y0), (x1, y1) = stubs
        way = f"M{x0:.1f} {y0:.1f}H{turns[0]:.1f}V{y:.1f}H{turns[1]:.1f}V{y1:.1f}H{x1:.1f}"
        lines.append(f'<path class="{bond.kind}" d="{way}"/>')
        text = _truncate_text(bond.name, _MAX_WIRE_LETTERS)
        length, (first, last) = _LETTER_WIDTH * len(text), sorted(turns)
        x = (first + last - length) / 2 if last - first > length + 20.0 else last + 6.0
        label = f'<text class="of-{bond.kind}" x="{x:.1f}" y="{y - 4:.1f}">{escape(text)}</text>'
        labels.append((x + length, label))
    return lines, labels


def _draw_body_box(graph: MechanismGraph, number: int, box: _BodyBox) -> Iterator[str]:
    """Draw a body, or the ground, as a box with its joints and sensors as rows."""
    kind, name = ("ground", "ground") if number == GROUND_NUMBER else ("body", graph.bodies[number])
    yield (
        f'<rect class="{kind}" x="{box.left:.1f}" y="{box.top:.1f}" width="{_BOX_WIDTH:.0f}" height="{box.height:.1f}" '
        f'rx="5"/><text class="name middle" x="{box.left + _BOX_WIDTH / 2:.1f}" y="{box.top + 18:.1f}">'
        f"{escape(_truncate_text(name, _MAX_BODY_NAME_LETTERS))}</text>"
    )
    for row, (mark, text) in enumerate(_list_box_rows(graph, number)):
        y = box.top + _HEAD_HEIGHT + _ROW_HEIGHT * row + 8
        if mark == "pin":
            yield f'<path class="pin" d="M{box.left + 8:.1f} {y - 5:.1f}l8 4l-8 4z"/>'
        elif mark:
            yield f'<circle class="sensor" cx="{box.left + 12:.1f}" cy="{y - 1:.1f}" r="4"/>'
        yield f'<text x="{box.left + 22:.1f}" y="{y + 3:.1f}">{escape(_truncate_text(text, _MAX_ROW_LETTERS))}</text>'


def _truncate_text(text: str, most: int) -> str:
    """Return a text, cut to so many letters."""
    return text if len(text) <= most else text[: most - 1] + "…"
