"""Checks of an FMU besides its motion: its declarations, by the standards, by themselves and by the model.

Three sources, each of which names itself in its findings: an independent checker (fmpy; for FMUs from elsewhere fmutool
too, whose rules fmpy and the auditor have); the auditor, which runs the FMU and holds it against its own description
(derivatives, dependencies, values that are set and read, states that are saved and restored, parts of steps); and the
model, for units of measure and start values: a description can agree with its unit and with no model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from mb2fmu.audit import AuditFinding, audit, audit_rules_by_id
from mb2fmu.audit.description.description_import import read_terminals
from mb2fmu.audit.description.description_records import (
    TERMINALS,
    DescribedModel,
    DescribedTerminalMember,
    DescribedUnit,
    DescribedVariable,
    parse_xml_number,
)
from mb2fmu.audit.description.unit_definition_rules import find_wrong_unit_exponents
from mb2fmu.audit.external_checkers import ExternalCheckerFinding, check_with_fmpy, run_external_checkers
from mb2fmu.errors import Fault, Mb2FmuError, ToolError
from mb2fmu.fmu.package import read_archive
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.model.quantity_declarations import Coordinate, Speed
from mb2fmu.units import are_compatible_units, display_unit_conversion, parse_unit
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.reference.reference_run import list_compared_variables
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description
from mb2fmu.validation.runs.fmu_process_start import run_script_process
from mb2fmu.validation.runs.source_binary_comparison import compare_recompiled_sources

VALIDATION_RULES = (
    *("partials.*", "derivative.*", "value.*", "state.*", "steps.*", "life.*", "exchange.*"),
    *("units.*", "types.*", "variables.*", "structure.*", "flags.*"),
)
"""Rules of the auditor that are part of the validation; others are about hosts, archives and taste."""

RUNTIME_RULES = (
    *("life.several", "life.threads", "life.name", "life.order", "life.uninitialized", "life.visible", "life.unload"),
)
"""Rules about what the FMU runtime does, which is the same in all FMUs that are made here: the tests of mb2fmu judge
it, and ``mb2fmu audit`` does for any FMU."""

DEPENDENCY_RULES = "dependencies.*"
AUDIT_CPU_TIME_S, STIFF_AUDIT_CPU_TIME_S = 5.0, 4.0
"""What the auditor's trials may take of the processor, in s. Small FMUs need a third of the first. The auditor's own
integrator is explicit, so it comes to no end with a stiff FMU, whose whole runs are compared with the reference."""

AUDIT_RUN_CALLS = 4_000
"""Calls of the FMU in one run of the auditor, a step of its integrator being some 21; of a run that is longer it judges
the beginning. Runs to the stop time are compared with the reference."""

AUDIT_WALL_TIME_S = 900.0
"""For the auditor by the clock, in s: on a busy machine it takes longer, and judges the same."""

MAX_STATES_FOR_DEPENDENCIES = 40
"""States up to which each declared dependency is tried: the cost grows with the square of their number."""

CONTRADICTION_MESSAGE = "contradict each other"
"""How an FMU says that its constraints cannot hold with the parameters that it was given."""

UNBOUNDED_INPUTS_MESSAGE = "larger changes of inputs without bounds"
"""How the auditor says that an FMU refuses large inputs for which it declares no bounds."""

AUDITOR, MODEL = "auditor", "model"
SAME_NUMBER_TOLERANCE = 1e-9
"""Relative difference of two numbers that are written the same but for their last digits."""
SOLVED_START_TOLERANCE = 1e-6
"""Of the largest start value of its unit: a start value that loops determine may differ by so much."""


def check_fmu_conformity(
    fmu: Path,
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    *,
    redundant: bool = False,
    runtime: bool = True,
) -> tuple[ExternalCheckerFinding, ...]:
    """Return all objections of checkers, the auditor and the model against an FMU; each without any gives a note.

    Args:
        fmu: The archive.
        definition: The checked model.
        equations: Of the reference: they name the outputs that are compared.
        redundant: Whether constraints follow from others.
        runtime: Whether the FMU's runtime is judged too (threads, several instances, order of calls), its sources
            are compiled, and fmutool reads it: of FMUs from elsewhere.

    Raises:
        ToolError: If a checker does not run to its end.
        Mb2FmuError: If the auditor itself fails.
    """
    tree = read_archive(fmu)
    description = read_fmu_description(tree)
    declared, elements = description.model, description.elements
    return (
        *(run_external_checkers if runtime else check_with_fmpy)(fmu, run_script=run_script_process),
        *_run_auditor(fmu, definition, redundant=redundant, runtime=runtime),
        *_compare_declarations(_add_array_elements(declared, elements), definition, equations, elements),
        *_compare_terminals(read_terminals(tree[TERMINALS]) if TERMINALS in tree else {}, definition),
        *(compare_recompiled_sources(fmu, tree, description, form_experiment_values(definition)) if runtime else ()),
    )


def _run_auditor(
    fmu: Path, definition: DeclaredModelContent, *, redundant: bool, runtime: bool
) -> Iterator[ExternalCheckerFinding]:
    """Yield the auditor's errors; its warnings are shown by ``mb2fmu audit`` only.

    A mechanism with redundant constraints closes at special lengths only. With those that the auditor tries, an FMU
    rightly refuses calls, and reports that the constraints contradict each other; any other refusal stays an error. Of
    a stiff mechanism a state turns within a step, so what it moves by in a step says nothing of its derivative, which
    the API checks during the run compare with the reference's.
    """
    states = len(definition.coordinates) + len(definition.speeds) + len(definition.auxiliary_states)
    rules = (*VALIDATION_RULES, DEPENDENCY_RULES) if states <= MAX_STATES_FOR_DEPENDENCIES else VALIDATION_RULES
    skipped_rules = [rule.id for rule in audit_rules_by_id().values() if rule.severity != "error"]
    skipped_rules += () if runtime else RUNTIME_RULES
    result = audit(
        fmu, only=rules, skip=skipped_rules, run_checkers=False, jobs=1, budget=AUDIT_WALL_TIME_S,
        effort=STIFF_AUDIT_CPU_TIME_S if definition.experiment.stiff else AUDIT_CPU_TIME_S, together=not runtime,
        run_calls=AUDIT_RUN_CALLS,
    )  # fmt: skip
    if result.faults:
        raise Mb2FmuError(
            "the auditor failed", [Fault(finding, fmu.name, "report it, with the FMU") for finding in result.faults]
        )
    if result.seconds >= AUDIT_WALL_TIME_S:
        timeout_fault = Fault(
            f"the auditor did not finish within {AUDIT_WALL_TIME_S:g} s",
            fmu.name,
            "try again when the machine is less busy",
        )
        raise ToolError("the FMU could not be audited in time:", [timeout_fault])
    findings, stiff = result.findings, definition.experiment.stiff
    errors = [
        finding
        for finding in findings
        if finding.severity == "error" and not _finding_counts(finding, redundant=redundant, stiff=stiff)
    ]
    for finding in errors:
        place = f"{finding.where}: " if finding.where else ""
        yield ExternalCheckerFinding(AUDITOR, finding.severity, f"{finding.rule}: {place}{finding.message}")
    if not errors:
        extent = ", as far as explicit integration of a stiff model comes" if stiff else ""
        yield ExternalCheckerFinding(AUDITOR, "note", f"the FMU does what its description says{extent}")
    for reason in result.skipped:
        if UNBOUNDED_INPUTS_MESSAGE in reason:
            yield ExternalCheckerFinding(AUDITOR, "note", f"not tried: {reason}")


def _finding_counts(finding: AuditFinding, *, redundant: bool, stiff: bool) -> bool:
    """Return whether an objection of the auditor counts: right FMUs of such a mechanism do not cause it."""
    if CONTRADICTION_MESSAGE in finding.message:
        return redundant
    return stiff and finding.rule == "derivative.slope"


def _add_array_elements(declared: DescribedModel, elements: Mapping[str, Sequence[str]]) -> DescribedModel:
    """Return the description with each element of an array as a variable, where it is none itself."""
    variables = _variables_by_name(declared)
    element_variables = []
    for array in (variables[name] for name in elements):
        for i, name in enumerate(elements[array.name]):
            if name not in variables:
                start = array.start[i : i + 1] if array.start else None
                element_variables.append(replace(array, name=name, start=start, dimensions=(), aliases=()))
    return replace(declared, variables=(*declared.variables, *element_variables))


def _compare_declarations(
    declared: DescribedModel,
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    elements: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[ExternalCheckerFinding]:
    """Compare units of measure, start values, bounds, nominal values, arrays and experiment with the model's."""
    faults = [
        *_compare_arrays(declared, definition, elements),
        *_compare_units(declared, definition, equations),
        *_compare_start_values(declared, definition),
    ]
    faults += [
        *_compare_bounds_and_nominals(declared, definition, equations),
        *_compare_default_experiment(declared, definition),
        *_compare_descriptions(declared, definition, equations, elements),
    ]
    outputs = [output.name for output in equations.outputs]
    causalities = {name: variable.causality for name, variable in _variables_by_name(declared).items()}
    not_outputs = [name for name in outputs if causalities.get(name, "output") != "output"]
    faults += [f"{name} is an output of the model, and declared as {causalities[name]}" for name in not_outputs]
    yield from (ExternalCheckerFinding(MODEL, "error", fault) for fault in faults)
    without_unit = _list_variables_without_unit(declared, definition, equations)
    if without_unit:
        yield ExternalCheckerFinding(MODEL, "warning", f"no unit of measure is declared of {', '.join(without_unit)}")
    restricted = _list_restricted_variables(declared, definition)
    if restricted:
        text = f"{', '.join(restricted)} changes less often by the description than in the model: not tried"
        yield ExternalCheckerFinding(MODEL, "warning", text)
    if not faults:
        yield ExternalCheckerFinding(
            MODEL, "note", "units of measure, start values, bounds and experiment are the model's"
        )


