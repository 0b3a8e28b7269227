"""validate: from an FMU and independent equations to the verdict."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.errors import ToolError
from mb2fmu.fmu.package import read_archive
from mb2fmu.mechanics.equations.observable_quantities import select_diagnostic_outputs
from mb2fmu.validation.api_checks.api_call_plan import ApiCallPlan, ApiCheckPoint, choose_api_check_point
from mb2fmu.validation.api_checks.api_check_families import compare_api_checks, plan_api_calls
from mb2fmu.validation.api_checks.constraint_stabilization_check import count_stabilization_rate_as_exercised
from mb2fmu.validation.comparison.event_comparison import (
    EventToLocate,
    compare_events,
    describe_events_not_located,
    list_variables_to_read_at_events,
    plan_event_location_sessions,
    select_reference_events,
)
from mb2fmu.validation.comparison.motion_comparison import (
    compare_variables,
    compute_invariant_results,
)
from mb2fmu.validation.conformity_checks import check_fmu_conformity
from mb2fmu.validation.experiment.perturbed_experiment import (
    add_perturbed_value_overrides,
    list_settable_fmu_variables,
)
from mb2fmu.validation.experiment.validated_value_ranges import add_tried_value_ranges, describe_unvalidated_conditions
from mb2fmu.validation.reference.derivative_conditioning import (
    LeastKnownDerivativeDigits,
    compute_digits_of_worst_derivative,
)
from mb2fmu.validation.reference.experiment_values import ExperimentValues, form_experiment_values
from mb2fmu.validation.reference.reference_run import ReferenceRun, list_compared_variables
from mb2fmu.validation.reference.variable_scales import ERROR_BOUND_FACTOR
from mb2fmu.validation.reference_and_bounds import (
    PerturbedReferenceAndBounds,
    ReferenceAndBounds,
    make_reference_and_bounds,
    tighten_experiment,
)
from mb2fmu.validation.runs.fmu_description_for_runs import (
    CONVERGED_TOLERANCE,
    FmuDescription,
    InterfaceType,
    describe_denied_capabilities,
    read_fmu_description,
)
from mb2fmu.validation.runs.fmu_run import TIME_LIMIT, FmuProcessResult, require_experiment_variables, run_fmu_process
from mb2fmu.validation.validation_result import (
    INTERFACE_TYPE_NAMES,
    ApiCallFamilyResult,
    EventResult,
    ExercisedQuantityResult,
    InterfaceTypeResult,
    InvariantResult,
    PerturbedExperimentResult,
    ValidationResult,
    VariableResult,
)
from mb2fmu.version import __version__

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Method
    from mb2fmu.mechanics.mechanism import Mechanism
    from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent

_ACCURATE_SCALE_FRACTIONS = (1.0, 0.01)
"""Parts of what the states move by that absolute tolerances of accurate runs are measured by, one run after the other:
hops of a ball that comes to rest are much lower than its fall, and their errors add up."""
# Most independent first: SymPy's own Kane, then energies, then our own TMT.
_METHOD_PREFERENCE: tuple[Method, ...] = ("kane", "lagrange", "tmt")


def choose_reference_formulation(used_method: Method | None, applicable: Collection[Method]) -> Method:
    """Return the formulation that the reference should use.

    Args:
        used_method: What the FMU was made by; None if that is unknown.
        applicable: Formulations that apply to the mechanism, at least one.

    Returns:
        Another one than ``used_method`` where there is one.

    Raises:
        ValueError: If none applies.
    """
    candidates = [method for method in _METHOD_PREFERENCE if method in applicable]
    if not candidates:
        raise ValueError("no formulation applies")
    return next((method for method in candidates if method != used_method), candidates[0])


def validate(
    fmu: Path,
    definition: DeclaredModelContent,
    reference_equations: EquationsOfMotion,
    *,
    method: Method | None = None,
    mechanism: Mechanism | None = None,
    integrals_of: Mechanism | None = None,
    experiment: ExperimentValues | None = None,
    conformance: bool = True,
    time_limit: float = TIME_LIMIT,
    reference_and_bounds: ReferenceAndBounds | None = None,
    perturb: bool = True,
    report_activity: Callable[[str], None] | None = None,
) -> ValidationResult:
    """Run an FMU through its model's experiment and judge it by equations that it was not made from.

    An FMU that offers both Co-Simulation and Model Exchange is run and judged as both, under the same bounds.

    Args:
        fmu: The archive; FMI 2.0 or 3.0.
        definition: The checked model.
        reference_equations: By another formulation, where there is one (see :func:`choose_reference_formulation`).
        method: The formulation that the FMU was made by, if it was made here; None: the FMU may come from elsewhere,
            and its runtime is judged too.
        mechanism: Where :func:`can_integrate_newton_euler_reference`: x' and outputs of the reference come from it, by
            Newton-Euler equations in numbers, and ``reference_equations`` only give names, units and levels.
        integrals_of: The mechanism, with bodies: its integrals of motion are looked for and judged; None: they are not.
        experiment: Other numbers than the model's default experiment (parameters, inputs, steps).
        conformance: Judge what the FMU declares too, see :func:`check_fmu_conformity`.
        time_limit: For each of the FMU's runs, in s.
        reference_and_bounds: What :func:`make_reference_and_bounds` gave for the same definition, equations and
            experiment, where several FMUs are judged; None: made here.
        perturb: Run the perturbed experiment too, and call what else the FMU offers.
        report_activity: Called with a description of each activity as it begins.

    Raises:
        PackageError: The file is no FMU.
        ValidationError: The FMU or experiment cannot be run or compared here.
        ToolError: The FMU failed, crashed or hung, or a checker did.
    """
    run = experiment or form_experiment_values(definition)
    clock = _ValidationActivityClock(report_activity)
    description = read_fmu_description(read_archive(fmu))
    require_experiment_variables(description, run, _list_compared_names(definition, reference_equations))
    with clock("reference", "integrate the reference"):
        data = reference_and_bounds or make_reference_and_bounds(
            definition, reference_equations, mechanism=mechanism, integrals_of=integrals_of, experiment=run,
            perturb=perturb, settable=list_settable_fmu_variables(description), any_step=description.any_step,
            states=description.state_names,
        )  # fmt: skip
    with clock("simulate", "run the FMU"):
        plan = _plan_run(definition, description, data, run)
        fmu_results = plan.run_fmu(fmu, time_limit, clock)
    with clock("compare", "compare"):
        judgement = plan.judge(definition, fmu_results)
        judgement, integration_notes = plan.judge_again(definition, fmu, fmu_results, judgement, time_limit, clock)
        finer = plan.find_agreeing_tolerance(definition, fmu, time_limit, clock) if judgement.may_be_coarse else None
    with clock("conformance", "audit the FMU's description"):
        redundant = _has_redundant_rows(data.reference, run)
        check = partial(check_fmu_conformity, redundant=redundant, runtime=method is None)
        findings = check(fmu, definition, reference_equations) if conformance else ()
    known_digits = compute_digits_of_worst_derivative(data.reference)
    return ValidationResult(
        model=definition.name,
        variables=judgement.first.variables,
        invariants=judgement.first.invariants,
        conformance=findings,
        reference=data.reference,
        simulation=judgement.first.simulation,
        events=judgement.first.events,
        other_interface_types=judgement.others,
        timings=clock.seconds,
        provenance=_form_provenance(fmu, method, data.reference, run.tolerance),
        notes=(
            *integration_notes,
            *_list_validation_notes(method, data.reference, known_digits),
            *plan.list_unwatched_event_notes(),
        ),
        perturbed_experiment=judgement.perturbed_experiment,
        api_checks=judgement.api_checks,
        exercised_quantities=plan.list_exercised_quantities(definition, fmu_results, judgement.api_checks),
        not_tried=plan.describe_untried(fmu_results),
        known_digits=known_digits,
        agreeing_tolerance=finer,
    )


@dataclass(frozen=True)
class _ExperimentAndApiCheckResults:
    """Results of all interface types in the default experiment, in the perturbed one, and of API checks."""

    first: InterfaceTypeResult
    others: tuple[InterfaceTypeResult, ...]
    perturbed_experiment: PerturbedExperimentResult | None
    api_checks: tuple[ApiCallFamilyResult, ...]

    @property
    def model_exchange_failure(self) -> str:
        """By how much Model Exchange fails, in words; empty where all of its motion passes."""
        return self.describe_motion_failure("ModelExchange")

    def describe_motion_failure(self, interface_type: InterfaceType) -> str:
        """Return by how much one interface type fails, in words; empty where all of its motion passes."""
        perturbed = self.perturbed_experiment.kinds if self.perturbed_experiment is not None else ()
        results = [
            result for result in (self.first, *self.others, *perturbed) if result.simulation.kind == interface_type
        ]
        if not all(result.events_passed for result in results):
            return "events were off"
        quantities: list[VariableResult | InvariantResult] = []
        for result in results:
            quantities += [*result.variables, *result.invariants]
        ratios = [item.ratio for item in quantities if item.verdict == "failed"]
        return f"errors were {max(ratios):.3g} bounds" if ratios else ""

    @property
    def may_be_coarse(self) -> bool:
        """True if the motion fails as Co-Simulation alone."""
        refusals = self.perturbed_experiment.refusals if self.perturbed_experiment is not None else ()
        has_motion_failure = bool(self.describe_motion_failure("CoSimulation"))
        return has_motion_failure and not self.model_exchange_failure and not refusals

    @property
    def may_be_integration_error(self) -> bool:
        """True if something fails as Model Exchange, but nothing that no integrator brings about."""
        refusals = self.perturbed_experiment.refusals if self.perturbed_experiment is not None else ()
        failed_checks = [call for call in self.api_checks if call.verdict == "failed" and call.kind == "ModelExchange"]
        is_failed = bool(self.model_exchange_failure or failed_checks)
        return is_failed and not refusals and all(call.may_be_integration_error for call in failed_checks)


@dataclass(frozen=True)
class _FmuRunPlan:
    """Requests to one FMU (experiments, events to watch, API checks during the run), and the judgement of its answers.

    Attributes:
        reference_and_bounds: Reference data that the FMU is judged by.
        description: The FMU's own.
        experiments: The default experiment; then the perturbed one, if there is one.
        watched_events: The watched events of each experiment.
        check_point: Point and values of the API checks; None without a perturbed experiment.
        call_plans: The calls, for each of its interface types.
        judged_runs: Results by the ``id`` of their run and its limits: where one interface type ran again, the other's
            run is not judged again.
    """

    reference_and_bounds: ReferenceAndBounds
    description: FmuDescription
    experiments: tuple[ExperimentValues, ...]
    watched_events: tuple[tuple[EventToLocate, ...], ...]
    check_point: ApiCheckPoint | None
    call_plans: Mapping[InterfaceType, ApiCallPlan | None]
    judged_runs: dict[tuple[int, int], InterfaceTypeResult] = field(default_factory=dict)

    def run_fmu(self, fmu: Path, time_limit: float, clock: _ValidationActivityClock) -> list[FmuProcessResult]:
        """Run the FMU through all experiments and sessions, in each of its interface types."""
        return [self._run_interface_type(fmu, kind, time_limit, clock) for kind in self.call_plans]

    def _run_interface_type(
        self,
        fmu: Path,
        interface_type: InterfaceType,
        time_limit: float,
        clock: _ValidationActivityClock,
        state_scales: Mapping[str, float] | None = None,
    ) -> FmuProcessResult:
        """Run the FMU as one interface type; ``state_scales``: as ``FmuDescription.driver_request`` has them."""
        reference, call_plan = self.reference_and_bounds.reference, self.call_plans[interface_type]
        watched = list_variables_to_read_at_events(reference, self.description)
        names = [*(variable.name for variable in reference.variables), *dict(reference.diagnostic_outputs)]
        sessions = dict(call_plan.operations) if call_plan else {}
        sessions |= plan_event_location_sessions(self.watched_events, interface_type, self.description, watched)
        clock.report(f"run the FMU as {INTERFACE_TYPE_NAMES[interface_type]}")
        return run_fmu_process(
            fmu,
            self.experiments,
            names,
            kind=interface_type,
            watched=watched,
            sessions=sessions,
            state_scales=state_scales,
            time_limit=time_limit,
        )

    def judge_again(
        self,
        definition: DeclaredModelContent,
        fmu: Path,
        fmu_results: Sequence[FmuProcessResult],
        judgement: _ExperimentAndApiCheckResults,
        time_limit: float,
        clock: _ValidationActivityClock,
    ) -> tuple[_ExperimentAndApiCheckResults, tuple[str, ...]]:
        """Return the judgement with Model Exchange integrated as accurately as the integrator can, and a note of that.

        What the importer's integrator makes of a right FMU is no fault of the FMU. Where the FMU does not go through
        such a run, the judgement before it stays.
        """
        names = [variable.name for variable in self.reference_and_bounds.reference.variables]
        before = judgement.model_exchange_failure or "steps with other parameters were off"
        notes: tuple[str, ...] = ()
        for fraction in _ACCURATE_SCALE_FRACTIONS:
            if not judgement.may_be_integration_error:
                break
            scales = dict(zip(names, (fraction * self.reference_and_bounds.reference.scales).tolist(), strict=True))
            try:
                accurate_results = [
                    fmu_result
                    if fmu_result.simulations[0].kind != "ModelExchange"
                    else self._run_interface_type(fmu, "ModelExchange", time_limit, clock, scales)
                    for fmu_result in fmu_results
                ]
            except ToolError as error:
                failure = f"Model Exchange could not be integrated more accurately, though {before}: {error}"
                return judgement, notes or (" ".join(failure.split()),)
            judgement = self.judge(definition, accurate_results)
            note = (
                f"Model Exchange was integrated again, with a relative tolerance of {CONVERGED_TOLERANCE:g} and "
                f"absolute tolerances of {'' if fraction == 1.0 else f'{fraction:.0%} of '}what the states move by: "
                f"with those of the FMU's nominal values {before}"
            )
            notes = (note,)
        return judgement, notes

    def find_agreeing_tolerance(
        self, definition: DeclaredModelContent, fmu: Path, time_limit: float, clock: _ValidationActivityClock
    ) -> float | None:
        """Return a tighter tolerance at which Co-Simulation agrees; None where it does not, or cannot run.

        It is judged by the bounds of that tolerance, as whoever sets it will be.
        """
        experiments = tuple(tighten_experiment(each) for each in self.experiments)
        data = self.reference_and_bounds.with_tighter_tolerance()
        plan = replace(self, reference_and_bounds=data, experiments=experiments, call_plans={"CoSimulation": None})
        try:
            fmu_results = plan.run_fmu(fmu, time_limit, clock)
        except ToolError:
            return None
        is_agreeing = not plan.judge(definition, fmu_results).describe_motion_failure("CoSimulation")
        return experiments[0].tolerance if is_agreeing else None

    def judge(
        self, definition: DeclaredModelContent, fmu_results: Sequence[FmuProcessResult]
    ) -> _ExperimentAndApiCheckResults:
        """Judge all that was run."""
        first_result, *further_results = (
            self.judge_interface_type(self.reference_and_bounds, fmu_result, 0) for fmu_result in fmu_results
        )
        return _ExperimentAndApiCheckResults(
            first_result,
            tuple(further_results),
            self.judge_perturbed_experiment(fmu_results),
            self.judge_api_checks(definition, fmu_results),
        )

    def judge_interface_type(
        self,
        reference_and_bounds: ReferenceAndBounds | PerturbedReferenceAndBounds,
        fmu_result: FmuProcessResult,
        experiment_index: int,
    ) -> InterfaceTypeResult:
        """Judge one interface type of the FMU, in one experiment."""
        reference, limits = reference_and_bounds.reference, reference_and_bounds.limits
        assert reference is not None
        assert limits is not None
        simulation = fmu_result.simulations[experiment_index]
        key = id(simulation), id(limits)
        if key in self.judged_runs:
            return self.judged_runs[key]
        events: tuple[EventResult, ...] = ()
        if np.all(np.isfinite(simulation.values)):
            events = compare_events(
                reference, limits, self.watched_events[experiment_index], fmu_result, experiment_index, self.description
            )
        invariants = compute_invariant_results(reference, simulation, limits, reference_and_bounds.integrals)
        variables = compare_variables(reference, limits, simulation)
        result = InterfaceTypeResult(events=events, variables=variables, invariants=invariants, simulation=simulation)
        return self.judged_runs.setdefault(key, result)

    def judge_perturbed_experiment(self, fmu_results: Sequence[FmuProcessResult]) -> PerturbedExperimentResult | None:
        """Judge the perturbed experiment of all interface types; None if it was not requested."""
        perturbed = self.reference_and_bounds.perturbed
        if perturbed is None:
            return None
        can_judge = perturbed.reference is not None and perturbed.limits is not None
        return PerturbedExperimentResult(
            kinds=tuple(self.judge_interface_type(perturbed, fmu_result, 1) for fmu_result in fmu_results)
            if can_judge
            else (),
            reference=perturbed.reference,
            perturbations=perturbed.perturbed_experiment.perturbations,
            part=perturbed.perturbed_experiment.part,
            text=perturbed.perturbed_experiment.text,
            refusals=_list_refusals(fmu_results),
        )

    def judge_api_checks(
        self, definition: DeclaredModelContent, fmu_results: Sequence[FmuProcessResult]
    ) -> tuple[ApiCallFamilyResult, ...]:
        """Compare the API checks of each interface type that ran the perturbed experiment; none without its bounds."""
        limits = self.reference_and_bounds.perturbed.limits if self.reference_and_bounds.perturbed else None
        if self.check_point is None or limits is None:
            return ()
        return tuple(
            result
            for call_plan, fmu_result in zip(self.call_plans.values(), fmu_results, strict=True)
            if call_plan and not fmu_result.refusal
            for result in compare_api_checks(definition, self.check_point, call_plan, fmu_result, limits)
        )

    def list_exercised_quantities(
        self,
        definition: DeclaredModelContent,
        fmu_results: Sequence[FmuProcessResult],
        api_checks: Sequence[ApiCallFamilyResult],
    ) -> tuple[ExercisedQuantityResult, ...]:
        """Return the exercised quantities and their tried ranges; empty without a perturbed experiment."""
        data, perturbed = self.reference_and_bounds, self.reference_and_bounds.perturbed
        if perturbed is None:
            return ()
        references = [data.reference, *([perturbed.reference] if perturbed.reference is not None else [])]
        quantities = add_tried_value_ranges(
            perturbed.exercised_quantities, definition, references, self.check_point, fmu_results
        )
        return count_stabilization_rate_as_exercised(quantities, definition, self.check_point, api_checks)

    def describe_untried(self, fmu_results: Sequence[FmuProcessResult]) -> tuple[str, ...]:
        """Return what no call of the FMU's functions tried; other values only with the perturbed experiment."""
        denied_capabilities = describe_denied_capabilities(self.description)
        if not self.reference_and_bounds.perturbed:
            return denied_capabilities
        return (
            *denied_capabilities,
            *describe_unvalidated_conditions(self.check_point, self.call_plans, fmu_results),
        )

    def list_unwatched_event_notes(self) -> Iterator[str]:
        """Yield remarks on events that are not judged one by one, in each experiment."""
        perturbed = self.reference_and_bounds.perturbed
        limits = [("default", self.reference_and_bounds.limits), ("moved", perturbed.limits if perturbed else None)]
        for (name, bounds), watched in zip(limits, self.watched_events, strict=False):
            note = describe_events_not_located(bounds, watched) if bounds else ""
            if note:
                yield f"{name} experiment: {note}"


