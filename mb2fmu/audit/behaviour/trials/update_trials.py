"""FMI 3: intermediate updates of Co-Simulation, the values they show, and early returns after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_other_value
from mb2fmu.audit.behaviour.fixture.short_runs import do_communication_step, run_co_simulation
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.trials.step_trials import CS, values_agree
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation


@dataclass
class _IntermediateUpdateRecord:
    """Records of intermediate updates.

    Attributes:
        required: Variables that are read in them.
        times: Of each update.
        possible: Whether an early return was possible then.
        shown: What was read, with the time.
        refused: What reading was answered with, where it was allowed.
        environments: That came with them.
        stepping: A step has been begun.
        outside: Updates before any step.
        wish: An early return is asked for.
        instance: That they come from.
    """

    required: Sequence[DescribedVariable]
    times: list[float] = field(default_factory=list)
    possible: list[bool] = field(default_factory=list)
    shown: list[tuple[float, list[Value]]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    environments: set[int | None] = field(default_factory=set)
    stepping: bool = False
    outside: int = 0
    wish: bool = False
    instance: FmuInstance | None = None

    def update(
        self, environment: int | None, time: float, _set: bool, may_get: bool, _finished: bool, can_return: bool,
        asked: Any, at: Any,
    ) -> None:  # fmt: skip
        """Handle the callback: note the time, read values, and ask for an early return if wanted."""
        if not self.stepping:
            self.outside += 1
        self.times.append(time)
        self.environments.add(environment)
        if may_get and self.required and self.instance:
            try:
                self.shown.append((time, self.instance.get(self.required)))
            except RefusedCallError as error:
                self.refused.append(str(error))
        self.possible.append(bool(can_return))
        asked[0] = self.wish and bool(can_return)
        at[0] = time


@probe("intermediate updates", "steps.intermediate", "steps.early", kinds=CS)
def try_intermediate_updates(stage: TrialFixture) -> Iterator[Observation]:
    """Check FMI 3's callback: times never decrease; early return is granted where promised."""
    if stage.description.version != 3 or not stage.flag("providesIntermediateUpdate"):
        return
    heard = _IntermediateUpdateRecord([each for each in stage.scalars if each.flag("intermediateUpdate")])
    with stage.instance(update=heard.update, required=heard.required, early=True) as instance:
        heard.instance = instance
        stage.initialize(instance, within=_given(stage))
        heard.stepping = True
        if heard.outside:
            text = "the callback is called before any step: it belongs to fmi3DoStep"
            yield Observation("steps.intermediate", text, stage.kind)
        done = [do_communication_step(stage, instance, stage.start, stage.step)]
        if not done[0].early:
            done.append(do_communication_step(stage, instance, stage.start + stage.step, stage.step))
        if not heard.times:
            text = "providesIntermediateUpdate is true, but the callback is never called"
            yield Observation("steps.intermediate", text, stage.kind)
            return
        for text in _said(stage, heard, stage.start + len(done) * stage.step):
            yield Observation("steps.intermediate", text, stage.kind)
        if any(each.early for each in done) and not stage.flag("mightReturnEarlyFromDoStep"):
            text = "it returns early without being asked, though mightReturnEarlyFromDoStep is false"
            yield Observation("steps.early", text, stage.kind)
            return
        yield from _as_at(stage, heard)
        heard.wish = True
        yield from _asked(stage, instance, heard)


def _given(stage: TrialFixture) -> dict[DescribedVariable, Value]:
    """Return continuous inputs that are not at their start: what becomes of them within a step shows."""
    moved = ((each, choose_other_value(stage, each, "update", 0.1)) for each in stage.inputs)
    return {each: value for each, value in moved if value is not None}


def _said(stage: TrialFixture, heard: _IntermediateUpdateRecord, reached: float) -> Iterator[str]:
    """Yield faults of times, environments and values of the updates up to a time."""
    if any(later < earlier for earlier, later in pairwise(heard.times)):
        yield "the times of intermediate updates go backwards"
    slack = 1e-9 * (abs(stage.start) + stage.step)
    outside = next((each for each in heard.times if not stage.start - slack <= each <= reached + slack), None)
    if outside is not None:
        text = f"an intermediate update is said to be at {outside:.9g}, outside the steps from {stage.start:.6g} to"
        yield f"{text} {reached:.6g}"
    if heard.instance and heard.environments != {heard.instance.environment}:
        yield "intermediate updates come with another environment than that of their instance"
    if heard.refused:
        yield f"in an intermediate update that allows it, reading is refused: {heard.refused[0]}"


def _asked(stage: TrialFixture, instance: FmuInstance, heard: _IntermediateUpdateRecord) -> Iterator[Observation]:
    """Check the third step, which is asked to return early."""
    point, seen = stage.start + 2 * stage.step, len(heard.possible)
    last = do_communication_step(stage, instance, point, stage.step)
    if stage.flag("canReturnEarlyAfterIntermediateUpdate") and any(heard.possible[seen:-1]) and not last.early:
        yield Observation("steps.early", "asked to return early it goes on to the end of the step", stage.kind)
    if last.early and not last.last < point + stage.step:
        text = f"it says that it returned early, at the end of the step, {last.last:.6g}"
        yield Observation("steps.early", text, stage.kind)
    elif last.early:
        heard.wish = False
        try:
            do_communication_step(stage, instance, last.last, point + stage.step - last.last)
        except RefusedCallError as error:
            yield Observation(
                "steps.early", f"after an early return the rest of the step is refused: {error}", stage.kind
            )
            return
        yield from _after_early(stage, instance.get(stage.variables))


def _after_early(stage: TrialFixture, found: list[Value]) -> Iterator[Observation]:
    """Compare three steps, the last one returned early and completed, with three whole ones."""
    with stage.instance() as instance:
        stage.initialize(instance, within=_given(stage))
        whole = run_co_simulation(stage, instance, stage.variables, steps=3).rows[-1]
    for variable, a, b in zip(stage.variables, whole, found, strict=True):
        if not values_agree(stage, variable, a, b, times=10.0):
            text = f"after an early return and the rest of the step it is {b!r}, after a whole step {a!r}"
            yield Observation("steps.early", text, f'{stage.kind}, "{variable.name}"')
            return


def _as_at(stage: TrialFixture, heard: _IntermediateUpdateRecord) -> Iterator[Observation]:
    """Compare values at the first update within a step with an instance whose step ends there."""
    begin, end = stage.start + 0.01 * stage.step, stage.start + 0.99 * stage.step
    within = [each for each in heard.shown if begin < each[0] < end]
    if not within or not stage.flag("canHandleVariableCommunicationStepSize"):
        return
    time, values = within[0]
    with stage.instance() as instance:
        stage.initialize(instance, within=_given(stage))
        do_communication_step(stage, instance, stage.start, time - stage.start)
        expected = instance.get(heard.required)
    for variable, a, b in zip(heard.required, expected, values, strict=True):
        if not values_agree(stage, variable, a, b, times=1.0):
            text = f"in an intermediate update at t = {time:.6g} it is {b!r}; where a step ends there it is {a!r}"
            yield Observation("steps.intermediate", text, f'{stage.kind}, "{variable.name}"')
            return
