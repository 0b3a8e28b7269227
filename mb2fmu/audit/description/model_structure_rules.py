"""The model structure: its lists complete, without doubles, of the right variables; dependencies of allowed knowns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from mb2fmu.audit.description.description_records import (
    DESCRIPTION,
    DescribedModel,
    DescribedUnknown,
    DescribedVariable,
)
from mb2fmu.audit.rules_and_findings import RuleViolation

_DEPENDENCY_KINDS = frozenset({"dependent", "constant", "fixed", "tunable", "discrete"})
_INITIAL_DEPENDENCY_KINDS = frozenset({"dependent", "constant"})


def check_model_structure(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield violations of the rules about the model structure and its dependencies."""
    for unknown in description.unknowns:
        if unknown.variable is None:
            yield RuleViolation(
                "structure.reference", f"{unknown.number} refers to no variable", unknown.location_in_file
            )
    for name in ("Outputs", "Derivatives", "InitialUnknowns", "EventIndicators", "ClockedStates"):
        for number, count in Counter(entry.number for entry in description.model_structure_entries(name)).items():
            if count > 1:
                first_place = next(
                    entry.location_in_file
                    for entry in description.model_structure_entries(name)
                    if entry.number == number
                )
                yield RuleViolation("structure.unique", f"listed {count} times", first_place)
    yield from _check_list(description, "Outputs", "structure.outputs", lambda entry: entry.causality == "output")
    yield from _check_derivatives(description)
    yield from _check_initial_unknowns(description)
    first_entries = {
        entry.list: entry for entry in description.unknowns
    }  # what is allowed is the same for all of a list
    allowed = {name: frozenset(_list_allowed_knowns(description, entry)) for name, entry in first_entries.items()}
    for unknown in description.unknowns:
        yield from _check_dependencies(unknown, allowed[unknown.list])
    yield from _check_other_lists(description)
    without_dependencies = [
        entry
        for entry in description.unknowns
        if entry.dependencies is None and entry.list in {"Outputs", "Derivatives"}
    ]
    if without_dependencies and _has_states_or_inputs(description):
        message = (
            f"{len(without_dependencies)} outputs or derivatives without dependencies: to importers they "
            "depend on everything"
        )
        yield RuleViolation("structure.explicit", message, DESCRIPTION)


def _has_states_or_inputs(description: DescribedModel) -> bool:
    """Return whether there are states or inputs that anything could depend on."""
    return bool(description.states) or any(variable.causality == "input" for variable in description.variables)


def _check_list(
    description: DescribedModel, list_name: str, rule: str, should_be_listed: Callable[[DescribedVariable], bool]
) -> Iterator[RuleViolation]:
    """Yield variables that a list of the model structure lacks or should not have."""
    listed_variables = {entry.variable for entry in description.model_structure_entries(list_name) if entry.variable}
    for unknown in description.model_structure_entries(list_name):
        if unknown.variable and not should_be_listed(unknown.variable):
            yield RuleViolation(
                rule, f'"{unknown.variable.name}" does not belong into this list', unknown.location_in_file
            )
    for variable in description.variables:
        if should_be_listed(variable) and variable not in listed_variables:
            yield RuleViolation(rule, f"is missing in ModelStructure/{list_name}", variable.location_in_file)


