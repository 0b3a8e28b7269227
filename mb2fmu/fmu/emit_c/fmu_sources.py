"""``emit``: join the printed model, the fixed runtime and the FMI headers of a unit.

It is two steps, because what ``emit_motion`` gives can be compiled while the derivatives are still being made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import jinja2

from mb2fmu.compiler.derivatives.fmu_derivative_entries import RESULTS, NativeProgram
from mb2fmu.compiler.events import switches_of
from mb2fmu.compiler.program.operation_cost import cost
from mb2fmu.compiler.program.program import Program, first_memory
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import template_environment
from mb2fmu.fmu.emit_c.c_literals import comment, listed, number, remark, string
from mb2fmu.fmu.emit_c.equations_source import (
    PrintedEquations,
    PrintedUnit,
    print_derivatives,
    print_motion,
    print_small_motion,
)
from mb2fmu.fmu.emit_c.operation_code import operation_files
from mb2fmu.fmu.emit_c.split_functions import PART
from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.fmu.interface.fmu_interface import Fmi, FmuInterface, FmuVariable

_SOURCE = {
    "time": "TIME",
    "state": "STATE",
    "input": "INPUT",
    "parameter": "PARAMETER",
    "prepare": "CALCULATED",
    "dependent_speeds": "DEPENDENT_SPEED",
    "rhs": "DERIVATIVE",
    "accelerations": "SPEED_DERIVATIVE",
    "position": "POSITION",
    "velocity": "VELOCITY",
    "acceleration": "ACCELERATION",
    "indicators": "INDICATOR",
    "mode": "MODE",
    "solver": "SOLVER",
    "solver_step": "SOLVER_STEP",
}
_INCLUDED = (
    *("elementary.c", "linear_algebra.c"),
    "dispatch.c",
    *("solver_methods.c", "solver_step_loop.c", "cosimulation.c"),
    "shell.c",
)
"""What ``unit.c`` is made of: arithmetic, the way to the equations, the solvers, the FMI shell."""

NAMES = "model_names.h"
"""What the names of an FMU's functions begin with: read only where ``DISABLE_PREFIX`` is not defined."""

TABLES = "model.c"
"""The translation FMU that has the FMU's tables: its variables, token and default experiment."""

_HEADERS: dict[Fmi, tuple[str, ...]] = {
    "2": ("fmi2FunctionTypes.h", "fmi2Functions.h", "fmi2TypesPlatform.h"),
    "3": ("fmi3FunctionTypes.h", "fmi3Functions.h", "fmi3PlatformTypes.h"),
}
_OTHER: dict[Fmi, Fmi] = {"2": "3", "3": "2"}

_NO_VARIABLE = ", ".join(
    (
        *("MB2FMU_SOURCE_NONE", "MB2FMU_CAUSALITY_LOCAL", "MB2FMU_VARIABILITY_FIXED", "MB2FMU_INITIAL_NONE", "0"),
        *("MB2FMU_NAN", "-MB2FMU_INFINITY", "MB2FMU_INFINITY", "1.0", '""'),
    )
)
"""Row of the table of variables for a value reference without one: 0 where 1 is the first, and what arrays replace."""

_STEMS = {"equations": "equations", "derivatives": "derived"}
_ONCE = "derived_once"
"""What the names of translation units begin with that have equations, by their table; and what is evaluated seldom."""

EVENTS = ("events.h", "events.c", "instance_events.c", "solver_events.c")
"""Of the runtime's files those that only FMUs whose equations switch have."""

BATCH = "batch"
"""What the names of the runtime's files begin with that FMUs do not need."""

WORK = 1e9
"""Of one communication step at most, in additions (see ``lowering.cost``): about a second of a processor.

A bound of work and not of time: the same step is given up on every machine, at the same internal step.
"""
EVALUATIONS = 7
"""Of x' in an internal step of the adaptive methods."""
FEWEST_STEPS, MOST_STEPS = 20_000, 10_000_000
"""Internal steps that are allowed whatever they cost, and however little."""

