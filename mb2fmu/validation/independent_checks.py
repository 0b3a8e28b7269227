"""Independent checks: compare an FMU's x' at random points with the user's own objects.

The trajectory that an FMU is compared with comes from ``Mechanism``, as the FMU does: a fault of the import would be
on both sides. Here x' of a real instance (by fmpy) is compared with the user's own SymPy objects, evaluated without the
import: by their own ``mass_matrix_full`` and ``forcing_full`` (``source_equations``), and by their own frames, points,
bodies and loads point by point (``numeric_kane_equations``). Where the equations would be too long to be formed, the
imported
mechanism is compared with the objects too: velocities, kinetic energy, generalized forces.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from mb2fmu.fmu.package import read_archive
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.prebuilt_mechanism_source import ReadyMadeMechanismSource
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics
from mb2fmu.validation.comparison.contact_and_latch_law_violations import compute_contact_and_latch_law_violations
from mb2fmu.validation.comparison.output_formula_comparison import compare_output_formulas
from mb2fmu.validation.reference.first_integrals_along_run import make_potential_energy_evaluator
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, InterfaceType, read_fmu_description
from mb2fmu.validation.runs.fmu_run import TIME_LIMIT, Operations, run_fmu_process
from mb2fmu.validation.source_checks import (
    declared_values_check,
    nodal_inertia_check,
    output_requests_check,
    potential_energy_check,
)
from mb2fmu.validation.source_checks.fmu_run_laws_of_motion_check import ExperimentRun
from mb2fmu.validation.source_checks.mass_matrix_solve_accuracy import (
    LeastAccurateDerivative,
    find_least_accurate_derivative,
)
from mb2fmu.validation.source_checks.source_acceleration_samples import (
    INDEPENDENT_IMPORT,
    AccelerationSample,
    SympySourceAccelerationSamples,
)
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations

Verdict = Literal["passed", "failed", "unjudged"]
MIN_POINTS = 20
"""Fewest points for a verdict of an independent check."""
_CHECK_TITLES = {
    "equations": "the source objects' own equations",
    "kinematics": "the source objects' own kinematics and loads",
    "independent import": "an independent import of the robot's file",
    "reading": "the import against the source objects",
    "outputs": "outputs as the model's own expressions and objects have them",
    "events": "events, and outputs of what is solved for, as the model's own expressions have them",
    "values": "values, units, outputs and the experiment as the model declares them",
    "formulas": "outputs from bodies and loads in numbers, in every mode",
    "contacts": "laws of contacts and latches along the reference",
    "potential": "the potential energy against the loads",
    "nodes": "flexible bodies against the full mass matrix of their nodes",
    "constraints": "the source object's constraints along the FMU's own runs",
    "momentum": "the momentum of all bodies in space along the FMU's own runs",
}
_CHECK_METHODS = {
    "equations": "mass_matrix_full and forcing_full of SymPy's object, in numbers, nothing expanded",
    "kinematics": "Kane's equations out of SymPy's own frames, points, bodies and loads, point by point; accelerations "
    "by a complex step",
    "independent import": "the file read again by a minimal reader of its own, Kane's equations of its links in NumPy",
    "outputs": "expressions by lambdify; positions, velocities, angular velocities, distances and kinetic energy from "
    "SymPy's own objects",
    "reading": "velocities, angular velocities, kinetic energy and generalized forces, point by point",
    "events": "gaps, slip, rows of latches with their rates, conditions and settings that were read, against the "
    "model's expressions by lambdify and difference quotients",
    "formulas": "accelerations, forces in cuts, multipliers, momenta and powers along the reference, from its x' and "
    "what holds there",
    "contacts": "no contact pulls, penetrates, has an impact while it is open, or sticks by more than friction holds, "
    "just before each event and at points of each mode; no latch is closed or open against its conditions",
    "values": "all that was read, one by one",
    "potential": "dV/dt along random directions at rest by difference quotients, against the power of all loads there",
    "nodes": "generalized inertia, mass centre and modal forces at random states, from the arrays that were given",
    "constraints": "the model's own rows at the states that the FMU shows, from its start on, nothing projected",
    "momentum": "positions of the bodies from SymPy's own points, against the loads' resultant integrated twice: x' of "
    "neither side is used",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentCheck:
    """One comparison of x' or of an import with a source that the FMU does not share.

    Attributes:
        name: What was compared with what.
        how: The numbers that are compared; or why it was not done.
        points: At how many admissible points.
        ratio: Largest error over its bound.
        worst: Of what, and at which time.
        verdict: ``unjudged``: it could not be done, which is neither a pass nor a failure.
        reason: Why it failed.
    """

    name: str
    how: str
    points: int
    ratio: float
    worst: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentChecks:
    """Comparisons that do not use mb2fmu's import.

    Attributes:
        checks: The most independent first.
        import_checks: Comparisons of the import with the model, without an FMU: events, values.
        solution_accuracy: How many digits solving for x' leaves, by the objects' own terms; None where it is not known.
    """

    checks: tuple[IndependentCheck, ...]
    import_checks: tuple[IndependentCheck, ...] = ()
    solution_accuracy: LeastAccurateDerivative | None = None

    @property
    def passed(self) -> bool:
        """Whether no independent check failed; one that could not be done is neither a pass nor a failure."""
        return all(check.verdict != "failed" for check in self.all_checks)

    @property
    def all_checks(self) -> tuple[IndependentCheck, ...]:
        """All independent checks: of the FMU, then of the import."""
        return (*self.checks, *self.import_checks)


def run_independent_checks(
    fmu: Path,
    definition: CheckedModel,
    mechanism: Mechanism,
    *,
    kind: InterfaceType | None = None,
    given_samples: SympySourceAccelerationSamples | None = None,
    largest_speeds: Mapping[str, float] = MappingProxyType({}),
    visited_coordinates: Sequence[Mapping[str, float]] = (),
    equations: EquationsOfMotion | None = None,
    runs: Sequence[ExperimentRun] = (),
    references: Sequence[ReferenceRun] = (),
    time_limit: float = TIME_LIMIT,
) -> IndependentChecks:
    """Compare an FMU's x' with the user's own SymPy objects at random admissible points.

    Args:
        fmu: The archive, FMI 2.0 or 3.0.
        definition: The checked model.
        mechanism: The mechanism imported from it.
        kind: How the FMU is run; None: as Model Exchange if it offers that.
        given_samples: What :func:`sample_source_accelerations` gave for the same definition, where several FMUs are
            judged.
        largest_speeds: FMU name of a speed → its largest magnitude in the experiments: points lie beyond it, too.
        visited_coordinates: FMU name of a coordinate → its value, at instants of the experiments: some points are near
            these.
        equations: Whose closed form of the potential energy is compared with the loads; None: it is not.
        runs: Results of the FMU in the experiments, which are judged by the laws of motion.
        references: Of the experiments; outputs that they compute as the FMU does are computed in another way.
        time_limit: In s.

    Raises:
        PackageError, ValidationError, ToolError: As ``validate`` does.
    """
    description = read_fmu_description(read_archive(fmu))
    interface_type: InterfaceType = kind or (
        "ModelExchange" if "ModelExchange" in description.identifiers else "CoSimulation"
    )
    computed_coordinates = _find_fmu_computed_coordinates(description, definition)
    samples = given_samples or _sample_accelerations(
        definition, mechanism, largest_speeds, computed_coordinates, visited_coordinates, runs
    )
    import_checks = (
        *_check_laws_of_motion(samples),
        *check_event_import(samples, definition),
        *_check_output_formulas(mechanism, references),
        *_check_contact_and_latch_laws(references),
        *check_potential_energy(definition, mechanism, equations),
        *check_flexible_bodies(definition, mechanism),
        check_imported_declarations(definition, mechanism),
    )
    missing_variables = _list_missing_variables(description, samples)
    if missing_variables or not samples.samples:
        return replace(_form_unjudged_checks(samples, missing_variables), import_checks=import_checks)
    fmu_result = run_fmu_process(
        fmu,
        [],
        [],
        kind=interface_type,
        sessions=_plan_sampled_derivative_sessions(samples, description, definition),
        time_limit=time_limit,
    )
    kinds = [*(q.kind for q in definition.coordinates), *(u.kind for u in definition.speeds)]
    solves_start_values = interface_type == "CoSimulation" and "guess" in kinds
    checks = compare_fmu_derivatives_with_source(
        samples,
        description,
        fmu_result.recorded_values,
        bound_factor=SOLVED_START_FACTOR if solves_start_values else 1.0,
    )
    return replace(
        checks, import_checks=import_checks, solution_accuracy=_measure_solution_accuracy(samples, definition)
    )


def _measure_solution_accuracy(
    accelerations: SympySourceAccelerationSamples, definition: CheckedModel
) -> LeastAccurateDerivative | None:
    """Return how many digits are left when x' is solved for; None where no terms are known."""
    units = estimate_characteristic_units(definition)
    typical_magnitudes = {
        s.name: units.typical(s)
        for s in definition.speeds
        if all(s.name in sample.terms for sample in accelerations.samples)
    }
    return find_least_accurate_derivative(accelerations.samples, typical_magnitudes, definition.experiment.stop)


