"""Errors that a running FMU can raise."""

from __future__ import annotations


class UndefinedValueError(ArithmeticError):
    """The equations have no finite value here: a singular matrix, a root of a negative number, an overflow."""


class StepError(ArithmeticError):
    """A communication step cannot be made; the FMU's state is restored to that before it."""


class RefusedError(ValueError):
    """A call that the standard does not allow, or with meaningless values."""
