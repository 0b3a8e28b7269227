"""Builds a mutant's FMU by the product's own way and lets the product's own validation judge it."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from planted import graph
from planted.fault import Mutant, Subject

import mb2fmu.fmu.emit_c
import mb2fmu.fmu.emit_xml
import mb2fmu.fmu.interface
from mb2fmu import pipeline, validation
from mb2fmu.audit.external_checkers import ExternalCheckerFinding
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.arithmetic.python_newton import NoSolutionError
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.errors import Mb2FmuError, ToolError
from mb2fmu.fmu import package
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model import CheckedModel
from mb2fmu.pipeline.derivation import model_derivation
from mb2fmu.pipeline.derivation.event_requirements import add_discrete_modes
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult, FmuBuildResult
from mb2fmu.pipeline.derivation.right_hand_side import CompilableProgram
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.run_and_report import validation_run
from mb2fmu.validation import ReferenceAndBounds, ValidationResult
from mb2fmu.validation.conformity_checks import check_fmu_conformity
from mb2fmu.validation.validation_result import InterfaceTypeResult

EFFECTIVE = 1e-3
"""Of the largest magnitude of a result: a fault that changes less is not counted."""
TIME_LIMIT = 120.0
"""For one run of an FMU, in s."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant.

    Attributes:
        outcome: ``found``; ``survived``: it passed; ``equivalent``: it changes nothing, or too little to count;
            ``refused``: it could not even be made; for the right FMU ``passed`` or ``false alarm``.
        by: The first check that found it.
        effect: Largest change of a result over its largest magnitude; nan where it was not measured.
        seconds: Processor time, its children's included.
    """

    outcome: str
    by: str = ""
    effect: float = float("nan")
    seconds: float = 0.0


def judge(subject: Subject, mutant: Mutant, folder: Path) -> Verdict:
    """Builds, runs and judges one mutant."""
    begin = _processor_seconds()
    verdict = _judged(subject, mutant, folder)
    return replace(verdict, seconds=round(_processor_seconds() - begin, 1))


def _judged(subject: Subject, mutant: Mutant, folder: Path) -> Verdict:
    effect = float("nan")
    try:
        derivation, effect = _derived(subject, mutant)
        if not mutant.by_construction and mutant.level != "none" and not effect >= EFFECTIVE:
            return Verdict("equivalent", effect=effect)
        built = _built(derivation, mutant)
    except (Mb2FmuError, ZeroDivisionError, NoSolutionError) as error:
        return Verdict("refused", _words(error), effect)
    fmu = folder / f"{derivation.definition.name}.fmu"
    package.write_fmu_archive(built.core, fmu)
    try:
        return _said(subject, mutant, derivation, fmu, effect)
    except Mb2FmuError as error:
        how = "it does not run" if isinstance(error, ToolError) else "refused"
        right = mutant.level == "none"
        return Verdict("false alarm" if right else "found", f"{how}: {_words(error)}", effect)
    finally:
        fmu.unlink(missing_ok=True)


def _said(subject: Subject, mutant: Mutant, derivation: DerivationResult, fmu: Path, effect: float) -> Verdict:
    """What the validation says of an FMU that could be made."""
    early = _found_early(subject, mutant, derivation, fmu)
    if early:
        return Verdict("found", early, effect)
    result = _validated(subject, mutant, derivation, fmu)
    if mutant.level == "none":
        return Verdict("passed") if result.passed else Verdict("false alarm", first_finding(result))
    return Verdict("survived", "", effect) if result.passed else Verdict("found", first_finding(result), effect)


def _derived(subject: Subject, mutant: Mutant) -> tuple[DerivationResult, float]:
    """The wrong derivation, and how much of what the FMU computes is another."""
    right = subject.derivation
    if mutant.level == "reading":
        wrong = mutant.change(subject.read)
        with _reading(subject.derivation.checked, wrong):
            derivation = pipeline.derive(subject.model)
    elif mutant.level == "equations":
        equations = mutant.change(right.equations)
        derivation = _with_program(right, equations, CompilableProgram.of(lower_equations_to_program(equations)))
    elif mutant.level == "program":
        derivation = _with_program(right, right.equations, mutant.change(right.program))
    elif mutant.level == "derivatives":
        native = subject.native
        entry = "adjoint" if mutant.fmi == "3" else "tangent"
        return right, graph.effect(subject, native.program, mutant.change(native).program, entries=(entry,))
    else:
        return right, float("nan")
    if derivation.program.layout != right.program.layout:
        return derivation, float("inf")
    return derivation, graph.effect(subject, right.program, derivation.program)


def _with_program(
    right: DerivationResult, equations: EquationsOfMotion, program: CompilableProgram
) -> DerivationResult:
    """The derivation as if these equations had been lowered to this program."""
    with_modes = add_discrete_modes(right.definition, equations, program)
    return replace(right, equations=equations, program=program, program_with_modes=with_modes)


@contextlib.contextmanager
def _reading(checked: CheckedModel, wrong: Any) -> Iterator[None]:
    """Whoever reads the model gets the wrong mechanism."""
    with patch.object(model_derivation, "load_model_and_mechanism", lambda *_: (checked, wrong)):
        yield


def _built(derivation: DerivationResult, mutant: Mutant) -> FmuBuildResult:
    """The FMU, with the fault planted where the stage that it belongs to hands on its result."""
    places: dict[str, tuple[Any, str]] = {
        "derivatives": (derivatives, "add_fmu_derivatives"),
        "interface": (mb2fmu.fmu.interface, "form_fmu_interface"),
        "sources": (mb2fmu.fmu.emit_c, "emit_equation_sources"),
        "description": (mb2fmu.fmu.emit_xml, "emit_fmu_description_files"),
    }
    if mutant.level not in places:
        return pipeline.build(derivation, fmi=mutant.fmi)
    module, name = places[mutant.level]
    with patch.object(module, name, side_effect=_followed(getattr(module, name), mutant.change)) as stage:
        built = pipeline.build(derivation, fmi=mutant.fmi)
    assert stage.called, f"nothing was planted: the pipeline does not call {name} of {module.__name__}"
    return built


def _followed(stage: Callable[..., Any], change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda *args, **options: change(stage(*args, **options))


def _validated(subject: Subject, mutant: Mutant, derivation: DerivationResult, fmu: Path) -> ValidationResult:
    """The product's verdict: against a reference from the wrong reading too, where the reading is what is wrong."""
    used = derivation.equations.method
    if mutant.level == "reading":
        wrong = derivation.mechanism
        stage = StageStopwatch(None)
        return validation_run.validate_fmu(fmu, subject.derivation.checked, wrong, used, stage).result
    result = _against_the_reference(subject, derivation, fmu, subject.yardstick)
    if not result.passed:
        return result
    return replace(
        result,
        independent_check_set=validation.run_independent_checks(
            fmu,
            subject.derivation.checked,
            subject.mechanism,
            given_samples=subject.motions,
            equations=subject.reference.equations,
        ),
    )


