"""Make the module of the JAX target from printed functions, fixed functions and a template."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from mb2fmu.compiler.evaluation.numpy_printer import format_python_literal, print_numpy_function
from mb2fmu.compiler.program.program import Program, read_initial_memory
from mb2fmu.fmu import template_environment
from mb2fmu.fmu.file_tree import FileTree

_PRINTED_ENTRIES = ("rhs", "outputs", "energy", "initialize", "remember")


@dataclass(frozen=True, slots=True)
class JaxModelFacts:
    """Facts for the module beside the equations.

    Attributes:
        name: Of the model; a legal name of a Python module.
        states: Name and unit of each of x, in its order; likewise the following.
        inputs: r.
        parameters: p.
        outputs: y.
        x0: Start values of the states; guesses where they are solved for.
        r0: Of the inputs.
        p0: Values of the free parameters.
    """

    name: str
    states: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str], ...]
    parameters: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    x0: tuple[float, ...]
    r0: tuple[float, ...]
    p0: tuple[float, ...]


def emit_jax_module(program: Program, facts: JaxModelFacts) -> FileTree:
    """Return the file ``<name>.py``; see :func:`print_jax_module`."""
    return FileTree({f"{facts.name}.py": print_jax_module(program, facts).encode()})


def print_jax_module(program: Program, facts: JaxModelFacts) -> str:
    """Return the source of the module.

    Args:
        program: With the entry points ``rhs`` and ``outputs``; ``energy``, ``initialize`` and ``remember`` where the
            model has them.
        facts: Of its model.
    """
    entries = [name for name in _PRINTED_ENTRIES if name in program.entries and program.entries[name].results]
    printed = [print_numpy_function(program, name, f"_{name}", frozen="stop_gradient") for name in entries]
    environment = template_environment.make_template_environment("mb2fmu.targets.jax")
    environment.filters |= {"number": format_python_literal, "text": repr}
    energy = program.entries["energy"].labels if "energy" in entries else ()
    context = {
        "facts": facts,
        "entries": entries,
        "energy": energy,
        "memory": read_initial_memory(program),
        "functions": printed,
        "runtime": _read_runtime(),
    }
    return environment.get_template("model.py.jinja").render(**context)


def _read_runtime() -> str:
    """Return the fixed functions without their docstring and imports of the future."""
    text = resources.files("mb2fmu.targets.jax").joinpath("runtime/jax_runtime.py").read_text(encoding="utf-8")
    _, _, code = text.replace("\r\n", "\n").partition("from __future__ import annotations\n\n")
    return code
