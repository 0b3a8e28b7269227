"""Plans to read variables of several types by one call each, made once per list."""

from __future__ import annotations

import ctypes as c
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mb2fmu.audit.description.description_records import DescribedModel, DescribedVariable

WORTH_A_PLAN = 16
"""Variables from which on it is worth to keep how they are read."""


def value_reference_array(variables: Sequence[DescribedVariable]) -> Any:
    """Return value references as an array for the FMU."""
    listed = [each.reference or 0 for each in variables]
    return (c.c_uint * max(len(listed), 1))(*listed)


@dataclass(frozen=True, slots=True)
class VariableGroup:
    """Variables of one type, in the order of a call.

    Attributes:
        variables: They.
        places: Of each in the list that is read.
        sizes: Number of values of each; None if all are scalars.
        references: Value references.
        total: Number of values.
    """

    variables: Sequence[DescribedVariable]
    places: Sequence[int]
    sizes: Sequence[int] | None
    references: Any
    total: int

    @classmethod
    def of(
        cls, description: DescribedModel, variables: Sequence[DescribedVariable], places: Sequence[int]
    ) -> VariableGroup:
        """Prepare one call.

        Args:
            description: Sizes arrays.
            variables: Of one type.
            places: Of each in the list that is read.
        """
        scalar = not any(each.dimensions for each in variables)
        sizes = None if scalar else [description.size(each) for each in variables]
        return cls(
            variables, places, sizes, value_reference_array(variables), len(variables) if sizes is None else sum(sizes)
        )

    def divided(self, values: Sequence[Any]) -> Iterator[Any]:
        """Yield the values of each variable, those of an array as a tuple."""
        if self.sizes is None:
            yield from values
            return
        position = 0
        for each, size in zip(self.variables, self.sizes, strict=True):
            yield tuple(values[position : position + size]) if each.dimensions else values[position]
            position += size


class GroupedReadPlan:
    """A list of variables, grouped by their types.

    Args:
        description: Sizes arrays.
        variables: In the order in which their values are wanted.
    """

    def __init__(self, description: DescribedModel, variables: Sequence[DescribedVariable]) -> None:
        self._variables = tuple(variables)
        order = sorted(range(len(variables)), key=lambda k: (variables[k].type, variables[k].index))
        kinds: dict[str, list[int]] = {}
        for k in order:
            kinds.setdefault(variables[k].type, []).append(k)
        self.groups = [
            VariableGroup.of(description, [variables[k] for k in places], places) for places in kinds.values()
        ]

    def fits(self, variables: Sequence[DescribedVariable]) -> bool:
        """Return whether it was made for these very variables."""
        return len(variables) == len(self._variables) and all(map(operator.is_, variables, self._variables))