def _check_derivatives(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield entries that are no derivatives, states with several, and derivatives that are not listed."""
    entries = description.model_structure_entries("Derivatives")
    has_model_exchange = "ModelExchange" in description.interfaces
    targets = []
    for unknown in entries:
        variable = unknown.variable
        if variable is None:
            continue
        reference = variable.written.get("derivative")
        if reference is None:
            yield RuleViolation(
                "structure.derivatives", "listed, but has no attribute derivative", unknown.location_in_file
            )
        elif not variable.is_float or variable.variability != "continuous":
            yield RuleViolation(
                "structure.derivatives",
                "listed, but is no continuous floating point variable",
                unknown.location_in_file,
            )
        targets.append(reference)
    for reference, count in Counter(target for target in targets if target is not None).items():
        if count > 1:
            state = description.find_referenced_variable(reference)
            message = f'{count} of the derivatives listed are of one state, "{state.name if state else reference}"'
            yield RuleViolation("structure.derivatives", message, DESCRIPTION)
    if has_model_exchange:
        yield from _find_unlisted_derivatives(description, entries)


def _find_unlisted_derivatives(
    description: DescribedModel, entries: Sequence[DescribedUnknown]
) -> Iterator[RuleViolation]:
    """Yield local derivatives that can only belong to states and are not listed."""
    listed_ids = {id(entry.variable) for entry in entries}
    # A state whose start is calculated is an initial unknown: what is none follows from other variables.
    initial_ids = {id(entry.variable) for entry in description.model_structure_entries("InitialUnknowns")}
    # An output that depends on other variables, and not on itself, follows from these: it is no state.
    algebraic_ids = {
        id(entry.variable)
        for entry in description.model_structure_entries("Outputs")
        if entry.dependencies is not None
        and any(entry.targets)
        and all(target is not entry.variable for target in entry.targets)
    }
    for variable in description.variables:
        state = description.find_referenced_variable(variable.written.get("derivative"))
        # der(u) of an input, or an output that is the slope of another output, make no state.
        if state is None or state.causality not in {"local", "output"} or variable.causality != "local":
            continue
        is_algebraic = id(state) in algebraic_ids or (state.initial == "calculated" and id(state) not in initial_ids)
        if not is_algebraic and id(variable) not in listed_ids and state not in description.state_set:
            message = "a local derivative that ModelStructure/Derivatives leaves out"
            yield RuleViolation("structure.derivatives", message, variable.location_in_file)


def _list_expected_initial_unknowns(description: DescribedModel) -> list[DescribedVariable]:
    """Return the variables that InitialUnknowns must list."""
    state_ids = {id(entry) for entry in description.states}
    state_ids |= {id(entry.variable) for entry in description.model_structure_entries("Derivatives") if entry.variable}
    expected = []
    for variable in description.variables:
        is_calculated = variable.initial in {"approx", "calculated"}
        if variable.clocked or variable.type == "Clock":
            continue
        if variable.causality == "calculatedParameter" or (
            is_calculated and (variable.causality == "output" or id(variable) in state_ids)
        ):
            expected.append(variable)
    return expected


def _check_initial_unknowns(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield variables that InitialUnknowns lacks or should not have."""
    expected = dict.fromkeys(_list_expected_initial_unknowns(description))
    listed_unknowns = {
        entry.variable for entry in description.model_structure_entries("InitialUnknowns") if entry.variable
    }
    for variable in expected:
        if variable not in listed_unknowns:
            message = (
                f'{variable.causality} with initial="{variable.initial}" is missing in ModelStructure/InitialUnknowns'
            )
            yield RuleViolation("structure.initial", message, variable.location_in_file)
    for unknown in description.model_structure_entries("InitialUnknowns"):
        listed_variable = unknown.variable
        if (
            listed_variable
            and listed_variable not in expected
            and not (listed_variable.clocked or listed_variable.type == "Clock")
        ):
            message = (
                f'{listed_variable.causality} with initial="{listed_variable.initial}" does not belong '
                "into InitialUnknowns"
            )
            yield RuleViolation("structure.initial", message, unknown.location_in_file)


def _list_allowed_knowns(description: DescribedModel, unknown: DescribedUnknown) -> list[DescribedVariable]:
    """Return what an unknown may depend on (2.0.5: 2.2.8; 3.0.2: 2.4.8)."""
    inputs = [variable for variable in description.variables if variable.causality in {"input", "independent"}]
    if unknown.list == "InitialUnknowns":
        exact_variables = [
            variable
            for variable in description.variables
            if variable.initial == "exact" and variable.causality != "input"
        ]
        return [*inputs, *(variable for variable in exact_variables if variable.variability != "constant")]
    states = list(description.states)
    if description.version == 2:
        return [*inputs, *states]
    parameters = [
        variable for variable in description.variables if variable.causality in {"parameter", "structuralParameter"}
    ]
    discrete = [variable for variable in description.variables if variable.written.get("previous") is not None]
    previous_variables = [
        description.find_referenced_variable(variable.written.get("previous")) for variable in discrete
    ]
    discrete += [variable for variable in previous_variables if variable]
    return [*inputs, *states, *parameters, *discrete, *_list_possible_discrete_states(description)]


def _list_possible_discrete_states(description: DescribedModel) -> list[DescribedVariable]:
    """Return discrete variables that may be states: FMI 3 does not list them."""
    return [
        variable
        for variable in description.variables
        if variable.variability == "discrete" and variable.causality in {"local", "output"}
    ]


def _check_dependencies(unknown: DescribedUnknown, allowed: Collection[DescribedVariable]) -> Iterator[RuleViolation]:
    """Yield dependencies that are doubled, unresolved, or on what cannot be a known."""
    yield from _check_dependency_kinds(unknown)
    if unknown.dependencies is None:
        return
    for reference, count in Counter(unknown.dependencies).items():
        if count > 1:
            yield RuleViolation(
                "structure.dependencies", f"{reference} is listed {count} times", unknown.location_in_file
            )
    for reference, target in zip(unknown.dependencies, unknown.targets, strict=True):
        if target is None:
            yield RuleViolation(
                "structure.dependencies", f"{reference} refers to no variable", unknown.location_in_file
            )
        elif target not in allowed:
            message = f'"{target.name}" ({target.causality}, {target.variability}) cannot be a known here'
            yield RuleViolation("structure.dependencies", message, unknown.location_in_file)


def _check_dependency_kinds(unknown: DescribedUnknown) -> Iterator[RuleViolation]:
    """Yield kinds of dependencies of the wrong number, name or type of unknown."""
    if unknown.kinds is None:
        return
    if unknown.dependencies is None:
        yield RuleViolation("structure.kinds", "dependenciesKind without dependencies", unknown.location_in_file)
    elif len(unknown.kinds) != len(unknown.dependencies):
        message = f"{len(unknown.dependencies)} dependencies, but {len(unknown.kinds)} kinds"
        yield RuleViolation("structure.kinds", message, unknown.location_in_file)
    allowed = _INITIAL_DEPENDENCY_KINDS if unknown.list == "InitialUnknowns" else _DEPENDENCY_KINDS
    for kind in sorted({*unknown.kinds} - allowed):
        yield RuleViolation(
            "structure.kinds", f'kind "{kind}" is not allowed in {unknown.list}', unknown.location_in_file
        )
    factors = sorted({*unknown.kinds} - {"dependent"})
    if factors and unknown.variable and not unknown.variable.is_float:
        message = f"a factor in front of a known ({', '.join(factors)}) is for floating point unknowns"
        yield RuleViolation("structure.factors", message, unknown.location_in_file)


def _check_other_lists(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield event indicators that are not continuous, and faults of the clocked states."""
    for unknown in description.model_structure_entries("EventIndicators"):
        variable = unknown.variable
        if variable and (
            not variable.is_float
            or variable.variability != "continuous"
            or variable.causality not in {"local", "output"}
        ):
            yield RuleViolation(
                "structure.indicators", f'"{variable.name}" is no continuous local or output', unknown.location_in_file
            )
    yield from _check_list(
        description, "ClockedStates", "structure.clocked", lambda variable: variable.written.get("previous") is not None
    )