_CAUSALITY = {
    "independent": "INDEPENDENT",
    "parameter": "PARAMETER",
    "calculatedParameter": "CALCULATED_PARAMETER",
    "input": "INPUT",
    "output": "OUTPUT",
    "local": "LOCAL",
}


@dataclass(frozen=True, slots=True)
class Motion:
    """The code of an FMU without derivatives; none of its files depends on them.

    Attributes:
        sources: ``sources/…``: ``unit.c`` and the equations of the motion, with all that they include.
        printed: What the derivatives follow on.
    """

    sources: FileTree
    printed: PrintedEquations


def emit_motion(program: Program, interface: FmuInterface, *, adjoint: bool, part: int = PART) -> Motion:
    """Print the code of an FMU without its derivatives.

    Args:
        program: As it was lowered.
        interface: Of that program.
        adjoint: The derivatives that follow will have adjoint ones among them.
        part: Largest number of values that one C function computes.

    Raises:
        EmitError: If an entry point is missing, or value references have gaps.
    """
    _refuse(program, interface, RESULTS)
    printed, fmi = print_motion(program, part), interface.target.fmi
    facts: dict[str, object] = {
        "interface": interface,
        "program": program,
        "adjoint": adjoint,
        "rows": _rows(interface),
        "longest_step_loop": longest_step_loop(program),
        "most_steps": MOST_STEPS,
        "first_memory": first_memory(program),
        "switches": switches_of(program),
        "size": lambda name: len(program.entries[name].results) if name in program.entries else 0,
        "coordinates": coordinates(program),
        "solver": _solver(interface),
        "included": _INCLUDED,
        "fmi": fmi,
        "prefix": f"{interface.model_identifier}_",
    }
    files = {
        "model_config.h": render("model_config.h.jinja", **facts),
        NAMES: render("model_names.h.jinja", **facts),
        TABLES: render("model.c.jinja", **facts),
        "unit.c": render("unit.c.jinja", **facts),
        **_equations(printed, program),
    }
    runtime = _runtime(fmi, events=bool(facts["switches"])) | packaged_operations(program)
    return Motion(FileTree({**files, **runtime, **_headers(fmi)}).under("sources"), printed)


def emit_derivatives(native: NativeProgram, interface: FmuInterface, motion: Motion, *, part: int = PART) -> FileTree:
    """Print the rest of an FMU's code: the derivatives, and the file for CMake.

    Args:
        native: The program with its derivatives.
        interface: Of that program.
        motion: From :func:`emit_motion`.
        part: Largest number of values that one C function computes.

    Raises:
        EmitError: If an entry point is missing.
    """
    adjoint = ("adjoint",) if interface.capabilities.adjoint_derivatives else ()
    _refuse(native.program, interface, ("tangent", *adjoint, "jacobian", "jacobian_time"))
    files = _equations(print_derivatives(native, motion.printed, part), native.program)
    named = translation_units(motion.sources.joined(FileTree(files).under("sources")))
    listed = {
        "equations": [name for name in named if is_motion(name)],
        "others": [name for name in named if not is_motion(name)],
    }
    files["CMakeLists.txt"] = render("CMakeLists.txt.jinja", interface=interface, **listed)
    more = packaged_operations(native.program)  # those of the derivatives alone
    files |= {name: more[name] for name in more if f"sources/{name}" not in motion.sources.files}
    return FileTree(files).under("sources")


def emit_small_motion(program: Program) -> tuple[FileTree, int]:
    """Print the translation units of the motion so that they take little room; see ``shared_motion``.

    Args:
        program: As it was lowered.

    Returns:
        ``equations….c``, in the place of those that :func:`emit_motion` prints; and how many doubles of ``work`` they
        need.
    """
    printed = print_small_motion(program)
    return FileTree(_equations(printed, program)), printed.work


