"""Requests for sensitivities: names, instants, inputs over time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu.analysis.operating_point_start import OperatingPointStart
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function

Floats = npt.NDArray[np.float64]
InputSignals = Callable[[float], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityRequest:
    """Names the variables to differentiate, the parameters, and the times.

    Attributes:
        of: FMU names of states and outputs.
        to: FMU names of free parameters and states; a state's name means its start value.
        time: Instants in s at which results are wanted, increasing, the first is the start; shape (n_t,).
        tolerance: Relative, of the integration.
        stiff: True: by an implicit method.
        parameters: FMU names of the free parameters, in the program's order.
        outputs: FMU names of the outputs, in the program's order.
        units: FMU name → unit, of everything in ``of`` and ``to``.
    """

    of: tuple[str, ...]
    to: tuple[str, ...]
    time: Floats
    tolerance: float
    stiff: bool
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    units: dict[str, str]


def make_sensitivity_request(
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    start: OperatingPointStart,
    of: Collection[str],
    to: Collection[str],
    *,
    stop: float | None = None,
    step: float | None = None,
    tolerance: float = 1e-9,
) -> SensitivityRequest:
    """Return the model's experiment as far as nothing else is said.

    Args:
        definition: The checked model.
        equations: With the outputs, in the program's order.
        start: Start values, by the names of the states.
        of: FMU names of states and outputs; none: all of them.
        to: FMU names of free parameters and states; none: all parameters.
        stop: In s.
        step: Between two instants, in s.
        tolerance: Relative, of the integration.

    Raises:
        AnalysisError: For every name that there is no derivative of, or by; for instants that do not increase.
    """
    d, experiment = definition, definition.experiment
    end, h = experiment.stop if stop is None else stop, experiment.step if step is None else step
    count = max(round(end / h), 1) if h > 0 and end > 0 else 0
    declared = (*d.coordinates, *d.speeds, *d.auxiliary_states, *d.parameters)
    parameters = tuple(p.name for p in d.parameters if not p.calculated)
    names = tuple(output.name for output in equations.outputs)
    study = SensitivityRequest(
        of=tuple(of) or (*start.names, *names),
        to=tuple(to) or parameters,
        time=start.t + np.linspace(0.0, end, count + 1) if count else np.zeros(0),
        tolerance=tolerance,
        stiff=experiment.stiff,
        parameters=parameters,
        outputs=names,
        units={item.name: item.unit for item in declared} | {output.name: output.unit for output in equations.outputs},
    )
    _check_differentiable(study, start.names)
    return study


def make_experiment_input_signals(definition: DeclaredModelContent, start: OperatingPointStart) -> InputSignals:
    """Return time in s → inputs, shape (n_r,): the experiment's signals, or start values where there is none."""
    function = lambdify_for_numpy([dynamicsymbols._t], _list_signals(definition, start))  # noqa: SLF001  SymPy's time
    return lambda time: np.array(function(time), dtype=np.float64)


def make_scalar_input_signals(
    definition: DeclaredModelContent, start: OperatingPointStart
) -> Callable[[float], Sequence[float]]:
    """Return :func:`make_experiment_input_signals` by Python's floats, for thousands of instants one by one.

    NumPy takes fifty times as long for a signal of several pieces. Where a signal has no value the function raises
    ``ArithmeticError`` or ``ValueError``.
    """
    return compile_scalar_function([dynamicsymbols._t], _list_signals(definition, start))  # noqa: SLF001


def _list_signals(definition: DeclaredModelContent, start: OperatingPointStart) -> list[sm.Expr]:
    """Return an expression of time for each input."""
    given = definition.experiment.signals
    return [
        sm.sympify(given.get(item.symbol, value))
        for item, value in zip(definition.inputs, start.r.tolist(), strict=True)
    ]


def _check_differentiable(study: SensitivityRequest, states: tuple[str, ...]) -> None:
    """Raise for names without derivatives.

    Raises:
        AnalysisError: With every fault.
    """
    known: tuple[tuple[str, Collection[str], Collection[str]], ...] = (
        ("differentiated", study.of, (*states, *study.outputs)),
        ("differentiated by", study.to, (*study.parameters, *states)),
    )
    faults = [
        Fault(f"{name} cannot be {what}", remedy=f"take one of {', '.join(allowed)}")
        for what, names, allowed in known
        for name in names
        if name not in allowed
    ]
    faults += [
        Fault("the instants do not increase", remedy="give a stop after the start, and a step > 0")
        for _ in range(len(study.time) < 2 or bool(np.any(np.diff(study.time) <= 0)))
    ]
    if faults:
        raise AnalysisError("there are no such sensitivities:", faults)