def _check_laws_of_motion(accelerations: SympySourceAccelerationSamples) -> Iterator[IndependentCheck]:
    """Yield the verdict on the FMU's runs by each law of motion that applies to them."""
    for law, errors in accelerations.laws:
        check = _form_check(law, len(errors), [*errors], [])
        yield replace(check, reason=f"{check.worst}: {check.ratio:.3g} times the bound") if check.ratio > 1.0 else check


def check_event_import(
    accelerations: SympySourceAccelerationSamples, definition: CheckedModel
) -> Sequence[IndependentCheck]:
    """Judge the import of events and forces; no independent check where the model has neither."""
    if not (
        accelerations.events or accelerations.left_out or definition.contacts or definition.latches or definition.events
    ):
        return []
    if not accelerations.events:
        return [_form_missing_check("events", "no points were found at which the model's own expressions have numbers")]
    check = _form_check("events", len(accelerations.samples) or MIN_POINTS, list(accelerations.events), [])
    reason = "since it depends on what is solved for"
    return [replace(check, how=check.how + _describe_left_out(accelerations.left_out, reason))]


def _describe_left_out(names: Sequence[str], reason: str) -> str:
    """Return what was not compared, in words; empty if nothing was left out."""
    return f"; not compared, {reason}: {', '.join(names)}" if names else ""


