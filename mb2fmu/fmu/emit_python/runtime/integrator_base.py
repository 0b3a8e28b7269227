"""Common part of all integrators: equation, memory, and the step loop between communication points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .failures import StepError, UndefinedValueError

RightHandSide = Callable[[float, Sequence[float]], Sequence[float]]
Accepted = Callable[[float, Sequence[float]], None]
"""Is told of time and state at the end of each internal step that is accepted."""

LONGEST_WALK = 1_000_000
"""Internal steps in one communication step, after which an adaptive method gives up."""

PACE = LONGEST_WALK // 64
"""Internal steps after which it looks whether the rest can be done at the pace of these."""

HOPELESS = 10.0
"""How many times over the rest would take the longest walk if it is given up at once."""


@dataclass(frozen=True, slots=True)
class IntegratorMemory:
    """Memory of an integrator between communication steps; part of the FMU's state.

    Attributes:
        step: Proposed internal step in s; 0.0: none yet.
        error: Error of the last accepted step in units of the tolerance, for the step size control.
        slope: x' at the present point if it is known and still right, else empty.
    """

    step: float = 0.0
    error: float = 1e-4
    slope: tuple[float, ...] = ()

    def after_change(self) -> IntegratorMemory:
        """Return the memory to keep after an input or parameter has changed: the step size."""
        return IntegratorMemory(step=self.step)


class Integrator(ABC):
    """Carries x from one time to a later one. Has no memory of its own: callers pass it in and keep it."""

    @abstractmethod
    def advance(
        self,
        f: RightHandSide,
        t: float,
        x: Sequence[float],
        span: float,
        memory: IntegratorMemory,
        accepted: Accepted | None = None,
    ) -> tuple[list[float], IntegratorMemory]:
        """Integrate x' = f(t, x) from ``t`` to ``t + span``.

        Inside, time is counted from ``t`` on, so that a late start costs no accuracy.

        Args:
            f: Raises ``UndefinedValueError`` where x' has no value.
            t: Start, s.
            x: State at ``t``.
            span: > 0, s.
            memory: From the call before, or ``IntegratorMemory()``.
            accepted: Called after each internal step.

        Returns:
            The state at the end and the memory for the next call.

        Raises:
            StepError: If that cannot be done to the tolerance.
        """


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Error weights: component i may err by ``relative`` · (|x_i| + 0.01 · nominal_i).

    Attributes:
        relative: > 0.
        nominal: Typical magnitude of each state, > 0.
    """

    relative: float
    nominal: tuple[float, ...]

    def norm(self, error: Sequence[float], x: Sequence[float], other: Sequence[float]) -> float:
        """Return the root mean square of ``error`` in units of the tolerance; infinite if it is not a number."""
        if not error:
            return 0.0
        total = 0.0
        for e, a, b, nominal in zip(error, x, other, self.nominal, strict=True):
            ratio = e / (max(abs(a), abs(b)) + 0.01 * nominal)
            total += ratio * ratio
        result = math.sqrt(total / len(error)) / self.relative
        return result if math.isfinite(result) else math.inf


@dataclass(frozen=True, slots=True)
class TentativeStep:
    """The result of one tried internal step.

    Attributes:
        x: State at its end.
        error: Of the embedded method, in units of the tolerance: at most 1 if the step is good.
        slope: x' at its end where the method has it anyway, else empty.
    """

    x: list[float]
    error: float
    slope: tuple[float, ...] = ()


