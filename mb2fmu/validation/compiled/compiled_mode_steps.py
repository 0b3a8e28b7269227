"""``CompiledModeSteps``: steps of equations with switches between events, in C.

The twin of ``event_step_loop`` and ``mode_equations`` where at most one thing holds. It goes to the next event, which
the twin processes; whatever C cannot do is left to the twin.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_structures import array_address
from mb2fmu.validation.compiled.compiled_equations import CompiledEquations

Floats = npt.NDArray[np.float64]
SwitchKind = Literal["sign", "truth", "truth at events", "counter", "clock"]
_KINDS: tuple[SwitchKind, ...] = ("sign", "truth", "truth at events", "counter", "clock")  # as enum switch_kind


@dataclass(frozen=True, slots=True)
class HeldSurface:
    """The one surface that is held: of a sign, a contact or a row of a latch.

    Attributes:
        input_index: Of what holds it, among the inputs behind the model's.
        rate_output: Number of the output that it makes zero: the surface's rate, or the second rate of a gap.
        rate_size: What that output is divided by.
        probe: Value by which its effect is measured; 0.0: that of a sign, which is 1.
    """

    input_index: int
    rate_output: int
    rate_size: float = 1.0
    probe: float = 0.0


@dataclass(frozen=True, slots=True)
class ModeStepResult:
    """Where steps in C have ended.

    Attributes:
        time: In s.
        y: (x, W) there.
        step_size: Of the next step, s.
        evaluations: Evaluations of y' that were spent.
        event_margins: At an event: margins at the start of its step, at the event, and a thousandth and a half of the
            last step before it, shape (4, switches). None: it ended otherwise.
    """

    time: float
    y: Floats
    step_size: float
    evaluations: int
    event_margins: Floats | None


class CompiledModeSteps:
    """Compiled equations in given modes, for use in one thread.

    Args:
        equations: Their inputs are those of the model, then modes of all switches; their outputs those of the model,
            then surfaces, limits and rates of all switches.
        kinds: Of the switches.
        sizes: What surfaces are divided by, shape (switches,).
        inputs: Number of the model's inputs.
        outputs: Number of the model's outputs.
        counts: Numbers of all inputs and of all outputs.

    ``sizes`` are read by C wherever they lie: what changes them in place changes margins.
    """

    def __init__(
        self,
        equations: CompiledEquations,
        kinds: Sequence[SwitchKind],
        sizes: Floats,
        inputs: int,
        outputs: int,
        counts: tuple[int, int],
    ) -> None:
        self._equations, n = equations, len(kinds)
        self._kinds = np.array([_KINDS.index(kind) for kind in kinds], dtype=np.int64)
        self.sizes, self._values = np.ascontiguousarray(sizes, dtype=np.float64), np.zeros(n)
        self._margins, self._r = np.zeros((6, n)), np.zeros((2, counts[0]))
        self._x_dot, self._outputs = np.zeros(equations.n_x), np.zeros(counts[1])
        self._time, self._y = np.zeros(2), np.zeros(equations.n_x + 1)
        self._parameters: tuple[Sequence[float], Floats] = ((), np.zeros(0))
        self._scales, self._inputs = np.zeros(equations.n_x + 1), inputs
        self._modes = c_structures.SwitchModesStruct(
            switches=n, inputs=inputs, first=outputs, kinds=array_address(self._kinds),
            sizes=array_address(self.sizes), values=array_address(self._values), r=array_address(self._r[1]),
            x_dot=array_address(self._x_dot), outputs=array_address(self._outputs),
            margins=array_address(self._margins[0]), limits=array_address(self._margins[1]),
            seen=array_address(self._margins[2:]),
        )  # fmt: skip
        self._journey = c_structures.TrajectoryIntegrationStruct(
            time=array_address(self._time), points=2,
            inputs=array_address(self._r[0]), scales=array_address(self._scales),
            modes=ctypes.addressof(self._modes),
        )  # fmt: skip

    def set_modes(
        self,
        values: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        late: float,
        held: HeldSurface | None = None,
    ) -> None:
        """Set modes, shape (switches,), the model's inputs, parameters, by what all margins are larger, and what holds.

        Without ``held`` nothing holds.
        """
        self._values[:] = values
        self._r[0, : self._inputs] = r
        self._r[0, self._inputs : self._inputs + len(values)] = values
        modes = self._modes
        modes.held, modes.late = -1 if held is None else held.input_index, late
        if held is not None:
            modes.held_rate, modes.held_size, modes.probe = held.rate_output, held.rate_size, held.probe
        if self._parameters[0] is not prepared:
            self._parameters = (prepared, np.array(prepared, dtype=np.float64))
        self._journey.parameters = array_address(self._parameters[1])

    def compute_margins(self, t: float, x: Floats) -> Floats | None:
        """Return how far each mode is from being wrong at t in s, shape (switches,); None where C cannot say."""
        found, x = np.zeros(len(self._values)), np.array(x, dtype=np.float64)
        status = self._equations.library.reference_margins(
            self._equations.address, ctypes.addressof(self._modes), t, array_address(x), array_address(self._r[0]),
            array_address(self._parameters[1]), array_address(found),
        )  # fmt: skip
        return found if status == c_structures.STATUS_OK else None

    def integrate(
        self,
        span: tuple[float, float],
        y: Floats,
        step: float,
        tolerances: tuple[float, Floats],
        *,
        parts: int,
        projected: bool,
        behind: bool,
        budget: int,
    ) -> ModeStepResult:
        """Integrate toward the end of ``span``, until a switch changes, or something is wrong.

        Args:
            span: Begin and end, s.
            y: (x, W) at the beginning.
            step: Size of the step before, s; infinite: to be chosen.
            tolerances: Relative and absolute of each (x, W).
            parts: At least so many steps.
            projected: Every step ends on the constraints.
            behind: An event is at the beginning.
            budget: Evaluations that may be spent.
        """
        self._time[:], self._y[:], self._scales[:] = span, y, tolerances[1] / tolerances[0]
        journey = self._journey
        journey.tolerance = journey.relative = tolerances[0]
        journey.budget, journey.spent, journey.step = budget, 0, step
        journey.parts, journey.projected, self._modes.behind = parts, int(projected), int(behind)
        status = self._equations.library.reference_integrate_in_modes(
            self._equations.address, ctypes.addressof(journey), array_address(self._y)
        )
        seen = self._margins[2:].copy() if status == c_structures.STATUS_EVENT else None
        return ModeStepResult(journey.stuck, self._y.copy(), journey.step, journey.spent, seen)
