"""Positions of a system's component boxes: columns in the direction of data flow."""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.systems.master.input_evaluation_order import find_strongly_connected_components
from mb2fmu.systems.port_and_bond_records import SystemWiring

MIN_BOX_WIDTH, ROW_HEIGHT, HEADER_HEIGHT, COLUMN_GAP = 190.0, 19.0, 30.0, 130.0
BOX_MARGIN = 40.0
LETTER_WIDTH = 7.0
"""Room for a letter of a connector's name, as wide as fonts of its size have on average at most."""

LABEL_PADDING = 40.0
"""From a box's edges to the names, and between an input's name and an output's."""

MAX_DRAWN_OUTPUTS = 8
"""Connectors drawn at one side of a box; further ones that nothing is connected with are counted."""


@dataclass(frozen=True, slots=True)
class DiagramComponentBox:
    """One component in the picture, y downward.

    Attributes:
        left: Left edge, in units of the drawing.
        top: Top edge.
        right: Right edge.
        bottom: Bottom edge.
        inputs: Connected inputs (indices into the wiring's), from top to bottom.
        outputs: Outputs drawn, connected ones first.
    """

    left: float
    top: float
    right: float
    bottom: float
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def input_height(self, index: int) -> float:
        """Return y of an input's connector."""
        return self.top + HEADER_HEIGHT + ROW_HEIGHT * (self.inputs.index(index) + 0.5)

    def output_height(self, index: int) -> float:
        """Return y of an output's connector."""
        return self.top + HEADER_HEIGHT + ROW_HEIGHT * (self.outputs.index(index) + 0.5)


def place_block_diagram_boxes(wiring: SystemWiring) -> tuple[DiagramComponentBox, ...]:
    """Return the boxes of all components."""
    count = range(len(wiring.components))
    feeding_components: dict[int, set[int]] = {component: set() for component in count}
    for link in wiring.links:
        feeding_components[wiring.inputs[link.target].component].add(wiring.outputs[link.source].component)
    column: dict[int, int] = {}
    drawn_ports = {
        component: (wiring.inputs_of(component), _select_drawn_outputs(wiring, component)) for component in count
    }
    for loop_components in find_strongly_connected_components(count, feeding_components):
        first_column = 1 + max(
            (
                column[component]
                for member in loop_components
                for component in feeding_components[member]
                if component in column
            ),
            default=-1,
        )
        for offset, member in enumerate(loop_components):
            column[member] = first_column + offset
    column_left, next_left = {}, BOX_MARGIN
    for column_number in range(1 + max(column.values(), default=0)):
        column_left[column_number] = next_left
        next_left += COLUMN_GAP + max(
            (
                _compute_box_width(wiring, *drawn_ports[component])
                for component in count
                if column[component] == column_number
            ),
            default=MIN_BOX_WIDTH,
        )
    column_bottom: dict[int, float] = {}
    boxes = {}
    for component in sorted(count, key=lambda each: (column[each], each)):
        inputs, outputs = drawn_ports[component]
        left = column_left[column[component]]
        top = column_bottom.get(column[component], BOX_MARGIN)
        bottom = top + HEADER_HEIGHT + ROW_HEIGHT * max(len(inputs), len(outputs), 1) + 8.0
        column_bottom[column[component]] = bottom + BOX_MARGIN
        boxes[component] = DiagramComponentBox(
            left, top, left + _compute_box_width(wiring, inputs, outputs), bottom, inputs, outputs
        )
    return tuple(boxes[component] for component in count)


def _select_drawn_outputs(wiring: SystemWiring, component: int) -> tuple[int, ...]:
    """Return the outputs drawn at a component: connected ones first, then others as far as there is room."""
    all_outputs = wiring.outputs_of(component)
    linked_outputs = tuple(dict.fromkeys(link.source for link in wiring.links if link.source in all_outputs))
    other_outputs = tuple(output for output in all_outputs if output not in linked_outputs)
    return (*linked_outputs, *other_outputs[: max(0, MAX_DRAWN_OUTPUTS - len(linked_outputs))])


def _compute_box_width(wiring: SystemWiring, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> float:
    """Return a width at which names of inputs and outputs do not overlap."""
    port_sides = (
        [wiring.inputs[input_index] for input_index in inputs],
        [wiring.outputs[output_index] for output_index in outputs],
    )
    letter_count = sum(max((len(f"{port.name} {port.unit}") for port in ports), default=0) for ports in port_sides)
    return max(MIN_BOX_WIDTH, LABEL_PADDING + LETTER_WIDTH * letter_count)
