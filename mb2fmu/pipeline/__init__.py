"""The pipeline: the only place that composes stages.

Input: a model, or the file that has its function, and options (``formulation_and_build_options``). Output: frozen
records (``pipeline_results``).

Promises: every function returns a frozen record with all intermediates, each made once; showing equations or a program
is a print. Time is read (``stage_stopwatch``) for the observer and for the page beside the FMU only; it never enters an
FMU.

Must not: derive, lower, print, judge or draw by itself; the stages do.
"""

# The way of the data: records, function, module.
#
#   Path → Model → DeclaredModelContent → Mechanism
#        → EquationsOfMotion → Program                                       derive      model_derivation
#        → Linearization, Sensitivities                                      linearize   linearization_and_sensitivities
#        → TheoryQuantities, graph                                           quantities  model_graph_and_theory
#        → FmuInterface → InMemoryFileTree (sources, description, binaries) → core   build       fmu_assembly
#        → .fmu                                                              export      fmu_and_report_publication
#        → ValidationResult                                                  validate    validation_run
#        → report → .fmu with its report                                     run         report_pages

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use
from mb2fmu.fmu.package.atomic_publishing import write_file_atomically as write
from mb2fmu.mechanics.equations import notebook_display_registry

if TYPE_CHECKING:
    from mb2fmu.pipeline.derivation.formulation_and_build_options import BuildOptions, ExportOptions, FormulationOptions
    from mb2fmu.pipeline.derivation.model_derivation import derive
    from mb2fmu.pipeline.derivation.pipeline_results import (
        DerivationResult,
        ExportResult,
        FmuBuildResult,
        RunResult,
        StageObserver,
        StageTime,
        ValidationOutcome,
    )
    from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide
    from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import right_hand_side, start_values
    from mb2fmu.pipeline.display.mechanism_animation import animate
    from mb2fmu.pipeline.fmu_build.fmu_assembly import build
    from mb2fmu.pipeline.fmu_build.target_source_export import export_target_source_code
    from mb2fmu.pipeline.run_and_report.model_export_and_run import export, run
    from mb2fmu.pipeline.run_and_report.model_graph_and_theory import draw_model_graph, quantities
    from mb2fmu.pipeline.run_and_report.report_pages import render_validation_report
    from mb2fmu.pipeline.run_and_report.validation_run import compare_with_data, validate
    from mb2fmu.pipeline.simulation.model_right_hand_side import Model, load, rhs
    from mb2fmu.pipeline.simulation.model_simulation import simulate
    from mb2fmu.pipeline.simulation.simulation_trajectories import FmuSimulation, ModelSimulation
    from mb2fmu.pipeline.study_runs.linearization_and_sensitivities import linearize, sensitivities, sweep

__getattr__ = import_on_first_use(
    __name__,
    {
        "derivation.formulation_and_build_options": "BuildOptions ExportOptions FormulationOptions",
        "derivation.model_derivation": "derive",
        "derivation.pipeline_results": (
            "DerivationResult ExportResult FmuBuildResult RunResult StageObserver StageTime ValidationOutcome"
        ),
        "derivation.right_hand_side": "RightHandSide",
        "derivation.right_hand_side_of_derivation": "right_hand_side start_values",
        "display.mechanism_animation": "animate",
        "fmu_build.fmu_assembly": "build",
        "fmu_build.target_source_export": "export_target_source_code",
        "run_and_report.model_export_and_run": "export run",
        "run_and_report.model_graph_and_theory": "draw_model_graph quantities",
        "run_and_report.report_pages": "render_validation_report",
        "run_and_report.validation_run": "compare_with_data validate",
        "simulation.model_right_hand_side": "Model load rhs",
        "simulation.model_simulation": "simulate",
        "simulation.simulation_trajectories": "FmuSimulation ModelSimulation",
        "study_runs.linearization_and_sensitivities": "linearize sensitivities sweep",
    },
)
notebook_display_registry.import_on_first_display("mb2fmu.pipeline.run_and_report.notebook_displays")

__all__ = [
    "BuildOptions", "DerivationResult", "ExportOptions", "ExportResult", "FmuBuildResult", "FmuSimulation",
    "FormulationOptions", "Model", "ModelSimulation", "RightHandSide", "RunResult", "StageObserver", "StageTime",
    "ValidationOutcome", "animate", "build", "compare_with_data", "derive", "draw_model_graph", "export",
    "export_target_source_code", "linearize", "load", "quantities", "render_validation_report", "rhs",
    "right_hand_side", "run", "sensitivities", "simulate", "start_values", "sweep", "validate", "write",
]  # fmt: skip
