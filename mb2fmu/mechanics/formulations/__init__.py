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
from mb2fmu.mechanics.formulation_table import METHODS
from mb2fmu.mechanics.formulations.applicability import Applies
from mb2fmu.mechanics.formulations.constraint_treatment import Constraints, Plan, plan, treat, with_rate
from mb2fmu.mechanics.formulations.tmt import formulate_motion
from mb2fmu.mechanics.mechanism import Mechanism

__all__ = [
    "Applies",
    "Constraints",
    "Plan",
    "applicable",
    "choose",
    "formulate",
    "formulate_motion",
    "plan",
    "treat",
    "with_rate",
]


def _functions(name: str) -> dict[Method, Callable[[Mechanism], Any]]:
    """Return the function of this name from the module of each formulation."""
    modules = {row.name: import_module(f"{__name__}.{row.module}") for row in METHODS}
    return {row.name: getattr(modules[row.name], f"{name}_{row.variant}" if row.variant else name) for row in METHODS}


_FORMULATE: dict[Method, Callable[[Mechanism], EquationsOfMotion]] = _functions("formulate")
_APPLIES: dict[Method, Callable[[Mechanism], Applies]] = _functions("applies")


def applicable(mechanism: Mechanism) -> dict[Method, Applies]:
    """Return the answer of each formulation, in the order of preference."""
    return {method: applies(mechanism) for method, applies in _APPLIES.items()}


def choose(mechanism: Mechanism) -> tuple[Method, str]:
    """Return the method that ``auto`` picks, and why.

    Kane's equations written out are the shortest for one or two bodies and grow like the fourth power of their number;
    TMT keeps its named intermediates and stays short.

    Raises:
        FormulationError: If none applies, with every reason.
    """
    answers = applicable(mechanism)
    if answers["kane"].yes and len(mechanism.bodies) <= 2:
        return "kane", "written out, the equations of one or two bodies are shortest by Kane's method"
    if answers["tmt"].yes:
        return "tmt", "with three bodies or more, TMT's named intermediates keep the equations short"
    if answers["lagrange"].yes:
        return "lagrange", answers["lagrange"].because
    faults = [Fault(answer.because, method) for method, answer in answers.items()]
    raise FormulationError("no formulation applies to this mechanism:", faults)


def formulate(
    mechanism: Mechanism, method: Literal["auto"] | Method = "auto", known: Mapping[Method, Applies] | None = None
) -> EquationsOfMotion:
    """Form the equations of motion.

    Args:
        mechanism: As read.
        method: ``auto``, or one method.
        known: What :func:`applicable` has said of this mechanism, where it has been asked.

    Raises:
        FormulationError: If the method does not apply, saying why, and which others do.
    """
    if method == "auto":
        method = choose(mechanism)[0]
    if method not in _FORMULATE:
        raise FormulationError(f"unknown method {method!r}:", [Fault("it is none of " + ", ".join(_FORMULATE))])
    answer = known[method] if known else _APPLIES[method](mechanism)
    if not answer.yes:
        others = [name for name, other in applicable(mechanism).items() if other.yes]
        remedy = f"use {' or '.join(others)}" if others else ""
        raise FormulationError(f"{method} does not apply to this mechanism:", [Fault(answer.because, remedy=remedy)])
    return _FORMULATE[method](mechanism)
