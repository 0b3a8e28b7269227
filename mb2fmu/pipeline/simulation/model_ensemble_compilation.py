"""A model compiled for many instances, also with events, and the derivatives of their motions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from mb2fmu import analysis
from mb2fmu.analysis.studies.compiled_model_ensembles import (
    BatchFunction,
    BatchIntegrator,
    CompiledModelEnsemble,
    EnsembleSolver,
)
from mb2fmu.analysis.studies.fmu_batch_run import FmuBatchIntegrator, find_value_references
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import AnalysisError, Fault
from mb2fmu.fmu.toolchain.batch_run_arguments_and_result import BatchRunResult, BatchRunTimeGrid
from mb2fmu.pipeline.derivation.event_requirements import needs_event_handling
from mb2fmu.pipeline.derivation.formulation_and_build_options import FormulationOptions
from mb2fmu.pipeline.derivation.model_derivation import AnyModel, derive
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import start_values
from mb2fmu.pipeline.fmu_build.target_source_export import form_native_fmi3_interface

if TYPE_CHECKING:
    from mb2fmu.compiler.derivatives.derivative_entry_points import ProgramWithDerivatives
    from mb2fmu.compiler.derivatives.forward_derivatives import VariableReference
    from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
    from mb2fmu.compiler.program.scalar_program import ScalarProgram
    from mb2fmu.fmu.toolchain import CompiledEntryPoint, CompiledIntegrator

Floats = npt.NDArray[np.float64]


def compile_model_ensemble(
    model: AnyModel, *, arguments: Mapping[str, Any] | None = None, **options: Unpack[FormulationOptions]
) -> CompiledModelEnsemble:
    """Compile a model as machine code for many instances at once.

    Args:
        model: A model, or the file that has its function.
        arguments: Of that function, by name.
        options: See :class:`FormulationOptions`.

    Raises:
        Mb2FmuError: The class of the stage that found fault.
    """
    from mb2fmu import validation
    from mb2fmu.fmu import toolchain
    from mb2fmu.fmu.emit_c.fmu_c_sources import compute_max_internal_steps

    derivation = derive(model, arguments=arguments, **options)
    definition, program = derivation.definition, _add_dependent_outputs(derivation)
    run, interface = validation.form_experiment_values(definition), form_native_fmi3_interface(derivation)
    x0, _, p0 = start_values(derivation)
    states = sorted(interface.variables_from_sources("state"), key=lambda variable: variable.index)
    parameters = sorted(interface.variables_from_sources("parameter"), key=lambda variable: variable.index)

    ensemble = CompiledModelEnsemble(
        states=tuple(variable.name for variable in states),
        parameters=tuple(variable.name for variable in parameters),
        output_names=program.entries["outputs"].labels,
        x0=x0,
        p0=p0,
        inputs=run.inputs[:1] if run.has_constant_inputs else run.inputs,
        scale=np.array([0.01 * (1.0 if v.nominal is None else float(v.nominal)) for v in states]),
        tolerance=run.tolerance,
        step=float(run.time[1]),
        stop=float(run.time[-1]),
        most=compute_max_internal_steps(program),
        motion=_compile_integrator_lazily(cache(lambda: toolchain.compile_explicit_integrator(program))),
        implicit_motion=_compile_integrator_lazily(cache(lambda: _compile_implicit_motion(program, definition.name))),
        **_compile_entry_points(program),
    )
    if _can_take_different_paths(derivation):
        return _make_sequential_ensemble(ensemble, derivation)
    carrying = cache(lambda to: _add_parameter_derivatives(program, ensemble, to))
    return replace(ensemble, varied=lambda many, to: replace(many, **carrying(to)))


def _can_take_different_paths(derivation: DerivationResult) -> bool:
    """Return whether instances can take different paths: at events, kinks of x', and changes of a loop's memory."""
    program = derivation.program
    return (
        needs_event_handling(derivation) or bool(program.layout.memory) or derivation.program_with_modes is not program
    )


def _make_sequential_ensemble(ensemble: CompiledModelEnsemble, derivation: DerivationResult) -> CompiledModelEnsemble:
    """Return an ensemble whose instances are run one by one by the model's FMU, which handles events."""
    alone = replace(
        ensemble,
        motion=_compile_integrator_lazily(cache(lambda: _load_fmu_integrator(ensemble, derivation, "explicit"))),
        implicit_motion=_compile_integrator_lazily(
            cache(lambda: _load_fmu_integrator(ensemble, derivation, "implicit"))
        ),
        start=None,
        runs_sequentially=True,
    )
    reason = _explain_missing_sensitivities(derivation)
    if reason:
        return replace(alone, no_derivatives_reason=reason)
    return replace(alone, varied=lambda many, to: add_ensemble_sensitivities(many, derivation, to))


