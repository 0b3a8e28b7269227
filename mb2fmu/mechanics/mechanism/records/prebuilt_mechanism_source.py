"""``ReadyMadeMechanismSource``: a mechanism made from another one, given as records, such as a part of a cut system."""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics


@dataclass(eq=False, kw_only=True)
class ReadyMadeMechanismSource(RecordBasedMechanics):
    """A mechanics source whose mechanism is complete: it is not read from SymPy objects or a robot file.

    Attributes:
        mechanism: The complete mechanism, with outputs.
    """

    mechanism: Mechanism
