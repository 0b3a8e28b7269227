"""Check that values follow what was set: at once, in any order, and also when time goes back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_other_value, list_inputs, list_settable_variables
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import TimeBudgetError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import EvaluationPoint, choose_random_point, move_to_point
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

ME = ("ModelExchange",)
MOVES = 14
CLOSE = 1e-9
"""Relative difference that an iteration within the FMU may leave."""


def _near(a: Value, b: Value) -> bool:
    """Return whether two values agree as closely as two evaluations may; arrays element by element."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return have_same_bits(a, b) or math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-12)
    return have_same_bits(a, b)


def _read(stage: TrialFixture, instance: FmuInstance, order: int) -> list[Value]:
    """Return everything that can be evaluated, in one of several orders."""
    variables = list(stage.variables)

    def vectors() -> list[Value]:
        """Read derivatives, then event indicators."""
        found: list[Value] = list(instance.slopes(stage.n_states)) if stage.n_states else []
        count = stage.n_indicators
        return [*found, *(instance.vector("GetEventIndicators", count) if count else [])]

    if order % 4 == 0:
        first = vectors()
        return [*first, *instance.get(variables)]
    if order % 4 == 1:
        found = instance.get(variables)
        return [*vectors(), *found]
    if order % 4 == 2:
        single = {each.index: instance.get([each])[0] for each in reversed(variables)}
        return [*vectors(), *(single[each.index] for each in variables)]
    instance.get(variables[:1])
    first = vectors()
    return [*first, *instance.get(variables)]


def _names(stage: TrialFixture) -> list[str]:
    """Return what `_read` reads, by name: derivatives, event indicators, variables."""
    return [
        *(f"derivative {k + 1}" for k in range(stage.n_states)),
        *(f"event indicator {k + 1}" for k in range(stage.n_indicators)),
        *(f'"{each.name}"' for each in stage.variables),
    ]


@probe("changing one thing at a time", "exchange.pure", kinds=ME)
def try_values_follow_changes(stage: TrialFixture) -> Iterator[Observation]:
    """Check changes of time, states and single inputs, back and forth, against a new instance at the same point."""
    with stage.instance() as instance:
        stage.initialize(instance)
        points = [choose_random_point(stage, instance) for _ in range(3)]
    with stage.instance() as instance:
        stage.initialize(instance)
        move_to_point(stage, instance, points[0])
        _read(stage, instance, 0)
        now = points[0]
        for move in range(MOVES):
            now, what = _moved(stage, instance, now, points[(move + 1) % 3], move)
            found = _read(stage, instance, move)
            expected = _fresh(stage, now)
            for name, a, b in zip(_names(stage), found, expected, strict=True):
                if not _near(a, b):
                    text = f"{name} is {a!r} after {what}; a new instance at the same point says {b!r}"
                    yield Observation("exchange.pure", text, stage.kind)
                    return


def _moved(
    stage: TrialFixture, instance: FmuInstance, now: EvaluationPoint, to: EvaluationPoint, move: int
) -> tuple[EvaluationPoint, str]:
    """Change one part of a point."""
    kind = move % 4
    if kind == 0 or (kind == 1 and not to.states) or (kind > 1 and not to.inputs):
        back = "back" if to.time < now.time else "forward"
        instance.set_time(to.time)
        return EvaluationPoint(to.time, now.states, now.inputs), f"setting the time {back}"
    if kind == 1:
        instance.set_states(to.states)
        return EvaluationPoint(now.time, to.states, now.inputs), "setting the states"
    chosen = (move // 4) % len(to.inputs)
    variable = stage.inputs[chosen]
    instance.set({variable: to.inputs[chosen]})
    moved = (*now.inputs[:chosen], to.inputs[chosen], *now.inputs[chosen + 1 :])
    return EvaluationPoint(now.time, now.states, moved), f'setting "{variable.name}"'


def _fresh(stage: TrialFixture, point: EvaluationPoint) -> list[Value]:
    """Return what a new instance shows at a point."""
    with stage.instance() as instance:
        stage.initialize(instance)
        move_to_point(stage, instance, point)
        return _read(stage, instance, 0)


@probe("reading after setting in Initialization Mode", "value.stale")
def try_single_changes(stage: TrialFixture) -> Iterator[Observation]:
    """Check values after each single change against a new instance in which all was set before reading."""
    knowns = [*list_settable_variables(stage), *list_inputs(stage)]
    unknowns = [
        each.variable for each in stage.description.listed("InitialUnknowns")
        if each.variable is not None and each.variable in stage.variables
    ]  # fmt: skip
    if not knowns or not unknowns:
        stage.nothing("value.stale", "it has nothing to set, or no initial unknowns")
        return
    given: dict[DescribedVariable, Value] = {}
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        try:
            instance.get(unknowns)
            for known in knowns:
                value = choose_other_value(stage, known, "stale", 0.05)
                if value is not None:
                    instance.set({known: value})
                    given[known] = value
                    found = instance.get(unknowns)
            found = instance.get(unknowns)
        except TimeBudgetError:
            raise
        except RefusedCallError:
            stage.nothing("value.stale", "other values do not go together")
            return
    yield from _against(stage, given, unknowns, found)


def _against(
    stage: TrialFixture,
    given: dict[DescribedVariable, Value],
    unknowns: Sequence[DescribedVariable],
    found: list[Value],
) -> Iterator[Observation]:
    """Yield the first unknown that differs from an instance in which all was set before anything was read."""
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        instance.set(given)
        expected = instance.get(unknowns)
    for variable, a, b in zip(unknowns, found, expected, strict=True):
        if not _near(a, b):
            text = f"is {a!r} where it was read before; where all was set first it is {b!r}"
            yield Observation("value.stale", text, f'{stage.kind}, "{variable.name}"')
            return
