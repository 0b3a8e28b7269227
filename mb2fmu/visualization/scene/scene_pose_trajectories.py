"""Motion, and the places of everything along it by the program of a scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler import evaluation
from mb2fmu.visualization.scene.mechanism_scene import Scene

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlotSignals:
    """Variables over the same times, for plots.

    Attributes:
        names: FMU names.
        units: One per name.
        values: Shape (n_t, n).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats


@dataclass(frozen=True, slots=True)
class StateTrajectory:
    """A mechanism's states over time.

    Attributes:
        time: s, growing, shape (n_t,).
        states: In the order of the scene, shape (n_t, n_x).
        inputs: Shape (n_t, n_r).
        parameters: Shape (n_p,).
    """

    time: Floats
    states: Floats
    inputs: Floats
    parameters: Floats

    def __post_init__(self) -> None:
        n = len(self.time)
        if not n or len(self.states) != n or len(self.inputs) != n:
            raise ValueError(f"{n} times, {len(self.states)} states, {len(self.inputs)} inputs")

    def at(self, rows: Sequence[int] | npt.NDArray[np.intp]) -> StateTrajectory:
        """Return the motion at some of its times."""
        return StateTrajectory(self.time[rows], self.states[rows], self.inputs[rows], self.parameters)


@dataclass(frozen=True, slots=True)
class PoseTrajectory:
    """Positions and orientations over time.

    Attributes:
        time: s, shape (n_t,).
        points: m, shape (n_t, n_points, 3).
        rotations: ``N_C_B``, shape (n_t, n_frames, 3, 3).
        vectors: Components in N, shape (n_t, n_vectors, 3).
        sizes: Shape (n_sizes,).
        up: Unit vector against gravity; None where it is not known.
    """

    time: Floats
    points: Floats
    rotations: Floats
    vectors: Floats
    sizes: Floats
    up: Floats | None


def make_single_instant_trajectory(scene: Scene) -> StateTrajectory:
    """Return the start values alone: a motion of one instant."""
    states, inputs, parameters = (
        np.array([variable.start for variable in group]) for group in (scene.states, scene.inputs, scene.parameters)
    )
    return StateTrajectory(np.zeros(1), states[None, :], inputs[None, :], parameters)


def evaluate_scene_poses(scene: Scene, motion: StateTrajectory) -> PoseTrajectory:
    """Evaluate the scene's program; values that are not finite keep those of the instant before."""
    shapes: dict[str, tuple[int, ...]] = {"points": (3,), "rotations": (3, 3), "vectors": (3,)}
    results = [scene.program.entries[entry].results for entry in shapes]
    values = np.zeros((len(motion.time), 0))
    if any(results):  # in one function: a closed loop is solved once for all of them
        function = evaluation.make_evaluator(scene.program, tuple(shapes))
        values = _fill_missing_values(function(motion.time, motion.states, motion.inputs, motion.parameters))
    ends = np.cumsum([len(each) for each in results])[:-1]
    points, rotations, vectors = (
        part.reshape(len(values), -1, *shape)
        for part, shape in zip(np.split(values, ends, axis=1), shapes.values(), strict=True)
    )
    first = motion.at([0])
    arguments = (first.time[0], first.states[0], first.inputs[0], first.parameters)
    sizes = evaluation.make_evaluator(scene.program, "sizes")(*arguments)
    gravity = evaluation.make_evaluator(scene.program, "gravity")(*arguments)
    size = float(np.linalg.norm(gravity)) if len(gravity) else 0.0
    return PoseTrajectory(
        time=motion.time,
        points=points,
        rotations=rotations,
        vectors=vectors,
        sizes=sizes,
        up=-gravity / size if size > 0 and np.isfinite(size) else None,
    )


def sample_experiment_inputs(scene: Scene, time: Floats) -> Floats:
    """Return the signals of the default experiment at some times, shape (n_t, n_r)."""
    if not scene.inputs:
        return np.zeros((len(time), 0))
    n_x, n_p = len(scene.states), len(scene.parameters)
    function = evaluation.make_evaluator(scene.program, "signals")
    return function(time, np.zeros((len(time), n_x)), np.zeros((len(time), len(scene.inputs))), np.zeros(n_p))


def _fill_missing_values(values: Floats) -> Floats:
    """Return columns in which missing values repeat the last finite one; zero before the first."""
    good = np.isfinite(values)
    if good.all():
        return values
    rows = np.where(good, np.arange(len(values))[:, None], 0)
    held = np.take_along_axis(values, np.maximum.accumulate(rows, axis=0), axis=0)
    return np.where(np.isfinite(held), held, 0.0)
