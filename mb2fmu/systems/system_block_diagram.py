"""The picture of a system: boxes, signals between them, and units of measure; SVG."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import escape

from mb2fmu.systems.block_diagram_layout import BOX_MARGIN, DiagramComponentBox, place_block_diagram_boxes
from mb2fmu.systems.port_and_bond_records import SystemWiring

_STYLE_SHEET = (
    "text{font:12px system-ui,sans-serif;fill:#1a2230;paint-order:stroke;stroke:#f5f7fa;stroke-width:3px}"
    ".name{font-weight:600;font-size:14px}.unit{fill:#5a6577;font-size:11px}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.box{fill:#f5f7fa;stroke:#1a2230;stroke-width:1.2}.pin{fill:#1f5fbf}.free{fill:#9aa5b5}"
    ".through{stroke:#b0413e;stroke-width:1;stroke-dasharray:3 3;fill:none}"
    ".wire{fill:none;stroke:#1f5fbf;stroke-width:1.6}"
)
_ARROW_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#1f5fbf"/></marker></defs>'
)
_LANE_SPACING = 16.0
_PICTURE_PADDING = 4.0
_FACTOR_LETTER_WIDTH = 6.5
"""Width of a letter of a factor."""


def draw_system_block_diagram(wiring: SystemWiring, title: str) -> str:
    """Return the picture as an SVG document.

    Args:
        wiring: The system.
        title: Title for screen readers.
    """
    boxes = place_block_diagram_boxes(wiring)
    parts = [f"<style>{_STYLE_SHEET}</style>", _ARROW_TIP]
    lowest_bottom = max(box.bottom for box in boxes)
    left, right = 0.0, max(box.right for box in boxes) + BOX_MARGIN
    lane = 0
    for link in wiring.links:
        source, target = wiring.outputs[link.source], wiring.inputs[link.target]
        source_box, target_box = boxes[source.component], boxes[target.component]
        start, end = (
            (source_box.right, source_box.output_height(link.source)),
            (target_box.left, target_box.input_height(link.target)),
        )
        if _is_backward(wiring, boxes, link.source, link.target):
            lane += 1
            parts.append(_draw_backward_wire(start, end, lowest_bottom + _LANE_SPACING * lane, lane))
            left, right = (
                min(left, end[0] - _wire_overhang(lane) - _PICTURE_PADDING),
                max(right, start[0] + _wire_overhang(lane) + _PICTURE_PADDING),
            )
        else:
            middle = (start[0] + end[0]) / 2.0
            curve = f"M{start[0]:.1f} {start[1]:.1f}C{middle:.1f} {start[1]:.1f} {middle:.1f} {end[1]:.1f}"
            parts.append(f'<path class="wire" d="{curve} {end[0] - 1:.1f} {end[1]:.1f}" marker-end="url(#tip)"/>')
        if (link.factor, link.offset) != (1.0, 0.0):
            text = f"× {link.factor:.4g}" + (f" + {link.offset:.4g}" if link.offset else "")
            parts.append(f'<text class="unit end" x="{end[0] - 12:.1f}" y="{end[1] - 5:.1f}">{escape(text)}</text>')
            left = min(left, end[0] - 12.0 - _FACTOR_LETTER_WIDTH * len(text) - _PICTURE_PADDING)
    for component, box in enumerate(boxes):
        parts += _draw_component(wiring, component, box)
    width, height = right - left, lowest_bottom + BOX_MARGIN + _LANE_SPACING * lane
    size = f'viewBox="{left:.0f} 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    shrinks = f"width:100%;min-width:{0.7 * width:.0f}px;max-width:{width:.0f}px;height:auto"  # below that it scrolls
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{shrinks}" role="img"><title>{escape(title)}</title>'
    return "".join([head, *parts, "</svg>\n"])


def _is_backward(wiring: SystemWiring, boxes: tuple[DiagramComponentBox, ...], source: int, target: int) -> bool:
    """Return whether a connection runs from right to left."""
    return boxes[wiring.inputs[target].component].left <= boxes[wiring.outputs[source].component].left


def _wire_overhang(lane: int) -> float:
    """Return how far a backward wire extends beside the boxes."""
    return 10.0 + 6.0 * lane


def _draw_backward_wire(start: tuple[float, float], end: tuple[float, float], lane_height: float, lane: int) -> str:
    """Return a wire that leads back below all boxes."""
    right_turn, left_turn = start[0] + _wire_overhang(lane), end[0] - _wire_overhang(lane)
    path = (
        f"M{start[0]:.1f} {start[1]:.1f}H{right_turn:.1f}V{lane_height:.1f}"
        f"H{left_turn:.1f}V{end[1]:.1f}H{end[0] - 1:.1f}"
    )
    return f'<path class="wire" d="{path}" marker-end="url(#tip)"/>'


def _draw_component(wiring: SystemWiring, component: int, box: DiagramComponentBox) -> Iterator[str]:
    """Yield the SVG of a component: frame, name, pins with units, and lines of feedthrough."""
    yield (
        f'<rect class="box" x="{box.left:.1f}" y="{box.top:.1f}" width="{box.right - box.left:.1f}" '
        f'height="{box.bottom - box.top:.1f}" rx="6"/>'
        f'<text class="name middle" x="{(box.left + box.right) / 2:.1f}" y="{box.top + 20:.1f}">'
        f"{escape(wiring.components[component])}</text>"
    )
    linked_outputs = {link.source for link in wiring.links}
    for input_index, output_index in sorted(wiring.feedthrough):
        if input_index in box.inputs and output_index in box.outputs and output_index in linked_outputs:
            start, end = box.input_height(input_index), box.output_height(output_index)
            yield f'<path class="through" d="M{box.left:.1f} {start:.1f}L{box.right:.1f} {end:.1f}"/>'
    for input_index in box.inputs:
        y = box.input_height(input_index)
        yield f'<circle class="pin" cx="{box.left:.1f}" cy="{y:.1f}" r="3"/>'
        port = wiring.inputs[input_index]
        yield f'<text x="{box.left + 8:.1f}" y="{y + 4:.1f}">{_format_port_label(port.name, port.unit)}</text>'
    for output_index in box.outputs:
        y, port = box.output_height(output_index), wiring.outputs[output_index]
        pin_class = "pin" if output_index in linked_outputs else "free"
        yield f'<circle class="{pin_class}" cx="{box.right:.1f}" cy="{y:.1f}" r="3"/>'
        label = _format_port_label(port.name, port.unit)
        yield f'<text class="end" x="{box.right - 8:.1f}" y="{y + 4:.1f}">{label}</text>'


def _format_port_label(name: str, unit: str) -> str:
    """Return a name with its unit as SVG text; "1" is not shown."""
    unit_text = f' <tspan class="unit">{escape(unit)}</tspan>' if unit and unit != "1" else ""
    return f"{escape(name)}{unit_text}"
