"""Equations as source code of other languages.

Each target is a row of :data:`TARGET_PRINTERS`: a name, and a function from a derivation to files.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mb2fmu.compiler.program.scalar_program import ProgramEntryPoint, ScalarProgram, read_initial_discrete_memory
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.package import write_file_tree
from mb2fmu.mechanics.formulation_registry import METHOD_TITLES
from mb2fmu.pipeline.derivation.event_requirements import (
    list_event_sources,
    list_sticking_frictions,
    needs_event_handling,
)
from mb2fmu.pipeline.derivation.pipeline_results import DerivationResult
from mb2fmu.targets import SOURCE_TARGETS

if TYPE_CHECKING:
    from mb2fmu.fmu.interface import FmuInterface
    from mb2fmu.fmu.interface.fmu_interface import VariableSource
    from mb2fmu.targets.modelica import SampledEventTimes
    from mb2fmu.targets.target_model_description import TargetModelDescription
    from mb2fmu.validation import ExperimentValues


def form_native_fmi3_interface(derivation: DerivationResult) -> FmuInterface:
    """Return the variables as a native FMI 3.0 FMU of the model has them."""
    from mb2fmu.fmu import interface

    target = interface.FmuTarget("3", "native", None, "zig", fast=False)
    definition = derivation.add_nominal_values()
    return interface.form_fmu_interface(definition, derivation.equations, derivation.program, target)


def _inputs_per_step(run: ExperimentValues) -> tuple[tuple[float, ...], ...]:
    """Return inputs over each communication step; one row if they never change."""
    rows = run.inputs[:1] if run.has_constant_inputs else run.inputs
    return tuple(tuple(row) for row in rows.tolist())


def _print_c(derivation: DerivationResult) -> InMemoryFileTree:
    """Print plain C99: x', outputs, Jacobian and the FMU's own solver, with the bits of the FMU."""
    from mb2fmu import validation
    from mb2fmu.compiler import derivatives
    from mb2fmu.fmu import emit_c

    run = validation.form_experiment_values(derivation.definition)
    experiment = emit_c.StandaloneProgramInputSignals(run.step, len(run.inputs), _inputs_per_step(run))
    return emit_c.emit_standalone_c_program(
        derivatives.add_fmu_derivatives(derivation.program), form_native_fmi3_interface(derivation), experiment
    )


def form_target_model_description(derivation: DerivationResult) -> TargetModelDescription:
    """Return what targets write beside the equations: names, units, start values, the default experiment."""
    from mb2fmu import validation
    from mb2fmu.compiler import evaluation
    from mb2fmu.pipeline.derivation.right_hand_side_of_derivation import start_values
    from mb2fmu.targets.target_model_description import TargetModelDescription, TargetModelVariable

    program, interface = derivation.program, form_native_fmi3_interface(derivation)
    run = validation.form_experiment_values(derivation.definition)
    x0, r0, p0 = start_values(derivation)
    if "initialize" in program.entries and program.entries["initialize"].results:
        x0 = evaluation.make_evaluator(program, "initialize")(0.0, x0, run.inputs[0], p0)

    def quantities(source: VariableSource, values: Sequence[float]) -> tuple[TargetModelVariable, ...]:
        found = sorted(interface.variables_from_sources(source), key=lambda variable: variable.index)
        return tuple(
            TargetModelVariable(v.name, v.unit, float(value), v.nominal, v.minimum, v.maximum, v.description)
            for v, value in zip(found, values, strict=True)
        )

    return TargetModelDescription(
        name=derivation.definition.name,
        description=derivation.definition.description,
        origin=METHOD_TITLES[derivation.equations.method],
        states=quantities("state", x0.tolist()),
        inputs=quantities("input", r0.tolist()),
        parameters=quantities("parameter", p0.tolist()),
        outputs=tuple(TargetModelVariable(o.name, o.unit) for o in derivation.equations.outputs),
        stop=float(run.time[-1]),
        step=run.step,
        steps=len(run.inputs),
        held=_inputs_per_step(run),
        tolerance=run.tolerance,
        memory=read_initial_discrete_memory(program),
    )


def _print_matlab(derivation: DerivationResult) -> InMemoryFileTree:
    """Print functions for MATLAB and GNU Octave: x', outputs, Jacobian, and the default experiment by ``ode45``."""
    from mb2fmu.targets import matlab

    return matlab.emit_matlab_files(derivation.program, form_target_model_description(derivation))


def _print_modelica(derivation: DerivationResult) -> InMemoryFileTree:
    """Print one flat Modelica model without libraries: parameters, inputs, states with start values, equations."""
    from mb2fmu.targets import modelica

    terminals = tuple(
        modelica.TerminalVariables(terminal.name, tuple((m.name, m.variable, m.kind) for m in terminal.members))
        for terminal in form_native_fmi3_interface(derivation).terminals
    )
    return modelica.emit_modelica_file(
        _add_modelica_modes(derivation),
        form_target_model_description(derivation),
        terminals,
        _sampled_event_times(derivation),
    )


