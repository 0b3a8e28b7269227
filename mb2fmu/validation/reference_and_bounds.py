"""Reference and bounds that judge all FMUs of one model, at the default and at the perturbed experiment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.errors import ValidationError
from mb2fmu.validation.comparison.motion_comparison import (
    MIN_JUDGED_POINTS,
    ErrorBounds,
    compute_error_bounds,
)
from mb2fmu.validation.experiment.exercised_quantities import NEGLIGIBLE_RATIO, find_exercised_quantities
from mb2fmu.validation.experiment.perturbed_experiment import (
    PerturbedExperiment,
    extract_first_message_line,
    list_perturbed_experiments,
    make_missing_perturbed_experiment_record,
)
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.reference.first_integrals_along_run import (
    FirstIntegralsAlongRun,
    find_first_integrals,
)
from mb2fmu.validation.reference.reference_run import ReferenceRun, make_reference
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth
from mb2fmu.validation.validation_result import (
    ExercisedQuantityResult,
)

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
    from mb2fmu.mechanics.mechanism import Mechanism
    from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent

_MAX_PERTURBED_REFERENCES = 14
"""Perturbed experiments that are integrated as a reference, at most: each costs as much as the default one."""

_TIGHTER = 0.1
"""Part of the tolerance at which a run as Co-Simulation that failed is made again, to name its cause."""


@dataclass(frozen=True, slots=True)
class PerturbedReferenceAndBounds:
    """Data that judge FMUs in the perturbed experiment.

    Attributes:
        perturbed_experiment: The experiment, or why there is none.
        reference: None where there is none.
        limits: Of the reference.
        exercised_quantities: What its quantities move.
        integrals: Of motion.
    """

    perturbed_experiment: PerturbedExperiment
    reference: ReferenceRun | None
    limits: ErrorBounds | None
    exercised_quantities: tuple[ExercisedQuantityResult, ...]
    integrals: FirstIntegralsAlongRun | None = None

    def with_tighter_tolerance(self) -> PerturbedReferenceAndBounds:
        """Return the same with the bounds of the tighter tolerance."""
        if self.reference is None or self.limits is None:
            return self
        reference, limits = _tighten_bounds(self.reference)
        return replace(self, reference=reference, limits=limits)


@dataclass(frozen=True, slots=True)
class ReferenceAndBounds:
    """Data that judge all FMUs of one model: the reference, and the bounds.

    Attributes:
        reference: Of the default experiment.
        limits: Its bounds.
        perturbed: Of the perturbed experiment; None: that is not judged.
        integrals: Of motion, along the reference.
    """

    reference: ReferenceRun
    limits: ErrorBounds
    perturbed: PerturbedReferenceAndBounds | None = None
    integrals: FirstIntegralsAlongRun | None = None

    def with_tighter_tolerance(self) -> ReferenceAndBounds:
        """Return the same with the bounds of the tighter tolerance; the motion is integrated to round-off anyway."""
        reference, limits = _tighten_bounds(self.reference)
        perturbed = self.perturbed.with_tighter_tolerance() if self.perturbed else None
        return replace(self, reference=reference, limits=limits, perturbed=perturbed)


def tighten_experiment(experiment: ExperimentValues) -> ExperimentValues:
    """Return the experiment at the tighter tolerance."""
    return replace(experiment, tolerance=_TIGHTER * experiment.tolerance)


def _tighten_bounds(reference: ReferenceRun) -> tuple[ReferenceRun, ErrorBounds]:
    """Return the reference of the experiment at the tighter tolerance, and its bounds."""
    tightened = replace(reference, experiment=tighten_experiment(reference.experiment))
    return tightened, compute_error_bounds(tightened, measure_start_error_growth(tightened))


def make_reference_and_bounds(
    definition: DeclaredModelContent,
    reference_equations: EquationsOfMotion,
    *,
    mechanism: Mechanism | None = None,
    integrals_of: Mechanism | None = None,
    experiment: ExperimentValues | None = None,
    perturb: bool = True,
    settable: Collection[str] | None = None,
    any_step: bool = True,
    states: Collection[str] | None = None,
) -> ReferenceAndBounds:
    """Integrate the references and measure their sensitivity; errors as for :func:`validate`.

    Args:
        definition: The checked model.
        reference_equations: As for :func:`validate`.
        mechanism: As for :func:`validate`.
        integrals_of: As for :func:`validate`.
        experiment: As for :func:`validate`.
        perturb: False: without the perturbed experiment.
        settable: FMU names that the FMUs let one set; None: all.
        any_step: The FMUs can make communication steps of another size than the default.
        states: FMU names of the FMUs' continuous states; None: unknown.
    """
    reference = make_reference(definition, reference_equations, experiment=experiment, mechanism=mechanism)
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    conserved_along_run = _evaluate_first_integrals(integrals_of, reference_equations, reference, limits)
    if not perturb:
        return ReferenceAndBounds(reference, limits, integrals=conserved_along_run)
    perturbed = _make_perturbed_reference_and_bounds(
        definition, reference_equations, reference, settable, any_step=any_step, states=states
    )
    if perturbed.reference is not None and perturbed.limits is not None:
        conserved = _evaluate_first_integrals(integrals_of, reference_equations, perturbed.reference, perturbed.limits)
        perturbed = replace(perturbed, integrals=conserved)
    return ReferenceAndBounds(reference, limits, perturbed, conserved_along_run)


def _evaluate_first_integrals(
    mechanism: Mechanism | None, equations: EquationsOfMotion, reference: ReferenceRun, limits: ErrorBounds
) -> FirstIntegralsAlongRun | None:
    """Return the integrals of motion along a reference, with its own parameters; None where there are none."""
    if mechanism is None:
        return None
    conserved = find_first_integrals(mechanism, equations, reference.experiment.parameters)
    if not conserved.quantities:
        return None
    return FirstIntegralsAlongRun(reference, conserved, limits.traversals, limits.sides_near_events)


def _make_perturbed_reference_and_bounds(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    default: ReferenceRun,
    settable: Collection[str] | None,
    *,
    any_step: bool,
    states: Collection[str] | None,
) -> PerturbedReferenceAndBounds:
    """Return the first perturbed experiment that exercises something, and whose reference can judge all variables."""
    obstacle, experiment = "", None
    candidates = list_perturbed_experiments(definition, default, settable=settable, any_step=any_step, states=states)
    for number, candidate in enumerate(candidates):
        run = candidate.experiment
        if run is None or number == _MAX_PERTURBED_REFERENCES:
            break
        try:
            reference = make_reference(definition, equations, experiment=run, numeric=default.numeric)
            limits = compute_error_bounds(reference, measure_start_error_growth(reference))
        except (ValidationError, ArithmeticError, ValueError) as error:
            obstacle = f"with other values the reference cannot be integrated: {extract_first_message_line(error)}"
            continue
        is_judged = limits.predictable_points >= min(MIN_JUDGED_POINTS, len(run.time))
        if np.all(is_judged):
            exercised = find_exercised_quantities(definition, candidate.perturbations, default, reference, limits)
            experiment = experiment or PerturbedReferenceAndBounds(candidate, reference, limits, exercised)
            if any(item.is_exercised for item in exercised):
                return PerturbedReferenceAndBounds(candidate, reference, limits, exercised)
            if not any(item.ratio > NEGLIGIBLE_RATIO for item in exercised):
                return experiment  # no other experiment would show more of what has no influence
            continue
        name = reference.variables[int(np.argmin(is_judged))].name
        obstacle = f"with other values {name} cannot be predicted long enough to be judged"
    if experiment is not None:
        return experiment
    if obstacle:
        candidate = make_missing_perturbed_experiment_record(candidate, obstacle)
    exercised = find_exercised_quantities(definition, candidate.perturbations, default, None, None)
    return PerturbedReferenceAndBounds(candidate, None, None, exercised)