def emit(native: NativeProgram, interface: FmuInterface, *, part: int = PART) -> FileTree:
    """Print the code of a unit.

    Args:
        native: The program with its derivatives.
        interface: Of that program.
        part: Largest number of values that one C function computes.

    Returns:
        ``sources/…``.

    Raises:
        EmitError: If an entry point is missing, or value references have gaps.
    """
    motion = emit_motion(native.program, interface, adjoint="adjoint" in native.program.entries, part=part)
    return motion.sources.joined(emit_derivatives(native, interface, motion, part=part))


def _refuse(program: Program, interface: FmuInterface, needed: Sequence[str]) -> None:
    """Raise for programs that cannot be printed."""
    missing = [name for name in needed if name not in program.entries]
    faults = [Fault("the program has no such entry point", name) for name in missing]
    references = sorted(variable.value_reference for variable in interface.variables)
    first = references[0]
    if first not in {0, 1} or references != list(range(first, first + len(references))):
        faults.append(Fault("they do not count from 0, or from 1, without gaps", "value references"))
    if faults:
        raise EmitError(f"the code of {interface.model_name} cannot be printed:", faults)


def _equations(printed: PrintedEquations, program: Program) -> dict[str, bytes]:
    """Return the translation units of one table, by their names."""
    several = [unit for unit in printed.units if not unit.seldom]
    seldom = [unit for unit in printed.units if unit.seldom]
    names = (*_names(_STEMS[printed.table], len(several)), *_names(_ONCE, len(seldom)))
    files = operation_files(program)
    return {
        name: _equations_file(name, unit, printed, files) for name, unit in zip(names, (*several, *seldom), strict=True)
    }


def _equations_file(name: str, unit: PrintedUnit, printed: PrintedEquations, files: Sequence[str]) -> bytes:
    """Render one translation unit of the model."""
    return render(
        "equations.c.jinja",
        name=name,
        files=files,
        tables=unit.tables,
        prototypes=unit.prototypes,
        texts=unit.texts,
        entries=unit.entries,
        seldom=unit.seldom,
        printed=printed,
    )


def _names(stem: str, count: int) -> tuple[str, ...]:
    """Return the names of translation FMUs that have equations."""
    return tuple(f"{stem}_{i}.c" if i else f"{stem}.c" for i in range(count))


def translation_units(sources: FileTree) -> tuple[str, ...]:
    """Return the files that a compiler is given, from the folder ``sources``; the first is ``unit.c``.

    Args:
        sources: From :func:`emit`, or a part of them.
    """
    names = (name for stem in (*_STEMS.values(), _ONCE) for name in _names(stem, len(sources)))
    return tuple(name for name in ("unit.c", TABLES, *names) if f"sources/{name}" in sources.files)


def is_motion(name: str) -> bool:
    """Return whether a translation FMU has equations of motion, compiled for several kinds of processors.

    Args:
        name: One of :func:`translation_units`.
    """
    return name.startswith(_STEMS["equations"])


def is_seldom(name: str) -> bool:
    """Return whether a translation FMU is evaluated too seldom for a long optimization.

    Args:
        name: One of :func:`translation_units`.
    """
    return name.startswith(_ONCE)


def is_derived(name: str) -> bool:
    """Return whether a translation FMU has derivatives, compiled once for all kinds of processors.

    Args:
        name: One of :func:`translation_units`.
    """
    return name.startswith(_STEMS["derivatives"])


def longest_step_loop(program: Program) -> int:
    """Return the internal steps in one communication step after which an FMU gives up: their cost is :data:`WORK`.

    Args:
        program: As it was lowered.
    """
    steps = int(WORK / (EVALUATIONS * max(1.0, cost(program, "rhs"))))
    return min(max(steps, FEWEST_STEPS), MOST_STEPS)


def coordinates(program: Program) -> int:
    """Return the number of coordinates among the states: those before the first speed; 0 without speeds."""
    speeds = set(program.entries["accelerations"].labels)
    first = [i for i, name in enumerate(program.layout.states) if name in speeds]
    return first[0] if first else 0