def _check_output_formulas(mechanism: Mechanism, references: Sequence[ReferenceRun]) -> Sequence[IndependentCheck]:
    """Judge formulas of outputs that FMU and reference share; no independent check where they share none."""
    comparison = compare_output_formulas(mechanism, references) if references else None
    if comparison is None:
        return []
    if not comparison.errors:
        return [_form_missing_check("formulas", f"no numbers were found for {', '.join(comparison.left_out)}")]
    check = _form_check("formulas", max(comparison.instants, MIN_POINTS), list(comparison.errors), [])
    left_out_note = _describe_left_out(comparison.left_out, "since the reference has other switches")
    return [replace(check, how=check.how + left_out_note, points=comparison.instants)]


def _check_contact_and_latch_laws(references: Sequence[ReferenceRun]) -> Sequence[IndependentCheck]:
    """Judge when contacts and latches change; no independent check where there are none."""
    violations = compute_contact_and_latch_law_violations(references) if references else None
    if violations is None:
        return []
    check = _form_check("contacts", max(len(violations), MIN_POINTS), list(violations), [])
    if check.verdict == "failed":
        excess = f": {check.ratio:.3g} times what is allowed" if math.isfinite(check.ratio) else ""
        check = replace(check, reason=check.worst + excess)
    return [replace(check, points=len(violations))]


