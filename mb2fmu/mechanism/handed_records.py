"""``HandedRecords``: a mechanism that is there as records already, made from another one, as the parts of a cut are."""

from __future__ import annotations

from dataclasses import dataclass

from mb2fmu.mechanism.records import Mechanism
from mb2fmu.model.recorded import RecordedMechanics


@dataclass(eq=False, kw_only=True)
class HandedRecords(RecordedMechanics):
    """Mechanics whose reading is the record itself.

    Attributes:
        mechanism: With everything that is asked of it.
    """

    mechanism: Mechanism
