"""Print an adopted model as a model file that fetches its mechanics from the script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.variable_naming import is_variable_name, strip_latex, suggest_identifier
from mb2fmu.pipeline.adoption.symbol_classification import AdoptedModelContent, AdoptedQuantity

IMPORT_LINE = "from mb2fmu import Model, read_script"
_MAX_LISTED_BODIES = 12
"""Bodies whose mass centres are outputs; of longer chains the user chooses."""


def format_model_file(adopted: AdoptedModelContent, script: str, *, energy: str | None, placed: Sequence[str]) -> str:
    """Return the text of the model file.

    Args:
        adopted: What it says.
        script: The script's path, as the model file is to find it.
        energy: ``total``, ``kinetic``, or None: which energy is an output.
        placed: Names of the bodies whose mass centres' positions are known.
    """
    function = suggest_identifier(adopted.name, "model").lower()
    lines = [
        f'"""Model of {PurePath(script).name}, written by mb2fmu adopt.',
        "",
        "The script stays as it is; edit values, units and outputs here.",
        '"""',
        "",
        *(["import sympy as sm", ""] if _needs_sympy(adopted) else []),
        *(["from sympy.physics.mechanics import dynamicsymbols", ""] if adopted.signals else []),
        IMPORT_LINE,
        "",
        "",
        f"def {function}() -> Model:",
        f"    script = read_script({_quote(script)}, {_quote(adopted.label)})",
        f"    model = Model({_quote(adopted.name)}, script.mechanics)",
        *(f"    {line}" for line in _declarations(adopted, PurePath(script).name)),
        *(f"    {line}" for line in _outputs(energy, placed)),
        *(f"    {line}" for line in _experiment(adopted)),
        "    return model",
    ]
    return "\n".join(lines) + "\n"


def _declarations(adopted: AdoptedModelContent, script: str) -> Iterator[str]:
    """Yield one line for each quantity; ``script`` is the file's name."""
    taken: set[str] = set()
    for quantity in adopted.quantities:
        name = _variable_name(quantity.symbol, taken)
        taken.add(name)
        arguments = [_reference(quantity.symbol)]
        if quantity.kind != "constraint_force":
            arguments.append("..." if quantity.value is None else _value(quantity))
        arguments.append(_quote(quantity.unit))
        if name != strip_latex(format_symbol_as_word(quantity.symbol)):
            arguments.append(f"name={_quote(name)}")
        if quantity.is_guess:
            arguments.append('kind="guess"')
        if quantity.rates:
            arguments.append("rates=True")
        comment = _comment(quantity, script)
        yield f"model.{quantity.kind}({', '.join(arguments)}){f'  # {comment}' if comment else ''}"


def _comment(quantity: AdoptedQuantity, script: str) -> str:
    """Return what the user is to do about a line, or may do."""
    if quantity.value is None:
        return f"TODO: no value found in {script}"
    if quantity.is_assumed and quantity.kind != "input":
        return f"TODO: no start value found in {script}"
    if quantity.is_integrated:
        return "TODO: the script integrates it by itself: declare it by model.state(symbol, derivative, start)"
    return quantity.comment


def _variable_name(symbol: sm.Expr, taken: set[str]) -> str:
    """Return an FMU name for a symbol: its own, where it is legal and free."""
    name = strip_latex(format_symbol_as_word(symbol))
    if not is_variable_name(name):
        name = suggest_identifier(name, "quantity")
    base, number = name, 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _value(quantity: AdoptedQuantity) -> str:
    """Return the Python of a value."""
    return repr(float(quantity.value)) if isinstance(quantity.value, float) else _python(quantity.value)


def _python(expression: sm.Expr | None) -> str:
    """Return the Python of an expression of the script's symbols."""
    assert expression is not None
    time = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
    names = {
        symbol: sm.Symbol(_reference(symbol)) for symbol in expression.free_symbols | expression.atoms(AppliedUndef)
    }
    names[time] = sm.Symbol("dynamicsymbols._t")
    text = sm.sstr(expression.xreplace(names), full_prec=False)
    return re.sub(r"(?<![\w.\"'])([A-Za-z]\w*)\(", r"sm.\1(", text)


def _reference(symbol: sm.Basic) -> str:
    """Return the Python by which the model file names a symbol."""
    if isinstance(symbol, sm.Derivative):
        return f"script[{_quote(format_symbol_as_word(symbol.expr))}].diff()"
    return f"script[{_quote(format_symbol_as_word(symbol))}]"


def _outputs(energy: str | None, placed: Sequence[str]) -> Iterator[str]:
    """Yield the outputs: coordinates and speeds, mass centres, energy."""
    names = {body: suggest_identifier(body, "body") for body in placed}
    if len(set(names.values())) == len(placed) <= _MAX_LISTED_BODIES:
        for body, name in names.items():
            yield f"model.output_position({_quote(f'{name}.position')}, script.body({_quote(body)}).masscenter)"
    if energy is not None:
        yield f"model.output_{energy}_energy()"


def _experiment(adopted: AdoptedModelContent) -> Iterator[str]:
    """Yield the experiment's line."""
    arguments = []
    if adopted.stop is not None:
        arguments.append(f"stop={adopted.stop:.12g}")
    if adopted.step is not None:
        arguments.append(f"step={adopted.step:.12g}")
    if adopted.signals:
        signals = ", ".join(f"{_reference(symbol)}: {_python(value)}" for symbol, value in adopted.signals.items())
        arguments.append(f"signals={{{signals}}}")
    if arguments:
        yield f"model.experiment({', '.join(arguments)})"


def _needs_sympy(adopted: AdoptedModelContent) -> bool:
    """Return whether SymPy's functions stand in the file."""
    texts = [_value(each) for each in adopted.quantities if each.value is not None]
    texts += [_python(value) for value in adopted.signals.values()]
    return any("sm." in text for text in texts)


def _quote(text: str) -> str:
    """Return a text as Python prints it, in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
