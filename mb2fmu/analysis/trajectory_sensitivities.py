"""Sensitivities of a whole trajectory with respect to parameters and start values, by the variational equations.

With x' = f(t, x, r, p), y = h(t, x, r, p) and θ some of the parameters and start values, S = ∂x/∂θ obeys

    S' = ∂f/∂x S + ∂f/∂θ,      S(0) = ∂x(0)/∂θ,      ∂y/∂θ = ∂h/∂x S + ∂h/∂θ,

which is integrated together with x, under the same error control; at events S jumps (``saltation``). The products with
S are directional derivatives of the program (exact; no differences), all directions in one pass.

Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., Springer 1993, sect.
I.14, "Differentiation with respect to parameters and initial values".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_ivp

from mb2fmu.analysis.event_jump_sensitivities import ProgramEventProcessor
from mb2fmu.analysis.operating_point_start import OperatingPointStart
from mb2fmu.analysis.saltation_sensitivities import IntegrationProblem, SaltationIntegration
from mb2fmu.analysis.sensitivity_request import SensitivityRequest
from mb2fmu.analysis.zero_order_hold_inputs import ZeroOrderHoldInputs, iterate_input_jump_times
from mb2fmu.compiler.arithmetic.undefined_start_derivative_error import require_finite_start_derivative
from mb2fmu.compiler.derivatives import differentiate_forward
from mb2fmu.compiler.evaluation import EntryPointEvaluator, make_evaluator
from mb2fmu.compiler.events import convert_switches_to_modes
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import AnalysisError
from mb2fmu.units import derive_quotient_unit
from mb2fmu.validation.reference.integration_standstill_diagnosis import make_scipy_failure_error

Floats = npt.NDArray[np.float64]
InputSignals = Callable[[float], Floats]

_DIFFERENTIATED_GROUPS: tuple[VariableGroup, ...] = ("states", "parameters")
_MAX_SEPARATE_DIRECTIONS = 4
"""Directions that are followed one after the other."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sensitivities:
    """A trajectory and its derivatives. ``result["tip.x", "m"]`` is ∂(tip.x)/∂m over time, shape (n_t,).

    Attributes:
        of: What was differentiated: FMU names of states and outputs.
        to: By what: FMU names of free parameters, and of states for their start values.
        time: In s, shape (n_t,).
        values: Of ``of``, in their units, shape (n_t, n_of).
        derivatives: ∂of/∂to at each instant, shape (n_t, n_of, n_to); element [k, i, j] is in ``unit(of[i], to[j])``.
        units: FMU name → unit.
    """

    of: tuple[str, ...]
    to: tuple[str, ...]
    time: Floats
    values: Floats
    derivatives: Floats
    units: dict[str, str]

    def __repr__(self) -> str:
        """Return one line: the variables, the parameters, and the last instant in s."""
        return f"<Sensitivities of {', '.join(self.of)} to {', '.join(self.to)}, up to {self.time[-1]:g} s>"

    def __getitem__(self, names: tuple[str, str]) -> Floats:
        """Return the derivative of one variable with respect to one parameter over time, shape (n_t,)."""
        of, to = names
        return np.asarray(self.derivatives[:, self._place(self.of, of), self._place(self.to, to)])

    def value(self, name: str) -> Floats:
        """Return values that were differentiated, over time, shape (n_t,)."""
        return np.asarray(self.values[:, self._place(self.of, name)])

    def unit(self, of: str, to: str) -> str:
        """Return the unit of a derivative: m of kg gives ``m/kg``."""
        return derive_quotient_unit(self.units[of], self.units[to])

    @staticmethod
    def _place(names: tuple[str, ...], name: str) -> int:
        """Return the place of a name; raise with all names if it is unknown."""
        if name not in names:
            raise KeyError(f"{name!r} is not among {', '.join(names)}")
        return names.index(name)


