"""Variables one by one: names, references, causality, variability, start values, bounds, derivatives, clocks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from mb2fmu.audit.description.description_records import (
    DESCRIPTION,
    INTEGERS,
    RANGES,
    DescribedModel,
    DescribedVariable,
    parse_number,
)
from mb2fmu.audit.findings import Observation

_B_NAME = r"(?:[A-Za-z_][A-Za-z_0-9]*|'(?:[A-Za-z_0-9!#$%&()*+,\-./:;<>=?@\[\]^{}|~ ]|\\['\"?\\abfnrtv])+')"
_INDICES = r"(?:\[\d+(?:,\d+)*\])?"
_IDENTIFIER = rf"{_B_NAME}{_INDICES}(?:\.{_B_NAME}{_INDICES})*"
_STRUCTURED = re.compile(rf"(?:{_IDENTIFIER}|der\({_IDENTIFIER}(?:,\d+)?\))\Z")
_GUESSED = frozenset({"calculated", "approx"})
_CALCULATED = frozenset({"calculated", "exact", "approx"})
# (causality, variability) → what initial may be; empty: must not be written
_COMBINATIONS: dict[tuple[str, str], frozenset[str]] = {
    **{(c, v): frozenset({"exact"}) for c in ("structuralParameter", "parameter") for v in ("fixed", "tunable")},
    **{(c, v): _GUESSED for c in ("calculatedParameter", "local") for v in ("fixed", "tunable")},
    **{("input", v): frozenset() for v in ("discrete", "continuous")},
    **{(c, "constant"): frozenset({"exact"}) for c in ("output", "local")},
    **{(c, v): _CALCULATED for c in ("output", "local") for v in ("discrete", "continuous")},
    ("independent", "continuous"): frozenset(),
}
_TRUE_FALSE = {"true", "false", "0", "1"}


def check_variables(description: DescribedModel) -> Iterator[Observation]:
    """Yield all rules of this file."""
    yield from _names(description)
    yield from _references(description)
    for variable in description.variables:
        yield from _combination(description, variable)
        yield from _start(description, variable)
        yield from _bounds(variable)
        yield from _derivative(description, variable)
        yield from _special(description, variable)
        if description.version == 3:
            yield from _dimensions(description, variable)
            yield from _clocks(description, variable)
    yield from _independent(description)


def _names(description: DescribedModel) -> Iterator[Observation]:
    """Yield names that occur twice, are empty, or break the structured naming that was promised."""
    structured = description.attributes.get("variableNamingConvention") == "structured"
    seen: dict[str, DescribedVariable] = {}
    for variable in description.variables:
        for name in (variable.name, *(alias.get("name", "") for alias in variable.aliases)):
            if name in seen:
                yield Observation(
                    "variables.unique", f'the name "{name}" is that of line {seen[name].line} too', variable.place
                )
            seen.setdefault(name, variable)
            if not name or any(sign in name for sign in "\r\n\t"):
                yield Observation("variables.name", f"{name!r} is empty or holds a control character", variable.place)
            elif structured and not _STRUCTURED.match(name):
                yield Observation(
                    "variables.name",
                    f'"{name}" is no structured name, which variableNamingConvention promises',
                    variable.place,
                )


def _references(description: DescribedModel) -> Iterator[Observation]:
    """Yield value references that are malformed, or shared where the version does not allow it."""
    for variable in description.variables:
        if variable.reference is None or not 0 <= variable.reference < 2**32:
            text = f"value reference {variable.written.get('valueReference')!r} is no unsigned 32-bit number"
            yield Observation("variables.reference", text, variable.place)
    if description.version == 3:
        for variable in description.variables:
            first = description.by_reference.get(-1 if variable.reference is None else variable.reference)
            if first is not None and first is not variable:
                text = f'value reference {variable.reference} is that of "{first.name}" too'
                yield Observation("variables.reference", text, variable.place)
        return
    groups: dict[tuple[str, int | None], list[DescribedVariable]] = {}
    for variable in description.variables:
        base = "Integer" if variable.type == "Enumeration" else variable.type
        groups.setdefault((base, variable.reference), []).append(variable)
    for group in groups.values():
        if len(group) > 1:
            yield from _aliases(group)


def _aliases(group: list[DescribedVariable]) -> Iterator[Observation]:
    """Check FMI 2's aliases: variables of one type with one value reference share one value."""
    names = ", ".join(f'"{each.name}"' for each in group)
    place = group[1].place
    settable = [each for each in group if each.causality in {"parameter", "input"}]
    if len(settable) > 1:
        yield Observation(
            "variables.aliases", f"{names} share a value reference, and more than one of them can be set", place
        )
    if len([each for each in group if each.start is not None]) > 1 and not all(
        each.variability == "constant" for each in group
    ):
        yield Observation(
            "variables.aliases", f"{names} share a value reference, and more than one of them has a start value", place
        )
    if len({each.get("unit") for each in group} - {None}) > 1:
        yield Observation("variables.aliases", f"{names} share a value reference, but not the unit", place)
    constants = [each.variability == "constant" for each in group]
    if any(constants) and not all(constants):
        yield Observation("variables.aliases", f"{names} share a value reference, but only some are constant", place)


