"""``emit_fmu_sources``: join the printed model, the fixed runtime and the FMI headers of an FMU.

It is two steps, because what ``emit_equation_sources`` gives can be compiled while the derivatives are still being
made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import jinja2

from mb2fmu.compiler.derivatives.derivative_entry_points import DIFFERENTIATED_ENTRIES, ProgramWithDerivatives
from mb2fmu.compiler.events import list_program_switches
from mb2fmu.compiler.program.evaluation_cost_estimate import estimate_evaluation_cost
from mb2fmu.compiler.program.scalar_program import ScalarProgram, read_initial_discrete_memory
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.emit_c.c_literals import (
    escape_comment_text,
    format_array_elements,
    format_c_comment,
    format_c_double,
    format_c_string,
)
from mb2fmu.fmu.emit_c.equations_c_source import (
    EquationFunctionTable,
    PrintedTranslationUnit,
    print_compact_equation_functions,
    print_derivative_functions,
    print_equation_functions,
)
from mb2fmu.fmu.emit_c.long_function_splitting import MAX_VALUES_PER_PART
from mb2fmu.fmu.emit_c.used_operation_c_code import list_included_c_files
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmiVersion, FmuInterface, FmuVariable
from mb2fmu.fmu.packaged_templates import read_packaged_file

_SOURCE_CONSTANTS = {
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
_INCLUDED_FILES = (
    *("elementary.c", "linear_algebra.c"),
    "dispatch.c",
    *("solver_methods.c", "solver_step_loop.c", "cosimulation.c"),
    "shell.c",
)
"""What ``unit.c`` is made of: arithmetic, the way to the equations, the solvers, the FMI shell."""

FUNCTION_NAMES_HEADER = "model_names.h"
"""What the names of an FMU's functions begin with: read only where ``DISABLE_PREFIX`` is not defined."""

TABLES_FILE = "model.c"
"""The translation unit that has the FMU's tables: its variables, token and default experiment."""

_FMI_HEADERS: dict[FmiVersion, tuple[str, ...]] = {
    "2": ("fmi2FunctionTypes.h", "fmi2Functions.h", "fmi2TypesPlatform.h"),
    "3": ("fmi3FunctionTypes.h", "fmi3Functions.h", "fmi3PlatformTypes.h"),
}
_OTHER_FMI_VERSION: dict[FmiVersion, FmiVersion] = {"2": "3", "3": "2"}

_EMPTY_VARIABLE_ROW = ", ".join(
    (
        *("MB2FMU_SOURCE_NONE", "MB2FMU_CAUSALITY_LOCAL", "MB2FMU_VARIABILITY_FIXED", "MB2FMU_INITIAL_NONE", "0"),
        *("MB2FMU_NAN", "-MB2FMU_INFINITY", "MB2FMU_INFINITY", "1.0", '""'),
    )
)
"""Row of the table of variables for a value reference without one: 0 where 1 is the first, and what arrays replace."""

_TABLE_FILE_STEMS = {"equations": "equations", "derivatives": "derived"}
_SELDOM_FILE_STEM = "derived_once"
"""What the names of translation units begin with that have equations, by their table; and what is evaluated seldom."""

EVENT_RUNTIME_FILES = ("events.h", "events.c", "instance_events.c", "solver_events.c")
"""Of the runtime's files those that only FMUs whose equations switch have."""

BATCH_FILE_PREFIX = "batch"
"""What the names of the runtime's files begin with that FMUs do not need."""

MAX_STEP_WORK = 1e9
"""Of one communication step at most, in additions (see ``evaluation_cost_estimate``): about a second of a processor.

A bound of work and not of time: the same step is given up on every machine, at the same internal step.
"""
EVALUATIONS_PER_INTERNAL_STEP = 7
"""Of x' in an internal step of the adaptive methods."""
MIN_INTERNAL_STEP_LIMIT, MAX_INTERNAL_STEP_LIMIT = 20_000, 10_000_000
"""Internal steps that are allowed whatever they cost, and however little."""

_CAUSALITY_CONSTANTS = {
    "independent": "INDEPENDENT",
    "parameter": "PARAMETER",
    "calculatedParameter": "CALCULATED_PARAMETER",
    "input": "INPUT",
    "output": "OUTPUT",
    "local": "LOCAL",
}


