"""Plans to read variables of several types by one call each, made once per list."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mb2fmu.audit.description.description_records import DescribedModel, DescribedVariable

MAX_READ_PLANS = 200
"""Plans of a library that are kept for further reads of the same variables."""


def value_reference_array(variables: Sequence[DescribedVariable]) -> Any:
    """Return value references as an array for the FMU."""
    references = [variable.reference or 0 for variable in variables]
    return (c.c_uint * max(len(references), 1))(*references)


@dataclass(frozen=True, slots=True)
class VariableGroup:
    """Variables of one type, in the order of a call.

    Attributes:
        variables: The variables.
        positions: Position of each variable in the list that is read.
        sizes: Number of values of each; None if all are scalars.
        references: Value references.
        total: Number of values.
    """

    variables: Sequence[DescribedVariable]
    positions: Sequence[int]
    sizes: Sequence[int] | None
    references: Any
    total: int

    @classmethod
    def of(
        cls, description: DescribedModel, variables: Sequence[DescribedVariable], positions: Sequence[int]
    ) -> VariableGroup:
        """Prepare one call.

        Args:
            description: Gives the sizes of arrays.
            variables: Of one type.
            positions: Position of each variable in the list that is read.
        """
        all_scalar = not any(variable.dimensions for variable in variables)
        sizes = None if all_scalar else [description.size(variable) for variable in variables]
        return cls(
            variables,
            positions,
            sizes,
            value_reference_array(variables),
            len(variables) if sizes is None else sum(sizes),
        )

    def split_values(self, values: Sequence[Any]) -> Iterator[Any]:
        """Yield the values of each variable, those of an array as a tuple."""
        if self.sizes is None:
            yield from values
            return
        position = 0
        for variable, size in zip(self.variables, self.sizes, strict=True):
            yield tuple(values[position : position + size]) if variable.dimensions else values[position]
            position += size


class GroupedReadPlan:
    """A list of variables, grouped by their types.

    Args:
        description: Gives the sizes of arrays.
        variables: In the order in which their values are wanted.
    """

    def __init__(self, description: DescribedModel, variables: Sequence[DescribedVariable]) -> None:
        self._kept_alive = description, tuple(variables)  # while plans are found by their identities
        order = sorted(
            range(len(variables)), key=lambda position: (variables[position].type, variables[position].index)
        )
        positions_by_type: dict[str, list[int]] = {}
        for position in order:
            positions_by_type.setdefault(variables[position].type, []).append(position)
        self.groups = [
            VariableGroup.of(description, [variables[position] for position in positions], positions)
            for positions in positions_by_type.values()
        ]
