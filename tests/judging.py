"""Judges FMUs by what their models do, for tests that plant faults; few instants are enough."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from mechanisms import closed_mechanism_of

from mb2fmu import Model, validation
from mb2fmu.errors import Mb2FmuError
from mb2fmu.mechanics import formulations
from mb2fmu.model import load
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference_and_bounds import make_reference_and_bounds
from mb2fmu.validation.validation_result import ValidationResult


def in_long_steps(path: Path, step: float) -> Model:
    """A model that is looked at every ``step`` s alone: events are found whatever the steps."""
    model = load(path)
    model.default_experiment = dataclasses.replace(model.default_experiment, step=step)
    return model


class Judge:
    """Judges FMUs in their default experiment, those of one model by one yardstick.

    Models are given as functions that make them: the same function, the same yardstick.
    """

    def __init__(self, *, perturb: bool = False) -> None:
        """With ``perturb`` the disturbed motion is judged, too."""
        self._known: dict[Callable[[], Model], tuple] = {}
        self._perturb = perturb

    def _yardstick(self, make: Callable[[], Model]) -> tuple:
        if make not in self._known:
            mechanism = closed_mechanism_of(make())
            equations = formulations.formulate(mechanism, "lagrange")
            stick = make_reference_and_bounds(mechanism.declared, equations, perturb=self._perturb)
            self._known[make] = (mechanism.declared, equations, stick)
        return self._known[make]

    def reference(self, make: Callable[[], Model]) -> ReferenceRun:
        """What units of a model are compared with."""
        return self._yardstick(make)[2].reference

    def result(self, make: Callable[[], Model], unit: Path) -> ValidationResult:
        """The verdict on a unit."""
        definition, equations, stick = self._yardstick(make)
        return validation.validate(
            unit, definition, equations, reference_and_bounds=stick, conformance=False, perturb=self._perturb,
            time_limit=30.0,
        )  # fmt: skip

    def passes(self, make: Callable[[], Model], unit: Path) -> bool:
        """Whether an FMU is right; one that cannot be run to its end is not."""
        try:
            return self.result(make, unit).passed
        except Mb2FmuError:
            return False