def _load_fmu_integrator(
    ensemble: CompiledModelEnsemble, derivation: DerivationResult, solver: EnsembleSolver
) -> FmuBatchIntegrator:
    """Return the model's FMU, loaded, in a C loop."""
    from mb2fmu.fmu import emit_c, toolchain
    from mb2fmu.pipeline.fmu_build.fmu_assembly import build

    built = build(derivation, fmi="2", solver=solver)
    references = {variable.name: variable.value_reference for variable in built.interface.variables}
    inputs = sorted(built.interface.variables_from_sources("input"), key=lambda variable: variable.index)
    names = {
        "states": ensemble.states,
        "parameters": ensemble.parameters,
        "inputs": tuple(variable.name for variable in inputs),
        "outputs": ensemble.output_names,
    }
    (content,) = built.binaries.files.values()
    loop = toolchain.compile_library(emit_c.read_repeated_fmu_run_sources(), "unit_runs", often=True)
    return FmuBatchIntegrator(
        toolchain.load_library_bytes(content, "unit"),
        loop,
        find_value_references(built.interface.token, references, names),
    )


class _ProgramEntryPoints(TypedDict):
    """Entry points of a program as functions; None where there is nothing to do."""

    rhs: BatchFunction
    outputs: BatchFunction
    project: BatchFunction | None
    start: BatchFunction | None


def _compile_entry_points(program: ScalarProgram) -> _ProgramEntryPoints:
    """Return the entry points of a program, each compiled when it is first needed."""
    from mb2fmu.fmu import toolchain

    def entry(name: str) -> BatchFunction:
        return _compile_batch_function_lazily(cache(lambda: toolchain.compile_entry_point(program, name)))

    def there(name: str) -> BatchFunction | None:
        return entry(name) if name in program.entries and program.entries[name].results else None

    return _ProgramEntryPoints(
        rhs=entry("rhs"), outputs=entry("outputs"), project=there("project"), start=there("initialize")
    )


class _EntryPointsWithDerivatives(_ProgramEntryPoints):
    """Differences of a model that carries derivatives."""

    states: tuple[str, ...]
    output_names: tuple[str, ...]
    scale: Floats
    motion: BatchIntegrator
    implicit_motion: BatchIntegrator
    own: int


def _add_parameter_derivatives(
    program: ScalarProgram, ensemble: CompiledModelEnsemble, to: tuple[str, ...]
) -> _EntryPointsWithDerivatives:
    """Return the same model with derivatives by parameters and start values behind its states."""
    from mb2fmu.compiler import derivatives
    from mb2fmu.fmu import toolchain

    groups: dict[VariableGroup, tuple[str, ...]] = {"parameters": ensemble.parameters, "states": ensemble.states}
    group_of = {name: group for group in groups for name in groups[group]}
    leaves: list[VariableReference] = [(name, (group_of[name], groups[group_of[name]].index(name))) for name in to]
    carrying, own = derivatives.add_variational_states(program, leaves), len(ensemble.states)
    return _EntryPointsWithDerivatives(
        states=carrying.layout.states,
        output_names=carrying.entries["outputs"].labels,
        scale=np.tile(ensemble.scale, len(to) + 1),
        motion=_compile_integrator_lazily(
            cache(lambda: toolchain.compile_explicit_integrator(carrying, step_control_states=own))
        ),
        implicit_motion=_compile_integrator_lazily(
            cache(lambda: _compile_implicit_motion_with_derivatives(program, leaves, own))
        ),
        own=own,
        **_compile_entry_points(carrying),
    )


