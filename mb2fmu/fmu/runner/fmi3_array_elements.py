"""Read and set elements of FMI 3.0 arrays as if each had its own value reference.

Such a reference is a number above all value references, which have 32 bits: that of the array, and which element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_REFERENCE_BITS = 32


def encode_array_element_reference(array: int, place: int) -> int:
    """Return the reference of an element, counted from 0, of the array with that value reference."""
    return (place + 1 << _REFERENCE_BITS) + array


@dataclass(frozen=True, slots=True)
class Fmi3ArrayElementMap:
    """References, and the variables of the FMU that hold their values.

    Attributes:
        references: Of scalars and whole arrays, each once unless it was named twice by itself.
        size: Values that these have together.
        places: Of each reference that was requested, its value among them.
    """

    references: tuple[int, ...]
    size: int
    places: tuple[int, ...]

    def select_elements(self, values: Sequence[float]) -> list[float]:
        """Return the requested values, from those of the variables."""
        return [values[place] for place in self.places]

    def merge_variable_values(self, given: Sequence[float], others: Sequence[float] | None = None) -> list[float]:
        """Return values of the variables, some of them given; the rest are ``others``, or 0."""
        values = [0.0] * self.size if others is None else list(others)
        for place, value in zip(self.places, given, strict=True):
            values[place] = value
        return values


def locate_array_elements(references: Sequence[int], sizes: Mapping[int, int]) -> Fmi3ArrayElementMap | None:
    """Return the places of array elements; None if all are scalars.

    Args:
        references: Value references of scalars, and of :func:`encode_array_element_reference`.
        sizes: Elements of each array, by its value reference.
    """
    if all(reference < 1 << _REFERENCE_BITS for reference in references):
        return None
    begin: dict[int, int] = {}
    places, size, variables = [], 0, []
    for reference in references:
        variable, which = reference & (1 << _REFERENCE_BITS) - 1, reference >> _REFERENCE_BITS
        if not which or variable not in begin:
            begin[variable] = size
            variables.append(variable)
            size += sizes[variable] if which else 1
        places.append(begin[variable] + max(0, which - 1))
    return Fmi3ArrayElementMap(tuple(variables), size, tuple(places))
