"""Places of a system's boxes: columns in the direction of the values."""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.systems.master.evaluation_order import find_strongly_connected_components
from mb2fmu.systems.resolved_system import SystemWiring

LEAST_WIDTH, ROW, HEAD, GAP = 190.0, 19.0, 30.0, 130.0
MARGIN = 40.0
LETTER = 7.0
"""Room for a letter of a connector's name, as wide as fonts of its size have on average at most."""

BETWEEN = 40.0
"""From a box's edges to the names, and between an input's name and an output's."""

MOST_SHOWN = 8
"""Connectors drawn at one side of a box; further ones that nothing is connected with are counted."""


@dataclass(frozen=True, slots=True)
class ComponentBox:
    """One component in the picture, y downward.

    Attributes:
        left: Edges, in units of the drawing.
        top: …
        right: …
        bottom: …
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
        return self.top + HEAD + ROW * (self.inputs.index(index) + 0.5)

    def output_height(self, index: int) -> float:
        """Return y of an output's connector."""
        return self.top + HEAD + ROW * (self.outputs.index(index) + 0.5)


def place_component_boxes(wiring: SystemWiring) -> tuple[ComponentBox, ...]:
    """Return the places of all components."""
    count = range(len(wiring.components))
    feeds: dict[int, set[int]] = {k: set() for k in count}
    for link in wiring.links:
        feeds[wiring.inputs[link.target].component].add(wiring.outputs[link.source].component)
    column: dict[int, int] = {}
    drawn = {k: (wiring.inputs_of(k), _drawn_outputs(wiring, k)) for k in count}
    for part in find_strongly_connected_components(count, feeds):
        start = 1 + max((column[k] for each in part for k in feeds[each] if k in column), default=-1)
        for step, each in enumerate(part):
            column[each] = start + step
    lefts, right = {}, MARGIN
    for number in range(1 + max(column.values(), default=0)):
        lefts[number] = right
        right += GAP + max((_width(wiring, *drawn[k]) for k in count if column[k] == number), default=LEAST_WIDTH)
    heights: dict[int, float] = {}
    found = {}
    for k in sorted(count, key=lambda each: (column[each], each)):
        inputs, outputs = drawn[k]
        left = lefts[column[k]]
        top = heights.get(column[k], MARGIN)
        bottom = top + HEAD + ROW * max(len(inputs), len(outputs), 1) + 8.0
        heights[column[k]] = bottom + MARGIN
        found[k] = ComponentBox(left, top, left + _width(wiring, inputs, outputs), bottom, inputs, outputs)
    return tuple(found[k] for k in count)


def _drawn_outputs(wiring: SystemWiring, component: int) -> tuple[int, ...]:
    """Return the outputs drawn at a component: connected ones first, then others as far as there is room."""
    every = wiring.outputs_of(component)
    used = tuple(dict.fromkeys(link.source for link in wiring.links if link.source in every))
    others = tuple(j for j in every if j not in used)
    return (*used, *others[: max(0, MOST_SHOWN - len(used))])


def _width(wiring: SystemWiring, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> float:
    """Return a width at which no input's name meets an output's in any row."""
    sides = ([wiring.inputs[i] for i in inputs], [wiring.outputs[j] for j in outputs])
    letters = sum(max((len(f"{port.name} {port.unit}") for port in ports), default=0) for ports in sides)
    return max(LEAST_WIDTH, BETWEEN + LETTER * letters)
