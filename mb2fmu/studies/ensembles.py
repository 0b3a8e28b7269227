"""``Ensemble``: one model many times, with parameters and start values of each; machine code, vectors of instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.studies.dormand_prince import SLOTS, Course, Indices, integrate
from mb2fmu.studies.reductions import Reduction
from mb2fmu.studies.step_control import Floats, Tolerance

Batch = Callable[[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], Floats]
"""f(t, x, r, p), each one set of values or a row per instance."""

Solver = Literal["explicit", "rk4"]


@dataclass(frozen=True, slots=True)
class Runs:
    """What many runs gave.

    Attributes:
        time: Communication points in s, shape (n_t,).
        states: At each of them, shape (n, n_t, n_x); at the last one only, (n, n_x), unless all were asked for.
        outputs: Likewise, (n, n_t, n_y) or (n, n_y).
        state_names: FMU names of the states.
        output_names: FMU names of the outputs.
        reduced: By the names that were given: one number per instance.
        messages: Of each instance: why it ended early, empty where it did not. Its numbers are NaN from there on.
    """

    time: Floats
    states: Floats
    outputs: Floats
    state_names: tuple[str, ...]
    output_names: tuple[str, ...]
    reduced: dict[str, Floats]
    messages: tuple[str, ...]

    def __getitem__(self, name: str) -> Floats:
        """A state or an output by its name: shape (n, n_t), or (n,) of the end; or what was reduced."""
        if name in self.reduced:
            return self.reduced[name]
        if name in self.state_names:
            return np.asarray(self.states[..., self.state_names.index(name)])
        if name in self.output_names:
            return np.asarray(self.outputs[..., self.output_names.index(name)])
        raise KeyError(f"{name!r} is not among {', '.join((*self.reduced, *self.state_names, *self.output_names))}")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """A model as machine code for many instances.

    Attributes:
        states: FMU names.
        parameters: FMU names of the free ones.
        output_names: FMU names.
        x0: Start values, shape (n_x,).
        p0: Values of the parameters, shape (n_p,).
        inputs: Held over each communication step of the experiment, shape (steps, n_r), or one row.
        scale: Absolute over relative tolerance of each state, as the unit has it.
        tolerance: Relative, of the model's experiment.
        step: Communication step of the experiment, s.
        stop: End of the experiment, s.
        most: Steps that may be tried within one communication step.
        rhs: x' of a batch.
        outputs: y of a batch.
        project: Puts states on the constraints; None where there is nothing to do.
    """

    states: tuple[str, ...]
    parameters: tuple[str, ...]
    output_names: tuple[str, ...]
    x0: Floats
    p0: Floats
    inputs: Floats
    scale: Floats
    tolerance: float
    step: float
    stop: float
    most: int
    rhs: Batch
    outputs: Batch
    project: Batch | None = None

    def simulate(
        self,
        n: int,
        values: Mapping[str, npt.ArrayLike] | None = None,
        *,
        stop: float | None = None,
        step: float | None = None,
        tolerance: float | None = None,
        solver: Solver = "explicit",
        internal_step: float | None = None,
        trajectories: bool = False,
        reduce: Mapping[str, Reduction] | None = None,
    ) -> Runs:
        """Moves n instances from their starts; the unit's Co-Simulation gives the same bits for each.

        Args:
            n: Number of instances.
            values: FMU name of a parameter or a state (its start value) → one number, or n of them.
            stop: s; None: as the experiment.
            step: Communication step in s; None: as the experiment.
            tolerance: Relative, of ``explicit``; None: as the experiment.
            solver: ``explicit`` (Dormand and Prince, a step size for each instance), or ``rk4`` (fixed steps).
            internal_step: Of ``rk4`` in s; None: the communication step.
            trajectories: Keep states and outputs at all communication points.
            reduce: Name → what is kept of an output over the communication points.

        Raises:
            AnalysisError: With every fault of names, shapes and times.
        """
        given, wanted = dict(values or {}), dict(reduce or {})
        end, h = self.stop if stop is None else stop, self.step if step is None else step
        self._check(n, given, wanted, end, h, internal_step)
        points = max(round(end / h), 1)
        x, p = np.tile(self.x0, (n, 1)), np.tile(self.p0, (n, 1))
        for name, value in given.items():
            array, names = (p, self.parameters) if name in self.parameters else (x, self.states)
            array[:, names.index(name)] = value
        one_set = not any(name in self.parameters for name in given)
        inputs = self._held(points)
        recorder = _Recorder(self, inputs, p[0] if one_set else p, trajectories, wanted, n)
        recorder.begin(x)
        turns = np.zeros(points + 1, dtype=bool)
        turns[1:-1] = (inputs[1:] != inputs[:-1]).any(axis=1)
        course = Course(0.0, h, points, self.most, turns, self.project is not None)
        if solver == "rk4":
            messages = _fixed_steps(recorder, x, course, internal_step)
        else:
            chosen = min(max(self.tolerance if tolerance is None else tolerance, 1e-12), 1e-2)
            messages = integrate(recorder.slopes, x, course, Tolerance(chosen, self.scale), recorder.arrived)
        return recorder.runs(h, messages)

    def _held(self, points: int) -> Floats:
        """Inputs over each communication step, shape (points, n_r); beyond the experiment the last ones stay."""
        rows = np.minimum(np.arange(points), len(self.inputs) - 1)
        return np.asarray(self.inputs[rows])

    def _check(
        self,
        n: int,
        given: Mapping[str, npt.ArrayLike],
        wanted: Mapping[str, Reduction],
        stop: float,
        step: float,
        internal: float | None,
    ) -> None:
        """Finds every fault of what was asked for."""
        known = (*self.parameters, *self.states)
        faults = [
            Fault(f"{name} is neither a free parameter nor a state", remedy=f"take one of {', '.join(known)}")
            for name in given
            if name not in known
        ]
        faults += [
            Fault(f"{name} has {np.size(value)} values for {n} instances", remedy="give one, or one per instance")
            for name, value in given.items()
            if np.shape(value) not in {(), (n,)}
        ]
        faults += [
            Fault(f"{one.output} is no output", name, f"take one of {', '.join(self.output_names)}")
            for name, one in wanted.items()
            if one.output not in self.output_names
        ]
        numbers = {"n": float(n), "stop": stop, "step": step, "internal_step": 1.0 if internal is None else internal}
        faults += [
            Fault(f"{value:g} is not positive", name, "give a positive number")
            for name, value in numbers.items()
            if not (0.0 < value < np.inf)
        ]
        if faults:
            raise AnalysisError("these instances cannot be simulated:", faults)


class _Recorder:
    """Evaluates for instances, and keeps what was asked for of them."""

    def __init__(
        self,
        ensemble: Ensemble,
        inputs: Floats,
        p: Floats,
        trajectories: bool,
        wanted: Mapping[str, Reduction],
        n: int,
    ) -> None:
        self._ensemble, self._p, self._all, self._wanted = ensemble, p, trajectories, wanted
        self._inputs, self._points = inputs, len(inputs)
        self._picked: tuple[Indices, Floats] = (np.arange(0), p[:0])
        points = len(inputs)
        middle = (points + 1,) if trajectories else ()
        self._states = np.full((n, *middle, len(ensemble.states)), np.nan)
        self._outputs = np.full((n, *middle, len(ensemble.output_names)), np.nan)
        self._memory = {name: one.begin(n) for name, one in wanted.items()}

    def begin(self, x: Floats) -> None:
        """Keeps the start."""
        n = len(x)
        self._keep(np.arange(n), np.zeros(n, dtype=np.intp), np.zeros(n), x)

    def slopes(self, t: Floats, x: Floats, instance: Indices, point: Indices) -> Floats:
        """x'."""
        return self._ensemble.rhs(t, x, self._r(point), self._of(instance))

    def arrived(self, instance: Indices, point: Indices, t: Floats, x: Floats) -> Floats:
        """Puts states on the constraints, and keeps them."""
        if self._ensemble.project is not None:
            # The inputs are still those of the step that ends.
            put = self._ensemble.project(t, x, self._r(point - 1), self._of(instance))
            possible = np.isfinite(put).all(axis=1)
            x = x.copy()
            x[possible, : put.shape[1]] = put[possible]
        self._keep(instance, point, t, x)
        return x

    def runs(self, step: float, messages: Sequence[str]) -> Runs:
        """All that was kept."""
        reduced = {name: one.finish(self._memory[name]) for name, one in self._wanted.items()}
        early = np.array([bool(message) for message in messages])
        for values in reduced.values():
            values[early] = np.nan
        names = self._ensemble.states, self._ensemble.output_names
        time = step * np.arange(self._points + 1, dtype=np.float64)
        return Runs(time, self._states, self._outputs, *names, reduced, tuple(messages))

    def _of(self, instance: Indices) -> Floats:
        """Parameters of instances; who is under way seldom changes."""
        if self._p.ndim == 1:
            return self._p
        if instance is not self._picked[0]:
            self._picked = instance, self._p[instance]
        return self._picked[1]

    def _r(self, point: Indices) -> Floats:
        """Inputs held after communication points."""
        rows = np.minimum(point, self._points - 1)
        return self._inputs[rows] if self._inputs.shape[1] else self._inputs[0]

    def _keep(self, instance: Indices, point: Indices, t: Floats, x: Floats) -> None:
        """Stores states and outputs, as far as they are asked for."""
        last = point == self._points
        if not (self._all or self._wanted or last.any()):
            return
        if not (self._all or self._wanted):
            instance, point, t, x = instance[last], point[last], t[last], x[last]
            last = last[last]
        # As in a unit, inputs change after the outputs of a communication point have been read.
        y = self._ensemble.outputs(t, x, self._r(np.maximum(point - 1, 0)), self._of(instance))
        for name, one in self._wanted.items():
            one.take(self._memory[name], instance, t, y[:, self._ensemble.output_names.index(one.output)])
        if self._all:
            self._states[instance, point], self._outputs[instance, point] = x, y
        else:
            self._states[instance[last]], self._outputs[instance[last]] = x[last], y[last]