def check_potential_energy(
    definition: CheckedModel, mechanism: Mechanism, equations: EquationsOfMotion | None
) -> Sequence[IndependentCheck]:
    """Judge the closed form of the potential energy; no independent check where no output has it.

    A potential energy that the model itself gives is an output like any other, so it does not fail.
    """
    requested = potential_energy_check.is_potential_requested(definition) and not mechanism.is_lagrangian_only
    V = make_potential_energy_evaluator(equations) if equations is not None and requested else None
    if V is None:
        return []
    comparison = potential_energy_check.compare_potential_with_loads(mechanism, V)
    check = _form_check(
        "potential", max(comparison.points, MIN_POINTS), [(comparison.ratio, "the potential energy")], []
    )
    if comparison.ratio > 1.0 and (comparison.reason_not_judged or mechanism.given_potential is not None):
        reason = comparison.reason_not_judged or "the model gives a potential energy that is not the one of its loads"
        check = _form_missing_check("potential", reason)
    return [replace(check, points=comparison.points)]


def check_flexible_bodies(definition: CheckedModel, mechanism: Mechanism) -> Sequence[IndependentCheck]:
    """Judge the reduction of flexible bodies; no independent check where there are none."""
    bodies = definition.flexible_bodies
    errors = [
        pair for b in bodies for pair in nodal_inertia_check.compute_nodal_inertia_errors(definition, mechanism, b)
    ]
    return [replace(_form_check("nodes", MIN_POINTS, errors, []), points=len(errors))] if errors else []


def _is_robot(definition: CheckedModel) -> bool:
    """Return whether the mechanics are a robot's, read from a file."""
    mechanics = definition.mechanics
    return isinstance(mechanics, RecordBasedMechanics) and not isinstance(mechanics, ReadyMadeMechanismSource)


def check_imported_declarations(definition: CheckedModel, mechanism: Mechanism) -> IndependentCheck:
    """Judge the import of declared values, units and the experiment."""
    comparisons = [
        *declared_values_check.compare_declared_values(definition, mechanism.declared),
        *output_requests_check.compare_imported_output_requests(definition, mechanism),
        *declared_values_check.compare_quaternion_lengths(mechanism),
    ]
    if _is_robot(definition):
        from mb2fmu.validation.independent_import.robot_declaration_check import compare_joint_declarations_with_file

        comparisons += compare_joint_declarations_with_file(definition)
    differences = [description for description, is_equal in comparisons if not is_equal]
    return IndependentCheck(
        name=_CHECK_TITLES["values"],
        how=_CHECK_METHODS["values"],
        points=len(comparisons),
        ratio=math.inf if differences else 0.0,
        worst=differences[0] if differences else "",
        verdict="failed" if differences else "passed",
        reason="; ".join(differences[:5]),
    )


def _find_fmu_computed_coordinates(description: FmuDescription, definition: CheckedModel) -> tuple[str, ...]:
    """Return coordinates that the FMU computes from the others, and that are not set."""
    variables = description.variables
    return tuple(c.name for c in definition.coordinates if c.name in variables and not variables[c.name].settable)


def _sample_accelerations(
    definition: CheckedModel,
    mechanism: Mechanism,
    largest_speeds: Mapping[str, float],
    computed_coordinates: Collection[str],
    visited_coordinates: Sequence[Mapping[str, float]],
    runs: Sequence[ExperimentRun],
) -> SympySourceAccelerationSamples:
    """Return samples from the user's own objects; for a robot from an independent import of its file."""
    if _is_robot(definition):
        from mb2fmu.validation.independent_import.independent_robot_accelerations import (
            sample_independent_robot_accelerations,
        )

        return sample_independent_robot_accelerations(definition, mechanism)
    return sample_source_accelerations(
        definition, mechanism, largest_speeds, computed_coordinates, visited_coordinates, runs
    )


def _plan_sampled_derivative_sessions(
    accelerations: SympySourceAccelerationSamples, description: FmuDescription, definition: CheckedModel
) -> dict[str, Operations]:
    """Return one session per sample: set an instance to it and read x'."""
    variables = description.variables
    starts = {name: k for name, k in accelerations.starts.items() if variables[name].settable}
    references = [variables[name].reference for name in _list_derivative_variables(description)]
    outputs = [variables[name].reference for name in _list_common_outputs(accelerations, description)]
    sessions: dict[str, Operations] = {}
    for number, sample in enumerate(accelerations.samples):
        values = sample.point.values
        point = {
            "begin": sample.point.time,
            "stop": sample.point.time + definition.experiment.stop,
            "tolerance": definition.experiment.tolerance,
            "starts": {
                "references": [variables[name].reference for name in starts],
                "values": [values[k] for k in starts.values()],
            },
            "inputs": [variables[name].reference for name in accelerations.inputs],
        }
        states = [values[accelerations.starts[name]] for name, _ in description.state_derivative_pairs]
        inputs = [values[k] for k in accelerations.inputs.values()]
        sessions[_session_name(number)] = [["derivatives", point, inputs, states, references, outputs]]
    return sessions