@dataclass(frozen=True, slots=True)
class EquationSourceFiles:
    """The code of an FMU without derivatives; none of its files depends on them.

    Attributes:
        sources: ``sources/…``: ``unit.c`` and the equations of the motion, with all that they include.
        printed: What the derivatives follow on.
    """

    sources: InMemoryFileTree
    printed: EquationFunctionTable


def emit_equation_sources(
    program: ScalarProgram, interface: FmuInterface, *, adjoint: bool, part: int = MAX_VALUES_PER_PART
) -> EquationSourceFiles:
    """Print the code of an FMU without its derivatives.

    Args:
        program: As it was lowered.
        interface: Of that program.
        adjoint: The derivatives that follow will have adjoint ones among them.
        part: Largest number of values that one C function computes.

    Raises:
        EmitError: If an entry point is missing, or value references have gaps.
    """
    _check_printable(program, interface, DIFFERENTIATED_ENTRIES)
    printed, fmi = print_equation_functions(program, part), interface.target.fmi
    facts: dict[str, object] = {
        "interface": interface,
        "program": program,
        "adjoint": adjoint,
        "rows": _variable_table_rows(interface),
        "longest_step_loop": compute_max_internal_steps(program),
        "most_steps": MAX_INTERNAL_STEP_LIMIT,
        "first_memory": read_initial_discrete_memory(program),
        "switches": list_program_switches(program),
        "size": lambda name: len(program.entries[name].results) if name in program.entries else 0,
        "coordinates": _count_coordinate_states(program),
        "solver": _default_solver_number(interface),
        "included": _INCLUDED_FILES,
        "fmi": fmi,
        "prefix": f"{interface.model_identifier}_",
    }
    files = {
        "model_config.h": render_c_template("model_config.h.jinja", **facts),
        FUNCTION_NAMES_HEADER: render_c_template("model_names.h.jinja", **facts),
        TABLES_FILE: render_c_template("model.c.jinja", **facts),
        "unit.c": render_c_template("unit.c.jinja", **facts),
        **_render_equations_files(printed, program),
    }
    runtime = _read_runtime_files(fmi, events=bool(facts["switches"])) | read_operation_c_files(program)
    return EquationSourceFiles(
        InMemoryFileTree({**files, **runtime, **_read_fmi_headers(fmi)}).move_under("sources"), printed
    )


def emit_derivative_sources(
    native: ProgramWithDerivatives,
    interface: FmuInterface,
    motion: EquationSourceFiles,
    *,
    part: int = MAX_VALUES_PER_PART,
) -> InMemoryFileTree:
    """Print the rest of an FMU's code: the derivatives, and the file for CMake.

    Args:
        native: The program with its derivatives.
        interface: Of that program.
        motion: From :func:`emit_equation_sources`.
        part: Largest number of values that one C function computes.

    Raises:
        EmitError: If an entry point is missing.
    """
    adjoint = ("adjoint",) if interface.capabilities.adjoint_derivatives else ()
    _check_printable(native.program, interface, ("tangent", *adjoint, "jacobian", "jacobian_time"))
    files = _render_equations_files(print_derivative_functions(native, motion.printed, part), native.program)
    named = list_translation_units(motion.sources.joined(InMemoryFileTree(files).move_under("sources")))
    listed = {
        "equations": [name for name in named if is_motion_equation_translation_unit(name)],
        "others": [name for name in named if not is_motion_equation_translation_unit(name)],
    }
    files["CMakeLists.txt"] = render_c_template("CMakeLists.txt.jinja", interface=interface, **listed)
    more = read_operation_c_files(native.program)  # those of the derivatives alone
    files |= {name: more[name] for name in more if f"sources/{name}" not in motion.sources.files}
    return InMemoryFileTree(files).move_under("sources")


def emit_compact_equation_files(program: ScalarProgram, printed: EquationFunctionTable) -> tuple[InMemoryFileTree, int]:
    """Print the translation units of the motion so that they take little room; see ``shared_entry_point_function``.

    Args:
        program: As it was lowered.
        printed: What :func:`emit_equation_sources` printed of it.

    Returns:
        ``equations….c``, in the place of those that :func:`emit_equation_sources` prints; and how many doubles of
        ``work`` they need.
    """
    assert printed.motion
    compact = print_compact_equation_functions(printed.motion)
    return InMemoryFileTree(_render_equations_files(compact, program)), compact.work


