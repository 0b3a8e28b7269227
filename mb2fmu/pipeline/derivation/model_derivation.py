"""From a model to its program: load, check, read, formulate, lower."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import mb2fmu.model
from mb2fmu import robots
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.prebuilt_mechanism import PrebuiltMechanism
from mb2fmu.model import ModelDefinition
from mb2fmu.pipeline.derivation import method_choice
from mb2fmu.pipeline.derivation.pipeline_options import FormulationOptions
from mb2fmu.pipeline.derivation.pipeline_results import Derivation, Observer
from mb2fmu.pipeline.derivation.right_hand_side import CompilableProgram
from mb2fmu.pipeline.derivation.stopwatch import Stopwatch

AnyModel = mb2fmu.model.Model | Path | str
DerivableModel = AnyModel | ModelDefinition


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
    observer: Observer | None = None,
    **options: Unpack[FormulationOptions],
) -> Derivation:
    """Derive a program: Model → Declarations → Mechanism → EquationsOfMotion → Program.

    Args:
        model: A model, checked or not, or the file that has its function.
        arguments: Of that function, by name.
        observer: Is told of each stage.
        options: See :class:`FormulationOptions`.

    Raises:
        Mb2FmuError: The class of the stage that found fault.
    """
    stage = Stopwatch(observer)
    checked, read = read_model(model, arguments, stage)
    method = options.get("method", "auto")
    baumgarte = options.get("baumgarte")
    with stage("formulate"):
        plan = formulations.plan_constraint_treatment(
            read, options.get("constraints", "auto"), baumgarte, options.get("independent", ())
        )
        read = formulations.add_stabilization_rate(read, plan.treatment, baumgarte)
        tried = method_choice.candidates(read, method)
        treated = [plan.treated(one) for one in tried]
    with stage("lower"):
        choice = method_choice.cheapest(treated)
    why = choice.why if method in method_choice.OPEN else ""
    program = CompilableProgram.of(choice.program)
    return Derivation(checked, read.declared, read, choice.equations, program, stage.timings, why, plan.reason)


def read_model(
    model: DerivableModel, arguments: Mapping[str, Any] | None, stage: Stopwatch
) -> tuple[ModelDefinition, Mechanism]:
    """Load and check a model, and read its mechanism, with its loops closed at the start."""
    with stage("load"):
        loaded = load(model, arguments) if isinstance(model, Path | str) else model
    with stage("check"):
        definition = loaded if isinstance(loaded, ModelDefinition) else mb2fmu.model.check_model(loaded)
    with stage("read"):
        return definition, mechanism.close_loops(_read(definition))


def _read(definition: ModelDefinition) -> Mechanism:
    """Return the mechanism of a checked model, by the reader for its kind of mechanics."""
    match definition.mechanics:
        case robots.RobotMechanics():
            return robots.read_robot_mechanism(definition)
        case PrebuiltMechanism() as handed:
            return handed.mechanism
    return mechanism.read_mechanism(definition)
