"""Drawings of motions: of an FMU that fmpy runs, or of a validation beside its reference."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu import visualization
from mb2fmu.errors import Fault, ModelError, PackageError
from mb2fmu.fmu.package.embedded_reference_trajectory import REFERENCE_FILE, REFERENCE_FOLDER
from mb2fmu.pipeline.fmu_build.model_scene import build_model_scene
from mb2fmu.visualization.scene.scene_pose_trajectories import sample_experiment_inputs

if TYPE_CHECKING:
    from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
    from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
    from mb2fmu.validation import ValidationResult
    from mb2fmu.visualization import Drawing, PlotSignals, Scene, StateTrajectory

Floats = npt.NDArray[np.float64]
_MAX_SAMPLES = 20_000


def get_model_scene(derivation: DerivationResult) -> Scene:
    """Return the scene of a model.

    Raises:
        ModelError: If there is nothing to be drawn.
    """
    scene = build_model_scene(derivation.mechanism, derivation.equations)
    if scene is None:
        fault = Fault(
            "neither bodies nor shapes with positions are known",
            derivation.definition.name,
            "say model.place_in(N, O) and model.visual(frame, shape, at=point)",
        )
        raise ModelError("there is nothing to be drawn:", [fault])
    return scene


def read_scene_of_fmu(fmu: InMemoryFileTree, where: str) -> Scene:
    """Return the scene that an FMU carries.

    Raises:
        PackageError: If it carries none.
        ValidationError: If its description cannot be read.
    """
    if visualization.SCENE_FILE not in fmu.files:
        from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description

        read_fmu_description(fmu)  # what cannot be read is the cause
        remedy = "animate it by its model: mb2fmu animate NAME.fmu --model MODEL.py; FMUs of mb2fmu carry their scene"
        raise PackageError(
            f"{where} cannot be animated:", [Fault("the FMU does not say what it looks like", "", remedy)]
        )
    return visualization.Scene.from_json(fmu[visualization.SCENE_FILE], where)


def draw_fmu_motion(
    path: Path, fmu: InMemoryFileTree, scene: Scene, overlay: StateTrajectory | None
) -> tuple[Drawing, PlotSignals]:
    """Run an FMU through the scene's experiment; the reference that it carries is drawn by default.

    Raises:
        ValidationError: If the FMU lacks the scene's variables, or cannot be run here.
        ToolError: If it fails while it runs.
    """
    from mb2fmu import validation
    from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description

    steps = max(1, round(scene.stop / scene.step))
    time = np.arange(steps + 1, dtype=np.float64) * np.float64(scene.step)
    inputs = sample_experiment_inputs(scene, time)
    run = validation.ExperimentValues(
        time=time,
        inputs=inputs[:-1],
        input_names=tuple(variable.name for variable in scene.inputs),
        parameters=tuple(variable.start for variable in scene.parameters),
        q=(),
        u=(),
        z=(),
        tolerance=scene.tolerance,
    )
    known = read_fmu_description(fmu).variables
    outputs = [variable for variable in scene.outputs if variable.name in known and known[variable.name].is_double]
    variables = [*scene.states, *outputs]
    found = validation.simulate_fmu(path, run, [variable.name for variable in variables])
    n = len(scene.states)
    parameters = np.array(run.parameters)
    held = np.concatenate([inputs[:1], inputs[:-1]])
    motion = visualization.StateTrajectory(time, found.values[:, :n], held, parameters)
    signals = visualization.PlotSignals(
        tuple(variable.name for variable in variables), tuple(variable.unit for variable in variables), found.values
    )
    return visualization.draw_motion(scene, motion, overlay or _read_stored_reference(fmu, scene, motion)), signals


def draw_validated_motion(scene: Scene, result: ValidationResult) -> tuple[Drawing, PlotSignals]:
    """Draw a validated FMU; the reference is drawn beside it."""
    run, reference = result.reference.experiment, result.reference.trajectory
    rows = np.unique(np.rint(np.linspace(0, len(run.time) - 1, min(len(run.time), _MAX_SAMPLES))).astype(int))
    names = [variable.name for variable in scene.states]
    inputs = np.array([run.inputs_at(int(k)) for k in rows]).reshape(len(rows), -1)
    parameters = np.array(run.parameters)
    motions = [
        visualization.StateTrajectory(
            run.time[rows], _stack_columns([source[name][rows] for name in names], len(rows)), inputs, parameters
        )
        for source in (result.simulation, reference)
    ]
    units = {v.name: v.unit for v in result.variables}
    order = [v.name for v in result.variables]
    values = _stack_columns([result.simulation[name][rows] for name in order], len(rows))
    signals = visualization.PlotSignals(tuple(order), tuple(units[name] for name in order), values)
    return visualization.draw_motion(scene, *motions), signals


def _read_stored_reference(fmu: InMemoryFileTree, scene: Scene, motion: StateTrajectory) -> StateTrajectory | None:
    """Return the reference trajectory in the FMU at the motion's times, if it has all states."""
    path = f"{REFERENCE_FOLDER}/{REFERENCE_FILE}"
    if path not in fmu.files:
        return None
    rows = list(csv.reader(io.StringIO(fmu[path].decode())))
    column = {name: k for k, name in enumerate(rows[0])}
    names = [variable.name for variable in scene.states]
    if any(name not in column for name in names):
        return None
    table = np.array(rows[1:], dtype=np.float64)
    columns = [np.interp(motion.time, table[:, 0], table[:, column[name]]) for name in names]
    states = _stack_columns(columns, len(motion.time))
    return replace(motion, states=states)


def _stack_columns(columns: Sequence[Floats], rows: int) -> Floats:
    """Return columns as one table, shape (rows, n); n may be 0: an FMU without states."""
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))
