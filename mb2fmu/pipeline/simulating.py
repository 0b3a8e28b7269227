"""How a model moves by its own equations over its experiment, without any unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from mb2fmu import animation
from mb2fmu.errors import Fault, ValidationError
from mb2fmu.pipeline.deriving import AnyModel, derive
from mb2fmu.pipeline.evaluating import right_hand_side
from mb2fmu.pipeline.outcomes import Derivation, Observer, Simulated

if TYPE_CHECKING:
    from mb2fmu.equations.motion import EquationsOfMotion
    from mb2fmu.model import ModelDefinition
    from mb2fmu.pipeline.options import FormulationOptions
    from mb2fmu.pipeline.right_hand_side import RightHandSide

Floats = npt.NDArray[np.float64]
Slope = Callable[[float, Floats], Floats]

LOOSEST, TIGHTEST = 1e-6, 1e-10


def simulate(
    model: AnyModel,
    *,
    arguments: Mapping[str, Any] | None = None,
    stop: float | None = None,
    step: float | None = None,
    observer: Observer | None = None,
    **options: Unpack[FormulationOptions],
) -> Simulated:
    """How a model moves by its own equations, without any unit; ``stop`` and ``step`` instead of its experiment's."""
    derivation = derive(model, arguments=arguments, observer=observer, **options)
    return integrated(derivation, right_hand_side(derivation), stop=stop, step=step)


def integrated(
    derivation: Derivation, f: RightHandSide, *, stop: float | None = None, step: float | None = None
) -> Simulated:
    """Integrates x' = f(t, x, r) through the model's experiment; inputs are lines between its communication points.

    Args:
        derivation: Of the model.
        f: Its equations.
        stop: Instead of the experiment's, s.
        step: Between the times of the result, instead of the experiment's, s.

    Raises:
        ValidationError: If the integration stops early.
    """
    from scipy.integrate import solve_ivp

    from mb2fmu.validation import conditions

    definition = derivation.definition
    run = definition.experiment
    run = replace(run, stop=stop or run.stop, step=step or run.step)
    given = conditions(replace(definition, experiment=run))
    time = given.time
    inputs = np.concatenate([given.inputs, given.inputs[-1:]])

    def slope(t: float, x: Floats) -> Floats:
        return f(t, x, np.array([np.interp(t, time, column) for column in inputs.T]))

    tolerance = max(min(run.tolerance, LOOSEST), TIGHTEST)
    moved: Slope = (lambda t, x: f(t, x, inputs[0])) if given.steady else slope
    implicit: dict[str, Any] = {"jac": lambda t, x: _jacobian(moved, t, x)} if run.stiff else {}
    solution = solve_ivp(
        moved,
        (0.0, float(time[-1])),
        f.x0,
        method="Radau" if run.stiff else "DOP853",
        t_eval=time,
        rtol=tolerance,
        atol=tolerance,
        **implicit,
    )
    if not solution.success:
        fault = Fault(str(solution.message), f"t = {solution.t[-1] if len(solution.t) else 0:g} s")
        raise ValidationError(f"{definition.name} cannot be simulated to {float(time[-1]):g} s:", [fault])
    x = np.asarray(solution.y.T)
    known = describe_variables(derivation.equations, definition)
    y = f.outputs(time, x, inputs).reshape(len(time), -1)
    signals = animation.Signals(tuple(known), tuple(known.values()), np.concatenate([x, y], axis=1))
    return Simulated(
        derivation=derivation, motion=animation.Motion(time, x, inputs, np.array(given.parameters)), signals=signals
    )


def _jacobian(f: Slope, t: float, x: Floats) -> Floats:
    """By forward differences, shape (n, n). Those of SciPy grow without bound for a state on which nothing depends."""
    steps = 1e-7 * np.maximum(1.0, np.abs(x))
    base = f(t, x)
    return np.array([(f(t, x + step * unit) - base) / step for step, unit in zip(steps, np.eye(len(x)), strict=True)]).T


def describe_variables(equations: EquationsOfMotion, definition: ModelDefinition) -> dict[str, str]:
    """FMU name → unit of the states in their order, then of the outputs."""
    states, _, _ = animation.variables(definition, equations)
    return {s.name: s.unit for s in states} | {o.name: o.unit for o in equations.outputs}
