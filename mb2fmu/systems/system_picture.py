"""The picture of a system: boxes, signals between them, and units of measure; SVG."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import escape

from mb2fmu.systems.resolved_system import SystemWiring
from mb2fmu.systems.system_layout import MARGIN, ComponentBox, place_component_boxes

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1a2230;paint-order:stroke;stroke:#f5f7fa;stroke-width:3px}"
    ".name{font-weight:600;font-size:14px}.unit{fill:#5a6577;font-size:11px}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.box{fill:#f5f7fa;stroke:#1a2230;stroke-width:1.2}.pin{fill:#1f5fbf}.free{fill:#9aa5b5}"
    ".through{stroke:#b0413e;stroke-width:1;stroke-dasharray:3 3;fill:none}"
    ".wire{fill:none;stroke:#1f5fbf;stroke-width:1.6}"
)
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#1f5fbf"/></marker></defs>'
)
_DROP = 16.0
_EDGE = 4.0
_LETTER = 6.5
"""Width of a letter of a factor."""


def draw_system_picture(wiring: SystemWiring, title: str) -> str:
    """Return the picture as an SVG document.

    Args:
        wiring: The system.
        title: For those who do not see it.
    """
    places = place_component_boxes(wiring)
    parts = [f"<style>{_STYLE}</style>", _TIP]
    lowest = max(box.bottom for box in places)
    left, right = 0.0, max(box.right for box in places) + MARGIN
    lane = 0
    for link in wiring.links:
        source, target = wiring.outputs[link.source], wiring.inputs[link.target]
        a, b = places[source.component], places[target.component]
        start, end = (a.right, a.output_height(link.source)), (b.left, b.input_height(link.target))
        if _is_backward(wiring, places, link.source, link.target):
            lane += 1
            parts.append(_around(start, end, lowest + _DROP * lane, lane))
            left, right = min(left, end[0] - _aside(lane) - _EDGE), max(right, start[0] + _aside(lane) + _EDGE)
        else:
            middle = (start[0] + end[0]) / 2.0
            way = f"M{start[0]:.1f} {start[1]:.1f}C{middle:.1f} {start[1]:.1f} {middle:.1f} {end[1]:.1f}"
            parts.append(f'<path class="wire" d="{way} {end[0] - 1:.1f} {end[1]:.1f}" marker-end="url(#tip)"/>')
        if (link.factor, link.offset) != (1.0, 0.0):
            text = f"× {link.factor:.4g}" + (f" + {link.offset:.4g}" if link.offset else "")
            parts.append(f'<text class="FMU end" x="{end[0] - 12:.1f}" y="{end[1] - 5:.1f}">{escape(text)}</text>')
            left = min(left, end[0] - 12.0 - _LETTER * len(text) - _EDGE)
    for k, box in enumerate(places):
        parts += _box(wiring, k, box)
    width, height = right - left, lowest + MARGIN + _DROP * lane
    size = f'viewBox="{left:.0f} 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    shrinks = f"width:100%;min-width:{0.7 * width:.0f}px;max-width:{width:.0f}px;height:auto"  # below that it scrolls
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{shrinks}" role="img"><title>{escape(title)}</title>'
    return "".join([head, *parts, "</svg>\n"])


def _is_backward(wiring: SystemWiring, places: tuple[ComponentBox, ...], source: int, target: int) -> bool:
    """Return whether a connection runs from right to left."""
    return places[wiring.inputs[target].component].left <= places[wiring.outputs[source].component].left


def _aside(lane: int) -> float:
    """Return how far beside the boxes a wire goes that goes back."""
    return 10.0 + 6.0 * lane


def _around(start: tuple[float, float], end: tuple[float, float], low: float, lane: int) -> str:
    """Return a wire that goes back below all boxes."""
    out, back = start[0] + _aside(lane), end[0] - _aside(lane)
    way = f"M{start[0]:.1f} {start[1]:.1f}H{out:.1f}V{low:.1f}H{back:.1f}V{end[1]:.1f}H{end[0] - 1:.1f}"
    return f'<path class="wire" d="{way}" marker-end="url(#tip)"/>'


def _box(wiring: SystemWiring, k: int, box: ComponentBox) -> Iterator[str]:
    """Yield the SVG of a component: frame, name, pins with units, and lines where inputs pass straight through."""
    yield (
        f'<rect class="box" x="{box.left:.1f}" y="{box.top:.1f}" width="{box.right - box.left:.1f}" '
        f'height="{box.bottom - box.top:.1f}" rx="6"/>'
        f'<text class="name middle" x="{(box.left + box.right) / 2:.1f}" y="{box.top + 20:.1f}">'
        f"{escape(wiring.components[k])}</text>"
    )
    used = {link.source for link in wiring.links}
    for i, j in sorted(wiring.feedthrough):
        if i in box.inputs and j in box.outputs and j in used:
            start, end = box.input_height(i), box.output_height(j)
            yield f'<path class="through" d="M{box.left:.1f} {start:.1f}L{box.right:.1f} {end:.1f}"/>'
    for i in box.inputs:
        y = box.input_height(i)
        yield f'<circle class="pin" cx="{box.left:.1f}" cy="{y:.1f}" r="3"/>'
        port = wiring.inputs[i]
        yield f'<text x="{box.left + 8:.1f}" y="{y + 4:.1f}">{_label(port.name, port.unit)}</text>'
    for j in box.outputs:
        y, port = box.output_height(j), wiring.outputs[j]
        yield f'<circle class="{"pin" if j in used else "free"}" cx="{box.right:.1f}" cy="{y:.1f}" r="3"/>'
        yield f'<text class="end" x="{box.right - 8:.1f}" y="{y + 4:.1f}">{_label(port.name, port.unit)}</text>'


def _label(name: str, unit: str) -> str:
    """Return a name with its unit as SVG text; "1" is not shown."""
    shown = f' <tspan class="unit">{escape(unit)}</tspan>' if unit and unit != "1" else ""
    return f"{escape(name)}{shown}"
