"""``ApiCallSequence``: the calls of one API check, for the driver, with labels of what is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mb2fmu.validation.runs.fmu_run import Operations


@dataclass(frozen=True, slots=True)
class ApiCallSequence:
    """The calls of one API check, in order; those whose recorded values are compared have a label.

    Attributes:
        operations: As the driver takes them: the name of the operation, then its arguments.
        labels: One for each operation; empty where nobody reads its values.
    """

    operations: Operations = ()
    labels: tuple[str, ...] = ()

    def with_operation(self, *operation: Any, label: str = "") -> ApiCallSequence:
        """Return the sequence with one more operation."""
        return ApiCallSequence((*self.operations, list(operation)), (*self.labels, label))

    def label_recorded_values(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return label → recorded values, from the values of all operations."""
        return {label: value for label, value in zip(self.labels, values, strict=True) if label}
