"""Analyses of a derivation at a point or over an experiment, without any FMU."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Unpack

from mb2fmu import analysis
from mb2fmu.pipeline.derivation.formulation_and_build_options import FormulationOptions
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, derive
from mb2fmu.pipeline.derivation.pipeline_results import StageObserver
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch


def linearize(
    model: AnyModel,
    *,
    at: Mapping[str, float | str] | None = None,
    trim: Collection[str] = (),
    search: bool = True,
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
    **options: Unpack[FormulationOptions],
) -> analysis.Linearization:
    """Linearize about an equilibrium or steady motion near the start values, on the constraints.

    Args:
        model: A model, or the file that has its function.
        at: FMU name → value in its unit, instead of the start value. States named here keep their values in the search.
        trim: Names of inputs that may change in the search.
        search: False: at the very start values, moved onto the constraints where need be.
        arguments: Of the model's function, by name.
        observer: Is notified of each stage.
        options: See :class:`FormulationOptions`.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``AnalysisError`` if there is no such point.

    Example:
        >>> import mb2fmu
        >>> found = mb2fmu.linearize("simple_pendulum", at={"theta": 0.0})
        >>> f"{max(value.imag for value in found.eigenvalues):.3f} rad/s"  # the square root of g/l
        '3.132 rad/s'
    """
    derivation = derive(model, arguments=arguments, observer=observer, **options)
    start = analysis.make_operating_point_start(derivation.definition, derivation.equations, at or {}, trim)
    with StageStopwatch(observer)("linearize"):
        linearizer = analysis.OperatingPointLinearizer(derivation.equations, derivation.program)
        return linearizer.linearize(start, search=search)


def sweep(
    model: AnyModel,
    name: str,
    values: Sequence[float],
    *,
    at: Mapping[str, float | str] | None = None,
    trim: Collection[str] = (),
    arguments: Mapping[str, Any] | None = None,
    observer: StageObserver | None = None,
    **options: Unpack[FormulationOptions],
) -> analysis.RootLocus:
    """Return eigenvalues over one quantity (a root locus), and the values at which stability changes.

    Args:
        model: A model, or the file that has its function.
        name: FMU name of a state, which is held, an input or a free parameter.
        values: Increasing, in its unit.
        at: FMU name → value in its unit, instead of the model's.
        trim: Names of inputs that may change in the search of the operating point.
        arguments: Of the model's function, by name.
        observer: Is notified of each stage.
        options: See :class:`FormulationOptions`.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``AnalysisError`` naming the value without such a point.

    Example:
        >>> import mb2fmu
        >>> mb2fmu.sweep("simple_pendulum", "l", [0.5, 1.0])
        <Sweep of l from 0.5 to 1 m: critical values none>
    """
    derivation = derive(model, arguments=arguments, observer=observer, **options)
    definition, equations = derivation.definition, derivation.equations
    numbers = [float(value) for value in values]

    def start_for(value: float) -> analysis.OperatingPointStart:
        return analysis.make_operating_point_start(definition, equations, {**(at or {}), name: value}, trim)

    declared = (*definition.coordinates, *definition.speeds, *definition.auxiliary_states)
    units = {item.name: item.unit for item in (*declared, *definition.inputs, *definition.parameters)}
    with StageStopwatch(observer)("sweep"):
        return analysis.compute_root_locus(
            equations, derivation.program, start_for, numbers, name, units.get(name, "s")
        )


def sensitivities(
    model: AnyModel,
    *,
    of: Collection[str] = (),
    to: Collection[str] = (),
    at: Mapping[str, float] | None = None,
    stop: float | None = None,
    step: float | None = None,
    tolerance: float = 1e-9,
) -> analysis.Sensitivities:
    """Return derivatives of the motion over the experiment: ``result["tip.x", "m"]`` is ∂(tip.x)/∂m over time.

    Args:
        model: A model, or the file that has its function; inputs follow the signals of its experiment.
        of: FMU names of states and outputs; all of them if none is given.
        to: FMU names of free parameters, and of states for their start values; all parameters if none is given.
        at: FMU name → value in its unit, instead of the model's.
        stop: In s, instead of the experiment's.
        step: In s, instead of the experiment's.
        tolerance: Relative, of the integration.

    Raises:
        Mb2FmuError: The class of the stage that found fault; ``AnalysisError`` for names that have no derivatives, and
            where an event is only touched (grazing), or two that move apart happen at one instant.

    Example:
        >>> import mb2fmu
        >>> found = mb2fmu.sensitivities("simple_pendulum", of=["theta"], to=["l"], stop=0.5)
        >>> f"{found['theta', 'l'][-1]:.4f} rad/m"  # d(theta)/dl at 0.5 s
        '1.1529 rad/m'
    """
    derivation = derive(model)
    definition, equations = derivation.definition, derivation.equations
    start = analysis.make_operating_point_start(definition, equations, at or {})
    study = analysis.make_sensitivity_request(
        definition, equations, start, of, to, stop=stop, step=step, tolerance=tolerance
    )
    return analysis.compute_sensitivities(
        derivation.program, start, analysis.make_experiment_input_signals(definition, start), study
    )