def _add_dependent_outputs(derivation: DerivationResult) -> ScalarProgram:
    """Return the program with dependent coordinates and speeds behind its outputs, by their FMU names."""
    program, definition, equations = derivation.program, derivation.definition, derivation.equations
    q, u = equations.q_dependent, equations.u_dependent
    if not q and not u:
        return program
    placed = program.entries["position"].results
    nodes = (*placed[len(placed) - len(q) :], *program.entries["dependent_speeds"].results)
    names = (*(definition.coordinates[i].name for i in q), *(definition.speeds[i].name for i in u))
    known = program.entries["outputs"]
    outputs = replace(known, labels=(*known.labels, *names), results=(*known.results, *nodes))
    return replace(program, entries={**program.entries, "outputs": outputs})


def _compile_implicit_motion_with_derivatives(
    program: ScalarProgram, leaves: Sequence[VariableReference], own: int
) -> CompiledIntegrator:
    """Return the integrator for stiff models, with derivatives behind the states."""
    from mb2fmu.compiler import derivatives
    from mb2fmu.fmu import toolchain

    native = derivatives.add_variational_jacobian(_add_jacobian(program, "the model"), leaves)
    return toolchain.compile_implicit_integrator(native, step_control_states=own)


def _compile_implicit_motion(program: ScalarProgram, name: str) -> CompiledIntegrator:
    """Return the integrator for stiff models."""
    from mb2fmu.fmu import toolchain

    return toolchain.compile_implicit_integrator(_add_jacobian(program, name))


def _add_jacobian(program: ScalarProgram, name: str) -> ProgramWithDerivatives:
    """Return the program with its Jacobian written out."""
    from mb2fmu.compiler import derivatives

    native = derivatives.add_fmu_derivatives(program, adjoint=False)
    if native.column_colours is not None:
        what = f"its Jacobian has more than {derivatives.MAX_JACOBIAN_OPERATIONS:,} operations"
        remedy = "take the explicit solver, or simulate one by one: mb2fmu.simulate"
        raise AnalysisError("the implicit solver is not available for this model:", [Fault(what, name, remedy)])
    return native


