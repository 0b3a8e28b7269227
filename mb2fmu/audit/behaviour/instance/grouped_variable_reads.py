"""Plans to read variables of several types by one call each, made once per list."""

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from mb2fmu.audit.description.description_records import DescribedModel, DescribedVariable

MAX_READ_PLANS = 1000
"""Plans of a library that are kept for further reads of the same variables."""


def make_value_reference_array(variables: Sequence[DescribedVariable]) -> Any:
    """Return value references as an array for the FMU."""
    return make_argument_array(c.c_uint, [variable.reference or 0 for variable in variables])


def make_argument_array(element_type: Any, elements: Sequence[Any]) -> Any:
    """Return values as a ctypes array with room for one at least; a slice takes a third of the time of arguments."""
    array = (element_type * max(len(elements), 1))()
    array[: len(elements)] = elements
    return array


@dataclass(frozen=True, slots=True)
class SameTypeVariableGroup:
    """Variables of one type, in the order of a call.

    Attributes:
        variables: The variables.
        sizes: Number of values of each; None if all are scalars.
        references: Value references.
        total: Number of values.
    """

    variables: Sequence[DescribedVariable]
    sizes: Sequence[int] | None
    references: Any
    total: int

    @classmethod
    def of(cls, description: DescribedModel, variables: Sequence[DescribedVariable]) -> SameTypeVariableGroup:
        """Prepare one call.

        Args:
            description: Gives the sizes of arrays.
            variables: Of one type.
        """
        all_scalar = not any(variable.dimensions for variable in variables)
        sizes = None if all_scalar else [description.size(variable) for variable in variables]
        return cls(
            variables,
            sizes,
            make_value_reference_array(variables),
            len(variables) if sizes is None else sum(sizes),
        )

    def split_values(self, values: list[Any]) -> list[Any]:
        """Return the value of each variable, that of an array as a tuple."""
        if self.sizes is None:
            return values
        ends = accumulate(self.sizes)
        return [
            tuple(values[end - size : end]) if variable.dimensions else values[end - size]
            for variable, size, end in zip(self.variables, self.sizes, ends, strict=True)
        ]


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
        self.groups = [
            SameTypeVariableGroup.of(description, list(group))
            for _, group in groupby((variables[position] for position in order), key=lambda variable: variable.type)
        ]
        places = sorted(range(len(order)), key=order.__getitem__)
        self._places = None if places == [*range(len(order))] else places

    def arrange(self, values: list[Any]) -> list[Any]:
        """Return the values of all groups, one after another, in the order in which they are wanted."""
        return values if self._places is None else [values[place] for place in self._places]