def compute_sensitivities(
    program: ScalarProgram, start: OperatingPointStart, signals: InputSignals, study: SensitivityRequest
) -> Sensitivities:
    """Integrate x and S = ∂x/∂θ over the experiment.

    Args:
        program: As lowered.
        start: Start values of the states, values of the parameters.
        signals: Time → inputs, shape (n_r,); ``ZeroOrderHoldInputs`` where they jump.
        study: What is wanted.

    Returns:
        The trajectory with its derivatives.

    Raises:
        ValidationError: If x' has no value at the start.
        AnalysisError: If the equations cannot be integrated; if an event is only touched (grazing), or two that move
            apart happen at one instant: there is no derivative then.
    """
    frozen = convert_switches_to_modes(program)
    if frozen is not program:
        return _integrate_through_events(frozen, start, signals, study)
    variation = _VariationalRightHandSide(program, start, signals, study)
    n, k, time = len(start.x), len(study.to), study.time
    y = np.concatenate([variation.x, variation.start.ravel()])
    values, derivatives, done, begin = [], [], 0, float(time[0])
    with np.errstate(all="ignore"):
        require_finite_start_derivative(
            "the motion cannot be differentiated:", start.names, variation.slope(begin, y)[:n]
        )
    for end in iterate_input_jump_times(signals, float(time[-1])):
        rows = np.flatnonzero((np.arange(len(time)) >= done) & (time <= end))
        with np.errstate(over="ignore", invalid="ignore"):  # derivatives that grow without bound: reported below
            solution = solve_ivp(
                variation.slope,
                (begin, end),
                y,
                method="Radau" if study.stiff else "DOP853",
                t_eval=np.union1d(time[rows], [end]),
                rtol=max(study.tolerance, 2.3e-14),
                atol=study.tolerance * variation.scales(variation.x),
            )
        if not solution.success:
            names = [*start.names, *(f"derivative {i + 1}" for i in range(len(y) - n))]
            explained = make_scipy_failure_error(solution, variation.slope, names, "", begin)
            raise AnalysisError("the motion cannot be differentiated:", explained.faults)
        y, begin, done = solution.y[:, -1], end, done + len(rows)
        path = solution.y[:, : len(rows)]
        seen = variation.evaluate_differentiated_values(time[rows], path[:n].T, path[n:].T.reshape(-1, k, n))
        values.append(seen[0])
        derivatives.append(seen[1])
    return Sensitivities(study.of, study.to, time, np.concatenate(values), np.concatenate(derivatives), study.units)


def _integrate_through_events(
    frozen: ScalarProgram, start: OperatingPointStart, signals: InputSignals, study: SensitivityRequest
) -> Sensitivities:
    """Return the same for a program with modes."""
    variation = _VariationalRightHandSide(frozen, start, signals, study)
    n, k = len(start.x), len(study.to)
    changes = ProgramEventProcessor(frozen, signals, start.p, variation.along_p)
    variation.memory = changes.memory  # which changes in place
    integration = IntegrationProblem(
        slope=variation.slope,
        size=n,
        time=study.time,
        ends=iterate_input_jump_times(signals, float(study.time[-1])),
        tolerance=study.tolerance,
        scales=variation.scales(variation.x),
        stiff=study.stiff,
    )
    values, derivatives = np.empty((len(study.time), len(study.of))), np.empty((len(study.time), len(study.of), k))
    for stretch in SaltationIntegration(changes, integration).integrate_through_events(variation.x, variation.start):
        variation.memory = stretch.memory
        if isinstance(signals, ZeroOrderHoldInputs):
            signals.row = stretch.part
        y, rows = stretch.y, stretch.rows
        values[rows], derivatives[rows] = variation.evaluate_differentiated_values(
            study.time[rows], y[:, :n], y[:, n:].reshape(-1, k, n)
        )
    return Sensitivities(study.of, study.to, study.time, values, derivatives, study.units)


