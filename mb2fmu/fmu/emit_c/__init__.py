"""C backend: the C99 code of a native FMU.

Input: ``ScalarProgram`` and ``FmuInterface``. Output: ``InMemoryFileTree`` of ``sources/``: the generated model
(``model_config.h``, ``model.c``: tables), the fixed runtime beside it, FMI headers, ``unit.c`` that includes them all,
the equations as translation units of their own (the motion in ``equations.c``, ``equations_1.c``, …; its derivatives in
``derived.c``, …, and what large models seldom evaluate in ``derived_once.c``, …; see ``runtime/equations.h``),
and a CMake file; and the same code as a module for a page, and as a component.

Promises: what C evaluates is the graph, operation by operation; numbers read back to the same bits; functions are of
bounded size; equal input gives equal bytes; warnings of compilers are errors here. Must not decide anything about
variables, and must not change the equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.fmu.emit_c.batch_library_printing import (
        PROCESSOR_PROBE,
        emit_batch_integrator,
        emit_batch_library,
        emit_cpu_feature_probe,
        read_repeated_fmu_run_sources,
    )
    from mb2fmu.fmu.emit_c.fmu_c_sources import (
        FUNCTION_NAMES_HEADER,
        EquationSourceFiles,
        emit_derivative_sources,
        emit_equation_sources,
        emit_fmu_sources,
        is_motion_equation_translation_unit,
        is_rarely_evaluated_translation_unit,
        list_translation_units,
        translation_unit_has_derivatives,
    )
    from mb2fmu.fmu.emit_c.standalone_c_program import StandaloneProgramInputSignals, emit_standalone_c_program
    from mb2fmu.fmu.emit_c.wasm_component_code import WIT_WORLD, emit_wasm_component, emit_wasm_component_manifest
    from mb2fmu.fmu.emit_c.wasm_page_module_sources import emit_wasm_module_sources

__all__ = [
    "FUNCTION_NAMES_HEADER",
    "PROCESSOR_PROBE",
    "WIT_WORLD",
    "EquationSourceFiles",
    "StandaloneProgramInputSignals",
    "emit_batch_integrator",
    "emit_batch_library",
    "emit_cpu_feature_probe",
    "emit_derivative_sources",
    "emit_equation_sources",
    "emit_fmu_sources",
    "emit_standalone_c_program",
    "emit_wasm_component",
    "emit_wasm_component_manifest",
    "emit_wasm_module_sources",
    "is_motion_equation_translation_unit",
    "is_rarely_evaluated_translation_unit",
    "list_translation_units",
    "read_repeated_fmu_run_sources",
    "translation_unit_has_derivatives",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "batch_library_printing": (
            "PROCESSOR_PROBE emit_batch_integrator emit_batch_library emit_cpu_feature_probe "
            "read_repeated_fmu_run_sources"
        ),
        "fmu_c_sources": (
            "FUNCTION_NAMES_HEADER EquationSourceFiles emit_derivative_sources emit_equation_sources "
            "emit_fmu_sources is_motion_equation_translation_unit is_rarely_evaluated_translation_unit "
            "list_translation_units translation_unit_has_derivatives"
        ),
        "standalone_c_program": "StandaloneProgramInputSignals emit_standalone_c_program",
        "wasm_component_code": "WIT_WORLD emit_wasm_component emit_wasm_component_manifest",
        "wasm_page_module_sources": "emit_wasm_module_sources",
    },
)
