"""``emit_modelica_file``: make the file of the Modelica target from printed equations and a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import jinja2

from mb2fmu.compiler.events import list_program_switches
from mb2fmu.compiler.program.scalar_program import PiecewisePolynomial, ScalarProgram
from mb2fmu.errors import EmitError, Fault
from mb2fmu.fmu import packaged_templates
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.targets.modelica.modelica_flanges import TerminalVariables, form_modelica_flanges
from mb2fmu.targets.modelica.modelica_mode_clauses import form_modelica_modes_and_events, make_modelica_mode_identifiers
from mb2fmu.targets.modelica.modelica_printing import (
    ModelicaEquationPrinter,
    ModelicaVariableNames,
    format_modelica_number,
)
from mb2fmu.targets.target_model_description import TargetModelDescription, TargetModelVariable
from mb2fmu.units import parse_unit

_RESERVED_WORDS = frozenset(
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


_SI_TYPES_BY_UNIT: Mapping[str, str] = MappingProxyType(
    {
        "m": "Length", "m2": "Area", "m3": "Volume", "m/s": "Velocity", "m/s2": "Acceleration", "rad": "Angle",
        "rad/s": "AngularVelocity", "rad/s2": "AngularAcceleration", "kg": "Mass", "kg.m2": "MomentOfInertia",
        "N": "Force", "N.m": "Torque", "J": "Energy", "W": "Power", "Pa": "Pressure", "s": "Time",
        "N/m": "TranslationalSpringConstant", "N.s/m": "TranslationalDampingConstant",
        "N.m/rad": "RotationalSpringConstant", "N.m.s/rad": "RotationalDampingConstant",
    }
)  # fmt: skip
"""Of Modelica.Units.SI, by unit."""


_GENERATED_NAME_PATTERN = re.compile(
    r"(b\d+)*[vb]\d+(_\d+)?|(table|flange|mode|least|tried)\d+|unit|least|again|stage|turn|doing|fired|rests"
)
"""Names that the file itself gives."""


NO_REPEAT_PERIOD_S = 1e9
"""A period in s, of 31 years: compilers want one that they can write as a fraction."""


@dataclass(frozen=True, slots=True)
class SampledEventTimes:
    """Instants of an event: ``offset``, ``offset + period``, …, in s; without a period once, at ``offset``."""

    period: float | None
    offset: float

    @property
    def condition(self) -> str:
        """The condition of the `when` clause; at 0 s only `sample` fires, no comparison that holds already."""
        if self.period is None and self.offset > 0.0:
            return f"time > {format_modelica_number(self.offset)}"
        period = NO_REPEAT_PERIOD_S if self.period is None else self.period
        return f"sample({format_modelica_number(self.offset)}, {format_modelica_number(period)})"


def emit_modelica_file(
    program: ScalarProgram,
    model: TargetModelDescription,
    terminals: Sequence[TerminalVariables] = (),
    sampled_events: Mapping[int, SampledEventTimes] = MappingProxyType({}),
) -> InMemoryFileTree:
    """Print the file.

    Args:
        program: With the entry points ``rhs`` and ``outputs``; frozen if friction sticks, without events of its own.
        model: Names, units, start values, experiment.
        terminals: Those of the FMU.
        sampled_events: Number of an event of the model's own that comes at set times → when; the others have
            conditions.

    Raises:
        EmitError: If something in the equations cannot be said in Modelica; all of it is named.
    """
    frozen = "indicators" in program.entries
    if len(program.layout.memory) > (len(list_program_switches(program)) if frozen else 0):
        fault = Fault("it has discrete memory", model.name, "use the C or MATLAB target, or other constraints")
        raise EmitError("the model cannot be written in Modelica:", [fault])
    groups = (model.states, model.inputs, model.parameters, model.outputs)
    names = make_modelica_identifiers([each.name for group in groups for each in group])
    ends = [sum(map(len, groups[: k + 1])) for k in range(len(groups))]
    states, inputs, parameters, outputs = (
        names[end - len(group) : end] for end, group in zip(ends, groups, strict=True)
    )
    memory = make_modelica_mode_identifiers(program) if frozen else ()
    printer = ModelicaEquationPrinter(program, ModelicaVariableNames(states, inputs, parameters, memory=memory))
    events = [name for name in ("conditions", "resets", "indicators", "surfaces", "event") if name in program.entries]
    results = printer.print_entries(("rhs", "outputs", *events))
    context = {
        "model": model,
        "states": list(zip(states, model.states, strict=True)),
        "inputs": list(zip(inputs, model.inputs, strict=True)),
        "parameters": list(zip(parameters, model.parameters, strict=True)),
        "outputs": list(zip(outputs, model.outputs, strict=True)),
        "functions": [_table_function(name, table) for table, name in printer.tables.items()],
        "unknowns": printer.unknowns,
        "equations": [
            *printer.equations,
            *(f"der({name}) = {text}" for name, text in zip(states, results["rhs"], strict=True)),
            *(f"{name} = {text}" for name, text in zip(outputs, results["outputs"], strict=True)),
        ],
        "events": form_modelica_modes_and_events(program, states, results) if frozen else None,
        "clauses": _event_clauses(
            program, sampled_events, printer, dict(zip(program.layout.states, states, strict=True))
        ),
        "held": list(zip(inputs, (each.value for each in model.inputs), strict=True)),
    }
    files = {f"{model.name}.mo": _make_template_environment().get_template("model.mo.jinja").render(**context).encode()}
    taken = {q.name: name for name, q in zip(inputs, model.inputs, strict=True)}
    given = {q.name: name for name, q in zip((*states, *outputs), (*model.states, *model.outputs), strict=True)}
    if flanges := form_modelica_flanges(terminals, taken, given):
        text = _make_template_environment().get_template("flanges.mo.jinja").render(**context, flanges=flanges)
        files[f"{model.name}Flanges.mo"] = text.encode()
    return InMemoryFileTree(files)


def _event_clauses(
    program: ScalarProgram,
    sampled_events: Mapping[int, SampledEventTimes],
    printer: ModelicaEquationPrinter,
    shown: Mapping[str, str],
) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the model's events: name, condition, and settings (state, value); values are those before the event."""
    if "conditions" not in program.entries:
        return []
    entry, resets = program.entries["conditions"], program.entries.get("resets")
    clauses = []
    for k, (label, node) in enumerate(zip(entry.labels, entry.results, strict=True)):
        again = sampled_events.get(k)
        condition = again.condition if again else printer.condition(node)
        settings = [
            (shown[target], printer.read(value))
            for reset_label, value in (zip(resets.labels, resets.results, strict=True) if resets else ())
            for clause, _, target in [reset_label.partition(":")]
            if int(clause) == k
        ]
        clauses.append((label.partition(":")[2], condition, settings))
    return clauses


