"""Errors of events that lead nowhere."""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.errors import Fault, ValidationError


def make_alternating_switches_error(t: float, problem: str, names: Sequence[str]) -> ValidationError:
    """Return the error of switches that alternate; it names those of the last changes, each once."""
    last = list(dict.fromkeys(reversed(names[-12:])))[:4]
    remedy = "give them hysteresis, or make sure that what one of them sets does not make the other true again"
    fault = Fault(f"at t = {t:.6g} s {problem}: {', '.join(last)}", remedy=remedy)
    return ValidationError("the reference cannot be integrated:", [fault])


def make_conflicting_events_error(t: float, symbol: object, first_event: str, second_event: str) -> ValidationError:
    """Return the error of two events that set different values at one instant."""
    message = f"at t = {t:.6g} s the events {first_event} and {second_event} set {symbol} to different values at once"
    remedy = "let one of them set it, or say in one condition what holds where both happen"
    return ValidationError("the reference cannot be integrated:", [Fault(message, remedy=remedy)])