def _plan_run(
    definition: DeclaredModelContent,
    description: FmuDescription,
    reference_and_bounds: ReferenceAndBounds,
    default_experiment: ExperimentValues,
) -> _FmuRunPlan:
    """Return the plan of runs and API calls for one FMU, from the reference data."""
    experiments, reference = [default_experiment], reference_and_bounds.reference
    watched_events = [select_reference_events(reference, reference_and_bounds.limits, description)]
    perturbed, check_point = reference_and_bounds.perturbed, None
    if perturbed is not None and perturbed.reference is not None:
        experiments.append(
            add_perturbed_value_overrides(
                perturbed.reference.experiment, default_experiment, definition, list_settable_fmu_variables(description)
            )
        )
        if perturbed.limits is not None:
            watched_events.append(select_reference_events(perturbed.reference, perturbed.limits, description))
            check_point = choose_api_check_point(
                definition, reference, perturbed.reference, experiments[-1], description, perturbed.limits
            )
    call_plans = {
        kind: plan_api_calls(check_point, definition, description, kind) if check_point else None
        for kind in description.identifiers
    }
    return _FmuRunPlan(
        reference_and_bounds, description, tuple(experiments), tuple(watched_events), check_point, call_plans
    )


def _has_redundant_rows(reference: ReferenceRun, run: ExperimentValues) -> bool:
    """Return whether rows of the velocity constraints follow from others at the start."""
    numeric = reference.numeric
    return numeric.has_redundant_rows(0.0, reference.states[0], run.inputs_at(0), numeric.prepare(run.parameters))


