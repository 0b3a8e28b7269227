"""Errors of events that lead nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.errors import Fault, ValidationError


def make_alternating_switches_error(t: float, what: str, names: Sequence[str]) -> ValidationError:
    """Return switches that alternate: those of the last changes, each once."""
    last = list(dict.fromkeys(reversed(names[-12:])))[:4]
    remedy = "give them hysteresis, or make sure that what one of them sets does not make the other true again"
    fault = Fault(f"at t = {t:.6g} s {what}: {', '.join(last)}", remedy=remedy)
    return ValidationError("the reference cannot be integrated:", [fault])


def make_conflicting_settings_error(t: float, symbol: object, one: str, other: str) -> ValidationError:
    """Return the error of two events that set different values at one instant."""
    what = f"at t = {t:.6g} s the events {one} and {other} set {symbol} to different values at once"
    remedy = "let one of them set it, or say in one condition what holds where both happen"
    return ValidationError("the reference cannot be integrated:", [Fault(what, remedy=remedy)])
