"""FMI 3: arrays of other sizes: their elements, their effects, and saved states with other sizes."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    Values,
    choose_changed_value,
    list_freely_settable_inputs,
    list_parameters_and_exact_starts,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import SharedTrialResults
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import do_communication_step
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, Value, format_fmi_status
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.description.description_records import DescribedVariable, parse_xml_number
from mb2fmu.audit.rules_and_findings import RuleViolation

MAX_TRIED_SIZE = 64
"""Up to this size the bounds of structural parameters are tried, too."""


@register_trial("arrays of other sizes", "value.structural")
def try_resized_arrays(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that structural parameters set in Configuration Mode size the arrays that refer to them."""
    parameters = list_array_size_parameters(fixture)
    if fixture.description.version != 3 or not parameters:
        fixture.mark_inapplicable("value.structural", "it has no structural parameters")
        return
    tried_parameters = 0
    for parameter in parameters:
        arrays = _list_sized_arrays(fixture, parameter)
        start = _read_size_parameter_start(parameter)
        other_size = next(
            (
                candidate
                for candidate in (start + 1, start - 1, start + 2)
                if candidate > 0 and fixture.clip_to_bounds(parameter, candidate) == candidate
            ),
            None,
        )
        if other_size is None or not arrays:
            continue
        tried_parameters += 1
        for size in dict.fromkeys((other_size, *_list_size_bounds(parameter))):
            faults = list(_check_size(fixture, parameter, size, arrays))
            yield from faults
            if faults:
                break
    if not tried_parameters:
        fixture.mark_inapplicable(
            "value.structural", "no array has the size of a structural parameter that can be another"
        )


def _list_size_bounds(parameter: DescribedVariable) -> list[int]:
    """Return the bounds of a size, if the description gives them and they are no large numbers."""
    bounds = (parameter.number("min"), parameter.number("max"))
    return [int(bound) for bound in bounds if bound is not None and 1 <= bound <= MAX_TRIED_SIZE]


def _check_size(
    fixture: TrialFixture, parameter: DescribedVariable, size: int, arrays: list[DescribedVariable]
) -> Iterator[RuleViolation]:
    """Yield faults after a structural parameter was set: in its value, or the number of elements of its arrays."""
    place = fixture.format_finding_location(parameter)
    with fixture.open_instance() as instance:
        try:
            for value in (_read_size_parameter_start(parameter), size):  # as often as one likes
                instance.must_call("EnterConfigurationMode")
                instance.set({parameter: value})
                instance.must_call("ExitConfigurationMode")
            instance.enter_initialization(fixture.start, None, fixture.tolerance)
            read_value = instance.get([parameter])[0]
        except RefusedCallError as error:
            yield RuleViolation("value.structural", f"set to {size} in Configuration Mode: {error}", place)
            return
        if read_value != size:
            yield RuleViolation("value.structural", f"set to {size} in Configuration Mode, it is {read_value!r}", place)
            return
        yield from _check_other_start_values(fixture, instance, parameter, size)
        for array in arrays:
            count = _count_elements(fixture, array, parameter, size)
            status = _read_elements(instance, array, count)
            declared_count = fixture.description.size(array)
            if status not in {OK, WARNING}:
                message = f'with {size} the array "{array.name}" should have {count} elements; reading these returns'
                yield RuleViolation("value.structural", f"{message} {format_fmi_status(status)}", place)
            elif declared_count != count and _read_elements(instance, array, declared_count) in {OK, WARNING}:
                message = f'with {size} the array "{array.name}" is read with {declared_count} elements, as before, too'
                yield RuleViolation("value.structural", message, place)
            elif array.is_float and array.causality in {"input", "parameter"}:
                yield from _check_set_elements(fixture, instance, array, count, place)


def _check_set_elements(
    fixture: TrialFixture, instance: FmuInstance, array: DescribedVariable, count: int, place: str
) -> Iterator[RuleViolation]:
    """Yield the first element that does not have the value it was set to; an array that is refused is no fault."""
    step = 2.0**-6 * fixture.typical_magnitude(array)
    values = tuple(fixture.clip_to_bounds(array, (index + 1) * step) for index in range(count))
    if instance.try_set(array, values) not in {OK, WARNING}:
        return
    element_type: Any = instance.types[array.type][1]
    buffer = (element_type * count)()
    instance.call(f"Get{instance.types[array.type][0]}", (c.c_uint * 1)(array.reference or 0), c.c_size_t(1), buffer,
                  c.c_size_t(count))  # fmt: skip
    for index, (set_value, read_value) in enumerate(zip(values, buffer, strict=True)):
        if abs(read_value - set_value) > 1e-6 * abs(set_value):
            message = f'as one of {count} elements, number {index + 1} of "{array.name}" is set to {set_value:.7g}, '
            message += f"and is {read_value:.7g}"
            yield RuleViolation("value.structural", message, place)
            return