def _form_provenance(fmu: Path, method: Method | None, reference: ReferenceRun, tolerance: float) -> dict[str, object]:
    """Return the basis of a verdict: hash of the FMU, formulations, tolerance, factor and versions."""
    return {
        "fmu_sha256": hashlib.sha256(fmu.read_bytes()).hexdigest(),
        "fmu_formulation": method or "unknown",
        "reference_formulation": reference.numeric.formulation,
        "tolerance": tolerance,
        "factor": ERROR_BOUND_FACTOR,
        "versions": {"mb2fmu": __version__} | {name: version(name) for name in ("fmpy", "numpy", "scipy", "sympy")},
    }


def _list_compared_names(definition: DeclaredModelContent, equations: EquationsOfMotion) -> list[str]:
    """Return the names of all variables that are compared with the reference, or with the FMU's own states."""
    return [
        *(variable.name for variable in list_compared_variables(definition, equations)),
        *dict(select_diagnostic_outputs(equations.outputs)),
    ]


def _list_refusals(fmu_results: Sequence[FmuProcessResult]) -> tuple[str, ...]:
    """Return the types that failed in the perturbed experiment, in their own words: their verdict is failed."""
    return tuple(
        f"{fmu_result.simulations[-1].kind}: the FMU refuses the perturbed experiment, which the mechanism allows: "
        f"{fmu_result.refusal}"
        for fmu_result in fmu_results
        if fmu_result.refusal
    )