def _solver(interface: FmuInterface) -> int:
    """Return the solver that the FMU begins with: the start value of the parameter that chooses it."""
    for variable in interface.of("solver"):
        assert variable.start is not None
        return int(variable.start)
    return interface.solver.choice


def _rows(interface: FmuInterface) -> list[str]:
    """Return the rows of the table of variables, by value reference: scalars, then arrays element by element."""
    scalars = {variable.value_reference: _row(variable) for variable in interface.scalars}
    free = 1 + max(variable.value_reference for variable in interface.variables)
    rows = [scalars.get(reference, _NO_VARIABLE) for reference in range(free)]
    known = {variable.name: variable for variable in interface.variables}
    for array in interface.arrays:
        for name, element in zip(array.element_names, array.elements, strict=True):
            part = replace(known[element], name=name, causality=array.causality)
            given = array.causality == "input"
            rows.append(_row(part if given else replace(part, initial="calculated", start=None)))
    return rows


def _row(variable: FmuVariable) -> str:
    """Return the initializer of an ``mb2fmu_variable``."""
    initial = "NONE" if variable.initial is None else variable.initial.upper()
    return ", ".join(
        (
            f"MB2FMU_SOURCE_{_SOURCE[variable.source]}",
            f"MB2FMU_CAUSALITY_{_CAUSALITY[variable.causality]}",
            f"MB2FMU_VARIABILITY_{variable.variability.upper()}",
            f"MB2FMU_INITIAL_{initial}",
            str(variable.index),
            "MB2FMU_NAN" if variable.start is None else number(float(variable.start)),
            "-MB2FMU_INFINITY" if variable.minimum is None else number(float(variable.minimum)),
            "MB2FMU_INFINITY" if variable.maximum is None else number(float(variable.maximum)),
            "1.0" if variable.nominal is None else number(float(variable.nominal)),
            string(variable.name),
        )
    )


def _runtime(version: Fmi, *, events: bool) -> dict[str, bytes]:
    """Return the fixed files, without the other FMI version's, and without those of events where there are none."""
    names = [file.name for file in resources.files("mb2fmu.fmu.emit_c").joinpath("runtime").iterdir()]
    other = f"fmi{_OTHER[version]}"
    kept = sorted(name for name in names if name.endswith((".c", ".h")) and other not in name)
    kept = [name for name in kept if not name.startswith(BATCH) and (events or name not in EVENTS)]
    return {name: packaged("mb2fmu.fmu.emit_c", f"runtime/{name}") for name in kept}


def _headers(version: Fmi) -> dict[str, bytes]:
    """Return the FMI headers of a version as the standard publishes them: 2.0.5, or 3.0.2.

    They stand in ``fmi_headers``: fmpy's copies are those of 2.0.1, in which a builder cannot override the prefix.
    """
    return {name: packaged("mb2fmu.fmu.emit_c", f"fmi_headers/{name}") for name in _HEADERS[version]}


def packaged_operations(program: Program) -> dict[str, bytes]:
    """Return the files of ``operations/`` that a program's code includes."""
    return {name: packaged("mb2fmu.fmu.emit_c", f"operations/{name}") for name in operation_files(program)}


def packaged(package: str, path: str) -> bytes:
    """Return a file that an installed package carries, with Unix line ends."""
    return resources.files(package).joinpath(path).read_bytes().replace(b"\r\n", b"\n")


def render(template: str, **facts: object) -> bytes:
    """Return a filled-in template."""
    return _environment().get_template(template).render(**facts).encode()


@cache
def _environment() -> jinja2.Environment:
    """Return the template environment: undefined names raise, C code is not escaped."""
    environment = template_environment.environment("mb2fmu.fmu.emit_c")
    environment.filters |= {"number": number, "string": string, "comment": comment, "remark": remark, "listed": listed}
    return environment
