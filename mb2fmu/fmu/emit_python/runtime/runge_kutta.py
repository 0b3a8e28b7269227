"""The classical Runge-Kutta method of order 4 with a fixed step size."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .failures import StepError, UndefinedValueError
from .integrator_base import Accepted, Integrator, IntegratorMemory, RightHandSide


class RungeKutta4(Integrator):
    """Divides each communication step into equal internal steps, none longer than ``internal_step``.

    Args:
        internal_step: In s; 0.0: one internal step per communication step.
    """

    def __init__(self, internal_step: float) -> None:
        self.internal_step = internal_step

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
        # A communication step that is a multiple of the internal one but for round-off is not divided once more.
        pieces = max(1, math.ceil(span / self.internal_step * (1.0 - 1e-9))) if self.internal_step else 1
        h = span / pieces
        state = list(x)
        try:
            for piece in range(pieces):
                state = self._step(f, t + piece * h, state, h)
                if accepted:
                    accepted(t + (piece + 1) * h, state)
        except UndefinedValueError as undefined:
            raise StepError(f"after {t!r} s: {undefined}") from undefined
        if not all(map(math.isfinite, state)):
            raise StepError(f"the state is not finite any more after {t!r} s; the step of {h:.3g} s is too long")
        return state, memory

    @staticmethod
    def _step(f: RightHandSide, t: float, x: Sequence[float], h: float) -> list[float]:
        """Return x(t + h) by one step of the classical Runge-Kutta method."""
        half = 0.5 * h
        k1 = f(t, x)
        k2 = f(t + half, [y + half * a for y, a in zip(x, k1, strict=True)])
        k3 = f(t + half, [y + half * b for y, b in zip(x, k2, strict=True)])
        k4 = f(t + h, [y + h * c for y, c in zip(x, k3, strict=True)])
        return [y + h / 6 * (a + 2 * b + 2 * c + d) for y, a, b, c, d in zip(x, k1, k2, k3, k4, strict=True)]