def _add_modelica_modes(derivation: DerivationResult) -> ScalarProgram:
    """Return the program with all modes in discrete memory if events order them, else as it is: Modelica has switches.

    Friction that sticks, contacts and latches change several things at one instant, in an order that the FMU knows;
    compilers let one ``reinit`` of a clause read what another has set.
    """
    program, mechanism = derivation.program, derivation.mechanism
    of_conditions = any(
        event.is_contact_or_latch_event or event.kind == "when" for event in derivation.equations.events
    )
    if not (list_sticking_frictions(derivation) or mechanism.contacts or mechanism.latches or of_conditions):
        return program
    frozen = derivation.program_with_modes
    staged = [frozen.entries[name] for name in ("position", "velocity", "acceleration")]
    found = {label: node for entry in staged for label, node in zip(entry.labels, entry.results, strict=True)}
    labels = program.entries["outputs"].labels
    outputs = ProgramEntryPoint("outputs", labels, tuple(found[label] for label in labels))
    return dataclasses.replace(frozen, entries={**frozen.entries, "outputs": outputs})


def _sampled_event_times(derivation: DerivationResult) -> dict[int, SampledEventTimes]:
    """Return the model's events at set times, with their instants."""
    from mb2fmu.targets.modelica import SampledEventTimes

    found = {}
    for k, event in enumerate(derivation.equations.events):
        if event.kind == "ticks":
            found[k] = SampledEventTimes(event.period if math.isfinite(event.period) else None, event.offset)
    return found


def _print_casadi(derivation: DerivationResult) -> InMemoryFileTree:
    """Print external functions for CasADi: their C code, and a library of each for this machine."""
    from mb2fmu.fmu import toolchain
    from mb2fmu.targets import casadi

    files = casadi.emit_casadi_files(derivation.program, form_target_model_description(derivation))
    sources = {path.removeprefix("runtime/"): content for path, content in files.files.items()}
    machine = toolchain.host_platform()
    for path in [path for path in files if "/" not in path]:
        name = path.removesuffix(".c")
        sources_to_compile = InMemoryFileTree({**sources, "unit.c": files[path]}).move_under("sources")
        built = toolchain.compile_fmu_binaries(
            sources_to_compile, name, [machine], compiler=toolchain.choose_default_compiler(), fmi=3
        )
        files = files.joined(
            InMemoryFileTree({f"{name}{machine.extension}": content for content in built.files.values()})
        )
    return files


def _print_fortran(derivation: DerivationResult) -> InMemoryFileTree:
    """Print one module of Fortran 2008, and a program with the default experiment."""
    from mb2fmu.targets import fortran

    return fortran.emit_fortran_files(derivation.program, form_target_model_description(derivation))


def _print_csharp(derivation: DerivationResult) -> InMemoryFileTree:
    """Print one static class of C#, and a program with the default experiment."""
    from mb2fmu.targets import csharp

    return csharp.emit_csharp_files(derivation.program, form_target_model_description(derivation))


def _print_julia(derivation: DerivationResult) -> InMemoryFileTree:
    """Print one module of Julia."""
    from mb2fmu.targets import julia

    return julia.emit_julia_file(derivation.program, form_target_model_description(derivation))


def _print_jax(derivation: DerivationResult) -> InMemoryFileTree:
    """Print one module of pure functions for JAX; it is written without JAX."""
    from mb2fmu.targets import jax

    return jax.emit_jax_module(derivation.program, form_target_model_description(derivation))


TARGET_PRINTERS: Mapping[str, Callable[[DerivationResult], InMemoryFileTree]] = MappingProxyType(
    {
        "c": _print_c,
        "matlab": _print_matlab,
        "modelica": _print_modelica,
        "casadi": _print_casadi,
        "fortran": _print_fortran,
        "csharp": _print_csharp,
        "julia": _print_julia,
        "jax": _print_jax,
    }
)
"""Name of a target, as ``mb2fmu equations --format`` takes it → derivation to files."""

assert tuple(TARGET_PRINTERS) == tuple(SOURCE_TARGETS)


def export_target_source_code(derivation: DerivationResult, target: str, folder: Path | str) -> tuple[Path, ...]:
    """Write the equations as source code of another language; files of the same names are replaced, one by one.

    Args:
        derivation: What to print.
        target: One of ``mb2fmu.targets.SOURCE_TARGETS``.
        folder: Where to; made if it is not there.

    Returns:
        The files, those at the top of the folder first.

    Raises:
        EmitError: If the target cannot express the equations.
        PackageError: If a file cannot be written.
    """
    from mb2fmu.fmu import package

    return package.write_file_tree(print_target_source_files(derivation, target), Path(folder))


def print_target_source_files(derivation: DerivationResult, target: str) -> InMemoryFileTree:
    """Return the files that :func:`write_target_source_files` would write.

    Raises:
        EmitError: If the target cannot express the equations.
    """
    if not SOURCE_TARGETS[target].has_events and needs_event_handling(derivation):
        others = " or ".join(f"--format {row.name}" for row in SOURCE_TARGETS.values() if row.has_events)
        remedy = f"export an FMU, whose sources have it, or take {others}; for friction write tanh(v/v0)"
        faults = [
            Fault(f"x' alone does not describe it, and --format {target} has nothing else", f"{kind} {name}", remedy)
            for kind, name in list_event_sources(derivation)
        ]
        raise EmitError(f"the equations of {derivation.definition.name} cannot be printed:", faults)
    return TARGET_PRINTERS[target](derivation)


def write_target_source_files(sources: Sequence[InMemoryFileTree], folder: str | Path) -> tuple[Path, ...]:
    """Write the files of source targets into a folder, each whole or not at all; return their paths."""
    return tuple(path for files in sources for path in write_file_tree(files, Path(folder)))
