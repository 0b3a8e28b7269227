"""Models whose motion needs more than x': events, contacts, friction that sticks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler import events
from mb2fmu.compiler.arithmetic.python_newton import SingularMatrixError
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model import DeclaredModelContent
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult

Floats = npt.NDArray[np.float64]


def needs_event_handling(derivation: DerivationResult) -> bool:
    """Return whether the motion needs more than x': the model's own events, contacts, friction that sticks."""
    if derivation.mechanism.has_event_sources:
        return True
    return bool(list_sticking_frictions(derivation))


def list_sticking_frictions(derivation: DerivationResult) -> tuple[str, ...]:
    """Return the names of the modes of the program in which friction can stick."""
    switches = events.list_program_switches(derivation.program_with_modes)
    return tuple(switch.name for switch in switches if switch.kind == "sticking")


def list_event_sources(derivation: DerivationResult) -> tuple[tuple[str, str], ...]:
    """Return what the motion needs beyond x', by kind and name; empty where :func:`needs_event_handling` is false."""
    mechanism = derivation.mechanism
    names: dict[str, Sequence[str]] = {
        "event": [event.name for event in mechanism.events],
        "contact": [contact.name for contact in mechanism.contacts.each] if mechanism.contacts else [],
        "latch": [latch.name for latch in mechanism.latches.each] if mechanism.latches else [],
        "friction that sticks": list_sticking_frictions(derivation),
    }
    return tuple((kind, name) for kind, found in names.items() for name in found)


def add_discrete_modes(
    definition: DeclaredModelContent, equations: EquationsOfMotion, program: ScalarProgram
) -> ScalarProgram:
    """Return a program with modes, surfaces divided by natural magnitudes; the very same one if nothing switches.

    Args:
        definition: What the model declares.
        equations: Of its motion.
        program: The same, lowered.
    """
    if not events.needs_modes(program):
        return program
    from mb2fmu.model.scales.switching_function_scales import estimate_switching_scales

    independent = [definition.speeds[i] for i in equations.u_independent]
    states = (*definition.coordinates, *independent, *definition.auxiliary_states)

    def sizes(frozen: ScalarProgram) -> tuple[float, ...]:
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

    return events.convert_switches_to_modes(program, sizes)