def _against_the_reference(
    subject: Subject,
    derivation: DerivationResult,
    fmu: Path,
    yardstick: ReferenceAndBounds,
    *,
    conformance: bool = True,
) -> ValidationResult:
    """Experiments and API checks by the right reference; without perturbed reference data the default experiment."""
    return validation.validate(
        fmu,
        subject.mechanism.declared,
        subject.reference.equations,
        method=derivation.equations.method,
        mechanism=subject.reference.mechanism,
        conformance=conformance,
        time_limit=TIME_LIMIT,
        reference_and_bounds=yardstick,
    )


def _found_early(subject: Subject, mutant: Mutant, derivation: DerivationResult, fmu: Path) -> str:
    """What the one check finds that is likeliest to find faults of this level; empty if nothing.

    The verdict asks that every check passes, so one that fails decides it, and the others need not be run.
    """
    if mutant.level == "reading":
        found = validation.run_independent_checks(
            fmu,
            subject.derivation.checked,
            derivation.mechanism,
            largest_speeds=subject.reach,
            visited_coordinates=subject.visited,
        )
        return "" if found.passed else "independence: failed"
    if mutant.level in {"derivatives", "interface", "description"}:
        findings = check_fmu_conformity(fmu, subject.mechanism.declared, subject.reference.equations, runtime=False)
        return declared(findings) if not subject.redundant else ""
    if mutant.level in {"equations", "program", "sources"}:
        only_default = replace(subject.yardstick, perturbed=None)
        result = _against_the_reference(subject, derivation, fmu, only_default, conformance=False)
        return "" if result.passed else first_finding(result)
    return ""


def first_finding(result: ValidationResult) -> str:
    """The first check that says no, in the order of their cost: what is declared, the default run, the others."""
    said = declared(result.conformance)
    if said:
        return said
    for name, check in _checks(result):
        if check is not None:
            return f"{name}: {check}"
    return "another check"


def declared(findings: Iterable[ExternalCheckerFinding]) -> str:
    """The first error of what an FMU declares, or an empty string."""
    for finding in findings:
        if finding.severity == "error":
            rule = finding.message.partition(":")[0] if finding.checker == "auditor" else finding.checker.split()[0]
            return f"declared: {rule}"
    return ""


def _checks(result: ValidationResult) -> Iterator[tuple[str, str | None]]:
    """Name of each check, and what it found."""
    yield "default experiment", _of_kind(result)
    for other in result.other_interface_types:
        yield f"default experiment in {other.simulation.kind}", _of_kind(other)
    for kind in result.perturbed_experiment.kinds if result.perturbed_experiment else ():
        yield "perturbed experiment", _of_kind(kind)
    for call in result.api_checks:
        yield "calls", call.name if call.verdict == "failed" else None
    for field in fields(result):  # whatever else has a verdict of its own
        value = getattr(result, field.name)
        if field.name != "perturbed_experiment" and getattr(value, "passed", True) is False:
            yield field.name.replace("_", " "), "failed"


def _of_kind(result: ValidationResult | InterfaceTypeResult) -> str | None:
    """Which part of a run is out of its bounds, if any."""
    if any(event.verdict == "failed" for event in result.events):
        return "event"
    if any(v.verdict != "passed" for v in result.variables):
        return "trajectory"
    return next((i.name.split(" of ")[0] for i in result.invariants if i.verdict != "passed"), None)


def _words(error: Exception) -> str:
    """The error in one line, without what differs from run to run."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:160]


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
