"""From a model to its program: load, check, import, choose the formulation, formulate, lower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

import mb2fmu.model
from mb2fmu import robots
from mb2fmu.compiler.lowering import lower_cheapest_equations, lower_equations_to_program
from mb2fmu.compiler.program.evaluation_cost_estimate import estimate_evaluation_cost
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Method
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.prebuilt_mechanism_source import ReadyMadeMechanismSource
from mb2fmu.model import CheckedModel
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics
from mb2fmu.pipeline.derivation.event_requirements import add_discrete_modes
from mb2fmu.pipeline.derivation.formulation_and_build_options import FormulationOptions, refuse_unknown_options
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult, StageObserver
from mb2fmu.pipeline.derivation.right_hand_side import CompilableProgram
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch

AnyModel = mb2fmu.model.Model | Path | str
DerivableModel = AnyModel | CheckedModel


def load(
    path: Path | str, arguments: Mapping[str, Any] | None = None, kind: type[mb2fmu.model.Model] = mb2fmu.model.Model
) -> mb2fmu.model.Model:
    """Return the model of a model file's function, or of a robot description.

    Args:
        path: Python, or URDF.
        arguments: Replace the function's defaults, or the robot's settings.
        kind: Class of the model of a robot description.
    """
    if robots.is_robot_file(path):
        return robots.load_robot(path, arguments or {}, kind)
    return mb2fmu.model.load(Path(path), arguments or {})


def derive(
    model: DerivableModel,
    *,
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
    **options: Unpack[FormulationOptions],
) -> DerivationResult:
    """Derive a program: Model → DeclaredModelContent → Mechanism → EquationsOfMotion → Program.

    Args:
        model: A model, checked or not, or the file that has its function.
        arguments: Of that function, by name.
        observer: Is notified of each stage.
        options: See :class:`FormulationOptions`.

    Raises:
        Mb2FmuError: The class of the stage that found fault.

    Example:
        >>> import mb2fmu
        >>> mb2fmu.derive("simple_pendulum", method="kane")
        <DerivationResult SimplePendulum: by kane; states theta, omega>
    """
    refuse_unknown_options(options, FormulationOptions)
    stage = StageStopwatch(observer)
    checked, read = load_model_and_mechanism(model, arguments, stage)
    method = options.get("method", "auto")
    baumgarte = options.get("baumgarte")
    with stage("formulate"):
        plan = formulations.plan_constraint_treatment(
            read, options.get("constraints", "auto"), baumgarte, options.get("independent", ())
        )
        read = formulations.add_stabilization_rate_parameter(read, plan.treatment, plan.baumgarte)
        tried = _list_candidate_equations(read, method)
        treated = [plan.apply(one) for one in tried]
    with stage("lower"):
        choice = _choose_cheapest_equations(treated)
        program = CompilableProgram.of(choice.program)
        with_modes = add_discrete_modes(read.declared, choice.equations, program)
    return DerivationResult(
        checked=checked,
        definition=read.declared,
        mechanism=read,
        equations=choice.equations,
        program=program,
        program_with_modes=with_modes,
        timings=stage.timings,
        why=choice.why if method in OPEN_METHOD_CHOICES else "",
        treated=plan.reason,
    )


def load_model_and_mechanism(
    model: DerivableModel, arguments: Mapping[str, Any] | None, stage: StageStopwatch
) -> tuple[CheckedModel, Mechanism]:
    """Load and check a model, and read its mechanism, with its loops closed at the start."""
    with stage("load"):
        loaded = load(model, arguments) if isinstance(model, Path | str) else model
    with stage("check"):
        definition = loaded if isinstance(loaded, CheckedModel) else mb2fmu.model.check_model(loaded)
    with stage("read"):
        return definition, mechanism.solve_loop_closure_start_values(_read_mechanism(definition))


def _read_mechanism(definition: CheckedModel) -> Mechanism:
    """Return the mechanism of a checked model, by the reader for its kind of mechanics."""
    match definition.mechanics:
        case ReadyMadeMechanismSource() as source:
            return source.mechanism
        case RecordBasedMechanics():
            return robots.make_robot_mechanism(definition)
    return mechanism.read_mechanism(definition)


OPEN_METHOD_CHOICES = ("auto", "recursive")
"""What leaves a choice open."""
_READABLE_COST_FACTOR = 2.0  # what equations that people can read may cost, in multiples of a recursion's
_MAX_READABLE_EXTRA_COST = 500.0  # and at most, in additions: what is longer by more is not read
_MAX_TMT_BODIES = 4  # bodies up to which TMT's equations are short enough to be tried
_MAX_FULL_MASS_MATRIX_SPEEDS = 20  # speeds up to which a full mass matrix is tried where articulated bodies apply


@dataclass(frozen=True, slots=True)
class _FormulationChoice:
    """Equations by the method that was picked.

    Attributes:
        equations: Of the method that was picked.
        program: The same, lowered.
        why: What was compared, a clause.
    """

    equations: EquationsOfMotion
    program: ScalarProgram
    why: str


def _list_candidate_equations(
    mechanism: Mechanism, requested: Method | Literal["auto"]
) -> tuple[EquationsOfMotion, ...]:
    """Return the equations by every formulation that may be cheapest, or by the requested one.

    Args:
        mechanism: As read.
        requested: ``auto`` leaves all open, ``recursive`` the choice between its variants only.

    Raises:
        FormulationError: If none applies, with every reason.
    """
    if requested not in OPEN_METHOD_CHOICES:
        return (formulations.formulate(mechanism, requested),)
    answers = formulations.check_applicability_of_all_formulations(mechanism)
    if not answers["recursive"].is_applicable:
        return (formulations.formulate(mechanism, requested),)
    methods: list[Method] = []
    if requested == "auto" and len(mechanism.bodies) <= _MAX_TMT_BODIES:
        methods.append(formulations.choose_formulation(mechanism)[0])
    articulated = answers["recursive-articulated"].is_applicable
    if not articulated or len(mechanism.u) <= _MAX_FULL_MASS_MATRIX_SPEEDS:
        methods.append("recursive-composite")
    if articulated:
        methods.append("recursive-articulated")
    return tuple(formulations.formulate(mechanism, method, answers) for method in methods)


def _choose_cheapest_equations(equations: Sequence[EquationsOfMotion]) -> _FormulationChoice:
    """Lower all candidates, and return the one whose x' costs least; written-out equations have an advantage."""
    if len(equations) == 1:
        program = lower_equations_to_program(equations[0])
        return _FormulationChoice(equations[0], program, "nothing else was worth trying")
    costs: list[float] = []

    def estimate_cost(program: ScalarProgram, candidate: EquationsOfMotion) -> float:
        """Return the cost with the advantage, and keep the one without."""
        c = estimate_evaluation_cost(program, "rhs") or estimate_evaluation_cost(program, "outputs")
        costs.append(c)
        return c if candidate.recursion else max(c / _READABLE_COST_FACTOR, c - _MAX_READABLE_EXTRA_COST)

    best, program = lower_cheapest_equations(equations, estimate_cost)
    others = [f"{c:.0f} by {one.method}" for i, (one, c) in enumerate(zip(equations, costs, strict=True)) if i != best]
    what = "x' costs" if equations[best].states else "without states, outputs cost"
    why = f"{what} as much as {costs[best]:.0f} additions, against {' and '.join(others)}"
    return _FormulationChoice(equations[best], program, why)
