"""Natural units of a model: typical length, mass, time and other base units, estimated from its own numbers.

A parameter of 0.3 m, a start value of 2 m/s, a gravity of 9.81 m/s2 and an experiment of 10 s say how large lengths,
times and speeds are in a model. Every such number v with the unit Π b^e_b (b: kg, m, s, A, K, mol, cd) requires

    Σ_b e_b log n_b = log |v|          (v in base units)

of the natural units n_b. Together these equations are solved in the sense of least squares, with less weight on those
that are more than a factor of ten off (Huber's weights: a start value of 1e-17 is a zero with round-off), and of least
norm where they leave a base unit open. So the natural magnitude of a quantity is about the geometric mean of what the
model says of its kind, and follows every change of units exactly: with all lengths a million times larger, n_m is, and
nothing else changes. The radian is a pure number, and the natural magnitude of an angle is 1 rad.

Start values that are guesses say nothing: they are solved for.

They are for what has no magnitude of its own: what stands still, and what is not integrated yet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, DeclaredVariable, Input, Speed
from mb2fmu.units import BASE_UNITS, parse_unit

Floats = npt.NDArray[np.float64]

DEFAULT_ATTRACTOR_RATE = 10
"""Per second, or per ms, ks, … for fast or slow motions (:func:`choose_stabilization_rate`): so fast that the errors of
an integrator hardly add up across the constraints, so slow that no explicit method needs steps below 0.3 s for it.
"""
_REFERENCE_TIME_S = 0.1
"""Of a second: the natural time to which it belongs."""

_ANGLE_INDEX = BASE_UNITS.index("rad")
_OUTLIER_LOGARITHM = math.log(10.0)  # of a logarithm: what is farther off counts in inverse proportion
_MAX_ITERATIONS = 100
_CONVERGENCE_TOLERANCE = 1e-12
_RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class CharacteristicUnits:
    """Natural units of a model.

    Attributes:
        logarithms: Natural logarithm of each natural unit in base units, in the order of ``units.BASE_UNITS``.
    """

    logarithms: tuple[float, ...]

    def magnitude(self, unit: str) -> float:
        """Return the natural magnitude of quantities measured in ``unit``, in that unit, > 0.

        Raises:
            ValueError: If it is no unit.
        """
        parsed = parse_unit(unit)
        exponent = sum(e * log for e, log in zip(parsed.exponents, self.logarithms, strict=True))
        return math.exp(exponent) / parsed.factor

    def typical(self, quantity: DeclaredVariable) -> float:
        """Return the ``nominal`` of a quantity; otherwise the natural magnitude of its unit."""
        return quantity.nominal if quantity.nominal is not None else self.magnitude(quantity.unit)


def estimate_characteristic_units(
    definition: DeclaredModelContent, further: Iterable[tuple[float, str]] = ()
) -> CharacteristicUnits:
    """Estimate the natural units of a model.

    Args:
        definition: Values of free parameters, start values, nominals, communication step and stop time are used.
        further: More numbers of the model and their units, such as the largest values of its inputs.
    """
    rows, right = [], []
    for value, unit in (*_declared_numbers(definition), *further):
        parsed = parse_unit(unit)
        powers = tuple(0.0 if i == _ANGLE_INDEX else float(e) for i, e in enumerate(parsed.exponents))
        size = abs(parsed.factor * value)
        if any(powers) and 0.0 < size < math.inf:
            rows.append(powers)
            right.append(math.log(size))
    if not rows:
        return CharacteristicUnits((0.0,) * len(BASE_UNITS))
    return CharacteristicUnits(_fit_logarithms(tuple(rows), tuple(right)))


def typical_motion_magnitudes(definition: DeclaredModelContent) -> tuple[float, ...]:
    """Return the typical magnitude of each coordinate of a model, then of each speed."""
    natural = estimate_characteristic_units(definition)
    return tuple(natural.typical(item) for item in (*definition.coordinates, *definition.speeds))


@lru_cache(64)  # the units of one model are asked for by each part of a derivation and of a validation
def _fit_logarithms(powers: tuple[tuple[float, ...], ...], logarithms: tuple[float, ...]) -> tuple[float, ...]:
    """Return n with ``powers`` n ≈ ``logarithms``: Huber's estimate by iteratively reweighted least squares."""
    rows, right = np.array(powers, dtype=float), np.array(logarithms)

    def solved(weights: Floats) -> Floats:
        """Solve by weighted least squares of least norm."""
        return np.asarray(
            np.linalg.lstsq(rows * weights[:, None], right * weights, rcond=_RANK_TOLERANCE)[0], dtype=np.float64
        )

    found = solved(np.ones(len(rows)))
    for _ in range(_MAX_ITERATIONS):
        off = np.abs(rows @ found - right)
        weights = np.sqrt(np.minimum(1.0, _OUTLIER_LOGARITHM / np.maximum(off, _OUTLIER_LOGARITHM)))
        last, found = found, solved(weights)
        if np.max(np.abs(found - last)) <= _CONVERGENCE_TOLERANCE:
            break
    return tuple(found.tolist())


def _declared_numbers(definition: DeclaredModelContent) -> Iterable[tuple[float, str]]:
    """Yield the numbers of a model with their units, zeros included."""
    d = definition
    yield d.experiment.stop, "s"
    yield d.experiment.step, "s"
    for parameter in d.parameters:
        if not parameter.calculated:
            yield float(parameter.value), parameter.unit
    started: tuple[Input | Coordinate | Speed | AuxiliaryState, ...] = (
        *d.inputs,
        *d.coordinates,
        *d.speeds,
        *d.auxiliary_states,
    )
    for item in started:
        if getattr(item, "kind", "fixed") == "fixed":
            yield float(item.start), item.unit
        if item.nominal is not None:
            yield item.nominal, item.unit


def choose_stabilization_rate(definition: DeclaredModelContent) -> float:
    """Return how fast states off the constraints are drawn back by default, in 1/s.

    ``DEFAULT_ATTRACTOR_RATE`` per s, ms, ks, …, whichever suits the model's natural time: from 3 ms to 3 s per s.
    """
    natural = estimate_characteristic_units(definition).magnitude("s")
    return float(DEFAULT_ATTRACTOR_RATE) * float(f"1e{-3 * round(math.log10(natural / _REFERENCE_TIME_S) / 3)}")
