"""Integrate equations of motion between communication points, compiled where there is a compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.compiled_equations import CompiledEquations, CompiledFunctionError
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.modes.located_events import IntegrationEventLog
from mb2fmu.validation.reference.radau_collocation import get_collocation_struct, integrate_stiff_equations
from mb2fmu.validation.reference.smooth_integration import (
    TIGHTEST_SOLVER_TOLERANCE,
    BatchSlopeFunction,
    SlopeFunction,
    integrate_smooth_equations,
    make_integration_standstill_error,
    make_slope_at_instants,
)
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations, translate_compiled_failures

Floats = npt.NDArray[np.float64]

EVALUATION_BUDGET = 5_000_000
MIN_EVALUATIONS_PER_STEP = 60
"""Evaluations that every communication step may take at least: a few steps of the integration, of a dozen each."""

STIFF_STEP_BUDGET = 100_000
_EVEN_PARTS, _HALVINGS = 16, 30


def list_graded_step_instants(begin: float, end: float) -> Floats:
    """Return instants of a step that crowd at its beginning, where inputs jump and fast motions die out, shape (n,)."""
    fractions = np.unique([0.0, *np.linspace(0.0, 1.0, _EVEN_PARTS + 1), *2.0 ** -np.arange(_HALVINGS)])
    return np.asarray(begin + (end - begin) * fractions)


@dataclass(frozen=True, slots=True)
class TrajectoryIntegrationProblem:
    """Equations and conditions under which (x, W) moves; W is the work of all loads.

    Attributes:
        numeric: The equations.
        time: Communication points in s, shape (n_t,).
        inputs: Held over each step, shape (n_t - 1, n_r).
        prepared: What ``numeric.prepare`` gives for the parameters.
        stiff: An implicit method is needed.
        budget: Evaluations that may be spent.
    """

    numeric: NumericEquations
    time: Floats
    inputs: Floats
    prepared: Sequence[float]
    stiff: bool = False
    budget: int = EVALUATION_BUDGET

    def integrate_trajectory(
        self,
        start: Floats,
        tolerance: float,
        scales: Floats,
        *,
        parts: int = 1,
        projected: bool = False,
        event_log: IntegrationEventLog | None = None,
        ends_early: Callable[[Floats], bool] | None = None,
    ) -> Floats:
        """Return (x, W) at each communication point, shape (n_t, n_x + 1).

        Args:
            start: (x, W) at the first one.
            tolerance: Of each step's error, relative to ``scales`` and to (x, W).
            scales: Magnitudes of (x, W), > 0.
            parts: At least so many steps between two points.
            projected: Every step ends on the constraints.
            event_log: Takes events and modes, where the equations have any.
            ends_early: With events: asked behind each point whether (x, W) up to there will do; there is no more then.

        Raises:
            ValidationError: If the step size vanishes or the budget is spent: the equations are stiff or singular
                there; if a matrix is singular, or the constraints are not found.
        """
        if is_hybrid(self.numeric):
            from mb2fmu.validation.reference.event_integration import integrate_with_events

            return integrate_with_events(
                self.numeric, self.time, self.inputs, self.prepared, start, tolerance, scales,
                parts=parts, projected=projected, budget=self.budget, event_log=event_log, ends_early=ends_early,
            )  # fmt: skip
        compiled = self.numeric.compiled_equations
        if self.stiff and compiled is None:
            return integrate_stiff_equations(self._slopes, self.time, start, tolerance, scales, self._budget)
        if compiled:
            return self._integrate_compiled(compiled, start, tolerance, scales, parts, projected=projected)
        project = self._project if projected else None
        return integrate_smooth_equations(self.slope, self.time, start, tolerance, scales, self.budget, parts, project)

    def integrate_steps_in_c(self, starts: Floats, tolerance: float, scales: Floats) -> Floats | None:
        """Return where each step leads from a start of its own, shape (n_t - 1, n_x + 1); None where C cannot.

        The same bits as of :meth:`integrate_trajectory` over each step, by one call: some hundred steps take less than
        it takes to begin as many. Numbers are NaN from the first step on that does not come to its end.
        """
        compiled = self.numeric.compiled_equations
        if compiled is None or self.stiff or is_hybrid(self.numeric):
            return None
        relative = max(tolerance, TIGHTEST_SOLVER_TOLERANCE)
        return compiled.integrate_steps(
            self.time, self.inputs, self.prepared, starts, tolerance, relative, scales, self._budget
        )

    def slope(self, k: int) -> SlopeFunction:
        """Return the slope of (x, W) while the inputs of step k hold."""
        numeric, prepared = self.numeric, self.prepared
        r: Sequence[float] = self.inputs[k].tolist()

        def held(t: float, y: Floats) -> Floats:
            x_dot, power = numeric.x_dot(t, y[:-1], r, prepared)
            return np.append(x_dot, power)

        return held

    def _slopes(self, k: int) -> BatchSlopeFunction:
        """Return the slopes of (x, W) at several instants while the inputs of step k hold."""
        return make_slope_at_instants(self.slope(k))

    @property
    def _budget(self) -> int:
        """Evaluations that may be spent; steps of an implicit method."""
        return min(self.budget, STIFF_STEP_BUDGET) if self.stiff else self.budget

    def _project(self, k: int) -> Callable[[float, Floats], Floats]:
        """Return the projection of (x, W) onto the constraints while the inputs of step k hold."""
        r = self.inputs[k]
        return lambda t, y: np.append(self.numeric.project(t, y[:-1], r, self.prepared), y[-1])

    def _integrate_compiled(
        self,
        compiled: CompiledEquations,
        start: Floats,
        tolerance: float,
        scales: Floats,
        parts: int,
        *,
        projected: bool,
    ) -> Floats:
        """Integrate by compiled functions, which give the same errors as the others."""
        relative = max(tolerance, TIGHTEST_SOLVER_TOLERANCE)
        collocation = get_collocation_struct() if self.stiff else None
        arguments = (self.time, self.inputs, self.prepared, start, tolerance, relative, scales, self._budget)
        try:
            return compiled.integrate(*arguments, parts=parts, projected=projected, collocation=collocation)
        except CompiledFunctionError as error:
            unit = "steps" if self.stiff else "evaluations"
            reasons = {
                c_structures.STATUS_VANISHING_STEP: _VANISHING_STEP_MESSAGE,
                c_structures.STATUS_BUDGET_SPENT: f"{self._budget} {unit} are spent",
            }
            if error.status in reasons:
                raise make_integration_standstill_error(error.time, reasons[error.status], error.reached) from error
            raise translate_compiled_failures(error) from error


_VANISHING_STEP_MESSAGE = "Required step size is less than spacing between numbers"
