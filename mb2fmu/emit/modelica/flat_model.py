"""``emit``: the file of the Modelica target, from printed equations and a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import jinja2

from mb2fmu.emit.modelica.equation_printing import EquationPrinter, number
from mb2fmu.errors import EmitError, Fault
from mb2fmu.filetree import FileTree
from mb2fmu.program.program import Program, first_memory

_WORDS = frozenset(
    [
        *("algorithm", "and", "annotation", "block", "break", "class", "connect", "connector", "constant"),
        *(
            "constrainedby",
            "der",
            "discrete",
            "each",
            "else",
            "elseif",
            "elsewhen",
            "encapsulated",
            "end",
            "enumeration",
        ),
        *("equation", "expandable", "extends", "external", "false", "final", "flow", "for", "function", "if", "import"),
        *("impure", "in", "initial", "inner", "input", "loop", "model", "not", "operator", "or", "outer", "output"),
        *("package", "parameter", "partial", "protected", "public", "pure", "record", "redeclare", "replaceable"),
        *("return", "stream", "then", "true", "type", "when", "while", "within"),
        *("time", "Real", "Integer", "Boolean", "String"),
    ]
)
"""Keywords of Modelica 3.6 (2.3.3), and names that are predefined."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One variable.

    Attributes:
        name: In the unit, as ``bob.x``.
        unit: In Modelica's notation.
        value: Start value, or the parameter's value.
        nominal: None: not said.
        minimum: None: not said.
        maximum: None: not said.
        description: One line.
    """

    name: str
    unit: str
    value: float = 0.0
    nominal: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the file says besides the equations.

    Attributes:
        name: Of the model.
        description: One line.
        states: x, in its order; likewise the following.
        inputs: r.
        parameters: p.
        outputs: y.
        stop: Of the experiment in s.
        step: Communication step in s.
        tolerance: Relative.
    """

    name: str
    description: str
    states: tuple[Quantity, ...]
    inputs: tuple[Quantity, ...]
    parameters: tuple[Quantity, ...]
    outputs: tuple[Quantity, ...]
    stop: float
    step: float
    tolerance: float


def emit(program: Program, facts: ModelFacts) -> FileTree:
    """Prints the file.

    Args:
        program: With the entry points ``rhs`` and ``outputs``.
        facts: Of its model.

    Raises:
        EmitError: If something in the equations cannot be said in Modelica; all of it is named.
    """
    if first_memory(program):
        fault = Fault("it has discrete memory", facts.name, "use the C or MATLAB target, or other constraints")
        raise EmitError("the model cannot be written in Modelica:", [fault])
    groups = (facts.states, facts.inputs, facts.parameters, facts.outputs)
    names = identifiers([each.name for group in groups for each in group])
    ends = [sum(map(len, groups[: k + 1])) for k in range(len(groups))]
    states, inputs, parameters, outputs = (
        names[end - len(group) : end] for end, group in zip(ends, groups, strict=True)
    )
    printer = EquationPrinter(program, states, inputs, parameters)
    results = printer.print_entries(("rhs", "outputs"))
    context = {
        "facts": facts,
        "states": list(zip(states, facts.states, strict=True)),
        "inputs": list(zip(inputs, facts.inputs, strict=True)),
        "parameters": list(zip(parameters, facts.parameters, strict=True)),
        "outputs": list(zip(outputs, facts.outputs, strict=True)),
        "unknowns": printer.unknowns,
        "equations": [
            *printer.equations,
            *(f"der({name}) = {text}" for name, text in zip(states, results["rhs"], strict=True)),
            *(f"{name} = {text}" for name, text in zip(outputs, results["outputs"], strict=True)),
        ],
        "held": list(zip(inputs, (each.value for each in facts.inputs), strict=True)),
    }
    return FileTree({f"{facts.name}.mo": _environment().get_template("model.mo.jinja").render(**context).encode()})


def identifiers(names: Sequence[str]) -> list[str]:
    """Identifiers of Modelica, each once: ``bob.x`` becomes ``bob_x``."""
    taken: set[str] = set()
    found = []
    for name in names:
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
        if plain[0].isdigit() or plain in _WORDS or re.fullmatch(r"[vb]\d+(_\d+)?", plain):
            plain = f"{plain}_" if not plain[0].isdigit() else f"x_{plain}"
        while plain in taken:
            plain += "_"
        taken.add(plain)
        found.append(plain)
    return found


def _text(value: str) -> str:
    """A string of Modelica on one line."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _attributes(quantity: Quantity, start: str = "") -> str:
    """``(unit = "m", start = 1.0, …)``."""
    return f"({', '.join(_said(quantity, start))})" if any(True for _ in _said(quantity, start)) else ""


def _said(quantity: Quantity, start: str) -> Iterator[str]:
    if quantity.unit:
        yield f"unit = {_text(quantity.unit)}"
    if start:
        yield f"start = {number(quantity.value)}"
    if start == "fixed":
        yield "fixed = true"
    for name, value in (("min", quantity.minimum), ("max", quantity.maximum), ("nominal", quantity.nominal)):
        if value is not None:
            yield f"{name} = {number(value)}"


@cache
def _environment() -> jinja2.Environment:
    """Templates of this target."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mb2fmu.emit.modelica"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  Modelica is not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": number, "text": _text, "attributes": _attributes}
    return environment