def _combination(description: DescribedModel, variable: DescribedVariable) -> Iterator[Observation]:
    """Yield causality, variability and initial that do not go together, by the standard's table."""
    pair = variable.causality, variable.variability
    if variable.variability == "continuous" and not variable.is_float:
        yield Observation("variables.continuous", f"continuous, but of {variable.type}", variable.place)
        return
    if variable.type == "Clock":
        if variable.causality not in {"input", "output", "local"}:
            yield Observation("variables.combination", f"a Clock with causality {variable.causality}", variable.place)
        return
    if pair not in _COMBINATIONS or (variable.causality == "structuralParameter" and description.version == 2):
        yield Observation(
            "variables.combination", f"causality {pair[0]} and variability {pair[1]} do not go together", variable.place
        )
        return
    written, allowed = variable.written.get("initial"), _COMBINATIONS[pair]
    if written is None or written in allowed:
        return
    # FMI 3 has exact as the only value for inputs; FMI 2 forbids the attribute there.
    if description.version == 3 and variable.causality == "input" and written == "exact":
        return
    wanted = " or ".join(sorted(allowed)) or "no initial"
    yield Observation("variables.initial", f'initial="{written}"; {" ".join(pair)} allows {wanted}', variable.place)


def _start(description: DescribedModel, variable: DescribedVariable) -> Iterator[Observation]:
    """Yield start values that are missing, forbidden, or of the wrong number."""
    if variable.type in {"Clock", ""}:
        return
    needed = variable.initial in {"exact", "approx"} or variable.causality in {
        "input",
        "parameter",
        "structuralParameter",
    }
    if variable.start is None:
        if needed and variable.causality != "independent":
            yield Observation("variables.start_missing", "no start value", variable.place)
        return
    if variable.causality == "independent" or (variable.initial == "calculated" and variable.causality != "input"):
        what = (
            "the independent variable"
            if variable.causality == "independent"
            else 'a variable with initial="calculated"'
        )
        yield Observation("variables.start_forbidden", f"{what} has a start value", variable.place)
    count = description.size(variable)
    if variable.type != "Binary" and len(variable.start) not in {1, count}:
        text = f"{len(variable.start)} start values for {count} elements"
        yield Observation("variables.start_type", text, variable.place)
    for text in variable.start:
        yield from _start_value(description, variable, text)


def _start_value(description: DescribedModel, variable: DescribedVariable, text: str) -> Iterator[Observation]:
    """Yield a start value that is not of the variable's type."""
    if variable.type == "Boolean":
        if text.strip() not in _TRUE_FALSE:
            yield Observation("variables.start_type", f'start "{text}" is no Boolean', variable.place)
    elif variable.type == "Binary":
        if len(text) % 2 or not re.fullmatch(r"[0-9A-Fa-f]*", text):
            yield Observation("variables.start_type", f'start "{text}" is not hexadecimal', variable.place)
        most = variable.number("maxSize")
        if most is not None and len(text) // 2 > most:
            text = f"start has {len(text) // 2} bytes, and maxSize is {most:g}"
            yield Observation("variables.start_bounds", text, variable.place)
    elif variable.type != "String":
        yield from _start_number(description, variable, text)


LARGEST_SINGLE = (2.0 - 2.0**-24) * 2.0**127
"""From here on a number rounds to infinity in single precision."""


