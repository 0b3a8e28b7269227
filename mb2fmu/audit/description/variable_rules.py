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
    parse_xml_number,
)
from mb2fmu.audit.rules_and_findings import RuleViolation

_NAME_PART = r"(?:[A-Za-z_][A-Za-z_0-9]*|'(?:[A-Za-z_0-9!#$%&()*+,\-./:;<>=?@\[\]^{}|~ ]|\\['\"?\\abfnrtv])+')"
_INDICES = r"(?:\[\d+(?:,\d+)*\])?"
_IDENTIFIER = rf"{_NAME_PART}{_INDICES}(?:\.{_NAME_PART}{_INDICES})*"
_STRUCTURED = re.compile(rf"(?:{_IDENTIFIER}|der\({_IDENTIFIER}(?:,\d+)?\))\Z")
_CALCULATED_OR_APPROXIMATE = frozenset({"calculated", "approx"})
_ANY_INITIAL = frozenset({"calculated", "exact", "approx"})
# (causality, variability) → what initial may be; empty: must not be written
_ALLOWED_INITIAL: dict[tuple[str, str], frozenset[str]] = {
    **{(c, v): frozenset({"exact"}) for c in ("structuralParameter", "parameter") for v in ("fixed", "tunable")},
    **{(c, v): _CALCULATED_OR_APPROXIMATE for c in ("calculatedParameter", "local") for v in ("fixed", "tunable")},
    **{("input", v): frozenset() for v in ("discrete", "continuous")},
    **{(c, "constant"): frozenset({"exact"}) for c in ("output", "local")},
    **{(c, v): _ANY_INITIAL for c in ("output", "local") for v in ("discrete", "continuous")},
    ("independent", "continuous"): frozenset(),
}
_BOOLEAN_TEXTS = {"true", "false", "0", "1"}