class AdaptiveIntegrator(Integrator):
    """An embedded pair with proportional-integral step size control (Hairer, Norsett, Wanner I, II.4 and IV.2 of II).

    Attributes:
        exponent: 1 / (order of the error estimate + 1).
        integral: Exponent of the last error in the step size control.
        growth: Largest factor from one step to the next.
    """

    exponent: float
    integral: float
    growth: float

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance

    @abstractmethod
    def attempt(
        self, f: RightHandSide, t: float, x: Sequence[float], h: float, slope: Sequence[float]
    ) -> TentativeStep:
        """Try one step of size ``h`` from (t, x) with x' = ``slope`` there."""

    def advance(
        self,
        f: RightHandSide,
        t: float,
        x: Sequence[float],
        span: float,
        memory: IntegratorMemory,
        accepted: Accepted | None = None,
    ) -> tuple[list[float], IntegratorMemory]:
        """See :class:`Integrator`."""
        state = list(x)
        slope = memory.slope or self._slope(f, t, x)
        last_error = memory.error
        proposal = memory.step or self._first_step(f, t, x, slope, span)
        reason, grow, passed = "the error stays above the tolerance", self.growth, 0.0
        foresight = _ProgressForecast()
        for tried in range(LONGEST_WALK):
            left = span - passed
            if tried % PACE == 0 and tried > 0 and foresight.is_hopeless(passed, left):
                raise _too_many("would take ", t + passed)
            pieces = max(1, math.ceil(left / proposal * (1.0 - 1e-10)))
            h = left / pieces
            if passed + 0.1 * h == passed or t + span + h == t + span:
                raise StepError(f"the internal step has shrunk to {h:.3g} s at {t + passed!r} s: {reason}")
            try:
                trial = self.attempt(f, t + passed, state, h, slope)
                error = trial.error
            except UndefinedValueError as undefined:
                reason, error = str(undefined), math.inf
            if error > 1.0:
                proposal = h * self._factor(error, 1.0, 1.0)
                grow = 1.0
                continue
            wanted = h * self._factor(error, last_error, grow)
            # A step cut short by the communication point says nothing against a longer one.
            proposal = max(wanted, proposal) if h < 0.9 * proposal else wanted
            state, last_error, grow = trial.x, max(error, 1e-4), self.growth
            if accepted:
                accepted(t + span if pieces == 1 else t + passed + h, state)
            if pieces == 1:
                return state, IntegratorMemory(proposal, last_error, trial.slope)
            passed += h
            slope = trial.slope or self._slope(f, t + passed, state)
        raise _too_many("", t + passed)

    def _factor(self, error: float, last_error: float, largest: float) -> float:
        """Return the ratio of the next step size to this one."""
        if error == math.inf:
            return 0.2
        if error == 0.0:
            return largest
        factor: float = 0.9 * error ** -(self.exponent - 0.75 * self.integral) * last_error**self.integral
        return min(largest, max(0.2, factor))

    @staticmethod
    def _slope(f: RightHandSide, t: float, x: Sequence[float]) -> tuple[float, ...]:
        """Return x'; an undefined value becomes an error with the time."""
        try:
            return tuple(f(t, x))
        except UndefinedValueError as undefined:
            raise StepError(f"at {t!r} s: {undefined}") from undefined

    def _first_step(
        self, f: RightHandSide, t: float, x: Sequence[float], slope: Sequence[float], longest: float
    ) -> float:
        """Return a step size to begin with (Hairer, Norsett, Wanner I, II.4)."""
        weigh = self.tolerance.norm
        size, speed = weigh(x, x, x), weigh(slope, x, x)
        h = min(longest, 0.01 * size / speed if size > 1e-5 and 1e-5 < speed < math.inf else 1e-6)
        try:
            ahead = f(t + h, [a + h * b for a, b in zip(x, slope, strict=True)])
        except UndefinedValueError:
            return 0.01 * h
        bend = weigh([b - a for a, b in zip(slope, ahead, strict=True)], x, x) / h
        steepest = max(speed, bend)
        if steepest == math.inf:
            return 0.01 * h
        wished = (0.01 / steepest) ** self.exponent if steepest > 1e-15 else max(1e-6, 1e-3 * h)
        return min(100.0 * h, wished, longest)


@dataclass(slots=True)
class _ProgressForecast:
    """Progress at the last check of the pace, and between the last two checks, in s."""

    paced: float = 0.0
    pace: float = 0.0

    def is_hopeless(self, passed: float, left: float) -> bool:
        """Return whether the remaining time needs too many steps at this pace (at most twice the previous pace).

        What begins fast and calms down gathers pace.
        """
        progress = passed - self.paced
        gathers = progress > 2.0 * self.pace
        self.paced, self.pace = passed, progress
        return not gathers and progress * (HOPELESS * LONGEST_WALK / PACE) < left


def _too_many(foreseen: str, t: float) -> StepError:
    """Return the error of a communication step that would take too many internal steps."""
    what = f"{foreseen}more than {LONGEST_WALK} internal steps"
    return StepError(f"{what}; reached {t!r} s; a stiff model needs the implicit method")
