"""Models whose motion needs more than x': events, contacts, friction that sticks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler import events
from mb2fmu.compiler.arithmetic.python_newton import SingularMatrixError
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program import Program
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model import Declarations
from mb2fmu.model.scales.switching_scales import estimate_switching_scales
from mb2fmu.pipeline.derivation.pipeline_results import Derivation

Floats = npt.NDArray[np.float64]


def needs_events(derivation: Derivation) -> bool:
    """Return whether the motion needs more than x': the model's own events, contacts, friction that sticks."""
    if derivation.mechanism.has_event_sources:
        return True
    return has_sticking_friction(derivation)


def has_sticking_friction(derivation: Derivation) -> bool:
    """Return whether friction can stick in a mode of the program."""
    return any(switch.kind == "sticking" for switch in events.list_switches(derivation.program_with_modes))


def add_discrete_modes(definition: Declarations, equations: EquationsOfMotion, program: Program) -> Program:
    """Return a program with modes, surfaces divided by natural magnitudes; the very same one if nothing switches.

    Args:
        definition: What the model declares.
        equations: Of its motion.
        program: The same, lowered.
    """
    independent = [definition.speeds[i] for i in equations.u_independent]
    states = (*definition.coordinates, *independent, *definition.auxiliary_states)

    def sizes(frozen: Program) -> tuple[float, ...]:
        """Return the natural size of each surface of the program with modes."""
        seen, n = make_evaluator(frozen, "surfaces"), len(frozen.entries["indicators"].results)
        modes = [0.0] * len(frozen.layout.memory)

        def surfaces(t: float, x: Sequence[float], r: Sequence[float], p: Sequence[float]) -> Floats:
            """Return the surfaces with all modes zero, shape (n,)."""
            try:
                return np.asarray(seen(t, x, r, p, modes), dtype=np.float64)[:n]
            except SingularMatrixError as error:  # such as a loop that cannot be closed there
                raise ArithmeticError(str(error)) from error

        return estimate_switching_scales(definition, states, surfaces, n)

    return events.freeze_switches(program, sizes)