SOLVED_START_FACTOR = 16.0
"""Factor on the bounds, where an FMU has Co-Simulation only and solves for its start values: it does not take the point
as it is. Newton's method ends with steps of 1e-13, 450 units of round-off of 1 rad and more of less."""


def compare_fmu_derivatives_with_source(
    accelerations: SympySourceAccelerationSamples,
    description: FmuDescription,
    fmu_values: Mapping[str, Sequence[Any]],
    *,
    bound_factor: float = 1.0,
) -> IndependentChecks:
    """Judge what :func:`_plan_sampled_derivative_sessions` has recorded; ``bound_factor``: factor on the bounds."""
    names, output_errors = (
        _list_judged_states(description),
        _compute_output_errors(accelerations, description, fmu_values, bound_factor),
    )
    checks = []
    for method in accelerations.methods:
        if method in accelerations.missing:
            checks.append(_form_missing_check(method, accelerations.missing[method]))
            continue
        errors, refusals = [], []
        for number, sample in enumerate(accelerations.samples):
            recorded = fmu_values[_session_name(number)][0]
            if isinstance(recorded, dict):
                refusals.append(f"at t = {sample.point.time:.4g} s the FMU gave no derivatives: {recorded['failed']}")
                continue
            derivatives = _compute_derivative_errors(
                sample, sample.rates[method], dict(zip(names, recorded[0], strict=True))
            )
            errors += [(ratio / bound_factor, place) for ratio, place in derivatives]
        check = _form_check(
            method,
            len(accelerations.samples),
            errors + (output_errors if method == INDEPENDENT_IMPORT else []),
            refusals,
        )
        checks.append(replace(check, how=check.how + _describe_indefinite_points(accelerations)))
    if output_errors and INDEPENDENT_IMPORT not in accelerations.methods:
        checks.append(_form_check("outputs", len(accelerations.samples), output_errors, []))
    return IndependentChecks(checks=(*checks, *_check_import(accelerations)))


def _describe_indefinite_points(accelerations: SympySourceAccelerationSamples) -> str:
    """Return how many points were drawn again for an indefinite mass matrix, in words; empty if none was."""
    count = accelerations.indefinite_points
    return f"; {count} drawn again, where the object's own mass matrix is indefinite" if count else ""


def _check_import(accelerations: SympySourceAccelerationSamples) -> Sequence[IndependentCheck]:
    """Compare the import with the objects, at samples and where a latch is closed; nothing where nothing is known."""
    differences = [(s.point.time, s.differences) for s in accelerations.samples if s.differences] + list(
        accelerations.latched_import_differences
    )
    errors = [
        (_error_ratio(*pair), f"{quantity} at t = {t:.4g} s")
        for t, by_quantity in differences
        for quantity, pair in by_quantity.items()
    ]
    return [_form_check("reading", len(differences), errors, [])] if errors else []


def _compute_output_errors(
    accelerations: SympySourceAccelerationSamples,
    description: FmuDescription,
    fmu_values: Mapping[str, Sequence[Any]],
    bound_factor: float,
) -> list[tuple[float, str]]:
    """Return error over bound and place of the outputs there; see :func:`compare_fmu_derivatives_with_source`."""
    names, errors = _list_common_outputs(accelerations, description), []
    for number, sample in enumerate(accelerations.samples):
        recorded = fmu_values[_session_name(number)][0]
        if isinstance(recorded, dict):
            continue  # reported with the derivatives
        for name, value in zip(names, recorded[1], strict=True):
            if name in sample.outputs:
                source_value, bound = sample.outputs[name]
                errors.append(
                    (
                        _error_ratio(abs(value - source_value), bound_factor * bound),
                        f"{name} at t = {sample.point.time:.4g} s",
                    )
                )
    return errors