def _compare_terminals(
    fmu_terminals: Mapping[str, Sequence[DescribedTerminalMember]], definition: DeclaredModelContent
) -> Iterator[ExternalCheckerFinding]:
    """Yield terminals whose members are other variables than in the model, or flow in another sense."""
    for terminal in definition.terminals:
        model_members = {member.name: (str(member.variable), member.kind) for member in terminal.members}
        fmu_members = {member.name: (member.variable, member.kind) for member in fmu_terminals.get(terminal.name, ())}
        if terminal.name in fmu_terminals and fmu_members != model_members:
            members_text, model_members_text = (
                ", ".join(f"{name} = {variable} ({kind})" for name, (variable, kind) in members.items())
                for members in (fmu_members, model_members)
            )
            yield ExternalCheckerFinding(
                MODEL, "error", f"the terminal {terminal.name} has {members_text}; the model has {model_members_text}"
            )


def _compare_arrays(
    declared: DescribedModel, definition: DeclaredModelContent, elements: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield arrays with other elements than the model's, in another order or shape.

    Values of the elements are compared with their motion; but an importer that reads the second element expects the
    model's second.
    """
    fmu_variables = _variables_by_name(declared)
    for array in definition.arrays:
        if array.name not in fmu_variables:
            continue  # as in FMUs of FMI 2.0
        names, model_names = list(elements.get(array.name, ())), [str(name) for name in array.elements]
        if names != model_names:
            yield f"the array {array.name} has the elements {', '.join(names)}; the model has {', '.join(model_names)}"
        shape = tuple(parse_xml_number(each.start or "") for each in fmu_variables[array.name].dimensions)
        if shape != array.shape:
            yield f"the array {array.name} has the shape {shape}; the model has {array.shape}"


def _map_model_units(definition: DeclaredModelContent, equations: EquationsOfMotion) -> dict[str, str]:
    """Return variable of the model → its unit of measure."""
    units = {variable.name: variable.unit for variable in list_compared_variables(definition, equations)}
    units |= {output.name: output.unit for output in equations.outputs}
    return units | {record.name: record.unit for record in (*definition.parameters, *definition.inputs)}


def _list_variables_without_unit(
    declared: DescribedModel, definition: DeclaredModelContent, equations: EquationsOfMotion
) -> list[str]:
    """Return the variables that have a unit in the model and none in the description: importers cannot check them."""
    model_units = _map_model_units(definition, equations)
    return [
        name
        for name, variable in _variables_by_name(declared).items()
        if model_units.get(name, "1") != "1" and not variable.get("unit")
    ]


def _list_restricted_variables(declared: DescribedModel, definition: DeclaredModelContent) -> list[str]:
    """Return tunable parameters that are declared as fixed, and inputs that are declared as discrete."""
    variabilities = {name: variable.get("variability") for name, variable in _variables_by_name(declared).items()}
    tunable = [p.name for p in definition.parameters if p.tunable and not p.calculated]
    return [
        *(name for name in tunable if variabilities.get(name) == "fixed"),
        *(record.name for record in definition.inputs if variabilities.get(record.name) == "discrete"),
    ]


def _compare_units(
    declared: DescribedModel, definition: DeclaredModelContent, equations: EquationsOfMotion
) -> Iterator[str]:
    """Yield variables declared in another unit than the model's, and units with another definition."""
    fmu_units = {unit.name: unit for unit in declared.units}
    model_units = {"solver_step": "s"}  # the FMU's own, unless the model has that name
    model_units |= _map_model_units(definition, equations)
    declared_units = {name: variable.get("unit") for name, variable in _variables_by_name(declared).items()}
    for name, unit in model_units.items():
        if declared_units.get(name) and not _is_same_unit(str(declared_units[name]), unit):
            yield f"{name} is declared to be in {declared_units[name]}; the model has it in {unit}"
    type_units = {each.name: each.attributes.get("unit", "") for each in declared.types}
    for variable in declared.variables:
        type_name = variable.written.get("declaredType", "")
        of_type, unit = type_units.get(type_name, ""), model_units.get(variable.name, "")
        if of_type and unit and not _is_same_quantity(of_type, unit):
            yield f"{variable.name} is of the type {type_name}, which is in {of_type}; the model has it in {unit}"
    for unit in sorted(
        {unit for name, unit in model_units.items() if declared_units.get(name) == unit} & fmu_units.keys()
    ):
        yield from _check_unit_definition(fmu_units[unit])


def _check_unit_definition(unit: DescribedUnit) -> Iterator[str]:
    """Yield the fault in the definition of a unit that the model uses."""
    model_unit = parse_unit(unit.name)
    base: Mapping[str, str] = unit.base or {}
    factor, offset = parse_xml_number(base.get("factor", "1")), parse_xml_number(base.get("offset", "0"))
    if unit.base is not None and not (
        _is_same_number(factor, model_unit.factor) and _is_same_number(offset, model_unit.offset)
    ):
        yield f"the unit {unit.name} is defined as {factor} of SI's plus {offset}: {model_unit.factor:g} is right"
    wrong_exponents = find_wrong_unit_exponents(unit, model_unit)
    if wrong_exponents:
        yield f"the unit {unit.name} is defined as another one: {wrong_exponents}"
    for name, attributes in unit.display.items():
        try:
            expected = display_unit_conversion(unit.name, name)
        except ValueError:
            continue  # a name that says nothing
        declared_values = (
            parse_xml_number(attributes.get("factor", "1")),
            parse_xml_number(attributes.get("offset", "0")),
        )
        if not all(map(_is_same_number, declared_values, expected)):
            factor, offset = declared_values
            yield f"the display unit {name} is defined as {factor} {unit.name} plus {offset}: {expected[0]:g} is right"


def _compare_start_values(declared: DescribedModel, definition: DeclaredModelContent) -> Iterator[str]:
    """Yield visible start values that differ from the model's; values that FMUs solve for are known less well."""
    model_starts = {p.name: float(p.value) for p in definition.parameters if not p.calculated}
    model_starts |= {i.name: i.start for i in definition.inputs}
    model_starts |= {q.name: q.start for q in definition.coordinates if q.kind == "fixed"}
    model_starts |= {u.name: u.start for u in definition.speeds if u.kind == "fixed"}
    model_starts |= {z.name: z.start for z in definition.auxiliary_states}
    coordinates_and_speeds: list[Coordinate | Speed] = [*definition.coordinates, *definition.speeds]
    largest: dict[str, float] = {}
    for each in coordinates_and_speeds:
        largest[each.unit] = max(largest.get(each.unit, 0.0), abs(each.start))
    solved_starts = {
        each.name: (each.start, SOLVED_START_TOLERANCE * largest[each.unit])
        for each in coordinates_and_speeds
        if each.kind == "guess"
    }
    for name, variable in _variables_by_name(declared).items():
        if not variable.start or len(variable.start) != 1:
            continue
        declared_start = parse_xml_number(variable.start[0])
        if name in model_starts and (variable.initial == "exact" or variable.causality == "input"):
            if not _is_same_number(declared_start, model_starts[name]):
                yield f"{name} is declared to start at {declared_start}; the model has {model_starts[name]!r}"
        elif name in solved_starts and not (
            declared_start is not None and abs(declared_start - solved_starts[name][0]) <= solved_starts[name][1]
        ):
            yield f"{name} is declared to start near {declared_start}; the model's start is {solved_starts[name][0]!r}"


def _compare_bounds_and_nominals(
    declared: DescribedModel, definition: DeclaredModelContent, equations: EquationsOfMotion
) -> Iterator[str]:
    """Yield bounds that are declared and not the model's, and nominal values where the model has another.

    Where the model gives no nominal value, that of an FMU is computed from its motion, or from nothing: it is a hint to
    solvers, and no statement about the model.
    """
    fmu_variables = _variables_by_name(declared)
    model_values: dict[str, dict[str, float | None]] = {
        item.name: {"min": item.minimum, "max": item.maximum, "nominal": item.nominal} for item in definition.quantities
    }
    model_values |= {output.name: {"min": None, "max": None, "nominal": output.nominal} for output in equations.outputs}
    for array in definition.arrays:
        _widen_element_bounds(
            model_values,
            [str(name) for name in array.elements if _array_describes_element(fmu_variables, array.name, str(name))],
        )
    for name, limits in model_values.items():
        variable = fmu_variables.get(name)
        if variable is None or variable.dimensions:
            continue
        for limit, value in limits.items():
            declared_value = variable.number(limit)
            if declared_value is None or (limit == "nominal" and value is None):
                continue  # an absent attribute is no error
            if value is None or not _is_same_number(declared_value, float(value)):
                yield f"{name} is declared with {limit} = {declared_value:g}; the model has {value}"


def _array_describes_element(fmu_variables: Mapping[str, DescribedVariable], array: str, element: str) -> bool:
    """Return whether the FMU describes an element only as part of the array."""
    return (
        array in fmu_variables
        and element in fmu_variables
        and fmu_variables[element].reference == fmu_variables[array].reference
    )


def _widen_element_bounds(model_values: Mapping[str, dict[str, float | None]], elements: Sequence[str]) -> None:
    """Give the elements of one array, in place, the bounds that all of them keep: an array has one of each."""
    for limit, choose_widest in (("min", min), ("max", max), ("nominal", min)):
        bounds = [model_values[name][limit] for name in elements if name in model_values]
        known_bounds = [bound for bound in bounds if bound is not None]
        for name in elements:
            if name in model_values:
                model_values[name][limit] = choose_widest(known_bounds) if len(known_bounds) == len(bounds) else None


def _compare_default_experiment(declared: DescribedModel, definition: DeclaredModelContent) -> Iterator[str]:
    """Yield differences between the FMU's default experiment and the model's."""
    run = definition.experiment
    for name, model_value in (
        ("startTime", 0.0),
        ("stopTime", run.stop),
        ("stepSize", run.step),
        ("tolerance", run.tolerance),
    ):
        declared_value = declared.experiment.get(name)
        if declared_value is not None and not _is_same_number(parse_xml_number(declared_value), float(model_value)):
            yield f"the default experiment is declared with {name} = {declared_value}; the model has {model_value:g}"


def _compare_descriptions(
    declared: DescribedModel,
    definition: DeclaredModelContent,
    equations: EquationsOfMotion,
    elements: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Yield variables that have exchanged their texts; texts that the model has nowhere are no fault.

    A text that stands at its own variable, too, is none: another maker may describe two alike.
    """
    model_texts = {item.name: item.description for item in definition.quantities}
    model_texts |= {output.name: output.description for output in equations.outputs}
    name_by_text = {text: name for name, text in model_texts.items() if text}
    fmu_variables = _variables_by_name(declared)
    for name, variable in fmu_variables.items():
        text = variable.written.get("description", "")
        is_array = variable.dimensions or any(
            _array_describes_element(fmu_variables, array, name) for array in elements if name in elements[array]
        )
        owner = fmu_variables.get(name_by_text.get(text, ""))
        has_moved = owner is not None and owner.written.get("description", "") != text
        if has_moved and model_texts.get(name) != text and not is_array:
            yield f'{name} is described as "{text}", which is what the model says of {name_by_text[text]}'


def _variables_by_name(declared: DescribedModel) -> dict[str, DescribedVariable]:
    """Return the variables of the description by name."""
    return {variable.name: variable for variable in declared.variables}


def _is_same_quantity(first: str, second: str) -> bool:
    """Return whether two texts name units of one quantity, of whatever size."""
    try:
        return are_compatible_units(first, second)
    except ValueError:
        return False


def _is_same_unit(first: str, second: str) -> bool:
    """Return whether two texts name the same unit of the same size."""
    if first == second:
        return True
    try:
        first_unit, second_unit = parse_unit(first), parse_unit(second)
    except ValueError:
        return False
    return (
        first_unit.exponents == second_unit.exponents
        and _is_same_number(first_unit.factor, second_unit.factor)
        and _is_same_number(first_unit.offset, second_unit.offset)
    )


def _is_same_number(first: float | None, second: float) -> bool:
    """Return whether two numbers are equal but for their last digits."""
    return first is not None and math.isclose(first, second, rel_tol=SAME_NUMBER_TOLERANCE, abs_tol=1e-300)