def emit_fmu_sources(
    native: ProgramWithDerivatives, interface: FmuInterface, *, part: int = MAX_VALUES_PER_PART
) -> InMemoryFileTree:
    """Print the code of an FMU.

    Args:
        native: The program with its derivatives.
        interface: Of that program.
        part: Largest number of values that one C function computes.

    Returns:
        ``sources/…``.

    Raises:
        EmitError: If an entry point is missing, or value references have gaps.
    """
    motion = emit_equation_sources(native.program, interface, adjoint="adjoint" in native.program.entries, part=part)
    return motion.sources.joined(emit_derivative_sources(native, interface, motion, part=part))


def _check_printable(program: ScalarProgram, interface: FmuInterface, needed: Sequence[str]) -> None:
    """Raise for programs that cannot be printed."""
    missing = [name for name in needed if name not in program.entries]
    faults = [Fault("the program has no such entry point", name) for name in missing]
    references = sorted(variable.value_reference for variable in interface.variables)
    first = references[0]
    if first not in {0, 1} or references != list(range(first, first + len(references))):
        faults.append(Fault("they do not count from 0, or from 1, without gaps", "value references"))
    if faults:
        raise EmitError(f"the code of {interface.model_name} cannot be printed:", faults)


def _render_equations_files(printed: EquationFunctionTable, program: ScalarProgram) -> dict[str, bytes]:
    """Return the translation units of one table, by their names."""
    several = [unit for unit in printed.units if not unit.compiled_quickly]
    seldom = [unit for unit in printed.units if unit.compiled_quickly]
    names = (
        *_translation_unit_names(_TABLE_FILE_STEMS[printed.table], len(several)),
        *_translation_unit_names(_SELDOM_FILE_STEM, len(seldom)),
    )
    files = list_included_c_files(program)
    return {
        name: _render_equations_file(name, unit, printed, files)
        for name, unit in zip(names, (*several, *seldom), strict=True)
    }


def _render_equations_file(
    name: str, unit: PrintedTranslationUnit, printed: EquationFunctionTable, files: Sequence[str]
) -> bytes:
    """Render one translation unit of the model."""
    return render_c_template(
        "equations.c.jinja",
        name=name,
        files=files,
        tables=unit.tables,
        prototypes=unit.prototypes,
        texts=unit.texts,
        entries=unit.entries,
        seldom=unit.compiled_quickly,
        printed=printed,
    )


def _translation_unit_names(stem: str, count: int) -> tuple[str, ...]:
    """Return the names of translation units that have equations."""
    return tuple(f"{stem}_{i}.c" if i else f"{stem}.c" for i in range(count))


def list_translation_units(sources: InMemoryFileTree) -> tuple[str, ...]:
    """Return the files that a compiler is given, from the folder ``sources``; the first is ``unit.c``.

    Args:
        sources: From :func:`emit_fmu_sources`, or a part of them.
    """
    names = (
        name
        for stem in (*_TABLE_FILE_STEMS.values(), _SELDOM_FILE_STEM)
        for name in _translation_unit_names(stem, len(sources))
    )
    return tuple(name for name in ("unit.c", TABLES_FILE, *names) if f"sources/{name}" in sources.files)


def is_motion_equation_translation_unit(name: str) -> bool:
    """Return whether a translation unit has equations of motion, compiled for several kinds of processors.

    Args:
        name: One of :func:`list_translation_units`.
    """
    return name.startswith(_TABLE_FILE_STEMS["equations"])


def is_rarely_evaluated_translation_unit(name: str) -> bool:
    """Return whether a translation unit is evaluated too seldom for a long optimization.

    Args:
        name: One of :func:`list_translation_units`.
    """
    return name.startswith(_SELDOM_FILE_STEM)


def translation_unit_has_derivatives(name: str) -> bool:
    """Return whether a translation unit has derivatives, compiled once for all kinds of processors.

    Args:
        name: One of :func:`list_translation_units`.
    """
    return name.startswith(_TABLE_FILE_STEMS["derivatives"])


def compute_max_internal_steps(program: ScalarProgram) -> int:
    """Return the internal steps of a communication step after which an FMU gives up: they cost :data:`MAX_STEP_WORK`.

    Args:
        program: As it was lowered.
    """
    steps = int(MAX_STEP_WORK / (EVALUATIONS_PER_INTERNAL_STEP * max(1.0, estimate_evaluation_cost(program, "rhs"))))
    return min(max(steps, MIN_INTERNAL_STEP_LIMIT), MAX_INTERNAL_STEP_LIMIT)


