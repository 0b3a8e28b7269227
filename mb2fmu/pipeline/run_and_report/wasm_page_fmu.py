"""The FMU for a page: compiled for WebAssembly, with its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mb2fmu.pipeline.derivation.pipeline_results import FmuBuildResult
    from mb2fmu.visualization.interactive_fmu import BrowserFmuModule, ParameterSlider


def build_wasm_page_fmu(built: FmuBuildResult) -> BrowserFmuModule | None:
    """Return the FMU as a page runs it.

    Args:
        built: An FMU of ours.

    Returns:
        None for FMUs of Python, where there is no compiler for WebAssembly, or where the module
        is too large for a page (``animation.live.LARGEST``).

    Raises:
        ToolError: If the compiler fails.
    """
    from mb2fmu.fmu import emit_c, toolchain
    from mb2fmu.visualization.interactive_fmu import MAX_MODULE_BYTES, BrowserFmuModule, make_parameter_slider

    described, program = built.interface, built.derivation.program_with_modes
    if built.printed is None:
        return None
    module = toolchain.compile_wasm_module(
        emit_c.emit_wasm_module_sources(built.sources, program, described, built.printed)
    )
    if module is None or len(module) > MAX_MODULE_BYTES:
        return None

    def knobs(source: str) -> tuple[ParameterSlider, ...]:
        found = sorted((v for v in described.variables if v.source == source), key=lambda v: v.index)
        return tuple(
            make_parameter_slider(v.name, v.unit, float(v.start or 0.0), (v.minimum, v.maximum), v.index) for v in found
        )

    states, inputs, parameters = knobs("state"), knobs("input"), knobs("parameter")
    outputs = (v for v in described.variables if v.causality == "output")
    levels = ("position", "velocity", "acceleration")
    names = (*(each.name for each in states), *(v.name for v in outputs if v.source in levels))
    return BrowserFmuModule(module, states, inputs, parameters, len(states), len(inputs), len(parameters), names)
