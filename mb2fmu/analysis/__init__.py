"""Analysis of a mechanism and its motion without any FMU.

Input: ``EquationsOfMotion`` and their ``ScalarProgram``. Output: ``Linearization``, ``RootLocus``, ``Sensitivities``.
Promises: derivatives are exact (of the program, not by differences); what is linearized is the motion on the
constraints. Must not: know FMI, form equations, or print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.analysis.linearization import Linearization, linearize
    from mb2fmu.analysis.linearization_with_dry_friction import OperatingPointLinearizer
    from mb2fmu.analysis.nominal_values import add_nominal_values
    from mb2fmu.analysis.operating_point import OperatingPoint, SteadyMotionKind
    from mb2fmu.analysis.operating_point_start import OperatingPointStart, make_operating_point_start
    from mb2fmu.analysis.right_hand_side_accuracy import RightHandSideAccuracy, compute_right_hand_side_accuracy
    from mb2fmu.analysis.root_locus import RootLocus, StabilityCrossing, compute_root_locus
    from mb2fmu.analysis.sensitivity_request import (
        SensitivityRequest,
        make_experiment_input_signals,
        make_sensitivity_request,
    )
    from mb2fmu.analysis.trajectory_sensitivities import Sensitivities, compute_sensitivities
    from mb2fmu.analysis.zero_order_hold_inputs import ZeroOrderHoldInputs

__all__ = [
    "Linearization",
    "OperatingPoint",
    "OperatingPointLinearizer",
    "OperatingPointStart",
    "RightHandSideAccuracy",
    "RootLocus",
    "Sensitivities",
    "SensitivityRequest",
    "StabilityCrossing",
    "SteadyMotionKind",
    "ZeroOrderHoldInputs",
    "add_nominal_values",
    "compute_right_hand_side_accuracy",
    "compute_root_locus",
    "compute_sensitivities",
    "linearize",
    "make_experiment_input_signals",
    "make_operating_point_start",
    "make_sensitivity_request",
]

__getattr__ = import_on_first_use(
    __name__,
    {
        "linearization": "Linearization linearize",
        "nominal_values": "add_nominal_values",
        "right_hand_side_accuracy": "RightHandSideAccuracy compute_right_hand_side_accuracy",
        "operating_point": "OperatingPoint SteadyMotionKind",
        "linearization_with_dry_friction": "OperatingPointLinearizer",
        "operating_point_start": "OperatingPointStart make_operating_point_start",
        "root_locus": "RootLocus StabilityCrossing compute_root_locus",
        "sensitivity_request": "SensitivityRequest make_experiment_input_signals make_sensitivity_request",
        "trajectory_sensitivities": "Sensitivities compute_sensitivities",
        "zero_order_hold_inputs": "ZeroOrderHoldInputs",
    },
)