def _fixed_steps(recorder: _Recorder, x0: Floats, course: Course, internal: float | None) -> list[str]:
    """The classical method of order 4 with equal steps, by the arithmetic of ``emit/c/runtime/solver_rk4.c``."""
    messages = [""] * len(x0)
    pieces = 1 if internal is None else max(int(np.ceil(course.step / internal * (1.0 - 1e-9))), 1)
    h = course.step / pieces
    for first in range(0, len(x0), SLOTS):
        instance = np.arange(first, min(first + SLOTS, len(x0)))
        x = x0[instance]
        clock = rest = 0.0
        for point in range(course.points):
            at = np.full(len(instance), point, dtype=np.intp)
            for piece in range(pieces):
                x = _rk4_step(recorder, clock + piece * h if piece else clock, h, x, instance, at)
            good = np.isfinite(x).all(axis=1)
            for k in instance[~good]:
                messages[k] = f"x' is not finite before t = {clock + course.step:.6g} s"
            instance, x, at = instance[good], x[good], at[good]
            total = clock + course.step
            added = total - clock
            rest = rest + ((clock - (total - added)) + (course.step - added))
            clock, rest = total + rest, rest - ((total + rest) - total)
            x = recorder.arrived(instance, at + 1, np.full(len(instance), clock), x)
    return messages


def _rk4_step(recorder: _Recorder, t: float, h: float, x: Floats, instance: Indices, point: Indices) -> Floats:
    """One step."""
    stages: list[Floats] = []
    at = x
    with np.errstate(invalid="ignore", over="ignore"):
        for node, ahead in ((0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 0.0)):
            stages.append(recorder.slopes(np.full(len(x), t + node * h), at, instance, point))
            at = x + ahead * h * stages[-1]
        inner = stages[1] + stages[2]
        return np.asarray(x + h / 6.0 * (stages[0] + 2.0 * inner + stages[3]))
