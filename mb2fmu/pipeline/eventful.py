"""Models whose motion x' alone does not tell: events, contacts, friction that sticks."""

from __future__ import annotations

from mb2fmu import switching
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.pipeline.outcomes import Derivation


def needs_events(derivation: Derivation) -> bool:
    """Whether x' alone cannot tell the motion: events of the model's own, contacts, friction that sticks."""
    if derivation.mechanism.has_own_events:
        return True
    frozen = switching.freeze(derivation.program)
    return any(switch.kind == "sticking" for switch in switching.switches_of(frozen))


def refuse_events(derivation: Derivation, what: str) -> None:
    """Refuses what integrates x' across events as if there were none.

    Args:
        derivation: Of the model.
        what: Cannot be done, for the message: "parameters cannot be found".

    Raises:
        AnalysisError: If the model needs events.
    """
    if needs_events(derivation):
        why = "it has events, contacts or friction that sticks"
        remedy = "simulate it with several values: mb2fmu.simulate runs its unit, which knows events"
        raise AnalysisError(f"{what}:", [Fault(why, derivation.definition.name, remedy)])