def _start_number(description: DescribedModel, variable: DescribedVariable, text: str) -> Iterator[Observation]:
    """Yield a numeric start value that is malformed, out of range, out of bounds, or no item."""
    value = parse_number(text)
    integral = variable.type in INTEGERS or variable.type == "Enumeration"
    if value is None or (integral and not re.fullmatch(r"\s*[+-]?\d+\s*", text)):
        yield Observation("variables.start_type", f'start "{text}" is no {variable.type}', variable.place)
        return
    if math.isnan(value):
        yield Observation("variables.start_type", "start is not a number", variable.place)
    low, high = RANGES.get(variable.type, (-math.inf, math.inf))
    too_large = variable.type == "Float32" and LARGEST_SINGLE < abs(value) < math.inf
    too_large = too_large or (math.isinf(value) and "INF" not in text)
    if too_large or (integral and not low <= int(text) <= high):
        yield Observation("variables.start_type", f"start {text} does not fit into {variable.type}", variable.place)
    least, most = variable.number("min"), variable.number("max")
    if least is not None and value < least:
        yield Observation("variables.start_bounds", f"start {value:g} is beyond min {least:g}", variable.place)
    if most is not None and value > most:
        yield Observation("variables.start_bounds", f"start {value:g} is beyond max {most:g}", variable.place)
    if variable.type == "Enumeration":
        declared = variable.written.get("declaredType")
        items = next((each.items for each in description.types if each.name == declared), ())
        if items and text.strip() not in {item.get("value", "").strip() for item in items}:
            yield Observation(
                "variables.start_bounds", f"start {text} is none of the enumeration's values", variable.place
            )


def _bounds(variable: DescribedVariable) -> Iterator[Observation]:
    """Yield bounds that are NaN or crossed, and nominal values that are not positive."""
    low, high, nominal = variable.number("min"), variable.number("max"), variable.number("nominal")
    for name, bound in (("min", low), ("max", high)):
        if bound is not None and math.isnan(bound):
            yield Observation("variables.bounds", f"{name} is not a number", variable.place)
    if (
        low is not None
        and high is not None
        and low > high
        and (variable.written.get("min") or variable.written.get("max"))
    ):
        yield Observation("variables.bounds", f"min {low:g} is above max {high:g}", variable.place)
    if nominal is not None and not (nominal > 0.0 and math.isfinite(nominal)):
        yield Observation("variables.nominal", f"nominal {nominal:g} is not a positive number", variable.place)


def _derivative(description: DescribedModel, variable: DescribedVariable) -> Iterator[Observation]:
    """Yield a derivative of nothing, of itself, or of another type or size; and faults of states."""
    written = variable.written.get("derivative")
    state = description.target(written)
    if written is not None:
        if state is None:
            yield Observation(
                "variables.derivative", f"derivative={written}, but there is no such variable", variable.place
            )
        elif state is variable:
            yield Observation("variables.derivative", "says that it is its own derivative", variable.place)
        elif state.variability != "continuous" or variable.variability != "continuous" or not state.is_float:
            text = f'the derivative of "{state.name}", but not both are continuous floating point variables'
            yield Observation("variables.derivative", text, variable.place)
        elif description.size(state) != description.size(variable):
            yield Observation(
                "variables.derivative", f'"{state.name}", whose derivative it is, has another size', variable.place
            )
    is_state = variable in description.state_set
    if variable.written.get("reinit") is not None and not is_state:
        severity = "true" if variable.flag("reinit") else "false"
        yield Observation("variables.reinit", f"reinit={severity}, but it is no continuous state", variable.place)
    if is_state and variable.causality not in {"local", "output"}:
        yield Observation("variables.state", f"a continuous state with causality {variable.causality}", variable.place)


def _special(description: DescribedModel, variable: DescribedVariable) -> Iterator[Observation]:
    """Yield attributes on variables that cannot have them."""
    if variable.written.get("canHandleMultipleSetPerTimeInstant") is not None and variable.causality != "input":
        yield Observation(
            "variables.multiple_set", "canHandleMultipleSetPerTimeInstant, but it is no input", variable.place
        )
    if variable.flag("intermediateUpdate") and (variable.causality == "parameter" or variable.type == "Clock"):
        yield Observation("variables.intermediate", f"intermediateUpdate on a {variable.causality}", variable.place)
    del description


def _independent(description: DescribedModel) -> Iterator[Observation]:
    """Yield a missing, second or malformed independent variable."""
    found = [each for each in description.variables if each.causality == "independent"]
    if len(found) > 1 or (description.version == 3 and not found):
        yield Observation("variables.independent", f"{len(found)} variables with causality independent", DESCRIPTION)
    for each in found:
        if not each.is_float:
            yield Observation("variables.independent", f"the independent variable is of {each.type}", each.place)
        if each.written.get("initial") is not None:
            yield Observation("variables.independent", "the independent variable must not have initial", each.place)