def check_variables(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield violations of the rules about single variables: names, causality, start values, bounds, clocks."""
    yield from _check_names(description)
    yield from _check_references(description)
    for variable in description.variables:
        yield from _check_combination(description, variable)
        yield from _check_start(description, variable)
        yield from _check_bounds(variable)
        yield from _check_derivative(description, variable)
        yield from _check_special_attributes(description, variable)
        if description.version == 3:
            yield from _check_dimensions(description, variable)
            yield from _check_clocks(description, variable)
    yield from _check_independent(description)


def _check_names(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield names that occur twice, are empty, or break the structured naming that was promised."""
    is_structured = description.attributes.get("variableNamingConvention") == "structured"
    variables_by_name: dict[str, DescribedVariable] = {}
    for variable in description.variables:
        for name in (variable.name, *(alias.get("name", "") for alias in variable.aliases)):
            if name in variables_by_name:
                yield RuleViolation(
                    "variables.unique",
                    f'the name "{name}" is that of line {variables_by_name[name].line} too',
                    variable.location_in_file,
                )
            variables_by_name.setdefault(name, variable)
            if not name or any(character in name for character in "\r\n\t"):
                yield RuleViolation(
                    "variables.name", f"{name!r} is empty or holds a control character", variable.location_in_file
                )
            elif is_structured and not _STRUCTURED.match(name):
                yield RuleViolation(
                    "variables.name",
                    f'"{name}" is no structured name, which variableNamingConvention promises',
                    variable.location_in_file,
                )


def _check_references(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield value references that are malformed, or shared where the version does not allow it."""
    for variable in description.variables:
        if variable.reference is None or not 0 <= variable.reference < 2**32:
            message = f"value reference {variable.written.get('valueReference')!r} is no unsigned 32-bit number"
            yield RuleViolation("variables.reference", message, variable.location_in_file)
    if description.version == 3:
        for variable in description.variables:
            first = description.variables_by_reference.get(-1 if variable.reference is None else variable.reference)
            if first is not None and first is not variable:
                message = f'value reference {variable.reference} is that of "{first.name}" too'
                yield RuleViolation("variables.reference", message, variable.location_in_file)
        return
    groups: dict[tuple[str, int | None], list[DescribedVariable]] = {}
    for variable in description.variables:
        base_type = "Integer" if variable.type == "Enumeration" else variable.type
        groups.setdefault((base_type, variable.reference), []).append(variable)
    for group in groups.values():
        if len(group) > 1:
            yield from _check_aliases(group)


def _check_aliases(group: list[DescribedVariable]) -> Iterator[RuleViolation]:
    """Check FMI 2's aliases: variables of one type with one value reference share one value."""
    names = ", ".join(f'"{variable.name}"' for variable in group)
    place = group[1].location_in_file
    settable = [variable for variable in group if variable.causality in {"parameter", "input"}]
    if len(settable) > 1:
        yield RuleViolation(
            "variables.aliases", f"{names} share a value reference, and more than one of them can be set", place
        )
    if len([variable for variable in group if variable.start is not None]) > 1 and not all(
        variable.variability == "constant" for variable in group
    ):
        yield RuleViolation(
            "variables.aliases", f"{names} share a value reference, and more than one of them has a start value", place
        )
    if len({variable.get("unit") for variable in group} - {None}) > 1:
        yield RuleViolation("variables.aliases", f"{names} share a value reference, but not the unit", place)
    constants = [variable.variability == "constant" for variable in group]
    if any(constants) and not all(constants):
        yield RuleViolation("variables.aliases", f"{names} share a value reference, but only some are constant", place)


def _check_combination(description: DescribedModel, variable: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield causality, variability and initial that do not go together, by the standard's table."""
    pair = variable.causality, variable.variability
    if variable.variability == "continuous" and not variable.is_float:
        yield RuleViolation("variables.continuous", f"continuous, but of {variable.type}", variable.location_in_file)
        return
    if variable.type == "Clock":
        if variable.causality not in {"input", "output", "local"}:
            yield RuleViolation(
                "variables.combination", f"a Clock with causality {variable.causality}", variable.location_in_file
            )
        return
    if pair not in _ALLOWED_INITIAL or (variable.causality == "structuralParameter" and description.version == 2):
        yield RuleViolation(
            "variables.combination",
            f"causality {pair[0]} and variability {pair[1]} do not go together",
            variable.location_in_file,
        )
        return
    initial, allowed = variable.written.get("initial"), _ALLOWED_INITIAL[pair]
    if initial is None or initial in allowed:
        return
    # FMI 3 has exact as the only value for inputs; FMI 2 forbids the attribute there.
    if description.version == 3 and variable.causality == "input" and initial == "exact":
        return
    allowed_text = " or ".join(sorted(allowed)) or "no initial"
    yield RuleViolation(
        "variables.initial", f'initial="{initial}"; {" ".join(pair)} allows {allowed_text}', variable.location_in_file
    )


def _check_start(description: DescribedModel, variable: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield start values that are missing, forbidden, or of the wrong number."""
    if variable.type in {"Clock", ""}:
        return
    is_required = variable.initial in {"exact", "approx"} or variable.causality in {
        "input",
        "parameter",
        "structuralParameter",
    }
    if variable.start is None:
        if is_required and variable.causality != "independent":
            yield RuleViolation("variables.start_missing", "no start value", variable.location_in_file)
        return
    if variable.causality == "independent" or (variable.initial == "calculated" and variable.causality != "input"):
        subject = (
            "the independent variable"
            if variable.causality == "independent"
            else 'a variable with initial="calculated"'
        )
        yield RuleViolation("variables.start_forbidden", f"{subject} has a start value", variable.location_in_file)
    count = description.size(variable)
    if variable.type != "Binary" and len(variable.start) not in {1, count}:
        start_text = f"{len(variable.start)} start values for {count} elements"
        yield RuleViolation("variables.start_type", start_text, variable.location_in_file)
    for start_text in variable.start:
        yield from _check_start_value(description, variable, start_text)


def _check_start_value(description: DescribedModel, variable: DescribedVariable, text: str) -> Iterator[RuleViolation]:
    """Yield a start value that is not of the variable's type."""
    if variable.type == "Boolean":
        if text.strip() not in _BOOLEAN_TEXTS:
            yield RuleViolation("variables.start_type", f'start "{text}" is no Boolean', variable.location_in_file)
    elif variable.type == "Binary":
        if len(text) % 2 or not re.fullmatch(r"[0-9A-Fa-f]*", text):
            yield RuleViolation("variables.start_type", f'start "{text}" is not hexadecimal', variable.location_in_file)
        max_size = variable.number("maxSize")
        if max_size is not None and len(text) // 2 > max_size:
            text = f"start has {len(text) // 2} bytes, and maxSize is {max_size:g}"
            yield RuleViolation("variables.start_bounds", text, variable.location_in_file)
    elif variable.type != "String":
        yield from _check_start_number(description, variable, text)


MAX_SINGLE_PRECISION = (2.0 - 2.0**-24) * 2.0**127
"""From here on a number rounds to infinity in single precision."""


def _check_start_number(description: DescribedModel, variable: DescribedVariable, text: str) -> Iterator[RuleViolation]:
    """Yield a numeric start value that is malformed, out of range, out of bounds, or no item."""
    value = parse_xml_number(text)
    is_integral = variable.type in INTEGERS or variable.type == "Enumeration"
    if value is None or (is_integral and not re.fullmatch(r"\s*[+-]?\d+\s*", text)):
        yield RuleViolation("variables.start_type", f'start "{text}" is no {variable.type}', variable.location_in_file)
        return
    if math.isnan(value):
        yield RuleViolation("variables.start_type", "start is not a number", variable.location_in_file)
    type_minimum, type_maximum = RANGES.get(variable.type, (-math.inf, math.inf))
    too_large = variable.type == "Float32" and MAX_SINGLE_PRECISION < abs(value) < math.inf
    too_large = too_large or (math.isinf(value) and "INF" not in text)
    if too_large or (is_integral and not type_minimum <= int(text) <= type_maximum):
        yield RuleViolation(
            "variables.start_type", f"start {text} does not fit into {variable.type}", variable.location_in_file
        )
    minimum, maximum = variable.number("min"), variable.number("max")
    if minimum is not None and value < minimum:
        yield RuleViolation(
            "variables.start_bounds", f"start {value:g} is beyond min {minimum:g}", variable.location_in_file
        )
    if maximum is not None and value > maximum:
        yield RuleViolation(
            "variables.start_bounds", f"start {value:g} is beyond max {maximum:g}", variable.location_in_file
        )
    if variable.type == "Enumeration":
        declared = variable.written.get("declaredType")
        items = next((each.items for each in description.types if each.name == declared), ())
        if items and text.strip() not in {item.get("value", "").strip() for item in items}:
            yield RuleViolation(
                "variables.start_bounds", f"start {text} is none of the enumeration's values", variable.location_in_file
            )


def _check_bounds(variable: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield bounds that are NaN or crossed, and nominal values that are not positive."""
    minimum, maximum, nominal = variable.number("min"), variable.number("max"), variable.number("nominal")
    for name, bound in (("min", minimum), ("max", maximum)):
        if bound is not None and math.isnan(bound):
            yield RuleViolation("variables.bounds", f"{name} is not a number", variable.location_in_file)
    if (
        minimum is not None
        and maximum is not None
        and minimum > maximum
        and (variable.written.get("min") or variable.written.get("max"))
    ):
        yield RuleViolation("variables.bounds", f"min {minimum:g} is above max {maximum:g}", variable.location_in_file)
    if nominal is not None and not (nominal > 0.0 and math.isfinite(nominal)):
        yield RuleViolation(
            "variables.nominal", f"nominal {nominal:g} is not a positive number", variable.location_in_file
        )


def _check_derivative(description: DescribedModel, variable: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield a derivative of nothing, of itself, or of another type or size; and faults of states."""
    reference = variable.written.get("derivative")
    state = description.find_referenced_variable(reference)
    if reference is not None:
        if state is None:
            yield RuleViolation(
                "variables.derivative",
                f"derivative={reference}, but there is no such variable",
                variable.location_in_file,
            )
        elif state is variable:
            yield RuleViolation("variables.derivative", "is declared as its own derivative", variable.location_in_file)
        elif state.variability != "continuous" or variable.variability != "continuous" or not state.is_float:
            message = f'the derivative of "{state.name}", but not both are continuous floating point variables'
            yield RuleViolation("variables.derivative", message, variable.location_in_file)
        elif description.size(state) != description.size(variable):
            yield RuleViolation(
                "variables.derivative",
                f'"{state.name}", whose derivative it is, has another size',
                variable.location_in_file,
            )
    is_state = variable in description.state_set
    if variable.written.get("reinit") is not None and not is_state:
        reinit_text = "true" if variable.flag("reinit") else "false"
        yield RuleViolation(
            "variables.reinit", f"reinit={reinit_text}, but it is no continuous state", variable.location_in_file
        )
    if is_state and variable.causality not in {"local", "output"}:
        yield RuleViolation(
            "variables.state", f"a continuous state with causality {variable.causality}", variable.location_in_file
        )


def _check_special_attributes(description: DescribedModel, variable: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield attributes on variables that cannot have them."""
    if variable.written.get("canHandleMultipleSetPerTimeInstant") is not None and variable.causality != "input":
        yield RuleViolation(
            "variables.multiple_set",
            "canHandleMultipleSetPerTimeInstant, but it is no input",
            variable.location_in_file,
        )
    if variable.flag("intermediateUpdate") and (variable.causality == "parameter" or variable.type == "Clock"):
        yield RuleViolation(
            "variables.intermediate", f"intermediateUpdate on a {variable.causality}", variable.location_in_file
        )
    del description


def _check_independent(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield a missing, second or malformed independent variable."""
    independent_variables = [variable for variable in description.variables if variable.causality == "independent"]
    if len(independent_variables) > 1 or (description.version == 3 and not independent_variables):
        yield RuleViolation(
            "variables.independent", f"{len(independent_variables)} variables with causality independent", DESCRIPTION
        )
    for variable in independent_variables:
        if not variable.is_float:
            yield RuleViolation(
                "variables.independent", f"the independent variable is of {variable.type}", variable.location_in_file
            )
        if variable.written.get("initial") is not None:
            yield RuleViolation(
                "variables.independent", "the independent variable must not have initial", variable.location_in_file
            )


def _check_dimensions(description: DescribedModel, variable: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield dimensions without a size, of less than one element, or sized by what may not size them."""
    for dimension in variable.dimensions:
        if (dimension.start is None) == (dimension.reference is None):
            yield RuleViolation(
                "variables.dimension", "a Dimension needs either start or valueReference", variable.location_in_file
            )
        elif dimension.start is not None:
            if (parse_xml_number(dimension.start) or 0) < 1:
                yield RuleViolation(
                    "variables.dimension", f"a Dimension of {dimension.start} elements", variable.location_in_file
                )
        else:
            source = description.find_referenced_variable(dimension.reference)
            if source is None:
                yield RuleViolation(
                    "variables.dimension",
                    f"there is no variable {dimension.reference} for a Dimension",
                    variable.location_in_file,
                )
            elif source.type != "UInt64" or not (
                source.causality == "structuralParameter" or source.variability == "constant"
            ):
                message = f'"{source.name}" sizes a Dimension, but is no structural parameter or constant of UInt64'
                yield RuleViolation("variables.dimension", message, variable.location_in_file)
            elif source.start and (parse_xml_number(source.start[0]) or 0) < 1:
                yield RuleViolation(
                    "variables.dimension",
                    f'"{source.name}" makes a Dimension of {source.start[0]} elements',
                    variable.location_in_file,
                )
    if variable.dimensions and (variable.type == "Clock" or variable.causality == "structuralParameter"):
        yield RuleViolation(
            "variables.dimension",
            f"{variable.causality} of {variable.type} with a Dimension",
            variable.location_in_file,
        )


_PERIODIC_INTERVALS = frozenset({"constant", "fixed", "tunable"})
_REQUIRED_ATTRIBUTES = {
    "shiftDecimal": "intervalDecimal",
    "shiftCounter": "intervalCounter",
    "intervalCounter": "resolution",
}


def _check_clock_timing(variable: DescribedVariable, interval_kind: str | None) -> Iterator[RuleViolation]:
    """Yield intervals and shifts of a clock that are invalid, incomplete, or not allowed for it."""
    for name, lower_limit in (
        ("intervalDecimal", 0.0),
        ("intervalCounter", 0.0),
        ("shiftDecimal", None),
        ("shiftCounter", None),
    ):
        value = parse_xml_number(variable.written.get(name))
        if value is None:
            continue
        if not (value >= 0.0 if lower_limit is None else value > lower_limit):
            message = f"{name} {value:g} is {'negative' if lower_limit is None else 'not positive'}"
            yield RuleViolation("variables.clocks", message, variable.location_in_file)
        if interval_kind is not None and interval_kind not in _PERIODIC_INTERVALS:
            yield RuleViolation(
                "variables.clocks", f"{name} on a {interval_kind} Clock, which has no period", variable.location_in_file
            )
        elif name in _REQUIRED_ATTRIBUTES and _REQUIRED_ATTRIBUTES[name] not in variable.written:
            yield RuleViolation(
                "variables.clocks", f"{name} without {_REQUIRED_ATTRIBUTES[name]}", variable.location_in_file
            )


def _check_clocks(description: DescribedModel, variable: DescribedVariable) -> Iterator[RuleViolation]:
    """Yield clocks without an interval, and variables whose clock or previous value is wrong."""
    for reference in variable.written.get("clocks", "").split():
        clock = description.find_referenced_variable(reference)
        if clock is None or clock.type != "Clock":
            yield RuleViolation("variables.clocks", f"clocks={reference}, which is no Clock", variable.location_in_file)
    if variable.clocked and variable.variability not in {"discrete", "tunable"}:
        yield RuleViolation("variables.clocks", f"clocked, but {variable.variability}", variable.location_in_file)
    if variable.type == "Clock" and not variable.written.get("intervalVariability"):
        yield RuleViolation("variables.clocks", "a Clock without intervalVariability", variable.location_in_file)
    interval_kind = variable.written.get("intervalVariability")
    declared_attributes = {"intervalDecimal", "intervalCounter"} & variable.written.keys()
    if variable.type == "Clock" and interval_kind == "constant" and not declared_attributes:
        message = "a constant Clock without intervalDecimal and intervalCounter: nobody knows when it ticks"
        yield RuleViolation("variables.clocks", message, variable.location_in_file)
    if variable.type == "Clock":
        yield from _check_clock_timing(variable, interval_kind)
    previous = variable.written.get("previous")
    if previous is not None:
        previous_variable = description.find_referenced_variable(previous)
        if (
            previous_variable is None
            or previous_variable is variable
            or previous_variable.type != variable.type
            or previous_variable.causality == "input"
        ):
            yield RuleViolation(
                "variables.previous",
                f"previous={previous} is no variable that can hold its value before",
                variable.location_in_file,
            )
        if not variable.clocked or variable.variability != "discrete":
            yield RuleViolation(
                "variables.previous",
                "previous on a variable that is not clocked and discrete",
                variable.location_in_file,
            )
