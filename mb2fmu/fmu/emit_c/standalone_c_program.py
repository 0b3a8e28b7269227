"""``emit_standalone_c_program``: the equations and the solver of an FMU as plain C99 functions, without FMI.

The code is the FMU's own: the same printed functions, the same elementary functions, the same solvers. So x', outputs,
the Jacobian, and the states that ``main`` prints have the bits of the FMU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.compiler.derivatives import ProgramWithDerivatives
from mb2fmu.fmu.emit_c.fmu_c_sources import (
    emit_derivative_sources,
    emit_equation_sources,
    render_c_template,
)
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface
from mb2fmu.fmu.packaged_templates import read_packaged_file

_FMI_ONLY_FILES = re.compile(
    r"fmi|protocol|shell|instance|handles|values|state|start|communication|log\.c|floating_point|derivatives|batch"
)
"""Files of the runtime that serve FMI alone."""


@dataclass(frozen=True, slots=True)
class StandaloneProgramInputSignals:
    """Inputs of the experiment in ``main``, held over each step.

    Attributes:
        step: Communication step in s.
        steps: Number of communication steps.
        rows: Inputs held over each step, ``steps`` rows; or one row if they never change.
    """

    step: float
    steps: int
    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if len(self.rows) not in (1, self.steps):
            raise ValueError(f"{len(self.rows)} rows of inputs for {self.steps} steps")


@dataclass(frozen=True, slots=True)
class _StandaloneProgramVariable:
    """One number of x, r, p or y: its name, unit, start value, and an output's source."""

    name: str
    unit: str
    start: float = 0.0
    source: str = ""
    index: int = 0


def emit_standalone_c_program(
    native: ProgramWithDerivatives, interface: FmuInterface, experiment: StandaloneProgramInputSignals
) -> InMemoryFileTree:
    """Print the code.

    Args:
        native: The program with its derivatives.
        interface: Of that program; names and start values are taken from it.
        experiment: What ``main`` integrates.

    Returns:
        ``<name>.h``, ``<name>.c``, ``<name>_main.c``, equations in files of their own, and ``runtime/…``.

    Raises:
        EmitError: If an entry point is missing.
    """
    motion = emit_equation_sources(native.program, interface, adjoint="adjoint" in native.program.entries)
    derived = emit_derivative_sources(native, interface, motion)
    printed = {name.removeprefix("sources/"): text for name, text in motion.sources.joined(derived).files.items()}
    name = interface.model_identifier
    facts = form_standalone_template_values(interface) | {
        "start": interface.experiment.start,
        "step": experiment.step,
        "steps": experiment.steps,
        "signals": experiment.rows,
    }
    files = {file: text for file, text in printed.items() if file.startswith(("equations", "derived"))}
    files.pop("equations.h")
    runtime = {
        file: text
        for file, text in printed.items()
        if file.endswith((".c", ".h")) and file not in (*files, "unit.c") and not _FMI_ONLY_FILES.search(file)
    }
    runtime |= {
        file: read_packaged_file("mb2fmu.fmu.emit_c", f"standalone/{file}") for file in ("standalone.c", "main.c")
    }
    files |= {
        f"{name}.h": render_c_template("standalone.h.jinja", **facts),
        f"{name}.c": render_c_template("standalone.c.jinja", **facts),
        f"{name}_main.c": render_c_template("standalone_main.c.jinja", **facts),
    }
    return InMemoryFileTree(files).joined(InMemoryFileTree(runtime).move_under("runtime"))


def form_standalone_template_values(interface: FmuInterface) -> dict[str, object]:
    """Return what the templates ``standalone.[ch].jinja`` name: title, states, inputs, parameters, outputs."""
    return {
        "name": interface.model_identifier,
        "title": interface.model_name,
        "states": _list_variables_of_source(interface, "state"),
        "inputs": _list_variables_of_source(interface, "input"),
        "parameters": _list_variables_of_source(interface, "parameter"),
        "outputs": list_model_outputs(interface),
    }


def _list_variables_of_source(interface: FmuInterface, source: str) -> Sequence[_StandaloneProgramVariable]:
    """Return the variables of one source, in the order of their indices."""
    found = sorted((v for v in interface.variables if v.source == source), key=lambda variable: variable.index)
    return [_StandaloneProgramVariable(v.name, v.unit, float(v.start or 0.0)) for v in found]


def list_model_outputs(interface: FmuInterface) -> Sequence[_StandaloneProgramVariable]:
    """Return the model's outputs in declared order, each with the level that computes it; states are left out."""
    return [
        _StandaloneProgramVariable(v.name, v.unit, source=str(v.source).upper(), index=v.index)
        for v in interface.variables
        if v.causality == "output" and v.source in ("position", "velocity", "acceleration")
    ]