def _list_common_outputs(accelerations: SympySourceAccelerationSamples, description: FmuDescription) -> list[str]:
    """Return outputs that both the objects and the FMU have."""
    names = dict.fromkeys(name for sample in accelerations.samples for name in sample.outputs)
    return [name for name in names if name in description.variables and description.variables[name].is_double]


def _compute_derivative_errors(
    sample: AccelerationSample, rates: Mapping[str, float], derivatives: Mapping[str, float]
) -> list[tuple[float, str]]:
    """Return error over bound of each state's derivative, and its place."""
    return [
        (_error_ratio(abs(value - rates[name]), sample.bounds[name]), f"der({name}) at t = {sample.point.time:.4g} s")
        for name, value in derivatives.items()
    ]


def _error_ratio(error: float, bound: float) -> float:
    """Return error over bound; 0 where both are zero, infinite where the error is not finite."""
    if math.isfinite(error):
        return error / bound if bound > 0 else (0.0 if error == 0 else math.inf)
    return math.inf


def _form_check(method: str, points: int, errors: list[tuple[float, str]], refusals: list[str]) -> IndependentCheck:
    """Return the verdict of one comparison at points: the worst error, the first refusal, or too few points."""
    ratio, worst = max(errors, default=(0.0, ""))
    reason = refusals[0] if refusals else ""
    if ratio > 1:
        reason = reason or f"{worst} is {ratio:.3g} times as far off as round-off explains"
    verdict: Verdict = "failed" if reason else "passed" if points >= MIN_POINTS and errors else "unjudged"
    if verdict == "unjudged":
        reason = f"only {points} admissible points were found, {MIN_POINTS} are needed"
    return IndependentCheck(
        name=_CHECK_TITLES[method],
        how=_CHECK_METHODS[method],
        points=points,
        ratio=ratio,
        worst=worst,
        verdict=verdict,
        reason=reason,
    )


def _form_missing_check(method: str, reason: str) -> IndependentCheck:
    """Return the independent check of a comparison that could not be made, with the reason."""
    return IndependentCheck(
        name=_CHECK_TITLES[method],
        how=_CHECK_METHODS[method],
        points=0,
        ratio=0.0,
        worst="",
        verdict="unjudged",
        reason=reason,
    )


def _form_unjudged_checks(accelerations: SympySourceAccelerationSamples, missing_variables: str) -> IndependentChecks:
    """Return independent checks without comparison; each gives the reason."""
    reason = missing_variables or "no admissible points were found"
    checks = [
        _form_missing_check(method, accelerations.missing.get(method, reason)) for method in accelerations.methods
    ]
    return IndependentChecks(checks=(*checks, *_check_import(accelerations)))


def _session_name(number: int) -> str:
    """Return the name of a driver session by its number."""
    return f"own motion {number}"


def _list_derivative_variables(description: FmuDescription) -> list[str]:
    """Return variables that hold derivatives of states."""
    return [derivative for _, derivative in description.state_derivative_pairs]


def _list_judged_states(description: FmuDescription) -> list[str]:
    """Return the states whose derivatives the FMU gives, in this order."""
    return [name for name, _ in description.state_derivative_pairs]


def _list_missing_variables(description: FmuDescription, accelerations: SympySourceAccelerationSamples) -> str:
    """Return variables that the FMU lacks for setting or reading; empty if it has all."""
    missing = [name for name in (*accelerations.starts, *accelerations.inputs) if name not in description.variables]
    foreign_states = [name for name, _ in description.state_derivative_pairs if name not in accelerations.starts]
    if missing:
        return f"the FMU has no variable {', '.join(missing[:3])}"
    if foreign_states:
        return f"states of the FMU are not the model's: {', '.join(foreign_states[:3])}"
    if not _list_judged_states(description) and not _list_common_outputs(accelerations, description):
        return "the FMU shows no derivatives"
    return ""