def _list_validation_notes(
    fmu_method: Method | None, reference: ReferenceRun, digits: LeastKnownDerivativeDigits | None
) -> tuple[str, ...]:
    """Return what a reader must know: a shared formulation, no energy balance, undetermined speeds, conditioning."""
    notes, reference_method = [], reference.numeric.formulation
    if fmu_method == reference_method:
        notes.append(
            f"no second formulation applies: both sides derive from {reference_method}, evaluated and integrated "
            "differently"
        )
    energy = reference.numeric.equations.energy
    if not any(balance.name == "energy" for balance in reference.balances):
        notes.append(f"no energy balance: {energy.reason or 'the kinetic energy is not known'}")
    undetermined_time = reference.find_undetermined_time()
    if undetermined_time is not None:
        equations = reference.numeric.equations
        names = ", ".join(equations.u[i].name for i in equations.u_dependent)
        notes.append(
            f"near t = {undetermined_time:.4g} s the constraints do not determine the dependent speeds {names}: "
            "results are poor from there on; choose others, such as do not become undetermined on the way"
        )
    if digits is not None and digits.text:
        notes.append(digits.text)
    return tuple(notes)


class _ValidationActivityClock:
    """Wall clock by activity, in s; announces each activity in words."""

    def __init__(self, report_activity: Callable[[str], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self.report = report_activity or (lambda _: None)

    @contextmanager
    def __call__(self, activity: str, description: str) -> Iterator[None]:
        """Notify the observer that an activity begins, and measure its wall-clock time in s."""
        self.report(description)
        start_time = time.perf_counter()
        yield
        self.seconds[activity] = time.perf_counter() - start_time
