"""``emit``: make the two files of the Matlab target from printed functions, fixed functions and templates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

import jinja2
import numpy as np

from mb2fmu.compiler.derivatives import jacobian
from mb2fmu.compiler.program.program import Program, first_memory
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import template_environment
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.targets.matlab.matlab_printing import FunctionPrinter, number, text

_ENTRIES = ("rhs", "outputs")
_FIXED = ("arithmetic.m", "linear_solves.m", "newton.m")

LONGEST_NAME = 52
"""``namelengthmax`` of MATLAB, 63, less the longest ending that is added."""


@dataclass(frozen=True, slots=True)
class Named:
    """Name and unit of one number of a vector."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts for the files beside the equations.

    Attributes:
        name: Of the model; a legal name of a MATLAB function.
        states: x, in its order; likewise the following.
        inputs: r.
        parameters: p.
        outputs: y.
        x0: Start values of the states, on the constraints.
        r0: Of the inputs.
        p0: Values of the free parameters.
        step: Communication step of the default experiment in s.
        held: Inputs over each step: one row per step, or one row if they never change.
        steps: Number of communication steps.
        tolerance: Relative tolerance of the experiment.
    """

    name: str
    states: tuple[Named, ...]
    inputs: tuple[Named, ...]
    parameters: tuple[Named, ...]
    outputs: tuple[Named, ...]
    x0: tuple[float, ...]
    r0: tuple[float, ...]
    p0: tuple[float, ...]
    step: float
    held: tuple[tuple[float, ...], ...]
    steps: int
    tolerance: float


def emit(program: Program, facts: Facts) -> FileTree:
    """Print the files.

    Args:
        program: With the entry points ``rhs`` and ``outputs``, and ``remember`` where there is discrete memory.
        facts: Of its model.

    Raises:
        EmitError: If the model's name is too long for MATLAB.
    """
    if len(facts.name) > LONGEST_NAME:
        fault = Fault(f"it has {len(facts.name)} characters", facts.name, f"MATLAB allows {LONGEST_NAME}")
        raise EmitError("the code for MATLAB cannot be printed:", [fault])
    memory = first_memory(program)
    entries = (*_ENTRIES, *(("remember",) if memory else ()))
    slopes = jacobian(program, "rhs", ("states",))
    printed = [FunctionPrinter(program, f"{facts.name}_{entry}").function(entry) for entry in entries]
    printed.append(FunctionPrinter(slopes.program, f"{facts.name}_slopes").function(slopes.entry))
    context = {
        "facts": facts,
        "memory": memory,
        "rows": np.asarray(slopes.rows) + 1,
        "columns": np.asarray(slopes.columns) + 1,
        "functions": printed,
        "fixed": [_read(f"runtime/{name}") for name in _FIXED],
    }
    files = {f"{facts.name}.m": "model.m.jinja", f"{facts.name}_experiment.m": "experiment.m.jinja"}
    return FileTree(
        {name: _environment().get_template(file).render(**context).encode() for name, file in files.items()}
    )


def _read(path: str) -> str:
    """Return a fixed file with Unix line ends."""
    return resources.files("mb2fmu.targets.matlab").joinpath(path).read_text(encoding="utf-8").replace("\r\n", "\n")


@cache
def _environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = template_environment.environment("mb2fmu.targets.matlab")
    environment.filters |= {"number": number, "text": text}
    return environment