def _compile_batch_function_lazily(program: Callable[[], CompiledEntryPoint]) -> BatchFunction:
    """Return the program, compiled when it is first needed, as a function of t, x, r, p."""

    def call(t: npt.ArrayLike, x: npt.ArrayLike, r: npt.ArrayLike, p: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray(program()(t, x, r, p))

    return call


def _compile_integrator_lazily(
    compiled_motion: Callable[[], CompiledIntegrator | FmuBatchIntegrator],
) -> BatchIntegrator:
    """Return the integrator, compiled when it is first needed."""

    def move(
        x0: Floats, p: Floats, time_grid: BatchRunTimeGrid, states: bool, outputs: Sequence[int]
    ) -> BatchRunResult:
        return compiled_motion()(x0, p, time_grid, states=states, outputs=outputs)

    return move


_MAX_DERIVATIVE_TOLERANCE = 1e-9
"""Tolerance of derivatives, or the run's, whichever is less."""


def _explain_missing_sensitivities(derivation: DerivationResult) -> str:
    """Return why instances that are run one by one carry no derivatives; empty if they do."""
    program = derivation.program
    if program.layout.memory and derivation.program_with_modes is program:
        return "its loops remember their branch"
    return ""


def add_ensemble_sensitivities(
    ensemble: CompiledModelEnsemble, derivation: DerivationResult, to: tuple[str, ...]
) -> CompiledModelEnsemble:
    """Return the same ensemble with ∂x/∂to behind its states and ∂y/∂to behind its outputs.

    Args:
        ensemble: Whose instances are run one by one.
        derivation: Of its model.
        to: FMU names of parameters, and of states for their start values.
    """

    def varied(motion: BatchIntegrator) -> BatchIntegrator:
        return lambda x0, p, time_grid, states, outputs: _simulate_with_derivatives(
            motion, ensemble, derivation, to, (x0, p, time_grid, states, outputs)
        )

    return replace(
        ensemble,
        states=(*ensemble.states, *(f"{name} by {by}" for by in to for name in ensemble.states)),
        scale=np.tile(ensemble.scale, len(to) + 1),
        own=len(ensemble.states),
        motion=varied(ensemble.motion),
        implicit_motion=varied(ensemble.implicit_motion),
    )


def _simulate_with_derivatives(
    motion: BatchIntegrator,
    ensemble: CompiledModelEnsemble,
    derivation: DerivationResult,
    to: tuple[str, ...],
    run_arguments: tuple[Floats, Floats, BatchRunTimeGrid, bool, Sequence[int]],
) -> BatchRunResult:
    """Return instances as the FMU moves them, with derivatives; NaN, and the reason, where there are none."""
    x0, p, time_grid, states, outputs = run_arguments
    n_x, n_y = len(ensemble.states), len(ensemble.output_names)
    own = [place for place in outputs if place < n_y]
    moved = motion(x0[:, :n_x], p, replace(time_grid, scale=time_grid.scale[:n_x]), states, own)
    slopes = np.full((len(x0), time_grid.points + 1, n_x + n_y, len(to)), np.nan)
    reasons = list(moved.messages)
    for k, parameters in enumerate(np.broadcast_to(p, (len(x0), p.shape[-1]))):
        if not reasons[k]:
            try:
                slopes[k] = _compute_instance_derivatives(ensemble, derivation, to, x0[k, :n_x], parameters, time_grid)
            except AnalysisError as error:
                reasons[k] = "; ".join(fault.what for fault in error.faults)
    of_x, of_y = slopes[:, :, :n_x], slopes[:, :, n_x:]
    return BatchRunResult(
        _append_derivatives(moved.states, of_x[:, -1]),
        _append_derivatives(moved.outputs, of_y[:, -1]),
        _append_derivatives(moved.path_states, of_x)
        if states
        else np.full((0, time_grid.points + 1, n_x * (1 + len(to))), np.nan),
        _append_derivatives(moved.path_outputs, of_y[:, :, own]),
        moved.messages,
        tuple(reasons),
    )


def _append_derivatives(values: Floats, slopes: Floats) -> Floats:
    """Return values (…, n) with their derivatives (…, n, k) behind them, (…, n (1 + k))."""
    turned = np.moveaxis(slopes, -1, -2)
    return np.concatenate([values, turned.reshape(*values.shape[:-1], turned.shape[-2] * turned.shape[-1])], axis=-1)


def _compute_instance_derivatives(
    ensemble: CompiledModelEnsemble,
    derivation: DerivationResult,
    to: tuple[str, ...],
    x: Floats,
    p: Floats,
    time_grid: BatchRunTimeGrid,
) -> Floats:
    """Return derivatives of states and outputs of one instance at communication points, shape (n_t, n_x + n_y, k)."""
    definition, equations = derivation.definition, derivation.equations
    start = replace(analysis.make_operating_point_start(definition, equations, {}), x=x, p=p, t=time_grid.start)
    study = analysis.make_sensitivity_request(
        definition,
        equations,
        start,
        (),
        to,
        stop=time_grid.step * time_grid.points,
        step=time_grid.step,
        tolerance=min(time_grid.tolerance, _MAX_DERIVATIVE_TOLERANCE),
    )
    study = replace(study, of=(*ensemble.states, *ensemble.output_names))
    return analysis.compute_sensitivities(
        _name_dependent_variables(derivation), start, _hold_inputs(time_grid), study
    ).derivatives


def _hold_inputs(time_grid: BatchRunTimeGrid) -> analysis.ZeroOrderHoldInputs:
    """Return the inputs of a time grid as the FMU receives them: new values after the communication point."""
    rows = np.flatnonzero(time_grid.turns[:-1]) if len(time_grid.inputs) > 1 else np.empty(0, dtype=np.intp)
    rows = np.concatenate([[0], rows]).astype(np.intp)
    points = time_grid.start + np.linspace(0.0, time_grid.step * time_grid.points, time_grid.points + 1)  # to the bit
    return analysis.ZeroOrderHoldInputs(points[rows], time_grid.inputs[rows])


def _name_dependent_variables(derivation: DerivationResult) -> ScalarProgram:
    """Return the program, with dependent coordinates and speeds under their FMU names."""
    program, d, e = derivation.program, derivation.definition, derivation.equations
    entries = dict(program.entries)
    if e.q_dependent:
        kept = entries["position"].labels[: -len(e.q_dependent)]
        names = (*kept, *(d.coordinates[i].name for i in e.q_dependent))
        entries["position"] = replace(entries["position"], labels=names)
    if e.u_dependent:
        names = tuple(d.speeds[i].name for i in e.u_dependent)
        entries["dependent_speeds"] = replace(entries["dependent_speeds"], labels=names)
    return replace(program, entries=entries)