def _check_other_start_values(
    fixture: TrialFixture, instance: FmuInstance, parameter: DescribedVariable, size: int
) -> Iterator[RuleViolation]:
    """Yield the first variable whose start value is lost with another size, though it has no such dimension."""
    arrays = frozenset(_list_sized_arrays(fixture, parameter))
    variables_with_start = [
        candidate
        for candidate in fixture.variables_to_try
        if (candidate.initial == "exact" or candidate.causality == "input")
        and candidate not in arrays
        and candidate is not parameter
    ]
    for variable, value in zip(variables_with_start, instance.get(variables_with_start), strict=True):
        start = fixture.start_value(variable)
        if start is not None and not are_identical_values(start, value):
            message = f'it starts with {value!r} instead of {start!r} where "{parameter.name}" is {size}'
            yield RuleViolation("value.structural", message, fixture.format_finding_location(variable))
            return


def _count_elements(fixture: TrialFixture, array: DescribedVariable, parameter: DescribedVariable, size: int) -> int:
    """Return the number of elements if a structural parameter has another value."""
    product = 1
    for dimension in array.dimensions:
        if fixture.description.find_referenced_variable(dimension.reference) is parameter:
            product *= size
        else:
            product *= fixture.description.size(replace(array, dimensions=(dimension,)))
    return product


def _read_elements(instance: FmuInstance, array: DescribedVariable, count: int) -> int:
    """Return the status of reading an array as so many elements; the buffer has room for more."""
    type_suffix: str = instance.types[array.type][0]
    element_type: Any = instance.types[array.type][1]
    buffer = (element_type * (count + 64))()
    references = (c.c_uint * 1)(array.reference or 0)
    return instance.call(f"Get{type_suffix}", references, c.c_size_t(1), buffer, c.c_size_t(count))


# --- effects of elements, and saved states

MAX_CHANGED_ELEMENTS = 6
"""Elements of an array that are moved one by one: the first ones, and the last."""

_RELATIVE_SPREAD = 0.3


def list_array_size_parameters(fixture: TrialFixture) -> list[DescribedVariable]:
    """Return structural parameters that can be a number of elements."""
    return [
        variable
        for variable in fixture.description.variables
        if variable.causality == "structuralParameter"
        and variable.type == "UInt64"
        and variable.start
        and not variable.dimensions
    ]


def _list_sized_arrays(fixture: TrialFixture, parameter: DescribedVariable) -> list[DescribedVariable]:
    """Return arrays that a structural parameter sizes."""
    return [variable for variable in fixture.variables_to_try if _sizes_array(fixture, variable, parameter)]


def _sizes_array(fixture: TrialFixture, array: DescribedVariable, parameter: DescribedVariable) -> bool:
    """Return whether a structural parameter sizes any dimension of an array."""
    return any(
        fixture.description.find_referenced_variable(dimension.reference) is parameter for dimension in array.dimensions
    )


def _read_size_parameter_start(parameter: DescribedVariable) -> int:
    """Return the size that the description gives."""
    return int(parse_xml_number(parameter.start[0] if parameter.start else None) or 1)


