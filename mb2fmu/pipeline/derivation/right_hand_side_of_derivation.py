"""x' of a derivation as a NumPy callable, with the start values of its states, inputs and parameters."""

from __future__ import annotations

import numpy as np

from mb2fmu.compiler import evaluation
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.pipeline.derivation.right_hand_side import Floats, RightHandSide


def start_values(derivation: DerivationResult) -> tuple[Floats, Floats, Floats]:
    """Return start values x0 of the states (independent q and u, z), r0 of the inputs, p0 of the free parameters."""
    definition, equations = derivation.definition, derivation.equations
    q = [definition.coordinates[i].start for i in equations.q_independent]
    u = [definition.speeds[i].start for i in equations.u_independent]
    x0 = [*q, *u, *(state.start for state in definition.auxiliary_states)]
    r0 = [signal.start for signal in definition.inputs]
    return (
        np.array(x0),
        np.array(r0),
        np.array([p.value for p in definition.parameters if not p.calculated], dtype=float),
    )


def _callable_names(derivation: DerivationResult) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return FMU names of states, inputs and free parameters, in the order of :func:`start_values`."""
    definition, equations = derivation.definition, derivation.equations
    q = [definition.coordinates[i].name for i in equations.q_independent]
    u = [definition.speeds[i].name for i in equations.u_independent]
    return (
        (*q, *u, *(state.name for state in definition.auxiliary_states)),
        tuple(signal.name for signal in definition.inputs),
        tuple(parameter.name for parameter in definition.parameters if not parameter.calculated),
    )


def right_hand_side(derivation: DerivationResult) -> RightHandSide:
    """Return the equations of motion of a derivation as a NumPy callable."""
    program = derivation.program
    x0, r0, p0 = start_values(derivation)
    evaluate = evaluation.make_evaluator(program, "rhs")
    states, inputs, parameters = _callable_names(derivation)
    return RightHandSide(
        states=states,
        inputs=inputs,
        parameters=parameters,
        x0=x0,
        r0=r0,
        p0=p0,
        evaluate=evaluate,
        evaluate_outputs=evaluation.make_evaluator(program, "outputs", memory=evaluate.memory),
        output_names=program.entries["outputs"].labels,
        program=program,
        memory=evaluate.memory,
    )
