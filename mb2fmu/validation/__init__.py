"""Validation: run a ``.fmu`` against equations of another formulation, and return a ``ValidationResult``.

Input: an FMU, the checked ``DeclaredModelContent`` (names, start values, experiment), and ``EquationsOfMotion`` that
the FMU was not made from. Output: ``ValidationResult``: every variable's error against its bound, invariants, findings
of checkers, the verdict.

Promises: the reference shares nothing with the FMU beyond the model (SymPy's expressions, compiled apart: see
``compiled``; never the Program), and its own uncertainty is measured; bounds are formulas (``comparison``) that depend
on the measured sensitivity; what cannot be judged does not pass; the FMU runs in a process of its own.

Must not: derive, lower or emit anything, change the FMU, or loosen a bound because an FMU misses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.audit.external_checkers import ExternalCheckerFinding, run_external_checkers
    from mb2fmu.validation.data.measured_data_comparison import (
        MeasuredDataRunSettings,
        MeasuredTableComparison,
        compare_derivatives_at_table_points,
        compare_fmu_with_measurements,
    )
    from mb2fmu.validation.data.validation_data_tables import (
        ValidationDataTable,
        ValidationDataTolerance,
        read_validation_table,
    )
    from mb2fmu.validation.flexible_body_limitations import list_flexible_body_limitations
    from mb2fmu.validation.fmu_validation import choose_reference_formulation, validate
    from mb2fmu.validation.independent_checks import IndependentCheck, IndependentChecks, run_independent_checks
    from mb2fmu.validation.reference.experiment_values import ExperimentValues, form_experiment_values
    from mb2fmu.validation.reference.reference_run import (
        ReferenceRun,
        make_reference,
    )
    from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth
    from mb2fmu.validation.reference.trajectory_records import Trajectory
    from mb2fmu.validation.reference_and_bounds import ReferenceAndBounds, make_reference_and_bounds
    from mb2fmu.validation.reference_equations.newton_euler import (
        can_integrate_newton_euler_reference,
        is_too_large_for_symbols,
    )
    from mb2fmu.validation.runs.fmu_run import FmuSimulationResult, simulate_fmu
    from mb2fmu.validation.validation_result import (
        ApiCallFamilyResult,
        ExercisedQuantityResult,
        InterfaceTypeResult,
        InvariantResult,
        PerturbedExperimentResult,
        PerturbedExperimentValue,
        ValidationResult,
        VariableResult,
    )

__all__ = [
    "ApiCallFamilyResult",
    "ExercisedQuantityResult",
    "ExperimentValues",
    "ExternalCheckerFinding",
    "FmuSimulationResult",
    "IndependentCheck",
    "IndependentChecks",
    "InterfaceTypeResult",
    "InvariantResult",
    "MeasuredDataRunSettings",
    "MeasuredTableComparison",
    "PerturbedExperimentResult",
    "PerturbedExperimentValue",
    "ReferenceAndBounds",
    "ReferenceRun",
    "Trajectory",
    "ValidationDataTable",
    "ValidationDataTolerance",
    "ValidationResult",
    "VariableResult",
    "can_integrate_newton_euler_reference",
    "choose_reference_formulation",
    "compare_derivatives_at_table_points",
    "compare_fmu_with_measurements",
    "form_experiment_values",
    "is_too_large_for_symbols",
    "list_flexible_body_limitations",
    "make_reference",
    "make_reference_and_bounds",
    "measure_start_error_growth",
    "read_validation_table",
    "run_external_checkers",
    "run_independent_checks",
    "simulate_fmu",
    "validate",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "mb2fmu.audit.external_checkers": "ExternalCheckerFinding run_external_checkers",
        "data.measured_data_comparison": (
            "MeasuredDataRunSettings MeasuredTableComparison compare_derivatives_at_table_points "
            "compare_fmu_with_measurements"
        ),
        "data.validation_data_tables": "ValidationDataTable ValidationDataTolerance read_validation_table",
        "flexible_body_limitations": "list_flexible_body_limitations",
        "independent_checks": "IndependentCheck IndependentChecks run_independent_checks",
        "reference.experiment_values": "ExperimentValues form_experiment_values",
        "reference.reference_run": "ReferenceRun make_reference",
        "reference.start_error_growth": "measure_start_error_growth",
        "reference.trajectory_records": "Trajectory",
        "reference_equations.newton_euler": "can_integrate_newton_euler_reference is_too_large_for_symbols",
        "runs.fmu_run": "FmuSimulationResult simulate_fmu",
        "fmu_validation": "choose_reference_formulation validate",
        "reference_and_bounds": "ReferenceAndBounds make_reference_and_bounds",
        "validation_result": (
            "ApiCallFamilyResult ExercisedQuantityResult InterfaceTypeResult InvariantResult PerturbedExperimentResult "
            "PerturbedExperimentValue ValidationResult VariableResult"
        ),
    },
)
