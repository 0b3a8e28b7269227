"""Answer of a formulation to the question whether it applies to a mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism


@dataclass(frozen=True, slots=True)
class Applies:
    """Yes or no, with the reason.

    Attributes:
        yes: Whether the formulation may be used.
        because: The reason, a clause that ends a sentence.
    """

    yes: bool
    because: str


def applies_because(reason: str) -> Applies:
    """Return that the formulation applies, with the reason."""
    return Applies(yes=True, because=reason)


def not_because(reason: str) -> Applies:
    """Return that the formulation does not apply, with the reason."""
    return Applies(yes=False, because=reason)


def by_projection(mechanism: Mechanism) -> Applies:
    """Return the answer of the methods that project Newton's and Euler's equations on partial velocities."""
    if mechanism.lagrangian_alone:
        return not_because("a Lagrangian alone has no bodies whose velocities could be projected")
    return applies_because("it needs nothing but the velocities of the bodies")
