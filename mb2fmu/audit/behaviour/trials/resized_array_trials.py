"""FMI 3: FMUs with resized arrays move as with the declared sizes; saved states keep their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mb2fmu.audit.behaviour.fixture.excited_runs import Values, choose_other_value, list_inputs, list_settable_variables
from mb2fmu.audit.behaviour.fixture.short_runs import do_communication_step
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.description.description_records import DescribedVariable, parse_number
from mb2fmu.audit.findings import Observation

MOST_ELEMENTS = 6
"""Elements of an array that are moved one by one: the first ones, and the last."""

_SPREAD = 0.3


def list_size_parameters(stage: TrialFixture) -> list[DescribedVariable]:
    """Return structural parameters that can be a number of elements."""
    return [
        each for each in stage.description.variables
        if each.causality == "structuralParameter" and each.type == "UInt64" and each.start and not each.dimensions
    ]  # fmt: skip


def list_sized_arrays(stage: TrialFixture, by: DescribedVariable) -> list[DescribedVariable]:
    """Return arrays that a structural parameter sizes."""
    return [each for each in stage.variables if _sizes_it(stage, each, by)]


def _sizes_it(stage: TrialFixture, array: DescribedVariable, by: DescribedVariable) -> bool:
    """Return whether a structural parameter sizes any dimension of an array."""
    return any(stage.description.target(dimension.reference) is by for dimension in array.dimensions)


def declared_size(parameter: DescribedVariable) -> int:
    """Return the size that the description gives."""
    return int(parse_number(parameter.start[0] if parameter.start else None) or 1)


@dataclass(frozen=True)
class _ResizedFmu:
    """An FMU with one of its sizes changed.

    Attributes:
        stage: Its description has that size; start values of arrays are repeated as often as they are wanted.
        parameter: Structural parameter.
        size: Its value.
        given: Values of inputs, parameters and start values that the parameter sizes, no two elements alike.
    """

    stage: TrialFixture
    parameter: DescribedVariable
    size: int
    given: Values

    def begin(self, instance: FmuInstance, given: Mapping[DescribedVariable, Value]) -> None:
        """Move from Instantiated to Continuous-Time or Step Mode, with this size."""
        instance.do("EnterConfigurationMode")
        instance.set({self.parameter: self.size})
        instance.do("ExitConfigurationMode")
        self.stage.initialize(instance, within=given)

    def answer(self, instance: FmuInstance) -> dict[DescribedVariable, tuple[Value, ...]]:
        """Return the values read, each variable as a tuple of elements."""
        variables = self.stage.variables
        values = zip(variables, instance.get(variables), strict=True)
        return {each: value if isinstance(value, tuple) else (value,) for each, value in values}

    def after(self, given: Mapping[DescribedVariable, Value]) -> list[dict[DescribedVariable, tuple[Value, ...]]]:
        """Return values of a new instance at the start, and after a step of Co-Simulation."""
        with self.stage.instance() as instance:
            self.begin(instance, given)
            found = [self.answer(instance)]
            if self.stage.kind == "CoSimulation":
                do_communication_step(self.stage, instance, self.stage.start, self.stage.step)
                found.append(self.answer(instance))
            return found


def _form(stage: TrialFixture, parameter: DescribedVariable, size: int) -> _ResizedFmu:
    """Return the FMU with a size."""
    described = stage.description
    changed = replace(parameter, start=(str(size),))
    counted = replace(
        described, variables=tuple(changed if each is parameter else each for each in described.variables)
    )
    variables = tuple(
        replace(each, start=_repeated(each.start, counted.size(each)))
        if each.start and len(each.start) > 1 and _sizes_it(stage, each, parameter) else each
        for each in counted.variables
    )  # fmt: skip
    library = replace(stage.library, description=replace(counted, variables=variables))
    other = replace(stage, library=library, notes={})
    given: Values = {}
    for each in dict.fromkeys([*list_settable_variables(other), *list_inputs(other)]):
        value = (
            choose_other_value(other, each, "size", _SPREAD)
            if each.dimensions and _sizes_it(other, each, changed)
            else None
        )
        if value is not None:
            given[each] = value
    return _ResizedFmu(other, changed, size, given)


def _repeated(start: Sequence[str], size: int) -> tuple[str, ...]:
    """Return start values for an array of another size: the given ones, again and again."""
    return tuple(start[k % len(start)] for k in range(size))


def try_larger_array(stage: TrialFixture, parameter: DescribedVariable) -> int | None:
    """Return a larger size than that of the description; None if its bounds allow none."""
    start = declared_size(parameter)
    return next((k for k in (start + 1, start + 2, 2 * start) if stage.inside(parameter, k) == k), None)


def try_smaller_array(stage: TrialFixture, parameter: DescribedVariable) -> int | None:
    """Return a smaller size than that of the description; None if its bounds allow none."""
    size = declared_size(parameter) - 1
    return size if size > 0 and stage.inside(parameter, size) == size else None


@probe("arrays that were made larger, and smaller", "value.structural", "value.element")
def try_resized_elements(stage: TrialFixture) -> Iterator[Observation]:
    """Check that elements of an array of another size hold their values, and have the effects of earlier ones."""
    judged = 0
    for parameter in list_size_parameters(stage) if stage.description.version == 3 else ():
        for size in (try_larger_array(stage, parameter), try_smaller_array(stage, parameter)):
            if size is None or not list_sized_arrays(stage, parameter):
                continue
            before, after = _form(stage, parameter, declared_size(parameter)), _form(stage, parameter, size)
            judged += len(before.given)
            try:
                found = [*_held(after), *_all_effects(before, after)]
            except TimeBudgetError:
                raise
            except (RefusedCallError, SkippedTrialError) as error:
                stage.nothing("value.element", f'with "{parameter.name}" = {size}: {error}')
                continue
            yield from found
            if found:
                break
    if not judged:
        stage.nothing("value.element", "it has no array that is set and can be made larger or smaller")


def _all_effects(before: _ResizedFmu, after: _ResizedFmu) -> Iterator[Observation]:
    """Check the elements of every array that has another size."""
    for old, new in zip(before.given, after.given, strict=True):
        yield from _effects(before, old, after, new)


def _held(form: _ResizedFmu) -> Iterator[Observation]:
    """Yield elements that do not hold their values."""
    with form.stage.instance() as instance:
        form.begin(instance, form.given)
        answers = form.answer(instance)
    for array, value in form.given.items():
        assert isinstance(value, tuple)
        read = answers[array]
        wrong = [k for k, (a, b) in enumerate(zip(value, read, strict=True)) if not have_same_bits(a, b)]
        if wrong and array.causality in {"input", "parameter"}:
            text = (
                f'with "{form.parameter.name}" = {form.size} the element {wrong[0] + 1} of {len(value)} that was set '
                f"to {value[wrong[0]]!r} is {read[wrong[0]]!r}"
            )
            yield Observation("value.structural", text, f'{form.stage.kind}, "{array.name}"')


def _chosen(size: int) -> list[int]:
    """Return the elements that are changed."""
    return list(range(size)) if size <= MOST_ELEMENTS else [*range(MOST_ELEMENTS - 1), size - 1]


_Pattern = dict[tuple[int, DescribedVariable], dict[int, frozenset[int]]]
"""Which answer of which variable → element moved → elements that follow."""


def _pattern(form: _ResizedFmu, array: DescribedVariable) -> _Pattern:
    """Return which values follow each element of an array."""
    base, found = form.after(form.given), _Pattern()
    value = form.given[array]
    assert isinstance(value, tuple)
    for k in _chosen(len(value)):
        other = choose_other_value(form.stage, array, f"element {k}", _SPREAD)
        assert isinstance(other, tuple)
        moved = form.after({**form.given, array: (*value[:k], other[k], *value[k + 1 :])})
        for when, (a, b) in enumerate(zip(base, moved, strict=True)):
            for variable in a.keys() - form.given.keys():
                pairs = enumerate(zip(a[variable], b[variable], strict=True))
                found.setdefault((when, variable), {})[k] = frozenset(
                    i for i, (x, y) in pairs if not have_same_bits(x, y)
                )
    return found


def _effects(
    before: _ResizedFmu, old: DescribedVariable, after: _ResizedFmu, new: DescribedVariable
) -> Iterator[Observation]:
    """Check that elements of an array of another size have the same effects as before."""
    first, second = _pattern(before, old), _pattern(after, new)
    names = {each.name: each for each in after.stage.variables}
    for (when, variable), rows in first.items():
        following = second.get((when, names[variable.name]), {})
        wrong = _unlike(rows, following, vector=_is_vector(before, old) and _is_vector(before, variable))
        if wrong:
            element, text = wrong
            yield Observation(
                "value.element",
                f'with "{after.parameter.name}" = {after.size} its element {element + 1} {text} "{variable.name}"; '
                f"with {before.size}, as described, each does otherwise",
                f'{after.stage.kind}, "{old.name}"',
            )
            return


def _is_vector(form: _ResizedFmu, variable: DescribedVariable) -> bool:
    """Return whether a variable has one dimension, which the form's parameter sizes."""
    return len(variable.dimensions) == 1 and _sizes_it(form.stage, variable, form.parameter)


