"""ValidationResult: what was compared, the errors, their bounds, and the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.audit.external_checkers import ExternalCheckerFinding
from mb2fmu.validation.bounds.untested_switches import find_untested_switches
from mb2fmu.validation.independent_checks import IndependentCheck, IndependentChecks
from mb2fmu.validation.reference.derivative_conditioning import LeastKnownDerivativeDigits
from mb2fmu.validation.reference.reference_run import ComparedVariableKind, ReferenceRun
from mb2fmu.validation.runs.fmu_description_for_runs import InterfaceType
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult
from mb2fmu.validation.source_checks.fmu_run_laws_of_motion_check import ExperimentRun
from mb2fmu.validation.source_checks.mass_matrix_solve_accuracy import LeastAccurateDerivative

if TYPE_CHECKING:
    from mb2fmu.validation.data.measured_data_comparison import MeasuredTableComparison

Floats = npt.NDArray[np.float64]
Verdict = Literal["passed", "failed", "unjudged"]
PerturbedRole = Literal["parameter", "start value", "input"]
ValidationVerdict = Literal["passed", "default experiment only", "not judged", "failed"]
"""``default experiment only``: nothing failed, and nothing that can be set was exercised. ``not judged``: nothing
failed, and a variable could not be judged."""
INTERFACE_TYPE_NAMES: Mapping[InterfaceType, str] = {
    "CoSimulation": "Co-Simulation",
    "ModelExchange": "Model Exchange, integrated by CVODE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableResult:
    """One variable of the FMU against the reference.

    Attributes:
        name: FMU variable name.
        kind: What it is.
        unit: Of ``range``, ``max_error``, ``error``, ``bound``.
        range: Largest minus smallest value of the reference.
        max_error: Largest error within the horizon.
        at: Time in s within the horizon where error/bound is largest.
        error: There.
        bound: There.
        ratio: error/bound there; above 1 the variable failed. Infinite where the FMU gives no finite number.
        horizon: Time in s until which the variable is predictable and judged.
        verdict: ``unjudged`` where the horizon ends before anything could be judged: no pass.
        reason: Why it is not predictable until the end, or why it failed.
        errors: |FMU − reference|, shape (n_t,), beyond the horizon too.
        bounds: Shape (n_t,).
    """

    name: str
    kind: ComparedVariableKind
    unit: str
    range: float
    max_error: float
    at: float
    error: float
    bound: float
    ratio: float
    horizon: float
    verdict: Verdict
    reason: str
    errors: Floats
    bounds: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class InvariantResult:
    """A quantity conserved in every true motion, judged over the whole run, also of chaotic motions.

    Attributes:
        name: What is judged.
        formula: How value and bound are computed.
        unit: Of value and bound.
        value: Where value/bound is largest.
        at: Time in s there.
        bound: There.
        ratio: value/bound there.
        verdict: ``passed`` or ``failed``.
        values: Shape (n_t,) or (n_t - 1,).
        bounds: Same shape.
    """

    name: str
    formula: str
    unit: str
    value: float
    at: float
    bound: float
    ratio: float
    verdict: Verdict
    values: Floats
    bounds: Floats


@dataclass(frozen=True, slots=True)
class EventJump:
    """Values of a variable just before and after an event, by the reference."""

    name: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventResult:
    """One event of the FMU against the reference's.

    Attributes:
        name: The switch that came first, as its expression.
        kind: How the FMU was run.
        time: Of the reference's event in s; nan: it has no such event.
        found: Of the FMU's; nan where there is none, or none was looked for.
        difference: found − time; where several events are one occasion, to the nearer of the first and the last.
        allowed: How large that may be, s.
        ratio: The larger of |found − time|/allowed and of the errors just before and after over their bounds.
        worst: The variable that is nearest to its bound there, or beyond; may be empty.
        jumps: What jumps most.
        grazing: The surface is only touched, as far as the uncertainty shows.
        verdict: ``unjudged``: neither a pass nor a failure.
        reason: Why it failed or is not judged.
    """

    name: str
    kind: InterfaceType
    time: float
    found: float
    difference: float
    allowed: float
    ratio: float
    worst: str
    jumps: tuple[EventJump, ...]
    grazing: bool
    verdict: Verdict
    reason: str = ""

    def to_record(self) -> dict[str, object]:
        """Return the result as JSON values."""
        names = [name for name in self.__slots__ if name != "jumps"]
        jumps = [{name: _json_number(getattr(jump, name)) for name in jump.__slots__} for jump in self.jumps]
        return {**{name: _json_number(getattr(self, name)) for name in names}, "jumps": jumps}


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceTypeResult:
    """Results of the FMU as another interface type.

    Attributes:
        variables: One per compared variable.
        invariants: As for the first kind.
        simulation: Results of the FMU, with its interface type.
        events: One per event.
    """

    variables: tuple[VariableResult, ...]
    invariants: tuple[InvariantResult, ...]
    simulation: FmuSimulationResult
    events: tuple[EventResult, ...] = ()

    @property
    def passed(self) -> bool:
        """True if every judged variable is within its bound, every invariant kept, and no event wrong."""
        quantities: list[VariableResult | InvariantResult] = [*self.variables, *self.invariants]
        return all(item.verdict == "passed" for item in quantities) and self.events_passed

    @property
    def has_failures(self) -> bool:
        """True if a variable, an invariant or an event is wrong; what could not be judged is none."""
        quantities: list[VariableResult | InvariantResult] = [*self.variables, *self.invariants]
        return any(item.verdict == "failed" for item in quantities) or not self.events_passed

    @property
    def events_passed(self) -> bool:
        """True if no event is wrong."""
        return not any(event.verdict == "failed" for event in self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbedExperimentValue:
    """Perturbation of one quantity in the perturbed experiment.

    Attributes:
        name: FMU name of a parameter, start value or input.
        role: What it is.
        unit: Of ``default`` and ``moved``.
        default: Value in the default experiment; of an input its start value.
        moved: Value in the perturbed experiment; of an input the largest value of its signal.
        reason: Why it keeps its default; empty where it was moved.
    """

    name: str
    role: PerturbedRole
    unit: str
    default: float
    moved: float
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbedExperimentResult:
    """The perturbed experiment: every free parameter, start value and input changed, judged as the default one.

    Attributes:
        kinds: Results of the FMU by interface type; () where nothing could be run.
        reference: The reference; None where the mechanism allows no perturbed experiment.
        perturbations: One per free parameter, start value and input.
        part: Part of the intended perturbations that the mechanism allows, in (0, 1].
        text: How the experiment was made, in one sentence.
        refusals: One sentence for each kind in which the FMU did not go through it, though the mechanism does.
    """

    kinds: tuple[InterfaceTypeResult, ...]
    reference: ReferenceRun | None
    perturbations: tuple[PerturbedExperimentValue, ...]
    part: float
    text: str
    refusals: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """True if every type ran within its bounds, or none could be run (then nothing is validated)."""
        return not self.refusals and all(kind.passed for kind in self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCallFamilyResult:
    """Results of one family of functions, called in the middle of a run and compared with the reference.

    Attributes:
        name: The function family.
        kind: How the FMU was run.
        formula: The compared numbers.
        value: Where value/bound is largest.
        bound: There.
        ratio: There; above 1 it failed.
        where: Which of the compared numbers that is.
        count: Numbers compared.
        verdict: ``unjudged``: not offered by the FMU, or nothing to compare with: neither a pass nor a failure.
        reason: Why it failed or is not judged.
        may_be_integration_error: It failed at the ends of steps alone, which have the integrator's error.
    """

    name: str
    kind: InterfaceType
    formula: str
    value: float
    bound: float
    ratio: float
    where: str
    count: int
    verdict: Verdict
    reason: str = ""
    may_be_integration_error: bool = False


TOO_LITTLE_EFFECT = "too little effect to be seen"
"""Why a quantity is not exercised that moves something by less than its bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExercisedQuantityResult:
    """Whether a parameter, input or start value influenced a judged variable.

    Attributes:
        name: FMU name.
        role: What it is.
        ratio: Largest change of a judged variable over that variable's bound, by the reference, if this quantity alone
            had kept its default in the perturbed experiment: an FMU that ignores it is beyond its bounds by this ratio.
        most: The most affected variable, in relation to its bound; empty if none.
        reason: Why it is not exercised; empty where it is.
        low: The least value that was tried; None where nothing was recorded.
        high: The largest one.
        unit: Of both.
        is_whole_range: Both declared bounds are within that range.
    """

    name: str
    role: PerturbedRole
    ratio: float
    most: str
    reason: str = ""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    is_whole_range: bool = False

    @property
    def is_exercised(self) -> bool:
        """True if an FMU that ignores the quantity would have failed."""
        return self.ratio > 1.0 and not self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationResult:
    """The complete result of a validation.

    Attributes:
        model: Name of the model.
        variables: One per compared variable.
        invariants: One-step errors, energy balance, constraint residuals of the FMU.
        conformance: Findings of the checkers on the archive.
        reference: The reference that it was compared with.
        simulation: What the FMU did.
        timings: s of wall clock by activity.
        provenance: Versions, hash of the FMU, method of the FMU and of the reference.
        other_interface_types: The other kinds of an FMU that has several, under the same bounds.
        notes: What a reader must know, such as that both sides used the same formulation.
        perturbed_experiment: Results of the perturbed experiment; None where it was not requested.
        api_checks: API checks during the run.
        exercised_quantities: One per free parameter, start value and input: exercised, or not.
        not_tried: What no run and no call tried, in words.
        known_digits: How many digits of x' the data determine where they determine the fewest; None: not measured.
        independent_check_set: Comparison of the FMU with the source objects, without the import; None where it was not
            requested.
        tables: The user's own numbers against the FMU.
        events: Of the first kind, one per event.
        default_only: The user is content with the default experiment, where nothing else could be exercised.
        agreeing_tolerance: At which Co-Simulation, and nothing else failed, was run again and is within the bounds;
            None: it was not run again, or failed again.
    """

    model: str
    variables: tuple[VariableResult, ...]
    invariants: tuple[InvariantResult, ...]
    conformance: tuple[ExternalCheckerFinding, ...]
    reference: ReferenceRun
    simulation: FmuSimulationResult
    timings: Mapping[str, float]
    provenance: Mapping[str, object]
    other_interface_types: tuple[InterfaceTypeResult, ...] = ()
    notes: tuple[str, ...] = ()
    perturbed_experiment: PerturbedExperimentResult | None = None
    api_checks: tuple[ApiCallFamilyResult, ...] = ()
    exercised_quantities: tuple[ExercisedQuantityResult, ...] = ()
    not_tried: tuple[str, ...] = ()
    known_digits: LeastKnownDerivativeDigits | None = None
    independent_check_set: IndependentChecks | None = None
    tables: tuple[MeasuredTableComparison, ...] = ()
    events: tuple[EventResult, ...] = ()
    default_only: bool = False
    agreeing_tolerance: float | None = None

    def __post_init__(self) -> None:
        if not self.variables:
            raise ValueError("nothing was compared")

    @property
    def passed(self) -> bool:
        """Whether all verdicts are passed, with other values than the defaults too unless ``default_only`` is set."""
        return self.passed_at_defaults and (self.default_only or not self.has_defaults_only)

    @property
    def verdict(self) -> ValidationVerdict:
        """The verdict in words; whether it counts as passed says ``passed``."""
        if self.passed_at_defaults:
            return "default experiment only" if self.has_defaults_only else "passed"
        return "failed" if self.has_failures else "not judged"

    @property
    def has_defaults_only(self) -> bool:
        """True if there is something to set, other values were to be tried, and none of them had an effect."""
        return bool(self.exercised_quantities) and len(self.not_exercised) == len(self.exercised_quantities)

    @property
    def has_failures(self) -> bool:
        """True if anything is wrong; what could not be judged is not."""
        return (
            any(kind.has_failures for _, kind in self.judged_runs)
            or bool(self.perturbed_experiment and self.perturbed_experiment.refusals)
            or any(call.verdict == "failed" for call in self.api_checks)
            or not (self.independent_check_set is None or self.independent_check_set.passed)
            or not all(table.passed for table in self.tables)
            or any(finding.severity == "error" for finding in self.conformance)
        )

    @property
    def passed_at_defaults(self) -> bool:
        """Whether every variable is judged and within its bound, every invariant kept, and no check found an error."""
        return (
            all(v.verdict == "passed" for v in self.variables)
            and all(i.verdict == "passed" for i in self.invariants)
            and self.kinds[0].events_passed
            and all(other.passed for other in self.other_interface_types)
            and (self.perturbed_experiment is None or self.perturbed_experiment.passed)
            and not any(call.verdict == "failed" for call in self.api_checks)
            and (self.independent_check_set is None or self.independent_check_set.passed)
            and all(table.passed for table in self.tables)
            and not any(f.severity == "error" for f in self.conformance)
        )

    @property
    def kinds(self) -> tuple[InterfaceTypeResult, ...]:
        """All interface types of the default experiment, with their results."""
        first = InterfaceTypeResult(
            variables=self.variables, invariants=self.invariants, simulation=self.simulation, events=self.events
        )
        return (first, *self.other_interface_types)

    @property
    def judged_runs(self) -> tuple[tuple[str, InterfaceTypeResult], ...]:
        """Each run of the FMU by its name: the interface type, with ``, perturbed`` in the perturbed experiment."""
        perturbed = self.perturbed_experiment.kinds if self.perturbed_experiment else ()
        return (
            *((kind.simulation.kind, kind) for kind in self.kinds),
            *((f"{kind.simulation.kind}, perturbed", kind) for kind in perturbed),
        )

    @property
    def all_events(self) -> tuple[EventResult, ...]:
        """The events of every kind and experiment."""
        return tuple(event for _, kind in self.judged_runs for event in kind.events)

    @property
    def events_at_defaults_only(self) -> tuple[str, ...]:
        """Names of events that the perturbed experiment lacks: they were not tried with other values."""
        if self.perturbed_experiment is None:
            return ()
        perturbed_names = {event.name for kind in self.perturbed_experiment.kinds for event in kind.events}
        default_names = dict.fromkeys(event.name for kind in self.kinds for event in kind.events)
        return tuple(name for name in default_names if name not in perturbed_names)

    @property
    def untested_switches(self) -> tuple[str, ...]:
        """Switches that stayed as they were in all experiments: what is on their other side was not tried."""
        perturbed = self.perturbed_experiment.reference if self.perturbed_experiment else None
        return find_untested_switches([self.reference, *([perturbed] if perturbed else [])])

    @property
    def judged_quantities(self) -> tuple[VariableResult | InvariantResult, ...]:
        """Every variable and invariant of every kind and experiment."""
        quantities: list[VariableResult | InvariantResult] = []
        for _, kind in self.judged_runs:
            quantities += [*kind.variables, *kind.invariants]
        return tuple(quantities)

    @property
    def not_exercised(self) -> tuple[ExercisedQuantityResult, ...]:
        """Parameters, start values and inputs without a detected influence: the FMU may have them wrong."""
        return tuple(item for item in self.exercised_quantities if not item.is_exercised)

    @property
    def independent_checks(self) -> tuple[IndependentCheck, ...]:
        """Independent checks: each comparison, the least shared with the FMU first."""
        checks = self.independent_check_set.all_checks if self.independent_check_set else ()
        return (*checks, self._check_trajectory())

    def _check_trajectory(self) -> IndependentCheck:
        """Return the independent check of the default experiment; its reference shares the FMU's import."""
        reference_method, fmu_method = self.reference.numeric.formulation, self.provenance.get("fmu_formulation")
        if reference_method.startswith("Newton-Euler"):
            name, method = "numeric Newton-Euler on the same import", "each body by itself, in numbers"
        elif reference_method == fmu_method:
            name, method = (
                f"the same formulation ({reference_method}) on the same import",
                "evaluated and integrated differently",
            )
        else:
            name, method = (
                f"another formulation ({reference_method}) on the same import",
                "evaluated and integrated differently",
            )
        worst = max(self.variables, key=lambda v: v.ratio if v.verdict != "unjudged" else -1.0)
        unjudged = [v.name for v in self.variables if v.verdict == "unjudged"]
        verdict: Verdict = "unjudged" if unjudged else "passed"
        verdict = "failed" if any(v.verdict == "failed" for v in self.variables) else verdict
        reason = f"{', '.join(unjudged)} could not be judged" if unjudged else ""
        place = f"{worst.name} at t = {worst.at:.4g} s"
        points = len(self.reference.trajectory.time)
        return IndependentCheck(
            name=f"trajectory: {name}", how=method, points=points, ratio=worst.ratio, worst=place, verdict=verdict,
            reason=reason,
        )  # fmt: skip

    @property
    def largest_speeds(self) -> dict[str, float]:
        """FMU name of each speed → its largest magnitude in both experiments."""
        largest = self.reference.largest_speeds
        if self.perturbed_experiment is not None and self.perturbed_experiment.reference is not None:
            largest = {
                name: max(size, self.perturbed_experiment.reference.largest_speeds[name])
                for name, size in largest.items()
            }
        return largest

    @property
    def visited_coordinates(self) -> tuple[dict[str, float], ...]:
        """FMU name of each coordinate → its value, at some instants of both experiments in turn."""
        visited = zip_longest(*(reference.visited_coordinates for reference in self.references))
        return tuple(coordinates for group in visited for coordinates in group if coordinates is not None)

    @property
    def references(self) -> tuple[ReferenceRun, ...]:
        """The reference of the default experiment, then of the perturbed one, if there is one."""
        perturbed = self.perturbed_experiment.reference if self.perturbed_experiment else None
        return (self.reference,) if perturbed is None else (self.reference, perturbed)

    @property
    def runs(self) -> tuple[ExperimentRun, ...]:
        """Numbers of each experiment, with what each kind of the FMU did in it."""
        experiments = [
            (self.reference, self.kinds),
            *(
                [(self.perturbed_experiment.reference, self.perturbed_experiment.kinds)]
                if self.perturbed_experiment
                else []
            ),
        ]
        return tuple(
            (reference.experiment, kind.simulation)
            for reference, kinds in experiments
            if reference is not None
            for kind in kinds
        )

    def to_json(self, *, timings: bool = False) -> str:
        """Return the result as JSON with sorted keys; without ``timings`` the same bytes for the same numbers."""
        trajectory = self.reference.trajectory
        summary: dict[str, object] = {
            "model": self.model,
            "passed": self.passed,
            "verdict": self.verdict,
            "variables": [_record_scalars(v) for v in self.variables],
            "invariants": [_record_scalars(i) for i in self.invariants],
            "conformance": [
                {"checker": f.checker, "severity": f.severity, "message": f.message} for f in self.conformance
            ],
            "reference": {
                "provenance": dict(trajectory.provenance),
                "uncertainty": dict(
                    zip(trajectory.names, map(_json_number, trajectory.uncertainty[-1].tolist()), strict=True)
                ),
                "balances": [
                    {"name": b.name, "formula": b.formula, "worst": _json_number(b.worst)}
                    for b in self.reference.balances
                ],
            },
            "kind": self.simulation.kind,
            "events": [event.to_record() for event in self.events],
            "others": [_record_interface_type(other) for other in self.other_interface_types],
            "provenance": dict(self.provenance),
            "notes": list(self.notes),
            "conditioning": None if self.known_digits is None else _record_scalars(self.known_digits),
            "solving": _record_scalars(self.independent_check_set.solution_accuracy)
            if self.independent_check_set and self.independent_check_set.solution_accuracy
            else None,
            "moved": _record_perturbed_experiment(self.perturbed_experiment),
            "events_at_defaults_only": list(self.events_at_defaults_only),
            **({"not_tried": list(self.not_tried)} if self.not_tried else {}),
            **({"never_switched": list(found)} if (found := self.untested_switches) else {}),
            "calls": [_record_scalars(call) for call in self.api_checks],
            "independent_checks": [_record_scalars(check) for check in self.independent_checks],
            "tables": [table.to_record() for table in self.tables],
            "influences": [
                {**_record_scalars(item), "exercised": item.is_exercised} for item in self.exercised_quantities
            ],
        }
        if timings:
            summary["timings"] = dict(self.timings)
        return json.dumps(summary, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _record_perturbed_experiment(result: PerturbedExperimentResult | None) -> dict[str, object] | None:
    """Return the second experiment without its arrays."""
    if result is None:
        return None
    return {
        "passed": result.passed,
        "part": result.part,
        "refusals": list(result.refusals),
        "text": result.text,
        "moves": [_record_scalars(move) for move in result.perturbations],
        "kinds": [_record_interface_type(kind) for kind in result.kinds],
    }


def _record_interface_type(result: InterfaceTypeResult) -> dict[str, object]:
    """Return one interface type's results, without arrays."""
    return {
        "kind": result.simulation.kind,
        "passed": result.passed,
        "variables": [_record_scalars(v) for v in result.variables],
        "invariants": [_record_scalars(i) for i in result.invariants],
        "events": [event.to_record() for event in result.events],
    }


def _record_scalars(
    record: VariableResult
    | InvariantResult
    | PerturbedExperimentValue
    | ApiCallFamilyResult
    | ExercisedQuantityResult
    | IndependentCheck
    | LeastKnownDerivativeDigits
    | LeastAccurateDerivative,
) -> dict[str, object]:
    """Return the record without its arrays."""
    names = [name for name in record.__slots__ if name not in {"errors", "bounds", "values"}]
    return {name: _json_number(getattr(record, name)) for name in names}


def _json_number(value: object) -> object:
    """Return a number for JSON: NaN and infinities become their names."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
