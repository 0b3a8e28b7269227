"""Formulations: the equations of motion of a mechanism, by one of several methods.

Input: ``Mechanism``. Output: ``EquationsOfMotion``. Promises: all methods agree wherever they apply, and say where
they do not. Must not: know about programs or FMI; one method must not import another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Method
from mb2fmu.mechanics.formulation_registry import FORMULATIONS
from mb2fmu.mechanics.formulations.constraint_treatment import (
    ConstraintTreatmentPlan,
    TreatmentOption,
    add_stabilization_rate_parameter,
    apply_constraint_treatment,
    plan_constraint_treatment,
)
from mb2fmu.mechanics.formulations.formulation_applicability import FormulationApplicability
from mb2fmu.mechanics.formulations.tmt import form_equations_except_dynamics
from mb2fmu.mechanics.mechanism import Mechanism

__all__ = [
    "ConstraintTreatmentPlan",
    "FormulationApplicability",
    "TreatmentOption",
    "add_stabilization_rate_parameter",
    "apply_constraint_treatment",
    "check_applicability_of_all_formulations",
    "choose_formulation",
    "form_equations_except_dynamics",
    "formulate",
    "plan_constraint_treatment",
]


def _import_functions(name: str) -> dict[Method, Callable[[Mechanism], Any]]:
    """Return the function of this name from the module of each formulation."""
    modules = {row.name: import_module(f"{__name__}.{row.module}") for row in FORMULATIONS}
    return {
        row.name: getattr(modules[row.name], f"{name}_{row.variant}" if row.variant else name) for row in FORMULATIONS
    }


_FORMULATE_BY_METHOD: dict[Method, Callable[[Mechanism], EquationsOfMotion]] = _import_functions("formulate")
_APPLIES_BY_METHOD: dict[Method, Callable[[Mechanism], FormulationApplicability]] = _import_functions(
    "check_applicability"
)


def check_applicability_of_all_formulations(mechanism: Mechanism) -> dict[Method, FormulationApplicability]:
    """Return the answer of each formulation, in the order of preference."""
    return {method: applies(mechanism) for method, applies in _APPLIES_BY_METHOD.items()}


def choose_formulation(mechanism: Mechanism) -> tuple[Method, str]:
    """Return the method that ``auto`` picks, and why.

    Kane's equations written out are the shortest for one or two bodies and grow like the fourth power of their number;
    TMT keeps its named intermediates and stays short.

    Raises:
        FormulationError: If none applies, with every reason.
    """
    answers = check_applicability_of_all_formulations(mechanism)
    if answers["kane"].is_applicable and len(mechanism.bodies) <= 2:
        return "kane", "written out, the equations of one or two bodies are shortest by Kane's method"
    if answers["tmt"].is_applicable:
        return "tmt", "with three bodies or more, TMT's named intermediates keep the equations short"
    if answers["lagrange"].is_applicable:
        return "lagrange", answers["lagrange"].reason
    faults = [Fault(answer.reason, method) for method, answer in answers.items()]
    raise FormulationError("no formulation applies to this mechanism:", faults)


def formulate(
    mechanism: Mechanism,
    method: Literal["auto"] | Method = "auto",
    known: Mapping[Method, FormulationApplicability] | None = None,
) -> EquationsOfMotion:
    """Form the equations of motion.

    Args:
        mechanism: As read.
        method: ``auto``, or one method.
        known: What :func:`check_applicability_of_all_formulations` has returned for this mechanism, if it was called.

    Raises:
        FormulationError: If the method does not apply, saying why, and which others do.
    """
    if method == "auto":
        method = choose_formulation(mechanism)[0]
    if method not in _FORMULATE_BY_METHOD:
        raise FormulationError(
            f"unknown method {method!r}:", [Fault("it is none of " + ", ".join(_FORMULATE_BY_METHOD))]
        )
    answer = known[method] if known else _APPLIES_BY_METHOD[method](mechanism)
    if not answer.is_applicable:
        others = [
            name for name, other in check_applicability_of_all_formulations(mechanism).items() if other.is_applicable
        ]
        remedy = f"use {' or '.join(others)}" if others else ""
        raise FormulationError(f"{method} does not apply to this mechanism:", [Fault(answer.reason, remedy=remedy)])
    return _FORMULATE_BY_METHOD[method](mechanism)