def _unlike(
    before: Mapping[int, frozenset[int]], after: Mapping[int, frozenset[int]], *, vector: bool
) -> tuple[int, str] | None:
    """Return the first element whose effects differ from those of its counterpart, and the difference.

    Args:
        before: Element → elements that follow it, with the sizes of the description.
        after: With another size.
        vector: Both arrays have one dimension, and this size.
    """
    own = vector and len(before) > 1 and all(found == {k} for k, found in before.items())
    for k, found in after.items():
        if own and found != {k}:
            return k, "moves another element of" if found - {k} else "does not move its own element of"
        if not own and before and all(before.values()) and not found:
            return k, "does not move"
    return None


@probe("states of other sizes", "state.roundtrip", "state.serialize")
def try_restored_size(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a state saved with one size restores that size in another instance."""
    if stage.description.version != 3 or not stage.keeps_states:
        return
    for parameter in list_size_parameters(stage):
        size = try_larger_array(stage, parameter)
        if size is None or not list_sized_arrays(stage, parameter):
            continue
        forms = _form(stage, parameter, declared_size(parameter)), _form(stage, parameter, size)
        for kept, other in (forms, forms[::-1]):
            try:
                found = list(_kept(kept, other))
            except TimeBudgetError:
                raise
            except (RefusedCallError, SkippedTrialError) as error:
                stage.skipped.append(f'{stage.kind}: states with other values of "{parameter.name}": {error}')
                continue
            yield from found
            if found:
                break


def _kept(kept: _ResizedFmu, other: _ResizedFmu) -> Iterator[Observation]:
    """Save a state with one size, restore it in an instance with another, and as bytes in a new one."""
    stage = kept.stage
    serial = stage.flag("canSerializeFMUState") and not stage.flag("canBeInstantiatedOnlyOncePerProcess")
    with stage.instance() as instance:
        kept.begin(instance, kept.given)
        mode = instance.mode
        state = instance.get_state()
        expected = kept.answer(instance)
        data = instance.serialize(state) if serial else None
        instance.reset()
        other.begin(instance, other.given)
        yield from _set_back("state.roundtrip", kept, other, instance, state, mode, expected)
        instance.free_state(state)
    if data is None:
        return
    with stage.instance(name=b"heir") as heir:
        other.begin(heir, other.given)
        try:
            state = heir.deserialize(data)
        except RefusedCallError as error:
            yield Observation("state.serialize", f"{_where(kept, other)}: {error}", stage.kind)
            return
        yield from _set_back("state.serialize", kept, other, heir, state, mode, expected)
        heir.free_state(state)


def _set_back(
    rule: str, kept: _ResizedFmu, other: _ResizedFmu, instance: FmuInstance, state: object, mode: str,
    expected: Mapping[DescribedVariable, tuple[Value, ...]],
) -> Iterator[Observation]:  # fmt: skip
    """Check that values after restoring a state are those when it was saved."""
    where = _where(kept, other)
    try:
        instance.set_state(state)  # type: ignore[arg-type]
        instance.mode = mode
        size = instance.get([kept.parameter])[0]
        if size != kept.size:
            text = f'"{kept.parameter.name}" is {size!r} {where}; with {kept.size} it was kept'
            yield Observation(rule, text, kept.stage.kind)
            return
        instance.description = kept.stage.description
        found = kept.answer(instance)
    except RefusedCallError as error:
        yield Observation(rule, f"{where}: {error}", kept.stage.kind)
        return
    for variable, values in expected.items():
        if not all(map(have_same_bits, values, found[variable])):
            yield Observation(rule, f'"{variable.name}" differs {where}', kept.stage.kind)
            return


def _where(kept: _ResizedFmu, other: _ResizedFmu) -> str:
    """Return where a difference was seen, for a message."""
    return f'after a state was set where "{other.parameter.name}" is {other.size} instead of {kept.size}'
