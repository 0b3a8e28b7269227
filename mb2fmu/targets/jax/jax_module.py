"""Make the module of the JAX target from printed functions, fixed functions and a template."""

from __future__ import annotations

import keyword
import sys
from functools import cache

import jinja2

from mb2fmu.compiler.evaluation.numpy_printer import format_python_literal
from mb2fmu.compiler.program.scalar_program import ScalarProgram
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.targets.jax.jax_printing import JaxPrinter
from mb2fmu.targets.target_model_description import TargetModelDescription

_PRINTED_ENTRIES = ("rhs", "outputs", "energy", "initialize", "remember")
_PACKAGE = "mb2fmu.targets.jax"
_IMPORTED_MODULES = sys.stdlib_module_names | {"jax", "jaxlib", "ml_dtypes", "numpy", "opt_einsum", "scipy"}
"""What JAX imports: a file of such a name beside a script would hide it."""


def emit_jax_module(program: ScalarProgram, model: TargetModelDescription) -> InMemoryFileTree:
    """Return the file ``<name>.py``; see :func:`print_jax_module`.

    Raises:
        EmitError: If the model's name cannot be that of a module of Python.
    """
    name = model.name
    if keyword.iskeyword(name) or name in _IMPORTED_MODULES:
        fault = Fault("Python needs this name for something else", name, "give the model another name")
        raise EmitError("the code for JAX cannot be printed:", [fault])
    return InMemoryFileTree({f"{name}.py": print_jax_module(program, model).encode()})


def print_jax_module(program: ScalarProgram, model: TargetModelDescription) -> str:
    """Return the source of the module.

    Args:
        program: With the entry points ``rhs`` and ``outputs``; ``energy``, ``initialize`` and ``remember`` where the
            model has them.
        model: Names, units, start values.
    """
    entries = [
        name
        for name in _PRINTED_ENTRIES
        if name in {"rhs", "outputs"} or (name in program.entries and program.entries[name].results)
    ]
    return (
        _make_template_environment()
        .get_template("model.py.jinja")
        .render(
            model=model,
            entries=entries,
            energy=program.entries["energy"].labels if "energy" in entries else (),
            functions=[JaxPrinter(program, f"_{name}").function((name,)) for name in entries],
            runtime=_read_runtime(),
        )
    )


def _read_runtime() -> str:
    """Return the fixed functions without their docstring and imports of the future."""
    text = packaged_templates.read_packaged_file(_PACKAGE, "runtime/jax_runtime.py").decode()
    _, _, code = text.partition("from __future__ import annotations\n\n")
    return code


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = packaged_templates.make_template_environment(_PACKAGE)
    environment.filters |= {"number": format_python_literal, "text": repr}
    return environment