class _VariationalRightHandSide:
    """The right-hand side of (x, S) and its outputs. S is stored by rows: one direction after the other.

    Attributes:
        x: States at the start, on the constraints as an FMU puts them there, shape (n_x,).
        start: S there, shape (k, n_x).
        along_p: Derivatives of the parameters, shape (k, n_p).
        memory: Modes of a program that has any, shape (n_m,).
    """

    def __init__(
        self, program: ScalarProgram, start: OperatingPointStart, signals: InputSignals, study: SensitivityRequest
    ) -> None:
        self._signals, self._p = signals, start.p
        self.memory: Floats = np.empty(0)
        n, n_p, k = len(start.x), len(start.p), len(study.to)
        self.start = np.zeros((k, n))
        self.along_p = np.zeros((k, n_p))
        for row, name in enumerate(study.to):
            if name in study.parameters:
                self.along_p[row, study.parameters.index(name)] = 1.0
            else:
                self.start[row, start.names.index(name)] = 1.0
        self.x = start.x
        if "initialize" in program.entries and program.entries["initialize"].results:
            put, along = self._pair(program, "initialize")
            t, r = float(study.time[0]), signals(float(study.time[0]))
            modes = np.zeros(len(program.layout.memory))  # which start values do not depend on
            self.x = np.asarray(put(t, start.x, r, start.p, modes))
            seeds = np.concatenate([self.start, self.along_p], axis=1)
            self.start = np.array([along(t, start.x, r, start.p, modes, seed) for seed in seeds])
        self._sizes = [
            max(abs(start.p[study.parameters.index(name)] if name in study.parameters else 1.0), 1e-6)
            for name in study.to
        ]
        self._rates, self._rate_slopes = self._pair(program, "rhs")
        names = [name for name in study.of if name in start.names]
        self._states = [start.names.index(name) for name in names]
        self._seen = []
        for entry in _list_output_entries(program):
            labels = program.entries[entry].labels
            here = [i for i, label in enumerate(labels) if label in study.of and label not in start.names]
            if here:
                names += [labels[i] for i in here]
                self._seen.append(self._pair(program, entry, here))
        self._order = [names.index(name) for name in study.of]

    def scales(self, x: Floats) -> Floats:
        """Return magnitudes that scale errors of (x, S): x at the start, at least 1; for S divided by those of θ."""
        of_x = np.maximum(np.abs(x), 1.0)
        return np.concatenate([of_x, *(of_x / size for size in self._sizes)])

    def slope(self, t: float, y: Floats) -> Floats:
        """Return (x', S')."""
        n = len(self.start.T)
        x, S = y[:n], y[n:].reshape(self.start.shape)
        r = self._signals(t)
        return np.concatenate(
            [self._rates(t, x, r, self._p, self.memory), self._along(self._rate_slopes, t, x, S, r).ravel()]
        )

    def evaluate_differentiated_values(self, t: Floats, x: Floats, S: Floats) -> tuple[Floats, Floats]:
        """Return the values to differentiate at all times.

        Args:
            t: Shape (n_t,).
            x: Shape (n_t, n_x).
            S: Shape (n_t, k, n_x).

        Returns:
            Values, shape (n_t, n_of), and derivatives, shape (n_t, n_of, k).
        """
        r = np.array([self._signals(each) for each in t.tolist()])
        seen = [np.asarray(outputs(t, x, r, self._p, self.memory)) for outputs, _ in self._seen]
        values = np.concatenate([x[:, self._states], *seen], axis=1)
        slopes = np.empty((len(t), values.shape[1], len(self.along_p)))
        for row, direction in enumerate(self.along_p):
            seeds = np.concatenate([S[:, row], np.broadcast_to(direction, (len(t), len(direction)))], axis=1)
            seen = [np.asarray(along(t, x, r, self._p, self.memory, seeds)) for _, along in self._seen]
            slopes[:, :, row] = np.concatenate([S[:, row][:, self._states], *seen], axis=1)
        return values[:, self._order], slopes[:, self._order]

    def _along(self, slopes: EntryPointEvaluator, t: float, x: Floats, S: Floats, r: Floats) -> Floats:
        """Return directional derivatives along all rows of (S, θ), shape (k, n_results)."""
        seeds = np.concatenate([S, self.along_p], axis=1)
        if len(seeds) <= _MAX_SEPARATE_DIRECTIONS:  # numbers are quicker than short arrays
            return np.array([slopes(t, x, r, self._p, self.memory, seed) for seed in seeds])
        return np.asarray(slopes(t, x, r, self._p, self.memory, seeds))

    @staticmethod
    def _pair(
        program: ScalarProgram, entry: str, results: list[int] | None = None
    ) -> tuple[EntryPointEvaluator, EntryPointEvaluator]:
        """Return an entry point (some of its results), and the same along a direction of (x, p)."""
        along = differentiate_forward(program, entry, _DIFFERENTIATED_GROUPS)
        return make_evaluator(program, entry, results), make_evaluator(along, f"jvp_{entry}", results)


def _list_output_entries(program: ScalarProgram) -> tuple[str, ...]:
    """Return the entries that hold the outputs: one, or with modes one for each level of the computation."""
    if "outputs" in program.entries:
        return ("outputs",)
    entries = ("position", "velocity", "acceleration", "dependent_speeds")
    return tuple(entry for entry in entries if entry in program.entries)