@dataclass(frozen=True)
class _FmuWithResizedArrays:
    """An FMU with one of its sizes changed.

    Attributes:
        fixture: Its description has that size; start values of arrays are repeated as often as they are wanted.
        parameter: Structural parameter.
        size: Its value.
        element_values: Values of inputs, parameters and start values that the parameter sizes, no two elements alike.
    """

    fixture: TrialFixture
    parameter: DescribedVariable
    size: int
    element_values: Values

    def initialize(self, instance: FmuInstance, values: Mapping[DescribedVariable, Value]) -> None:
        """Move from Instantiated to Continuous-Time or Step Mode, with this size."""
        instance.must_call("EnterConfigurationMode")
        instance.set({self.parameter: self.size})
        instance.must_call("ExitConfigurationMode")
        self.fixture.initialize(instance, initial_values=values)

    def read_elements(self, instance: FmuInstance) -> dict[DescribedVariable, tuple[Value, ...]]:
        """Return the values read, each variable as a tuple of elements."""
        variables = self.fixture.variables_to_try
        values = zip(variables, instance.get(variables), strict=True)
        return {variable: value if isinstance(value, tuple) else (value,) for variable, value in values}

    def run_and_read(
        self, values: Mapping[DescribedVariable, Value]
    ) -> list[dict[DescribedVariable, tuple[Value, ...]]]:
        """Return values of a new instance at the start, and after a step of Co-Simulation."""
        with self.fixture.open_instance() as instance:
            self.initialize(instance, values)
            readings = [self.read_elements(instance)]
            if self.fixture.interface == "CoSimulation":
                do_communication_step(self.fixture, instance, self.fixture.start, self.fixture.step)
                readings.append(self.read_elements(instance))
            return readings


def _resize(fixture: TrialFixture, parameter: DescribedVariable, size: int) -> _FmuWithResizedArrays:
    """Return the FMU with a size."""
    description = fixture.description
    resized_parameter = replace(parameter, start=(str(size),))
    resized_description = replace(
        description,
        variables=tuple(resized_parameter if variable is parameter else variable for variable in description.variables),
    )
    variables = tuple(
        replace(variable, start=_repeat_start_values(variable.start, resized_description.size(variable)))
        if variable.start and len(variable.start) > 1 and _sizes_array(fixture, variable, parameter) else variable
        for variable in resized_description.variables
    )  # fmt: skip
    library = replace(fixture.library, description=replace(resized_description, variables=variables))
    resized_fixture = replace(fixture, library=library, shared=SharedTrialResults())
    element_values: Values = {}
    for variable in dict.fromkeys(
        [*list_parameters_and_exact_starts(resized_fixture), *list_freely_settable_inputs(resized_fixture)]
    ):
        value = (
            choose_changed_value(resized_fixture, variable, "size", _RELATIVE_SPREAD)
            if variable.dimensions and _sizes_array(resized_fixture, variable, resized_parameter)
            else None
        )
        if value is not None:
            element_values[variable] = value
    return _FmuWithResizedArrays(resized_fixture, resized_parameter, size, element_values)


def _repeat_start_values(start: Sequence[str], size: int) -> tuple[str, ...]:
    """Return start values for an array of another size: the given ones, again and again."""
    return tuple(start[index % len(start)] for index in range(size))


def _choose_larger_size(fixture: TrialFixture, parameter: DescribedVariable) -> int | None:
    """Return a larger size than that of the description; None if its bounds allow none."""
    start = _read_size_parameter_start(parameter)
    return next(
        (
            candidate
            for candidate in (start + 1, start + 2, 2 * start)
            if fixture.clip_to_bounds(parameter, candidate) == candidate
        ),
        None,
    )


def _choose_smaller_array_size(fixture: TrialFixture, parameter: DescribedVariable) -> int | None:
    """Return a smaller size than that of the description; None if its bounds allow none."""
    size = _read_size_parameter_start(parameter) - 1
    return size if size > 0 and fixture.clip_to_bounds(parameter, size) == size else None