def _count_coordinate_states(program: ScalarProgram) -> int:
    """Return the number of coordinates among the states: those before the first speed; 0 without speeds."""
    speeds = set(program.entries["accelerations"].labels)
    first = [i for i, name in enumerate(program.layout.states) if name in speeds]
    return first[0] if first else 0


def _default_solver_number(interface: FmuInterface) -> int:
    """Return the solver that the FMU begins with: the start value of the parameter that chooses it."""
    for variable in interface.variables_from_sources("solver"):
        assert variable.start is not None
        return int(variable.start)
    return interface.solver.solver_enumeration_value


def _variable_table_rows(interface: FmuInterface) -> list[str]:
    """Return the rows of the table of variables, by value reference: scalars, then arrays element by element."""
    scalars = {variable.value_reference: _variable_initializer(variable) for variable in interface.scalars}
    free = 1 + max(variable.value_reference for variable in interface.variables)
    rows = [scalars.get(reference, _EMPTY_VARIABLE_ROW) for reference in range(free)]
    known = {variable.name: variable for variable in interface.variables}
    for array in interface.arrays:
        for name, element in zip(array.element_names, array.elements, strict=True):
            part = replace(known[element], name=name, causality=array.causality)
            given = array.causality == "input"
            rows.append(_variable_initializer(part if given else replace(part, initial="calculated", start=None)))
    return rows


def _variable_initializer(variable: FmuVariable) -> str:
    """Return the initializer of an ``mb2fmu_variable``."""
    initial = "NONE" if variable.initial is None else variable.initial.upper()
    return ", ".join(
        (
            f"MB2FMU_SOURCE_{_SOURCE_CONSTANTS[variable.source]}",
            f"MB2FMU_CAUSALITY_{_CAUSALITY_CONSTANTS[variable.causality]}",
            f"MB2FMU_VARIABILITY_{variable.variability.upper()}",
            f"MB2FMU_INITIAL_{initial}",
            str(variable.index),
            "MB2FMU_NAN" if variable.start is None else format_c_double(float(variable.start)),
            "-MB2FMU_INFINITY" if variable.minimum is None else format_c_double(float(variable.minimum)),
            "MB2FMU_INFINITY" if variable.maximum is None else format_c_double(float(variable.maximum)),
            "1.0" if variable.nominal is None else format_c_double(float(variable.nominal)),
            format_c_string(variable.name),
        )
    )


def _read_runtime_files(version: FmiVersion, *, events: bool) -> dict[str, bytes]:
    """Return the fixed files, without the other FMI version's, and without those of events where there are none."""
    names = [file.name for file in resources.files("mb2fmu.fmu.emit_c").joinpath("runtime").iterdir()]
    other = f"fmi{_OTHER_FMI_VERSION[version]}"
    kept = sorted(name for name in names if name.endswith((".c", ".h")) and other not in name)
    kept = [
        name for name in kept if not name.startswith(BATCH_FILE_PREFIX) and (events or name not in EVENT_RUNTIME_FILES)
    ]
    return {name: read_packaged_file("mb2fmu.fmu.emit_c", f"runtime/{name}") for name in kept}


def _read_fmi_headers(version: FmiVersion) -> dict[str, bytes]:
    """Return the FMI headers of a version as the standard publishes them: 2.0.5, or 3.0.2.

    They stand in ``fmi_headers``: fmpy's copies are those of 2.0.1, in which a builder cannot override the prefix.
    """
    return {name: read_packaged_file("mb2fmu.fmu.emit_c", f"fmi_headers/{name}") for name in _FMI_HEADERS[version]}


def read_operation_c_files(program: ScalarProgram) -> dict[str, bytes]:
    """Return the files of ``operations/`` that a program's code includes."""
    return {
        name: read_packaged_file("mb2fmu.fmu.emit_c", f"operations/{name}") for name in list_included_c_files(program)
    }


def render_c_template(template: str, **facts: object) -> bytes:
    """Return a filled-in template."""
    return _make_template_environment().get_template(template).render(**facts).encode()


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment: undefined names raise, C code is not escaped."""
    environment = packaged_templates.make_template_environment("mb2fmu.fmu.emit_c")
    environment.filters |= {
        "number": format_c_double,
        "string": format_c_string,
        "comment": format_c_comment,
        "remark": escape_comment_text,
        "listed": format_array_elements,
    }
    return environment
