"""Natural magnitudes of switching functions, from a model's numbers: 1 mm is much in a watch, little in a ship.

A switch looks at a surface s(t, x, r, p) whose unit nobody has written down. It is found by changing units: if all
that is measured in metres is twice as large, s is 2^e times as large, and e is the power of the metre in its unit. The
same is done for each base unit; then the natural magnitude of that unit is the size of s. Nothing is said of a surface
that is zero or not finite where it is tried, or whose numbers do not follow any unit (a length compared with a number
in an expression): its size is 1.

Sizes are powers of two, so that dividing by them changes no digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Mb2FmuError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import DeclaredVariable
from mb2fmu.model.scales.characteristic_units import CharacteristicUnits, estimate_characteristic_units
from mb2fmu.units import BASE_UNITS, parse_unit

Floats = npt.NDArray[np.float64]
SwitchingFunctions = Callable[[float, Sequence[float], Sequence[float], Sequence[float]], Sequence[float] | Floats]
"""(t, x, r, free parameters) to the surfaces of all switches."""

_PURE_STATE_VALUES = (
    0.0,
    1.0,
    0.7,
)  # auxiliary states that are pure numbers choose between expressions, of which some are pure
_DIMENSIONLESS_POWERS = np.zeros(len(BASE_UNITS))
_GOLDEN_RATIO = 0.6180339887498949
_POWER_TOLERANCE = 1e-6
_POWER_DENOMINATOR = 12  # powers are whole numbers or halves, thirds, quarters


@dataclass(frozen=True, slots=True)
class _SwitchingFunctionSamplePoint:
    """Time, states, inputs and free parameters at which switching functions are tried, and powers of their units.

    Attributes:
        values: In this order.
        powers: Of each base unit, shape (n, n_b); angles are pure numbers.
        ends: Where time, states and inputs end.
    """

    values: Floats
    powers: Floats
    ends: tuple[int, int, int]

    def evaluate_switching_functions(self, surfaces: SwitchingFunctions, base: int | None = None) -> Floats:
        """Return all switching functions; ``base``: evaluate them with that base unit half as large."""
        factors = 1.0 if base is None else 2.0 ** self.powers[:, base]
        (t,), x, r, p = np.split(self.values * factors, self.ends)
        return np.array(surfaces(float(t), x.tolist(), r.tolist(), p.tolist()), dtype=np.float64)


def estimate_switching_scales(
    definition: DeclaredModelContent, states: Sequence[DeclaredVariable], surfaces: SwitchingFunctions, count: int
) -> tuple[float, ...]:
    """Return the size of each switching function in base units: a power of two > 0; 1 where numbers do not show it.

    Args:
        definition: The checked model: units of inputs and parameters, natural magnitudes.
        states: What the states are, in order.
        surfaces: Evaluates all surfaces.
        count: How many they are.
    """
    natural = estimate_characteristic_units(definition)
    free = [p for p in definition.parameters if not p.calculated]
    units = ["s", *(each.unit for each in (*states, *definition.inputs, *free))]
    powers = np.array([_unit_powers(unit) for unit in units])
    known = [0.0] * (len(units) - len(free)) + [float(p.value) for p in free]
    first = 1 + len(states)
    gates = [
        1 + i for i, state in enumerate(states) if state in definition.auxiliary_states and not powers[1 + i].any()
    ]
    places = [1 + i for i, state in enumerate(states) if state in definition.coordinates]
    starts = [state.start for state in states if state in definition.coordinates]
    known_powers: dict[int, Floats] = {}
    for gate in _PURE_STATE_VALUES:
        values = np.array(
            [
                known[k] or natural.magnitude(unit) * (0.5 + (k + 1) * _GOLDEN_RATIO % 1.0)
                for k, unit in enumerate(units)
            ]
        )
        values[gates] = gate
        ends = (1, first, first + len(definition.inputs))
        found = _function_powers(surfaces, _SwitchingFunctionSamplePoint(values, powers, ends))
        if not found:  # a loop that is not closed there: it is where it starts
            values[places] = starts
            found = _function_powers(surfaces, _SwitchingFunctionSamplePoint(values, powers, ends))
        known_powers |= {
            k: row
            for k, row in enumerate(found)
            if row is not None and not known_powers.get(k, _DIMENSIONLESS_POWERS).any()
        }
    return tuple(_round_to_power_of_two(known_powers.get(k, _DIMENSIONLESS_POWERS), natural) for k in range(count))


def _unit_powers(unit: str) -> list[float]:
    """Return the powers of the base units."""
    pairs = zip(BASE_UNITS, parse_unit(unit).exponents, strict=True)
    return [0.0 if name == "rad" else float(e) for name, e in pairs]


def _function_powers(surfaces: SwitchingFunctions, numbers: _SwitchingFunctionSamplePoint) -> list[Floats | None]:
    """Return the powers of base units of each function; None where not known; empty if undefined there."""
    with np.errstate(all="ignore"):
        try:
            here = numbers.evaluate_switching_functions(surfaces)
            found = np.array(
                [np.log2(numbers.evaluate_switching_functions(surfaces, b) / here) for b in range(len(BASE_UNITS))]
            ).T
        except (ArithmeticError, ValueError, TypeError, Mb2FmuError):
            return []
        off = np.abs(found - np.round(found * _POWER_DENOMINATOR) / _POWER_DENOMINATOR)
    return [row if np.all(far < _POWER_TOLERANCE) else None for row, far in zip(found, off, strict=True)]


def _round_to_power_of_two(powers: Floats, natural: CharacteristicUnits) -> float:
    """Return the natural magnitude of a unit as a power of two."""
    return float(2.0 ** round(float(powers @ np.array(natural.logarithms)) / math.log(2.0)))
