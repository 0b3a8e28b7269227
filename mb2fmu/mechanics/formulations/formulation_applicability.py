"""Answer of a formulation to the question whether it applies to a mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism


@dataclass(frozen=True, slots=True)
class FormulationApplicability:
    """Yes or no, with the reason.

    Attributes:
        is_applicable: Whether the formulation may be used.
        reason: The reason, a clause that ends a sentence.
    """

    is_applicable: bool
    reason: str


def declare_formulation_applicable(reason: str) -> FormulationApplicability:
    """Return that the formulation applies, with the reason."""
    return FormulationApplicability(is_applicable=True, reason=reason)


def declare_formulation_inapplicable(reason: str) -> FormulationApplicability:
    """Return that the formulation does not apply, with the reason."""
    return FormulationApplicability(is_applicable=False, reason=reason)


def check_projection_applicability(mechanism: Mechanism) -> FormulationApplicability:
    """Return the answer of the methods that project Newton's and Euler's equations on partial velocities."""
    if mechanism.is_lagrangian_only:
        return declare_formulation_inapplicable("a Lagrangian alone has no bodies whose velocities could be projected")
    return declare_formulation_applicable("it needs nothing but the velocities of the bodies")
