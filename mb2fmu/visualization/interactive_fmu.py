"""An FMU that runs in the page: its module, its settings, and the scene's arithmetic as tables.

``viewer_live.js`` steps the module over the times of the animation; ``viewer_arithmetic.js`` evaluates the tables for
points and rotations, and solves for what they need.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, ScalarProgram, read_initial_discrete_memory
from mb2fmu.model.scalar_operation_table import Op
from mb2fmu.visualization.scene.drawing_records import Drawing
from mb2fmu.visualization.scene.mechanism_scene import Scene

MAX_MODULE_BYTES = 200_000
"""Bytes of a module that a page takes along."""
_SCENE_ENTRY_POINTS = ("points", "rotations", "vectors", "signals", "remember", "residual", "step")


@dataclass(frozen=True, slots=True)
class ParameterSlider:
    """A number that a reader can set.

    Attributes:
        name: FMU name.
        unit: Its unit.
        value: Of the model.
        low, high: Ends of its slider.
        index: Among the states, inputs or parameters.
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    index: int


@dataclass(frozen=True, slots=True)
class BrowserFmuModule:
    """Data with which a page runs an FMU.

    Attributes:
        module: WebAssembly, with the functions of ``web.c``.
        states, inputs, parameters: What can be set; sliders where ``low`` < ``high``.
        n_states, n_inputs, n_parameters: How many there are of each.
        signals: Names of what the module computes: states, then outputs.
    """

    module: bytes
    states: tuple[ParameterSlider, ...]
    inputs: tuple[ParameterSlider, ...]
    parameters: tuple[ParameterSlider, ...]
    n_states: int
    n_inputs: int
    n_parameters: int
    signals: tuple[str, ...]


def make_parameter_slider(
    name: str, unit: str, value: float, bounds: tuple[float | None, float | None], index: int
) -> ParameterSlider:
    """Return a slider about a value: to its bounds if these are near, else from 0 to twice the value (0: ± 1)."""
    low, high = (0.0, 2.0 * value) if value > 0 else (2.0 * value, 0.0) if value < 0 else (-1.0, 1.0)
    if unit == "rad":
        low, high = min(low, -np.pi), max(high, np.pi)
    reach = 10.0 * max(abs(value), 1.0)
    if bounds[0] is not None:
        low = max(low, bounds[0]) if bounds[0] < -reach else bounds[0]
    if bounds[1] is not None:
        high = min(high, bounds[1]) if bounds[1] > reach else bounds[1]
    return ParameterSlider(name, unit, value, float(min(low, value)), float(max(high, value)), index)


def form_interactive_fmu_record(live: BrowserFmuModule, scene: Scene, drawing: Drawing) -> dict[str, Any]:
    """Return the data that ``viewer_live.js`` reads.

    Args:
        live: The FMU.
        scene: What it looks like.
        drawing: Of the same scene: which points and frames its poses are.
    """
    program = scene.program
    return {
        "module": _compress_to_base64(live.module),
        "states": [_form_slider_record(each) for each in live.states],
        "inputs": [_form_slider_record(each) for each in live.inputs],
        "parameters": [_form_slider_record(each) for each in live.parameters],
        "sizes": [live.n_states, live.n_inputs, live.n_parameters],
        "signals": list(live.signals),
        "keys": [list(key) for key in drawing.keys],
        "scene": form_scene_program_tables(program),
    }


def form_scene_program_tables(program: ScalarProgram) -> dict[str, Any]:
    """Return a program as ``viewer_arithmetic.js`` reads it, with the memory to begin with."""
    return {**_form_program_tables(program), "memory": list(read_initial_discrete_memory(program))}


def _form_program_tables(program: ScalarProgram) -> dict[str, Any]:
    """Return a program as lists that the page's own evaluator reads."""
    names = sorted({Op(code).name for code in program.op.tolist()})
    number = {name: k for k, name in enumerate(names)}
    return {
        "names": names,
        "op": [number[Op(code).name] for code in program.op.tolist()],
        "a": program.a.tolist(),
        "b": program.b.tolist(),
        "c": program.c.tolist(),
        "constants": [_format_json_constant(value) for value in program.constants],
        "entries": {
            name: list(program.entries[name].results) for name in _SCENE_ENTRY_POINTS if name in program.entries
        },
        "blocks": [_form_block_record(block) for block in program.blocks],
        "tables": [{"breaks": each.breaks, "coefficients": each.coefficients} for each in program.tables],
        "bodies": [_form_program_tables(body) for body in program.bodies],
    }


def _form_block_record(block: EquationSolveBlock) -> dict[str, Any]:
    """Return what a page solves: names are for messages, which it does not have."""
    return {name: getattr(block, name) for name in ("kind", "size", "operands", "factor", "body", "rank")}


def _format_json_constant(value: float) -> float | str:
    """Return a number, or the word that JavaScript reads as NaN or infinity, which JSON lacks."""
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _form_slider_record(each: ParameterSlider) -> list[Any]:
    """Return a knob as a list: name, unit, value, bounds, place."""
    return [each.name, each.unit, each.value, each.low, each.high, each.index]


def _compress_to_base64(content: bytes) -> str:
    """Return text deflated, in base64; reproducible."""
    return base64.b64encode(zlib.compress(content, 9)).decode()


def format_script_safe_json(record: Any) -> str:
    """Return JSON that cannot end the script element around it."""
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
