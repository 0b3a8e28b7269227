"""C backend: the C99 code of a native unit.

Input: ``Program`` and ``FmuInterface``. Output: ``FileTree`` of ``sources/``: the generated model (``model_config.h``,
``model.c``: tables), the fixed runtime beside it, FMI headers, ``unit.c`` that includes them all, the equations as
translation units of their own (the motion in ``equations.c``, ``equations_1.c``, …; its derivatives in
``derived.c``, …, and what large models seldom evaluate in ``derived_once.c``, …; see ``runtime/equations.h``),
and a CMake file; and the same code as a module for a page, and as a component.

Promises: what C evaluates is the graph, operation by operation; numbers read back to the same bits; functions are of
bounded size; equal input gives equal bytes; warnings of compilers are errors here. Must not decide anything about
variables, and must not change the equations.
"""

from mb2fmu.fmu.emit_c.batch_printing import PROBE, emit_batch, emit_ensemble, emit_probe, unit_runs
from mb2fmu.fmu.emit_c.component_module import WORLD, component_manifest, emit_component
from mb2fmu.fmu.emit_c.fmu_sources import (
    NAMES,
    Motion,
    emit,
    emit_derivatives,
    emit_motion,
    is_derived,
    is_motion,
    is_seldom,
    translation_units,
)
from mb2fmu.fmu.emit_c.standalone_program import HeldInputs, emit_standalone
from mb2fmu.fmu.emit_c.web_module import emit_web

__all__ = [
    "NAMES",
    "PROBE",
    "WORLD",
    "HeldInputs",
    "Motion",
    "component_manifest",
    "emit",
    "emit_batch",
    "emit_component",
    "emit_derivatives",
    "emit_ensemble",
    "emit_motion",
    "emit_probe",
    "emit_standalone",
    "emit_web",
    "is_derived",
    "is_motion",
    "is_seldom",
    "translation_units",
    "unit_runs",
]
