"""``CompiledModelEnsemble``: one model many times, with parameters and start values of each, as machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.studies.output_reductions import DifferentiableOutputReduction, OutputReduction
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.fmu.toolchain.batch_run_arguments_and_result import BatchRunResult, BatchRunTimeGrid

Floats = npt.NDArray[np.float64]
BatchFunction = Callable[[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], Floats]
"""f(t, x, r, p), each one set of values or a row per instance."""

BatchIntegrator = Callable[[Floats, Floats, BatchRunTimeGrid, bool, Sequence[int]], BatchRunResult]
"""Starts (n, n_x), parameters (n, n_p) or one set, from where to where, whether states are kept at all communication
points, which outputs are."""

EnsembleSolver = Literal["explicit", "implicit", "rk4"]
SOLVERS: tuple[EnsembleSolver, ...] = get_args(EnsembleSolver)

NO_START_MESSAGE = "the start values cannot be put on the constraints"

INSTANCES_PER_BLOCK = 1024
"""Instances that are run before what is reduced is reduced: their outputs are in memory at all communication points."""


@dataclass(frozen=True, slots=True)
class CompiledModelEnsemble:
    """A model as machine code for many instances.

    Attributes:
        states: FMU names.
        parameters: FMU names of the free ones.
        output_names: FMU names of the outputs, then of coordinates and speeds that are no states.
        x0: Start values as they are declared, shape (n_x,).
        p0: Values of the parameters, shape (n_p,).
        inputs: Held over each communication step of the experiment, shape (steps, n_r), or one row.
        scale: Absolute over relative tolerance of each state, as the FMU has it.
        tolerance: Relative, of the model's experiment.
        step: Communication step of the experiment, s.
        stop: End of the experiment, s.
        most: Steps that may be tried within one communication step.
        rhs: x' of a batch.
        outputs: y of a batch, dependent coordinates and speeds behind it.
        motion: Integrates with a step size for each instance.
        implicit_motion: Likewise, by a method for stiff models.
        project: Puts states on the constraints; None where there is nothing to do.
        start: Likewise start values, as they were set; rows without a solution are NaN.
        own: States of the model's; those behind them are derivatives, which are carried along. None: all.
        runs_sequentially: Instances are run one after the other by the model's FMU, which knows events.
        varied: Gives an ensemble that carries derivatives by parameters and start values of these names.
        no_derivatives_reason: Why there is no such ensemble; empty if there is.
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
    rhs: BatchFunction
    outputs: BatchFunction
    motion: BatchIntegrator
    implicit_motion: BatchIntegrator
    project: BatchFunction | None = None
    start: BatchFunction | None = None
    own: int | None = None
    runs_sequentially: bool = False
    varied: Callable[[CompiledModelEnsemble, tuple[str, ...]], CompiledModelEnsemble] | None = None
    no_derivatives_reason: str = ""

    def simulate(
        self,
        n: int,
        values: Mapping[str, npt.ArrayLike] | None = None,
        *,
        stop: float | None = None,
        step: float | None = None,
        tolerance: float | None = None,
        solver: EnsembleSolver = "explicit",
        internal_step: float | None = None,
        trajectories: bool = False,
        reduce: Mapping[str, OutputReduction] | None = None,
        sensitivities: Sequence[str] = (),
    ) -> CompiledModelEnsembleRuns:
        """Move n instances from their starts; each has the same bits as the FMU's Co-Simulation.

        Args:
            n: Number of instances.
            values: FMU name of a parameter or a state (its start value) → one number, or n of them.
            stop: s; None: as the experiment.
            step: Communication step in s; None: as the experiment.
            tolerance: Relative, of ``explicit`` and ``implicit``; None: as the experiment.
            solver: With a step size for each instance ``explicit`` (Dormand and Prince) or ``implicit`` (stiff models:
                RODASP, order 4, with exact Jacobians); or ``rk4`` (fixed steps).
            internal_step: Of ``rk4`` in s; None: the communication step.
            trajectories: Keep states and outputs at all communication points.
            reduce: Name → what is kept of an output over the communication points.
            sensitivities: By which parameters and (names of states) start values all of it is differentiated. They are
                carried along and change no bit of the motion. Events make them jump; an instance that has none (an
                event is only touched) has NaN, and the reason in ``no_derivatives``.

        Raises:
            AnalysisError: With every fault of names, shapes and times.
        """
        given, wanted, to = dict(values or {}), dict(reduce or {}), tuple(sensitivities)
        end, h = self.stop if stop is None else stop, self.step if step is None else step
        times = {"stop": end, "step": h, "internal_step": 1.0 if internal_step is None else internal_step}
        faults = [*self._faults(n, given, wanted, solver, times), *self._faults_of_derivatives(to, wanted)]
        if faults:
            raise AnalysisError("these instances cannot be simulated:", faults)
        carrier = self.varied(self, to) if to and self.varied is not None else self
        points = max(round(end / h), 1)
        x, p = self._starts(n, given)
        x, lost = carrier.project_start_values(x, p, self.inputs[0])
        chosen = min(max(self.tolerance if tolerance is None else tolerance, 1e-12), 1e-2)
        time_grid = carrier.make_time_grid(h, points, chosen)
        select = self._read_outputs(wanted, trajectories=trajectories)
        every = [len(self.output_names) * k + place for k in range(len(to) + 1) for place in select]
        shared = not any(name in self.parameters for name in given)
        move = carrier.select_integrator(solver, internal_step)
        blocks, kept = [], _BlockwiseOutputReductions(self.output_names, select, wanted, n, len(to), h)
        for first in range(0, n, INSTANCES_PER_BLOCK):
            some = slice(first, min(first + INSTANCES_PER_BLOCK, n))
            moved = move(x[some], p[0] if shared else p[some], time_grid, trajectories, every)
            kept.reduce_block(np.arange(n)[some], moved)
            blocks.append(moved if trajectories else replace(moved, path_outputs=moved.path_outputs[:0]))
        time = h * np.arange(points + 1, dtype=np.float64)
        messages = tuple(message for block in blocks for message in block.messages)
        messages = tuple(NO_START_MESSAGE if bad else said for bad, said in zip(lost, messages, strict=True))
        return self._runs(time, blocks, kept, messages, to, trajectories=trajectories)

    def select_integrator(self, solver: EnsembleSolver, internal_step: float | None) -> BatchIntegrator:
        """Return the integrator of that name; ``internal_step`` in s, of ``rk4`` alone."""
        if solver == "rk4":
            return lambda x, p, time_grid, paths, outputs: _integrate_fixed_steps(
                self, x, p, time_grid, internal_step, paths, outputs
            )
        return self.implicit_motion if solver == "implicit" else self.motion

    def _runs(
        self,
        time: Floats,
        blocks: Sequence[BatchRunResult],
        kept: _BlockwiseOutputReductions,
        messages: tuple[str, ...],
        to: tuple[str, ...],
        *,
        trajectories: bool,
    ) -> CompiledModelEnsembleRuns:
        """Join blocks of motions, and separate derivatives from values."""
        names = ("path_states", "path_outputs") if trajectories else ("states", "outputs")
        states, outputs = (np.concatenate([getattr(block, name) for block in blocks]) for name in names)
        (states, by_state), (outputs, by_output) = (_separate_derivatives(each, len(to)) for each in (states, outputs))
        reduced, by_reduced = kept.finish(messages)
        reasons = [reason for block in blocks for reason in block.no_derivatives or block.messages] if to else messages
        return CompiledModelEnsembleRuns(
            time,
            states,
            outputs,
            self.states,
            self.output_names,
            reduced,
            messages,
            to,
            by_state,
            by_output,
            by_reduced,
            tuple(first or then for first, then in zip(messages, reasons, strict=True)),
        )

    def _read_outputs(self, wanted: Mapping[str, OutputReduction], *, trajectories: bool) -> list[int]:
        """Return the places of the outputs that a run must give: all of them, or the reduced ones."""
        recorded_outputs = self.output_names if trajectories else dict.fromkeys(one.output for one in wanted.values())
        return [self.output_names.index(name) for name in recorded_outputs]

    def _starts(self, n: int, given: Mapping[str, npt.ArrayLike]) -> tuple[Floats, Floats]:
        """Return states (n, n_x) and parameters (n, n_p) of n instances, with the given values set."""
        x, p = np.tile(self.x0, (n, 1)), np.tile(self.p0, (n, 1))
        for name, value in given.items():
            array, names = (p, self.parameters) if name in self.parameters else (x, self.states)
            array[:, names.index(name)] = value
        return x, p

    def project_start_values(self, x: Floats, p: Floats, r: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return start values on the constraints, with derivatives, and the instances that have none."""
        own = len(self.states) if self.own is None else self.own
        wide = np.zeros((len(x), len(self.states)))
        wide[:, :own] = x
        if self.start is not None:
            wide = np.asarray(self.start(0.0, wide, r, p))
        return wide, np.asarray(~np.isfinite(wide[:, :own]).all(axis=1) & np.isfinite(x).all(axis=1))

    def make_time_grid(self, step: float, points: int, tolerance: float) -> BatchRunTimeGrid:
        """Return the times and inputs of a run; beyond the experiment the last inputs stay.

        Whatever the communication step, each begins with the inputs that the experiment has at its time.
        """
        rows = np.floor(np.arange(points) * (step / self.step) + 1e-6).astype(np.intp)
        inputs = np.asarray(self.inputs[np.minimum(rows, len(self.inputs) - 1)])
        turns = np.zeros(points + 1, dtype=bool)
        turns[1:-1] = (inputs[1:] != inputs[:-1]).any(axis=1)
        held = inputs if turns.any() else inputs[:1]
        return BatchRunTimeGrid(0.0, step, points, self.most, tolerance, self.scale, held, turns)

    def _faults(
        self,
        n: int,
        given: Mapping[str, npt.ArrayLike],
        wanted: Mapping[str, OutputReduction],
        solver: str,
        times: Mapping[str, float],
    ) -> list[Fault]:
        """Return every fault of the request."""
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
        if solver not in SOLVERS:
            faults.append(Fault(f"there is no solver {solver!r}", "solver", f"take one of {', '.join(SOLVERS)}"))
        if solver == "rk4" and self.runs_sequentially:
            faults.append(Fault("rk4 knows no events, which this model has", "solver", "take explicit or implicit"))
        numbers = {"n": float(n), **times}
        faults += [
            Fault(f"{value:g} is not positive", name, "give a positive number")
            for name, value in numbers.items()
            if not (0.0 < value < np.inf)
        ]
        return faults

    def _faults_of_derivatives(self, to: tuple[str, ...], wanted: Mapping[str, OutputReduction]) -> list[Fault]:
        """Return every fault of the requested derivatives."""
        if not to:
            return []
        known = (*self.parameters, *self.states)
        faults = [
            Fault(
                f"{name} is neither a free parameter nor a state", "sensitivities", f"take some of {', '.join(known)}"
            )
            for name in to
            if name not in known
        ]
        faults += [
            Fault(f"{name} stands {to.count(name)} times", "sensitivities", "name each once")
            for name in dict.fromkeys(to)
            if to.count(name) > 1
        ]
        faults += [
            Fault("it has no method differentiate", name, "write one, or take trajectories=True")
            for name, one in wanted.items()
            if not isinstance(one, DifferentiableOutputReduction)
        ]
        if self.varied is None:
            what = f"instances with events carry none here: {self.no_derivatives_reason}"
            faults.append(Fault(what, "sensitivities", "take mb2fmu.sensitivities, one by one"))
        return faults


def _separate_derivatives(carried: Floats, k: int) -> tuple[Floats, Floats]:
    """Return values (…, n), and k derivatives of each that stand behind them, (…, n, k)."""
    blocks = carried.reshape(*carried.shape[:-1], k + 1, carried.shape[-1] // (k + 1))
    return np.asarray(blocks[..., 0, :]), np.moveaxis(blocks[..., 1:, :], -2, -1)


class _BlockwiseOutputReductions:
    """Reductions, block by block.

    Args:
        names: Of all outputs.
        select: Places of those that motions give.
        wanted: What is kept.
        n: Number of instances.
        k: Number of derivatives of each output, which stand behind all outputs.
        step: Communication step, s.
    """

    def __init__(
        self,
        names: Sequence[str],
        select: Sequence[int],
        wanted: Mapping[str, OutputReduction],
        n: int,
        k: int,
        step: float,
    ) -> None:
        self._wanted, self._step = wanted, step
        self._places = {name: select.index(names.index(one.output)) for name, one in wanted.items()}
        self._behind = [len(select) * (i + 1) for i in range(k)]
        self._memory = {name: one.allocate_memory(n) for name, one in wanted.items()}
        self._derivatives = {name: np.full((n, k), np.nan) for name in wanted}

    def reduce_block(self, instances: npt.NDArray[np.intp], moved: BatchRunResult) -> None:
        """Pass on the values of outputs by communication point; derivatives as a whole."""
        for name, one in self._wanted.items():
            place, path = self._places[name], moved.path_outputs
            for k, y in enumerate(np.ascontiguousarray(path[:, :, place].T)):
                one.add_samples(self._memory[name], instances, np.full(len(instances), self._step * k), y)
            if self._behind and isinstance(one, DifferentiableOutputReduction):
                time = self._step * np.arange(path.shape[1], dtype=np.float64)
                slopes = path[:, :, [place + behind for behind in self._behind]]
                self._derivatives[name][instances] = one.differentiate(time, path[:, :, place], slopes)

    def finish(self, messages: Sequence[str]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return the numbers and their derivatives; NaN of instances that ended early."""
        failed = [bool(message) for message in messages]
        reduced = {name: one.finish(self._memory[name]) for name, one in self._wanted.items()}
        for numbers in (*reduced.values(), *self._derivatives.values()):
            numbers[failed] = np.nan
        return reduced, self._derivatives


def _integrate_fixed_steps(
    ensemble: CompiledModelEnsemble,
    x: Floats,
    p: Floats,
    time_grid: BatchRunTimeGrid,
    internal: float | None,
    keep: bool,
    select: Sequence[int],
) -> BatchRunResult:
    """Return the classical method of order 4 with equal steps, with the arithmetic of ``runtime/solver_rk4.c``."""
    n, points = len(x), time_grid.points
    pieces = 1 if internal is None else max(int(np.ceil(time_grid.step / internal * (1.0 - 1e-9))), 1)
    h = time_grid.step / pieces
    messages = [""] * n
    path_x = np.full((n if keep else 0, points + 1, x.shape[1]), np.nan)
    path_y = np.full((n, points + 1, len(select)), np.nan)
    clock = rest = 0.0
    held = np.broadcast_to(time_grid.inputs, (points, time_grid.inputs.shape[1]))
    r = held[0]
    for point in range(points + 1):
        if point:
            r = held[point - 1]
            for piece in range(pieces):
                x = _rk4_step(ensemble, clock + piece * h if piece else clock, h, x, r, p)
            for k in np.flatnonzero(~np.isfinite(x[:, : ensemble.own]).all(axis=1)):
                messages[k] = messages[k] or f"x' is not finite before t = {clock + time_grid.step:.6g} s"
                x[k] = np.nan
            total = clock + time_grid.step
            added = total - clock
            rest = rest + ((clock - (total - added)) + (time_grid.step - added))
            clock, rest = total + rest, rest - ((total + rest) - total)
            x = _project_states(ensemble, clock, x, r, p)
        if keep:
            path_x[:, point] = x
        if select:
            # As in an FMU, inputs change after the outputs of a communication point have been read.
            path_y[:, point] = ensemble.outputs(clock, x, r, p)[:, list(select)]
    return BatchRunResult(x, ensemble.outputs(clock, x, r, p), path_x, path_y, tuple(messages))


def _project_states(ensemble: CompiledModelEnsemble, t: float, x: Floats, r: Floats, p: Floats) -> Floats:
    """Return states moved onto the constraints, where that is possible."""
    if ensemble.project is None:
        return x
    put = ensemble.project(t, x, r, p)
    possible = np.isfinite(put[:, : ensemble.own]).all(axis=1)
    x = x.copy()
    x[possible, : put.shape[1]] = put[possible]
    return x


def _rk4_step(ensemble: CompiledModelEnsemble, t: float, h: float, x: Floats, r: Floats, p: Floats) -> Floats:
    """Return the states after one step."""
    stages: list[Floats] = []
    at = x
    with np.errstate(invalid="ignore", over="ignore"):
        for node, ahead in ((0.0, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 0.0)):
            stages.append(ensemble.rhs(t + node * h, at, r, p))
            at = x + ahead * h * stages[-1]
        inner = stages[1] + stages[2]
        return np.asarray(x + h / 6.0 * (stages[0] + 2.0 * inner + stages[3]))


@dataclass(frozen=True, slots=True)
class CompiledModelEnsembleRuns:
    """Results of many runs.

    Attributes:
        time: Communication points in s, shape (n_t,).
        states: At each of them, shape (n, n_t, n_x); at the last one only, (n, n_x), unless all were requested.
        outputs: Likewise, (n, n_t, n_y) or (n, n_y).
        state_names: FMU names of the states.
        output_names: FMU names of the outputs.
        reduced: By the names that were given: one number per instance.
        messages: Of each instance: why it ended early, empty where it did not. Its numbers are NaN from there on.
        to: By what was differentiated: FMU names of parameters, and of states for their start values.
        state_derivatives: ∂x/∂to where the states are, with one more axis: shape (n, n_t, n_x, n_to) or (n, n_x, n_to).
        output_derivatives: ∂y/∂to likewise.
        reduced_derivatives: By the names that were given: of what was reduced, shape (n, n_to).
        no_derivatives: Of each instance: why its derivatives are NaN (an event that is only touched, two events at one
            instant), empty where they are there.
    """

    time: Floats
    states: Floats
    outputs: Floats
    state_names: tuple[str, ...]
    output_names: tuple[str, ...]
    reduced: dict[str, Floats]
    messages: tuple[str, ...]
    to: tuple[str, ...]
    state_derivatives: Floats
    output_derivatives: Floats
    reduced_derivatives: dict[str, Floats]
    no_derivatives: tuple[str, ...]

    def __getitem__(self, name: str | tuple[str, str]) -> Floats:
        """Return a state or output by its name: shape (n, n_t), or (n,) at the end; or its reduction.

        ``runs["tip.x", "m2"]`` is the derivative of the first by the second, of the same shape.
        """
        if isinstance(name, tuple):
            return self._derivative(*name)
        if name in self.reduced:
            return self.reduced[name]
        if name in self.state_names:
            return np.asarray(self.states[..., self.state_names.index(name)])
        if name in self.output_names:
            return np.asarray(self.outputs[..., self.output_names.index(name)])
        raise KeyError(f"{name!r} is not among {', '.join((*self.reduced, *self.state_names, *self.output_names))}")

    def _derivative(self, of: str, to: str) -> Floats:
        """Return the derivative of one by another."""
        if to not in self.to:
            raise KeyError(f"nothing was differentiated by {to!r}, but by {', '.join(self.to) or 'nothing'}")
        k = self.to.index(to)
        if of in self.reduced_derivatives:
            return np.asarray(self.reduced_derivatives[of][:, k])
        if of in self.state_names:
            return np.asarray(self.state_derivatives[..., self.state_names.index(of), k])
        if of in self.output_names:
            return np.asarray(self.output_derivatives[..., self.output_names.index(of), k])
        raise KeyError(f"{of!r} is not among {', '.join((*self.reduced, *self.state_names, *self.output_names))}")
