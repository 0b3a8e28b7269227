"""Simulate a model by its own equations over its experiment, without any FMU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from mb2fmu import visualization
from mb2fmu.compiler import evaluation
from mb2fmu.compiler.arithmetic.undefined_start_derivative_error import require_finite_start_derivative
from mb2fmu.errors import Fault, ValidationError
from mb2fmu.model import Model
from mb2fmu.model.declarations.declared_content_and_experiment import map_inputs_to_rates
from mb2fmu.model.value_overrides import OverrideValue
from mb2fmu.pipeline.derivation.event_requirements import needs_event_handling
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, derive, load
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult, StageObserver
from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import right_hand_side, start_values
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.simulation.input_signals import InputSignal, InputValue, read_input_signals
from mb2fmu.pipeline.simulation.simulation_times import choose_stop_time_and_step
from mb2fmu.pipeline.simulation.simulation_trajectories import FmuSimulation, ModelSimulation
from mb2fmu.temporary_files import make_temporary_folder

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
    from mb2fmu.model import DeclaredModelContent
    from mb2fmu.pipeline.derivation.formulation_and_build_options import FormulationOptions
    from mb2fmu.pipeline.derivation.right_hand_side import RightHandSide
    from mb2fmu.pipeline.simulation.fmu_simulation import InterfaceTypeName

Floats = npt.NDArray[np.float64]
StateDerivativeFunction = Callable[[float, Floats], Floats]

LOOSEST, TIGHTEST = 1e-6, 1e-10


def simulate(
    model: AnyModel,
    *,
    at: Mapping[str, OverrideValue] | None = None,
    inputs: Mapping[str, InputValue] | Path | str | None = None,
    arguments: Mapping[str, Any] | None = None,
    stop: float | None = None,
    step: float | None = None,
    kind: InterfaceTypeName | None = None,
    observer: StageObserver | None = None,
    **options: Unpack[FormulationOptions],
) -> ModelSimulation | FmuSimulation:
    """Simulate a model by its own equations, without any FMU; or an FMU by fmpy.

    A model with events of its own, with contacts, or with friction that sticks is run as an FMU too, which is made for
    it: x' alone does not show when a mode ends.

    Args:
        model: A model, the file that has its function, or an FMU (``.fmu``, from any tool).
        at: FMU name of a parameter, start value or input → value in its unit, or text with one (``"30 deg"``).
        inputs: FMU name → formula of ``t`` (``"5*sin(t)"``), number, or function of time; or a CSV file with a column
            ``time`` and columns by FMU name. Rates of a prescribed motion follow its formula; a table or function is
            refused without them. Inputs that are not named follow the model's experiment. An FMU, and a model that is
            run as one, holds them over each step.
        arguments: Of the model file's function.
        stop: In s, instead of the experiment's.
        step: Between the times of the result, in s, instead of the experiment's; an FMU's communication step.
        kind: Of an FMU: ``CoSimulation`` or ``cs``, ``ModelExchange`` or ``me``; None: the first that it offers.
        observer: Is notified of each stage.
        options: See :class:`FormulationOptions`; of a model.

    Raises:
        Mb2FmuError: The class of the stage that found fault.

    Example:
        >>> import mb2fmu
        >>> motion = mb2fmu.simulate("simple_pendulum", at={"l": 0.5}, stop=1.0)
        >>> motion["theta"].shape
        (101,)
    """
    tables = (Path(inputs),) if isinstance(inputs, str | Path) else ()
    given = inputs if isinstance(inputs, Mapping) else {}
    if not isinstance(model, Model) and Path(model).suffix == ".fmu":
        from mb2fmu.pipeline.simulation.fmu_simulation import simulate_fmu_file

        with StageStopwatch(observer)("simulate"):
            return simulate_fmu_file(Path(model), at=at, inputs=given, tables=tables, stop=stop, step=step, kind=kind)
    chosen = (model if isinstance(model, Model) else load(model, arguments)).at(at)
    return simulate_model(chosen, inputs=given, tables=tables, stop=stop, step=step, observer=observer, **options)


def simulate_model(
    model: AnyModel,
    *,
    inputs: Mapping[str, InputValue] | None = None,
    tables: tuple[Path, ...] = (),
    arguments: Mapping[str, Any] | None = None,
    stop: float | None = None,
    step: float | None = None,
    observer: StageObserver | None = None,
    **options: Unpack[FormulationOptions],
) -> ModelSimulation | FmuSimulation:
    """Simulate a model by its own equations, or by its FMU if it has events; arguments as for :func:`simulate`."""
    derivation = derive(model, arguments=arguments, observer=observer, **options)
    return simulate_derivation(derivation, inputs=inputs, tables=tables, stop=stop, step=step, observer=observer)


def simulate_derivation(
    derivation: DerivationResult,
    *,
    inputs: Mapping[str, InputValue] | None = None,
    tables: tuple[Path, ...] = (),
    stop: float | None = None,
    step: float | None = None,
    observer: StageObserver | None = None,
) -> ModelSimulation | FmuSimulation:
    """Simulate a model that is derived already; arguments as for :func:`simulate`."""
    definition = derivation.definition
    units = {item.name: item.unit for item in definition.inputs}
    run = definition.experiment
    stop, step = choose_stop_time_and_step(stop, step, usual_stop=run.stop, usual_step=run.step)
    rates = {item.name: rate.name for item, rate in map_inputs_to_rates(definition.inputs).items()}
    signals = read_input_signals(inputs or {}, tables, units, stop, rates)
    if needs_event_handling(derivation):
        return _simulate_by_fmu(derivation, signals, stop=stop, step=step, observer=observer)
    with StageStopwatch(observer)("simulate"):
        return _integrate_derivation(derivation, right_hand_side(derivation), stop=stop, step=step, signals=signals)


def _simulate_by_fmu(
    derivation: DerivationResult,
    signals: tuple[InputSignal, ...],
    *,
    stop: float | None,
    step: float | None,
    observer: StageObserver | None,
) -> FmuSimulation:
    """Make the FMU of a model in a temporary folder, and run it: it handles the events."""
    from mb2fmu.fmu.package import write_fmu_archive
    from mb2fmu.pipeline.fmu_build.fmu_assembly import build
    from mb2fmu.pipeline.simulation.fmu_simulation import simulate_fmu_file
    from mb2fmu.validation import form_experiment_values

    built = build(derivation, observer=observer)
    run = derivation.definition.experiment
    run = replace(run, stop=stop or run.stop, step=step or run.step)
    given = form_experiment_values(replace(derivation.definition, experiment=run))
    held = {name: _hold_values(given.inputs[:, column], run.step) for column, name in enumerate(given.input_names)}
    inputs: dict[str, InputValue] = {**held, **{signal.name: signal.at for signal in signals}}
    with StageStopwatch(observer)("simulate"), make_temporary_folder("run the FMU") as folder:
        path = folder / f"{derivation.definition.name}.fmu"
        write_fmu_archive(built.core, path)
        return simulate_fmu_file(path, inputs=inputs, stop=run.stop, step=run.step)


def _hold_values(values: Floats, step: float) -> Callable[[float], float]:
    """Return an input that has ``values[k]`` from ``k * step`` on, as a function of time in s."""
    return lambda t: float(values[min(int(t / step + 0.5), len(values) - 1)])


def _integrate_derivation(
    derivation: DerivationResult,
    f: RightHandSide,
    *,
    stop: float | None = None,
    step: float | None = None,
    signals: tuple[InputSignal, ...] = (),
) -> ModelSimulation:
    """Integrate x' = f(t, x, r) through the model's experiment; inputs are lines between its communication points.

    Args:
        derivation: Of the model.
        f: Its equations.
        stop: Instead of the experiment's, s.
        step: Between the times of the result, instead of the experiment's, s.
        signals: Of inputs that do not follow the experiment: evaluated at every instant, not only at the times of the
            result. Steps of the integration are no longer than those, so that no pulse is stepped over.

    Raises:
        ValidationError: If the integration stops early, or x' has no value at the start.
    """
    from mb2fmu.validation import form_experiment_values

    definition = derivation.definition
    if derivation.mechanism.has_event_sources:
        what = f"{definition.name} has events of its own, which equations alone do not know"
        fault = Fault(what, "events", "simulate or animate its FMU: mb2fmu export, then mb2fmu animate NAME.fmu")
        raise ValidationError("the model cannot be simulated without an FMU:", [fault])
    run = definition.experiment
    run = replace(run, stop=stop or run.stop, step=step or run.step)
    given = form_experiment_values(replace(definition, experiment=run))
    time = given.time
    beyond = replace(run, stop=run.stop + run.step)  # signals have a value at the last time, too
    inputs = form_experiment_values(replace(definition, experiment=beyond)).inputs[: len(time)]
    at = {given.input_names.index(signal.name): signal.at for signal in signals}
    for column, signal in at.items():
        inputs[:, column] = [signal(t) for t in time.tolist()]

    def slope(t: float, x: Floats) -> Floats:
        return f(
            t, x, np.array([at[k](t) if k in at else np.interp(t, time, inputs[:, k]) for k in range(len(inputs.T))])
        )

    moved: StateDerivativeFunction = (
        (lambda t, x: f(t, x, inputs[0])) if given.has_constant_inputs and not at else slope
    )
    require_finite_start_derivative(f"{definition.name} cannot be simulated:", f.states, moved(0.0, f.x0))
    longest = float(time[1]) if at else np.inf
    x = _integrate_states(time, moved, f.x0, replace(definition, experiment=run), longest, f.states)
    known = _map_variable_units(derivation.equations, definition)
    y = f.outputs(time, x, inputs).reshape(len(time), -1)
    dependent = _dependent_variable_units(derivation)
    z = _compute_dependent_variables(derivation, time, x, inputs)
    known |= dependent | {item.name: item.unit for item in definition.inputs}
    table = visualization.PlotSignals(tuple(known), tuple(known.values()), np.concatenate([x, y, z, inputs], axis=1))
    motion = visualization.StateTrajectory(time, x, inputs, np.array(given.parameters))
    return ModelSimulation(derivation=derivation, motion=motion, signals=table)


def _dependent_variable_units(derivation: DerivationResult) -> dict[str, str]:
    """Return FMU name → unit of the dependent coordinates and speeds."""
    definition, equations = derivation.definition, derivation.equations
    places = [definition.coordinates[i] for i in equations.q_dependent]
    return {item.name: item.unit for item in (*places, *(definition.speeds[i] for i in equations.u_dependent))}


def _compute_dependent_variables(derivation: DerivationResult, time: Floats, x: Floats, inputs: Floats) -> Floats:
    """Return dependent coordinates and speeds at these times, shape (n_t, n)."""
    program, wanted = derivation.program, len(derivation.equations.q_dependent)
    if not wanted and not derivation.equations.u_dependent:
        return np.zeros((len(time), 0))
    placed, speeds = (len(program.entries[entry].results) for entry in ("position", "dependent_speeds"))
    entries, results = ("position", "dependent_speeds"), range(placed - wanted, placed + speeds)
    p = start_values(derivation)[2]
    return evaluation.make_evaluator(program, entries, results)(time, x, inputs, p).reshape(len(time), -1)


def _integrate_states(
    time: Floats,
    slope: StateDerivativeFunction,
    x0: Floats,
    definition: DeclaredModelContent,
    longest: float,
    names: Sequence[str],
) -> Floats:
    """Integrate x' from x0 at these times, s, in steps of at most ``longest`` s; states, shape (n_t, n_x).

    Raises:
        ValidationError: If the integration stops early.
    """
    from scipy.integrate import solve_ivp

    run = definition.experiment
    tolerance = max(min(run.tolerance, LOOSEST), TIGHTEST)
    implicit: dict[str, Any] = {"jac": lambda t, x: _difference_jacobian(slope, t, x)} if run.stiff else {}
    solution = solve_ivp(
        slope,
        (0.0, float(time[-1])),
        x0,
        method="Radau" if run.stiff else "DOP853",
        t_eval=time,
        rtol=tolerance,
        atol=tolerance,
        max_step=longest,
        **implicit,
    )
    if not solution.success:
        from mb2fmu.validation.reference.integration_standstill_diagnosis import make_scipy_failure_error

        headline = f"{definition.name} cannot be simulated to {float(time[-1]):g} s:"
        raise make_scipy_failure_error(solution, slope, names, headline, 0.0)
    return np.asarray(solution.y.T)


def _difference_jacobian(f: StateDerivativeFunction, t: float, x: Floats) -> Floats:
    """Return ∂x'/∂x by forward differences, shape (n, n); SciPy's own step grows without bound for idle states."""
    steps = 1e-7 * np.maximum(1.0, np.abs(x))
    base = f(t, x)
    return np.array([(f(t, x + step * unit) - base) / step for step, unit in zip(steps, np.eye(len(x)), strict=True)]).T


def _map_variable_units(equations: EquationsOfMotion, definition: DeclaredModelContent) -> dict[str, str]:
    """Return FMU name → unit of the states in their order, then of the outputs."""
    states, _, _ = visualization.list_scene_variables(definition, equations)
    return {s.name: s.unit for s in states} | {o.name: o.unit for o in equations.outputs}