def _dimensions(description: DescribedModel, variable: DescribedVariable) -> Iterator[Observation]:
    """Yield dimensions without a size, of less than one element, or sized by what may not size them."""
    for dimension in variable.dimensions:
        if (dimension.start is None) == (dimension.reference is None):
            yield Observation("variables.dimension", "a Dimension needs either start or valueReference", variable.place)
        elif dimension.start is not None:
            if (parse_number(dimension.start) or 0) < 1:
                yield Observation("variables.dimension", f"a Dimension of {dimension.start} elements", variable.place)
        else:
            source = description.target(dimension.reference)
            if source is None:
                yield Observation(
                    "variables.dimension", f"there is no variable {dimension.reference} for a Dimension", variable.place
                )
            elif source.type != "UInt64" or not (
                source.causality == "structuralParameter" or source.variability == "constant"
            ):
                text = f'"{source.name}" sizes a Dimension, but is no structural parameter or constant of UInt64'
                yield Observation("variables.dimension", text, variable.place)
            elif source.start and (parse_number(source.start[0]) or 0) < 1:
                yield Observation(
                    "variables.dimension",
                    f'"{source.name}" makes a Dimension of {source.start[0]} elements',
                    variable.place,
                )
    if variable.dimensions and (variable.type == "Clock" or variable.causality == "structuralParameter"):
        yield Observation(
            "variables.dimension", f"{variable.causality} of {variable.type} with a Dimension", variable.place
        )


_PERIODIC = frozenset({"constant", "fixed", "tunable"})
_NEEDS = {"shiftDecimal": "intervalDecimal", "shiftCounter": "intervalCounter", "intervalCounter": "resolution"}


def _timing(variable: DescribedVariable, kind: str | None) -> Iterator[Observation]:
    """Yield intervals and shifts of a clock that are invalid, incomplete, or not allowed for it."""
    for name, least in (
        ("intervalDecimal", 0.0),
        ("intervalCounter", 0.0),
        ("shiftDecimal", None),
        ("shiftCounter", None),
    ):
        value = parse_number(variable.written.get(name))
        if value is None:
            continue
        if not (value >= 0.0 if least is None else value > least):
            text = f"{name} {value:g} is {'negative' if least is None else 'not positive'}"
            yield Observation("variables.clocks", text, variable.place)
        if kind is not None and kind not in _PERIODIC:
            yield Observation("variables.clocks", f"{name} on a {kind} Clock, which has no period", variable.place)
        elif name in _NEEDS and _NEEDS[name] not in variable.written:
            yield Observation("variables.clocks", f"{name} without {_NEEDS[name]}", variable.place)


def _clocks(description: DescribedModel, variable: DescribedVariable) -> Iterator[Observation]:
    """Yield clocks without an interval, and variables whose clock or previous value is wrong."""
    for written in variable.written.get("clocks", "").split():
        clock = description.target(written)
        if clock is None or clock.type != "Clock":
            yield Observation("variables.clocks", f"clocks={written}, which is no Clock", variable.place)
    if variable.clocked and variable.variability not in {"discrete", "tunable"}:
        yield Observation("variables.clocks", f"clocked, but {variable.variability}", variable.place)
    if variable.type == "Clock" and not variable.written.get("intervalVariability"):
        yield Observation("variables.clocks", "a Clock without intervalVariability", variable.place)
    kind = variable.written.get("intervalVariability")
    told = {"intervalDecimal", "intervalCounter"} & variable.written.keys()
    if variable.type == "Clock" and kind == "constant" and not told:
        text = "a constant Clock without intervalDecimal and intervalCounter: nobody knows when it ticks"
        yield Observation("variables.clocks", text, variable.place)
    if variable.type == "Clock":
        yield from _timing(variable, kind)
    previous = variable.written.get("previous")
    if previous is not None:
        before = description.target(previous)
        if before is None or before is variable or before.type != variable.type or before.causality == "input":
            yield Observation(
                "variables.previous",
                f"previous={previous} is no variable that can hold its value before",
                variable.place,
            )
        if not variable.clocked or variable.variability != "discrete":
            yield Observation(
                "variables.previous", "previous on a variable that is not clocked and discrete", variable.place
            )
