"""What can go wrong while a unit runs."""

from __future__ import annotations


class UndefinedError(ArithmeticError):
    """The equations have no finite value here: a singular matrix, a root of a negative number, an overflow."""


class StepError(ArithmeticError):
    """A communication step cannot be made. The unit's state is then as it was before."""


class RefusedError(ValueError):
    """A call that the standard does not allow, or with values that make no sense."""