def _table_function(name: str, table: PiecewisePolynomial) -> dict[str, object]:
    """Return a table as a function: for each piece its end and its polynomial in x - begin (Horner's rule)."""
    pieces = []
    for i, begin in enumerate(table.breaks[:-1]):
        text = format_modelica_number(table.coefficients[-1][i])
        for row in reversed(table.coefficients[:-1]):
            text = f"{format_modelica_number(row[i])} + (x - {format_modelica_number(begin)}) * ({text})"
        pieces.append((format_modelica_number(table.breaks[i + 1]), text))
    return {"name": name, "title": table.name, "pieces": pieces}


def make_modelica_identifiers(names: Sequence[str]) -> list[str]:
    """Return identifiers of Modelica, each once: ``bob.x`` becomes ``bob_x``."""
    taken: set[str] = set()
    found = []
    for name in names:
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
        if plain[0].isdigit() or plain in _RESERVED_WORDS or _GENERATED_NAME_PATTERN.fullmatch(plain):
            plain = f"{plain}_" if not plain[0].isdigit() else f"x_{plain}"
        while plain in taken:
            plain += "_"
        taken.add(plain)
        found.append(plain)
    return found


def _format_string(value: str) -> str:
    """Return a string of Modelica on one line."""
    shown = "".join(c if c.isprintable() else " " for c in value)
    return '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _format_attributes(quantity: TargetModelVariable, start: str = "") -> str:
    """Return ``(unit = "m", start = 1.0, …)``."""
    return (
        f"({', '.join(_list_attributes(quantity, start))})"
        if any(True for _ in _list_attributes(quantity, start))
        else ""
    )


def _list_attributes(quantity: TargetModelVariable, start: str) -> Iterator[str]:
    """Yield the attributes of a variable: quantity, unit, start, bounds, nominal; those it has."""
    if quantity.unit in _SI_TYPES_BY_UNIT:
        yield f"quantity = {_format_string(_SI_TYPES_BY_UNIT[quantity.unit])}"
    if quantity.unit and parse_unit(quantity.unit).whole_exponents is not None:
        yield f"unit = {_format_string(quantity.unit)}"
    if start:
        yield f"start = {format_modelica_number(quantity.value)}"
    if start == "fixed":
        yield "fixed = true"
    for name, value in (("min", quantity.minimum), ("max", quantity.maximum), ("nominal", quantity.nominal)):
        if value is not None:
            yield f"{name} = {format_modelica_number(value)}"


@cache
def _make_template_environment() -> jinja2.Environment:
    """Return the template environment of this target."""
    environment = packaged_templates.make_template_environment("mb2fmu.targets.modelica")
    environment.filters |= {"number": format_modelica_number, "text": _format_string, "attributes": _format_attributes}
    return environment
