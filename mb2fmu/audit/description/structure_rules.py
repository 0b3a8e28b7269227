"""The model structure: its lists complete, without doubles, of the right variables; dependencies of allowed knowns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from mb2fmu.audit.description.description_records import (
    DESCRIPTION,
    DescribedModel,
    DescribedVariable,
    StructureUnknown,
)
from mb2fmu.audit.findings import Observation

_KINDS = frozenset({"dependent", "constant", "fixed", "tunable", "discrete"})
_INITIAL_KINDS = frozenset({"dependent", "constant"})


def check_structure(description: DescribedModel) -> Iterator[Observation]:
    """Yield all rules of this file."""
    for unknown in description.unknowns:
        if unknown.variable is None:
            yield Observation("structure.reference", f"{unknown.number} refers to no variable", unknown.place)
    for name in ("Outputs", "Derivatives", "InitialUnknowns", "EventIndicators", "ClockedStates"):
        for number, count in Counter(each.number for each in description.listed(name)).items():
            if count > 1:
                place = next(each.place for each in description.listed(name) if each.number == number)
                yield Observation("structure.unique", f"listed {count} times", place)
    yield from _list(description, "Outputs", "structure.outputs", lambda each: each.causality == "output")
    yield from _derivatives(description)
    yield from _initial(description)
    firsts = {each.list: each for each in description.unknowns}  # what is allowed is the same for all of a list
    allowed = {name: frozenset(list_allowed_knowns(description, each)) for name, each in firsts.items()}
    for unknown in description.unknowns:
        yield from _dependencies(unknown, allowed[unknown.list])
    yield from _others(description)
    silent = [
        each for each in description.unknowns if each.dependencies is None and each.list in {"Outputs", "Derivatives"}
    ]
    if silent and _has_knowns(description):
        text = f"{len(silent)} outputs or derivatives without dependencies: to importers they depend on everything"
        yield Observation("structure.explicit", text, DESCRIPTION)


def _has_knowns(description: DescribedModel) -> bool:
    """Return whether there are states or inputs that anything could depend on."""
    return bool(description.states) or any(each.causality == "input" for each in description.variables)


def _list(
    description: DescribedModel, name: str, rule: str, belongs: Callable[[DescribedVariable], bool]
) -> Iterator[Observation]:
    """Yield variables that a list of the model structure lacks or should not have."""
    listed = {each.variable for each in description.listed(name) if each.variable}
    for unknown in description.listed(name):
        if unknown.variable and not belongs(unknown.variable):
            yield Observation(rule, f'"{unknown.variable.name}" does not belong into this list', unknown.place)
    for variable in description.variables:
        if belongs(variable) and variable not in listed:
            yield Observation(rule, f"is missing in ModelStructure/{name}", variable.place)


def _derivatives(description: DescribedModel) -> Iterator[Observation]:
    """Yield entries that are no derivatives, states with several, and derivatives that are not listed."""
    listed = description.listed("Derivatives")
    exchange = "ModelExchange" in description.interfaces
    targets = []
    for unknown in listed:
        variable = unknown.variable
        if variable is None:
            continue
        written = variable.written.get("derivative")
        if written is None:
            yield Observation("structure.derivatives", "listed, but has no attribute derivative", unknown.place)
        elif not variable.is_float or variable.variability != "continuous":
            yield Observation(
                "structure.derivatives", "listed, but is no continuous floating point variable", unknown.place
            )
        targets.append(written)
    for written, count in Counter(each for each in targets if each is not None).items():
        if count > 1:
            state = description.target(written)
            text = f'{count} of the derivatives listed are of one state, "{state.name if state else written}"'
            yield Observation("structure.derivatives", text, DESCRIPTION)
    if exchange:
        yield from _left_out(description, listed)


def _left_out(description: DescribedModel, listed: Sequence[StructureUnknown]) -> Iterator[Observation]:
    """Yield local derivatives that can only belong to states and are not listed."""
    known = {id(each.variable) for each in listed}
    # A state whose start is calculated is an initial unknown: what is none follows from other variables.
    initial = {id(each.variable) for each in description.listed("InitialUnknowns")}
    # An output that depends on other variables, and not on itself, follows from these: it is no state.
    following = {
        id(each.variable) for each in description.listed("Outputs")
        if each.dependencies is not None and any(each.targets) and all(one is not each.variable for one in each.targets)
    }  # fmt: skip
    for variable in description.variables:
        state = description.target(variable.written.get("derivative"))
        # der(u) of an input, or an output that is the slope of another output, make no state.
        if state is None or state.causality not in {"local", "output"} or variable.causality != "local":
            continue
        algebraic = id(state) in following or (state.initial == "calculated" and id(state) not in initial)
        if not algebraic and id(variable) not in known and state not in description.state_set:
            text = "a local derivative that ModelStructure/Derivatives leaves out"
            yield Observation("structure.derivatives", text, variable.place)


def _expected_initial(description: DescribedModel) -> list[DescribedVariable]:
    """Return the variables that InitialUnknowns must list."""
    inner = {id(each) for each in description.states}
    inner |= {id(each.variable) for each in description.listed("Derivatives") if each.variable}
    expected = []
    for variable in description.variables:
        guessed = variable.initial in {"approx", "calculated"}
        if variable.clocked or variable.type == "Clock":
            continue
        if variable.causality == "calculatedParameter" or (
            guessed and (variable.causality == "output" or id(variable) in inner)
        ):
            expected.append(variable)
    return expected


def _initial(description: DescribedModel) -> Iterator[Observation]:
    """Yield variables that InitialUnknowns lacks or should not have."""
    expected = dict.fromkeys(_expected_initial(description))
    listed = {each.variable for each in description.listed("InitialUnknowns") if each.variable}
    for variable in expected:
        if variable not in listed:
            text = (
                f'{variable.causality} with initial="{variable.initial}" is missing in ModelStructure/InitialUnknowns'
            )
            yield Observation("structure.initial", text, variable.place)
    for unknown in description.listed("InitialUnknowns"):
        found = unknown.variable
        if found and found not in expected and not (found.clocked or found.type == "Clock"):
            text = f'{found.causality} with initial="{found.initial}" does not belong into InitialUnknowns'
            yield Observation("structure.initial", text, unknown.place)


def list_allowed_knowns(description: DescribedModel, unknown: StructureUnknown) -> list[DescribedVariable]:
    """Return what an unknown may depend on (2.0.5: 2.2.8; 3.0.2: 2.4.8)."""
    inputs = [each for each in description.variables if each.causality in {"input", "independent"}]
    if unknown.list == "InitialUnknowns":
        exact = [each for each in description.variables if each.initial == "exact" and each.causality != "input"]
        return [*inputs, *(each for each in exact if each.variability != "constant")]
    states = list(description.states)
    if description.version == 2:
        return [*inputs, *states]
    parameters = [each for each in description.variables if each.causality in {"parameter", "structuralParameter"}]
    discrete = [each for each in description.variables if each.written.get("previous") is not None]
    before = [description.target(each.written.get("previous")) for each in discrete]
    discrete += [each for each in before if each]
    return [*inputs, *states, *parameters, *discrete, *_discrete_states(description)]


def _discrete_states(description: DescribedModel) -> list[DescribedVariable]:
    """Return discrete variables that may be states: FMI 3 does not list them."""
    return [
        each
        for each in description.variables
        if each.variability == "discrete" and each.causality in {"local", "output"}
    ]


def _dependencies(unknown: StructureUnknown, allowed: Collection[DescribedVariable]) -> Iterator[Observation]:
    """Yield dependencies that are doubled, unresolved, or on what cannot be a known."""
    yield from _kinds(unknown)
    if unknown.dependencies is None:
        return
    for written, count in Counter(unknown.dependencies).items():
        if count > 1:
            yield Observation("structure.dependencies", f"{written} is listed {count} times", unknown.place)
    for written, target in zip(unknown.dependencies, unknown.targets, strict=True):
        if target is None:
            yield Observation("structure.dependencies", f"{written} refers to no variable", unknown.place)
        elif target not in allowed:
            text = f'"{target.name}" ({target.causality}, {target.variability}) cannot be a known here'
            yield Observation("structure.dependencies", text, unknown.place)


def _kinds(unknown: StructureUnknown) -> Iterator[Observation]:
    """Yield kinds of dependencies of the wrong number, name or type of unknown."""
    if unknown.kinds is None:
        return
    if unknown.dependencies is None:
        yield Observation("structure.kinds", "dependenciesKind without dependencies", unknown.place)
    elif len(unknown.kinds) != len(unknown.dependencies):
        text = f"{len(unknown.dependencies)} dependencies, but {len(unknown.kinds)} kinds"
        yield Observation("structure.kinds", text, unknown.place)
    allowed = _INITIAL_KINDS if unknown.list == "InitialUnknowns" else _KINDS
    for kind in sorted({*unknown.kinds} - allowed):
        yield Observation("structure.kinds", f'kind "{kind}" is not allowed in {unknown.list}', unknown.place)
    factors = sorted({*unknown.kinds} - {"dependent"})
    if factors and unknown.variable and not unknown.variable.is_float:
        text = f"a factor in front of a known ({', '.join(factors)}) is for floating point unknowns"
        yield Observation("structure.factors", text, unknown.place)


def _others(description: DescribedModel) -> Iterator[Observation]:
    """Yield event indicators that are not continuous, and faults of the clocked states."""
    for unknown in description.listed("EventIndicators"):
        each = unknown.variable
        if each and (
            not each.is_float or each.variability != "continuous" or each.causality not in {"local", "output"}
        ):
            yield Observation("structure.indicators", f'"{each.name}" is no continuous local or output', unknown.place)
    yield from _list(
        description, "ClockedStates", "structure.clocked", lambda each: each.written.get("previous") is not None
    )
