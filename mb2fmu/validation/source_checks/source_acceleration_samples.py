"""Sample x' at random admissible points, from a source of equations that are not the FMU's.

There are two sources: the user's own SymPy objects (``source_accelerations``), and a robot's file that is imported
independently (``independent_import.independent_robot_accelerations``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Speed
from mb2fmu.validation.source_checks.fmu_run_laws_of_motion_check import LawError
from mb2fmu.validation.source_checks.random_admissible_points import RandomAdmissibleState

INDEPENDENT_IMPORT = "independent import"
"""Method of a robot: its file, read again by others' code."""
RANDOM_POINT_COUNT = 24
ROUND_OFF_FRACTION = 4096 * float(np.finfo(float).eps)
"""A bound is so large a part of a term's size: see docs/explanation/validation.md."""
_TRIES_PER_POINT = 20
"""Times as many points are drawn at most: not all of them can be evaluated, or close the loops."""

ImportDifferences = dict[str, tuple[float, float]]
"""By quantity: (error, bound)."""
ImportDifferencesAtTime = tuple[float, ImportDifferences]
"""Time and differences."""


@dataclass(frozen=True, slots=True)
class AccelerationSample:
    """Motion of the user's object at one admissible point.

    Attributes:
        point: Where.
        rates: By method (``equations``, ``kinematics``) the derivatives of q, u and z by FMU name.
        bounds: How far an FMU may be off, by FMU name of the state.
        differences: Differences of the import, by quantity: (error, bound).
        outputs: (value, bound) of outputs, by FMU name, as far as the objects give them.
        terms: By FMU name of the state the size of what its derivative is left of.
        states: By FMU name.
    """

    point: RandomAdmissibleState
    rates: dict[str, dict[str, float]]
    bounds: dict[str, float]
    differences: ImportDifferences = field(default_factory=dict)
    outputs: dict[str, tuple[float, float]] = field(default_factory=dict)
    terms: dict[str, float] = field(default_factory=dict)
    states: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SympySourceAccelerationSamples:
    """The samples, how they were made, and the reasons for missing ones.

    Attributes:
        samples: At most :data:`RANDOM_POINT_COUNT`.
        starts: FMU name → number of the slot, of everything that an FMU is set to.
        inputs: The same of the inputs.
        missing: Method → why it was not used.
        methods: Methods by which x' is computed, the most independent first.
        events: Comparison of the imported events with the model's own expressions: (error over bound, quantity and
            time).
        left_out: Quantities of events that could not be compared.
        latched_import_differences: (time, differences of the import) at points where a latch is closed, as
            :class:`AccelerationSample` has it: there the objects give no x', but their velocities, energy and forces.
        laws: By law: (error over bound, quantity and time) of the FMU's own runs.
        indefinite_points: How many points were drawn again, since the objects' own mass matrix is indefinite there.
    """

    samples: tuple[AccelerationSample, ...]
    starts: dict[str, int]
    inputs: dict[str, int]
    missing: dict[str, str]
    methods: tuple[str, ...] = ("equations", "kinematics")
    events: tuple[tuple[float, str], ...] = ()
    left_out: tuple[str, ...] = ()
    latched_import_differences: tuple[ImportDifferencesAtTime, ...] = ()
    laws: tuple[tuple[str, tuple[LawError, ...]], ...] = ()
    indefinite_points: int = 0


class IndependentAccelerationSource(Protocol):
    """Equations of motion, as numbers at points that they draw themselves."""

    def draw_points(self) -> Iterator[RandomAdmissibleState | None]:
        """Yield random points; None where one that was drawn does not meet the constraints."""
        ...

    def sample_points(self, points: Sequence[RandomAdmissibleState]) -> Iterator[AccelerationSample]:
        """Yield x' at each point, with bounds, unless it is not known well enough to compare with it."""
        ...


def draw_acceleration_samples(source: IndependentAccelerationSource) -> tuple[AccelerationSample, ...]:
    """Return samples of a source: at most :data:`RANDOM_POINT_COUNT`, of a limited number of tries."""
    samples: list[AccelerationSample] = []
    points = itertools.islice(source.draw_points(), _TRIES_PER_POINT * RANDOM_POINT_COUNT)
    while drawn := list(itertools.islice(points, RANDOM_POINT_COUNT - len(samples))):
        samples += source.sample_points([point for point in drawn if point is not None])
    return tuple(samples)


def list_settable_slots(definition: CheckedModel, slot: Mapping[Any, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return FMU name → slot of free parameters and states, and the same of the inputs.

    Args:
        definition: The checked model.
        slot: Symbol → its place among the values of a point.
    """
    free = [p for p in definition.parameters if not p.calculated]
    states: list[Coordinate | Speed | AuxiliaryState] = [
        *definition.coordinates, *definition.speeds, *definition.auxiliary_states,
    ]  # fmt: skip
    starts = {p.name: slot[p.symbol] for p in free} | {item.name: slot[item.symbol] for item in states}
    return starts, {r.name: slot[r.symbol] for r in definition.inputs}
