"""Switches that never changed in any experiment: what lies on their other side was not tried.

A limit of a controller that is never reached, a stop that nothing touches, a condition that never comes true: the FMU
could have anything there, and would pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import sympy as sm

from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.validation.modes.event_names import list_switch_names
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid

if TYPE_CHECKING:
    from mb2fmu.validation.modes.equations_between_events import EquationsBetweenEvents, ReferenceSwitch
    from mb2fmu.validation.reference.reference_run import ReferenceRun


def find_untested_switches(references: Sequence[ReferenceRun]) -> tuple[str, ...]:
    """Return the switches with one mode in all experiments, and which.

    Contacts are left out, whose events show it, and what time alone brings: a later stop would bring it.

    Args:
        references: Of the experiments, of one model.
    """
    modes_by_name: dict[str, set[str]] = {}
    for reference in references:
        numeric = reference.numeric
        if not is_hybrid(numeric) or not reference.modes:
            return ()
        frozen = numeric.frozen
        motion_modes = _find_moving_switch_modes(frozen)
        for k, (switch, name) in enumerate(zip(frozen.switches, list_switch_names(frozen), strict=True)):
            if name == switch.name and switch.symbol in motion_modes:
                modes_by_name.setdefault(name, set()).update(
                    describe_switch_mode(switch, mode) for mode in _iterate_modes(reference, k)
                )
    return tuple(
        f"{name}: {next(iter(mode_words))} all the time"
        for name, mode_words in modes_by_name.items()
        if len(mode_words) == 1
    )


def _find_moving_switch_modes(frozen: EquationsBetweenEvents) -> set[sm.Symbol]:
    """Return the modes of switches that look at more than time and parameters."""
    e = frozen.equations
    constant_symbols = {e.t, *e.p, *(c.symbol for c in e.calculated_parameters)}
    for switch in frozen.switches:  # inner ones come first
        if switch.surface.free_symbols <= constant_symbols:
            constant_symbols.add(switch.symbol)
    return {switch.symbol for switch in frozen.switches} - constant_symbols


def _iterate_modes(reference: ReferenceRun, k: int) -> Iterator[float]:
    """Yield the modes of a switch at all points and beside all events."""
    yield from (float(modes.values[k]) for modes in reference.modes)
    for event in reference.events:
        yield from (event.before[k], event.after[k])


def describe_switch_mode(switch: ReferenceSwitch, mode: float) -> str:
    """Return the word of a mode: of a comparison whether it is true, of a sign which it is, else the number."""
    if switch.kind == "truth":
        return switch.words[mode > MODE_THRESHOLD]
    if switch.kind == "sign":
        return "held" if mode == 0.0 else "positive" if mode > 0.0 else "negative"
    return f"{mode:g}"
