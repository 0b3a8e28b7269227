"""The answer of a formulation to the question whether it applies to a mechanism."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Applies:
    """Yes, or no; and why.

    Attributes:
        yes: Whether the formulation may be used.
        because: The reason, a clause that ends a sentence.
    """

    yes: bool
    because: str


def applies_because(reason: str) -> Applies:
    """Yes."""
    return Applies(yes=True, because=reason)


def not_because(reason: str) -> Applies:
    """No."""
    return Applies(yes=False, because=reason)