@register_trial("arrays that were made larger, and smaller", "value.structural", "value.element")
def try_resized_array_elements(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that elements of an array of another size hold their values, and have the effects of earlier ones."""
    array_count = 0
    for parameter in list_array_size_parameters(fixture) if fixture.description.version == 3 else ():
        for size in (_choose_larger_size(fixture, parameter), _choose_smaller_array_size(fixture, parameter)):
            if size is None or not _list_sized_arrays(fixture, parameter):
                continue
            declared = _resize(fixture, parameter, _read_size_parameter_start(parameter))
            resized = _resize(fixture, parameter, size)
            array_count += len(declared.element_values)
            try:
                faults = [*_check_element_values(resized), *_compare_all_effects(declared, resized)]
            except TrialTimeBudgetError:
                raise
            except (RefusedCallError, SkippedTrialError) as error:
                fixture.mark_inapplicable("value.element", f'with "{parameter.name}" = {size}: {error}')
                continue
            yield from faults
            if faults:
                break
    if not array_count:
        fixture.mark_inapplicable("value.element", "it has no array that is set and can be made larger or smaller")


def _compare_all_effects(declared: _FmuWithResizedArrays, resized: _FmuWithResizedArrays) -> Iterator[RuleViolation]:
    """Check the elements of every array that has another size."""
    for declared_array, resized_array in zip(declared.element_values, resized.element_values, strict=True):
        yield from _compare_effects(declared, declared_array, resized, resized_array)


def _check_element_values(resized: _FmuWithResizedArrays) -> Iterator[RuleViolation]:
    """Yield elements that do not hold their values."""
    with resized.fixture.open_instance() as instance:
        resized.initialize(instance, resized.element_values)
        readings = resized.read_elements(instance)
    for array, values in resized.element_values.items():
        assert isinstance(values, tuple)
        elements = readings[array]
        wrong_elements = [
            index
            for index, (set_value, read_value) in enumerate(zip(values, elements, strict=True))
            if not are_identical_values(set_value, read_value)
        ]
        if wrong_elements and array.causality in {"input", "parameter"}:
            message = (
                f'with "{resized.parameter.name}" = {resized.size} the element '
                f"{wrong_elements[0] + 1} of {len(values)} that was set "
                f"to {values[wrong_elements[0]]!r} is {elements[wrong_elements[0]]!r}"
            )
            yield RuleViolation("value.structural", message, resized.fixture.format_finding_location(array))


def _choose_elements(size: int) -> list[int]:
    """Return the elements that are changed."""
    return list(range(size)) if size <= MAX_CHANGED_ELEMENTS else [*range(MAX_CHANGED_ELEMENTS - 1), size - 1]


_EffectPattern = dict[tuple[int, DescribedVariable], dict[int, frozenset[int]]]
"""(reading, variable) → changed element → elements that change with it."""


def _find_effect_pattern(resized: _FmuWithResizedArrays, array: DescribedVariable) -> _EffectPattern:
    """Return which values follow each element of an array."""
    readings, pattern = resized.run_and_read(resized.element_values), _EffectPattern()
    value = resized.element_values[array]
    assert isinstance(value, tuple)
    for index in _choose_elements(len(value)):
        changed = choose_changed_value(resized.fixture, array, f"element {index}", _RELATIVE_SPREAD)
        assert isinstance(changed, tuple)
        changed_readings = resized.run_and_read(
            {**resized.element_values, array: (*value[:index], changed[index], *value[index + 1 :])}
        )
        for reading_index, (elements_before, elements_after) in enumerate(zip(readings, changed_readings, strict=True)):
            for variable in elements_before.keys() - resized.element_values.keys():
                numbered_pairs = enumerate(zip(elements_before[variable], elements_after[variable], strict=True))
                pattern.setdefault((reading_index, variable), {})[index] = frozenset(
                    element
                    for element, (old_value, new_value) in numbered_pairs
                    if not are_identical_values(old_value, new_value)
                )
    return pattern


def _compare_effects(
    declared: _FmuWithResizedArrays,
    declared_array: DescribedVariable,
    resized: _FmuWithResizedArrays,
    resized_array: DescribedVariable,
) -> Iterator[RuleViolation]:
    """Check that elements of an array of another size have the same effects as before."""
    declared_pattern, resized_pattern = (
        _find_effect_pattern(declared, declared_array),
        _find_effect_pattern(resized, resized_array),
    )
    by_name = {item.name: item for item in resized.fixture.variables_to_try}
    for (reading_index, variable), declared_effects in declared_pattern.items():
        resized_effects = resized_pattern.get((reading_index, by_name[variable.name]), {})
        difference = _find_effect_difference(
            declared_effects,
            resized_effects,
            are_vectors=_is_vector(declared, declared_array) and _is_vector(declared, variable),
        )
        if difference:
            element, text = difference
            yield RuleViolation(
                "value.element",
                f'with "{resized.parameter.name}" = {resized.size} its element {element + 1} {text} "{variable.name}"; '
                f"with {declared.size}, as described, each does otherwise",
                resized.fixture.format_finding_location(declared_array),
            )
            return


def _is_vector(resized: _FmuWithResizedArrays, variable: DescribedVariable) -> bool:
    """Return whether a variable has one dimension, whose size is the parameter."""
    return len(variable.dimensions) == 1 and _sizes_array(resized.fixture, variable, resized.parameter)


def _find_effect_difference(
    declared_effects: Mapping[int, frozenset[int]], resized_effects: Mapping[int, frozenset[int]], *, are_vectors: bool
) -> tuple[int, str] | None:
    """Return the first element whose effects differ from those of its counterpart, and the difference.

    Args:
        declared_effects: Element → elements that follow it, with the sizes of the description.
        resized_effects: With another size.
        are_vectors: Both arrays have one dimension, and this size.
    """
    is_elementwise = (
        are_vectors
        and len(declared_effects) > 1
        and all(followers == {element} for element, followers in declared_effects.items())
    )
    for element, followers in resized_effects.items():
        if is_elementwise and followers != {element}:
            return element, "moves another element of" if followers - {element} else "does not move its own element of"
        if not is_elementwise and declared_effects and all(declared_effects.values()) and not followers:
            return element, "does not move"
    return None


@register_trial("states of other sizes", "state.roundtrip", "state.serialize")
def try_restored_array_size(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a state saved with one size restores that size in another instance."""
    if fixture.description.version != 3 or not fixture.can_save_states:
        return
    for parameter in list_array_size_parameters(fixture):
        size = _choose_larger_size(fixture, parameter)
        if size is None or not _list_sized_arrays(fixture, parameter):
            continue
        variants = _resize(fixture, parameter, _read_size_parameter_start(parameter)), _resize(fixture, parameter, size)
        for saved, other_size_fmu in (variants, variants[::-1]):
            try:
                faults = list(_check_saved_state(saved, other_size_fmu))
            except TrialTimeBudgetError:
                raise
            except (RefusedCallError, SkippedTrialError) as error:
                fixture.skipped.append(f'{fixture.interface}: states with other values of "{parameter.name}": {error}')
                continue
            yield from faults
            if faults:
                break


def _check_saved_state(saved: _FmuWithResizedArrays, other_size_fmu: _FmuWithResizedArrays) -> Iterator[RuleViolation]:
    """Save a state with one size, restore it in an instance with another, and as bytes in a new one."""
    fixture = saved.fixture
    can_serialize = fixture.flag("canSerializeFMUState") and not fixture.flag("canBeInstantiatedOnlyOncePerProcess")
    with fixture.open_instance() as instance:
        saved.initialize(instance, saved.element_values)
        mode = instance.mode
        state = instance.get_state()
        expected = saved.read_elements(instance)
        data = instance.serialize_state(state) if can_serialize else None
        instance.reset()
        other_size_fmu.initialize(instance, other_size_fmu.element_values)
        yield from _check_restored_state("state.roundtrip", saved, other_size_fmu, instance, state, mode, expected)
        instance.free_state(state)
    if data is None:
        return
    with fixture.open_instance(name=b"heir") as new_instance:
        other_size_fmu.initialize(new_instance, other_size_fmu.element_values)
        try:
            state = new_instance.deserialize_state(data)
        except RefusedCallError as error:
            yield RuleViolation(
                "state.serialize", f"{_describe_situation(saved, other_size_fmu)}: {error}", fixture.interface
            )
            return
        yield from _check_restored_state("state.serialize", saved, other_size_fmu, new_instance, state, mode, expected)
        new_instance.free_state(state)


def _check_restored_state(
    rule: str, saved: _FmuWithResizedArrays, other_size_fmu: _FmuWithResizedArrays, instance: FmuInstance,
    state: object, mode: str, expected: Mapping[DescribedVariable, tuple[Value, ...]],
) -> Iterator[RuleViolation]:  # fmt: skip
    """Check that values after restoring a state are those when it was saved."""
    situation = _describe_situation(saved, other_size_fmu)
    try:
        instance.set_state(state)  # type: ignore[arg-type]
        instance.mode = mode
        size = instance.get([saved.parameter])[0]
        if size != saved.size:
            message = f'"{saved.parameter.name}" is {size!r} {situation}; with {saved.size} it was kept'
            yield RuleViolation(rule, message, saved.fixture.interface)
            return
        instance.description = saved.fixture.description
        readings = saved.read_elements(instance)
    except RefusedCallError as error:
        yield RuleViolation(rule, f"{situation}: {error}", saved.fixture.interface)
        return
    for variable, values in expected.items():
        if not all(map(are_identical_values, values, readings[variable])):
            yield RuleViolation(rule, f'"{variable.name}" differs {situation}', saved.fixture.interface)
            return


def _describe_situation(saved: _FmuWithResizedArrays, other_size_fmu: _FmuWithResizedArrays) -> str:
    """Return where a difference was seen, for a message."""
    name, size = other_size_fmu.parameter.name, other_size_fmu.size
    return f'after a state was set where "{name}" is {size} instead of {saved.size}'
