"""Print the generated part of a Python-hosted FMU, and add the fixed part."""

from __future__ import annotations

import re
from functools import cache

import jinja2

from mb2fmu.compiler.arithmetic import python_runtime
from mb2fmu.compiler.derivatives.forward_derivatives import form_jacobian
from mb2fmu.compiler.evaluation.numpy_printer import print_numpy_function
from mb2fmu.compiler.program.scalar_program import ScalarProgram, read_initial_discrete_memory
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import STORED_SOURCES, FmuInterface
from mb2fmu.fmu.packaged_templates import read_packaged_file

_ARITHMETIC_FILES = ("python_least_norm.py", "python_newton.py", "python_runtime.py")
_RUNTIME_FILES = (
    "__init__.py",
    "description.py",
    "entry_point_evaluation.py",
    "dormand_prince.py",
    "failures.py",
    "runge_kutta.py",
    "rosenbrock_method.py",
    "dense_lu_solve.py",
    "slave.py",
    "start_value_continuation.py",
    "state_snapshot.py",
    "integrator_base.py",
)


def emit_python_fmu_sources(program: ScalarProgram, interface: FmuInterface) -> InMemoryFileTree:
    """Print the code of an FMU.

    Args:
        program: With the entry points that the interface names, and ``rhs``.
        interface: Of that program.

    Returns:
        ``mb2fmu_<token>.py`` and the package ``mb2fmu_<token>_unit``.

    Raises:
        EmitError: If an entry point is missing.
    """
    names = _list_evaluated_entries(interface)
    beside = [
        name
        for name in ("initialize", "project", "remember")
        if name in program.entries and program.entries[name].results
    ]
    names = sorted([*names, *beside])
    missing = [name for name in names if name not in program.entries]
    if missing:
        raise EmitError(
            f"the code of {interface.model_name} cannot be printed:",
            [Fault("the program has no such entry point", name) for name in missing],
        )
    module = f"mb2fmu_{interface.token.replace('-', '')}"
    package = f"{module}_unit"
    facts = {"interface": interface, "package": package}
    functions = [print_numpy_function(program, name, name, hoist=True).rstrip() for name in names]
    places: list[tuple[int, int]] = []
    if interface.solver.kind == "implicit":
        slopes = form_jacobian(program, "rhs", ("states", "time"))
        functions.append(print_numpy_function(slopes.program, slopes.entry, "jacobian", hoist=True).rstrip())
        names.append("jacobian")
        places = [(int(row), int(column)) for row, column in zip(slopes.rows, slopes.columns, strict=True)]
    printed = {
        "unit.py": _render_python_template(
            "unit.py.jinja", jacobian=places, memory=read_initial_discrete_memory(program), **facts
        ),
        "entries.py": _render_python_template(
            "entries.py.jinja",
            layout=program.layout,
            functions=functions,
            names=names,
            arithmetic=_list_used_runtime_names(functions),
        ),
    }
    fixed = {name: read_packaged_file("mb2fmu.fmu.emit_python.runtime", name) for name in _RUNTIME_FILES}
    fixed |= {name: read_packaged_file("mb2fmu.compiler.arithmetic", name) for name in _ARITHMETIC_FILES}
    inside = InMemoryFileTree({**fixed, **{name: text.encode() for name, text in printed.items()}})
    return inside.move_under(package).joined(
        InMemoryFileTree({f"{module}.py": _render_python_template("script.py.jinja", **facts).encode()})
    )


def _list_evaluated_entries(interface: FmuInterface) -> list[str]:
    """Return the entry points that the FMU evaluates, in a fixed order."""
    used = {str(variable.source) for variable in interface.variables if variable.source not in STORED_SOURCES}
    used.add("rhs")
    return sorted(used)


def _list_used_runtime_names(functions: list[str]) -> list[str]:
    """Return the names of the runtime that the functions read."""
    words = {word for function in functions for word in re.findall(r"[A-Za-z_]\w*", function)}
    return sorted(words & python_runtime.FAST.keys())


def _render_python_template(template: str, **facts: object) -> str:
    """Render a template of the Python target; numbers are printed by `repr`, which reads back to the same bits."""
    return _make_template_environment().get_template(template).render(text=repr, number=repr, **facts)


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment: undefined names raise, Python code is not escaped."""
    return packaged_templates.make_template_environment("mb2fmu.fmu.emit_python")
