"""Compare answers of a unit in the middle of a run with the reference and with its own uninterrupted run.

Numbers that come of the same calls (a state restored, an instance reset, a parameter read) must have the same bits.
Numbers that the reference knows are held to ``agreement`` = 1e-5 + 10 · FACTOR · tolerance of their size (the unit's
state may be off by FACTOR · tolerance), plus twenty times what the reference's own differences of two step sizes are
apart; what the reference knows no better than to 5 % is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.model_declarations import Declarations
from mb2fmu.model.scales.characteristic_units import choose_attractor_rate
from mb2fmu.validation.api_checks.api_call_plan import (
    ONE_BY_ONE,
    CallPlan,
    CallScenario,
    typical_changes,
    variable_changes,
)
from mb2fmu.validation.api_checks.derivative_consistency import compare_derivatives
from mb2fmu.validation.bounds.error_table import Tally
from mb2fmu.validation.bounds.one_step_flow import Step, StepFlow, beginning
from mb2fmu.validation.bounds.stabilization_allowance import led_off
from mb2fmu.validation.comparison.motion_comparison import FACTOR, Bounds, modes_taken
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.mode_equations import Modes
from mb2fmu.validation.reference.experiment_numbers import calculated_values
from mb2fmu.validation.reference.finite_differences import Directions, rate_in_time
from mb2fmu.validation.reference.reference_run import Reference
from mb2fmu.validation.reference.variable_scales import INFORMATIVE
from mb2fmu.validation.result import CallResult
from mb2fmu.validation.runs.fmu_run import Driven, Simulation

Floats = npt.NDArray[np.float64]

NOT_OFFERED = "the unit does not offer it"
_AGREEMENT = 1e-5
_APART = 20.0
_KNOWN = 0.05
_NOISE = 1e-8
_DUE = 1e-12  # of the experiment: an instant so near behind a point falls on it


def compare_api_checks(
    definition: Declarations, chance: CallScenario, question: CallPlan, driven: Driven, limits: Bounds
) -> tuple[CallResult, ...]:
    """Return one result per family of calls.

    Args:
        definition: The checked model.
        chance: Where the calls were made.
        question: What was asked.
        driven: What the unit did: the last of its experiments is the moved one.
        limits: Bounds of the moved experiment.
    """
    return _ApiCheckComparison(definition, chance, question, driven.answers, limits, driven.simulations[-1]).judged()


@dataclass(slots=True)
class _ApiCheckComparison:
    """Judges the sessions of one interface type.

    Attributes:
        definition: The checked model.
        chance: Where the calls were made.
        asked: What was asked.
        answers: Session → answers.
        limits: Bounds of the moved experiment.
        simulation: The unit's uninterrupted run of it.
    """

    definition: Declarations
    chance: CallScenario
    asked: CallPlan
    answers: Mapping[str, list[Any]]
    limits: Bounds
    simulation: Simulation
    _rates: Floats = field(init=False)
    _modes: dict[int, Modes] = field(init=False)  # of points near an event: those of the side on which the unit was

    def __post_init__(self) -> None:
        self._rates = _largest_rates(self.chance.reference)
        self._modes = modes_taken(self.chance.reference, self.limits, self.simulation)

    def judged(self) -> tuple[CallResult, ...]:
        """Return one result per family of calls."""
        return tuple(self._results())

    def _results(self) -> Iterator[CallResult]:
        """Judge each family of calls; one that was not asked is unjudged with its reason, or left out without one."""
        families = {
            "values": ("every variable read and set", "bits of what was set and recorded; der(x) against x'"),
            "tuning": ("parameters changed in mid-run", "x', outputs and steps from there against the reference"),
            "directional": ("directional derivatives", "against differences of the reference's x' and outputs"),
            "adjoint": ("adjoint derivatives", "times directions, against the same differences"),
            "by parameters": ("derivatives by parameters", "against differences of the reference by parameters"),
            ONE_BY_ONE: ("derivatives one by one", "against all in one call, and adjoint against directional ones"),
            "output derivatives": ("derivatives of outputs in time", "against differences along the reference"),
            "state": ("state kept and restored", "bits of the steps after it, parameters changed in between"),
            "state as bytes": ("state as bytes in another instance", "bits of the steps after it"),
            "reset": ("reset", "bits of the run after it"),
        }
        for session, (name, formula) in families.items():
            if session not in self.asked.operations:
                reason = self._left_out(session)
                if reason:
                    yield self._result(name, formula, Tally(), reason)
                continue
            answers, tally = self.answers[session], Tally()
            failed = answers[-1]["failed"] if answers and isinstance(answers[-1], dict) else ""
            if failed:
                verb = self.asked.operations[session][len(answers) - 1][0]
                tally.add(np.inf, 0.0, f"{verb}: {failed}")
            else:
                getattr(self, "_" + session.replace(" ", "_"))(answers, tally)
            yield self._result(name, formula, tally, "" if tally.count else "there is nothing to compare")

    def _left_out(self, session: str) -> str:
        """Return why calls were not made; empty where they do not exist for this type or version."""
        if session == "adjoint" or (session == "output derivatives" and self.asked.kind != "CoSimulation"):
            return ""
        if session in {"by parameters", ONE_BY_ONE}:
            return ""
        if session == "directional" and self.chance.before_change is None:
            return "the reference has no derivatives there"
        return NOT_OFFERED

    def _result(self, name: str, formula: str, tally: Tally, unjudged: str) -> CallResult:
        """Return the verdict of one family from its largest ratio of error to bound; above 1 it has failed."""
        reason = unjudged
        if not unjudged and tally.ratio > 1:
            reason = f"{tally.where}: off by {tally.value:.3g}, bound {tally.bound:.3g}"
        return CallResult(
            name=name,
            kind=self.asked.kind,
            formula=formula,
            value=tally.value,
            bound=tally.bound,
            ratio=tally.ratio,
            where=tally.where,
            count=tally.count,
            verdict="unjudged" if unjudged else "failed" if tally.ratio > 1 else "passed",
            reason=reason,
        )

    @property
    def _agreement(self) -> float:
        """The largest relative difference from the reference that is no fault."""
        return _AGREEMENT + 10 * FACTOR * self.chance.reference.conditions.tolerance

    @property
    def _run_parameters(self) -> tuple[float, ...]:
        """The free parameters of the moved experiment."""
        return self.chance.reference.conditions.parameters

    # --- sessions

    def _values(self, answers: list[Any], tally: Tally) -> None:
        """Compare all variables at start and end: settings and records to the bit, the others within their bounds."""
        first = len(self.asked.typed)
        start, rows, end, *looked = answers[first + 1 :]
        run, row = self.chance.reference.conditions, self.chance.row
        time, names = run.time, self.simulation.names
        tally.rows(rows, self.simulation.values[1 : row + 1], names, time[1 : row + 1])
        for read, k in ((start, 0), (end, row)):
            found = dict(zip(self.asked.real, read, strict=True))
            self._knowns(found, k, run.parameters, tally)
            for name, value in zip(names, self.simulation.values[k].tolist(), strict=True):
                tally.same(found[name], value, f"{name} at {time[k]:.6g} s")
            self._compared(found, (k, self._modes.get(k)), run.parameters, tally, f"at {time[k]:.6g} s")
        for (kind, names_), values in zip(self.asked.typed.items(), looked, strict=True):
            operation = next(o for o in self.asked.operations["values"] if o[0] == "put" and o[1] == kind)
            for name, a, b in zip(names_, values, operation[3], strict=True):
                tally.same(float(a), float(b), name)

    def _knowns(self, found: Mapping[str, float], row: int, parameters: Sequence[float], tally: Tally) -> None:
        """Compare parameters (calculated ones too) and inputs with the values that were set."""
        chance, told = self.chance, self.chance.told
        free = [p.name for p in self.definition.parameters if not p.calculated]
        for name, value in zip(free, parameters, strict=True):
            if name in told.overridden and name in found:
                tally.same(found[name], value, name)
        for name, value in calculated_values(self.definition, parameters).items():
            if name in found and set(free) <= set(found):
                tally.add(abs(found[name] - value), 1e-12 * abs(value) + 1e-300, name)
        for name, value in zip(self.asked.inputs, chance.reference.conditions.held(row).tolist(), strict=True):
            tally.same(found[name], value, name)

    def _compared(
        self,
        found: Mapping[str, float],
        at: tuple[int, Modes | None],
        parameters: Sequence[float],
        tally: Tally,
        when: str,
        before: Sequence[float] | None = None,
    ) -> None:
        """Compare rates and outputs with the reference's at the unit's own state.

        Args:
            found: All that the unit shows.
            at: Number of the point, and the modes there where they do not follow from the state.
            parameters: Free ones.
            tally: Takes the comparisons.
            when: For people.
            before: Parameters before the event just now, the modes behind which are the unit's; None: there was none.
        """
        reference, (row, modes) = self.chance.reference, at
        numeric, run = reference.numeric, reference.conditions
        x = np.array([found[reference.trajectory.names[c]] for c in reference.state_columns])
        t = float(run.time[row])
        try:
            r = run.held(row).tolist()
            prepared = numeric.prepare(list(parameters))
            old = prepared if before is None else numeric.prepare(list(before))
            new = None if before is None else prepared
            with beginning(numeric, modes), numeric.keeping_modes(t, x, r, old, new):
                motion = numeric.motion(t, x, r, prepared)
        except (ValidationError, ArithmeticError, ValueError):
            return
        scale = FACTOR * run.tolerance
        places = self._places()
        for state, rate in zip(self.asked.states, self.asked.rates, strict=True):
            if state in places and rate in found:
                j = places[state]
                wanted = float(motion.x_dot[j])
                tally.add(abs(found[rate] - wanted), scale * max(self._rates[j], abs(wanted)), f"{rate} {when}")
        outputs = [v.name for v in reference.variables if v.kind == "output"]
        for name, wanted in zip(outputs, motion.outputs.tolist(), strict=True):
            allowed = float(self.limits.values[row, reference.trajectory.column(name)])
            tally.add(abs(found[name] - wanted), max(allowed, scale * abs(wanted)), f"{name} {when}")

    def _places(self) -> dict[str, int]:
        """Return name of a state of the reference → its place in x."""
        reference = self.chance.reference
        return {reference.trajectory.names[c]: j for j, c in enumerate(reference.state_columns)}

    def _tuning(self, answers: list[Any], tally: Tally) -> None:
        """Compare x', outputs and later steps after parameters changed in mid-run with a reference of the new."""
        _, _, _, set_to, then, rows, end = answers
        chance = self.chance
        wanted = [chance.changed[i] for i in chance.tuned]
        for name, a, b in zip(self.asked.tuned, set_to, wanted, strict=True):
            tally.same(a, b, name)
        if not chance.tuned:
            return
        found = dict(zip(self.asked.real, then, strict=True))
        began = self._modes.get(chance.row)
        if self.asked.kind == "ModelExchange":
            began = self._kept_still(found, tally)
            before = chance.reference.conditions.parameters
            here = (chance.row, began)
            self._compared(found, here, chance.changed, tally, "after the change", before)
        modes = self._flowed(found, rows, began, tally)
        last, there = dict(zip(self.asked.real, end, strict=True)), chance.row + chance.after
        self._knowns(last, there, chance.changed, tally)
        self._compared(last, (there, modes), chance.changed, tally, "after the change")

    def _kept_still(self, found: Mapping[str, float], tally: Tally) -> Modes | None:
        """Compare states after a change of parameters with the reference's event from the unit's states before.

        An instant that falls on the point may come in that event, with the new parameters, or behind it.

        Returns:
            Modes in which the motion goes on, where they do not follow from the state: near an event.
        """
        chance = self.chance
        reference, run = chance.reference, chance.reference.conditions
        numeric, names = reference.numeric, self.simulation.names
        states = [reference.trajectory.names[c] for c in reference.state_columns]
        x = np.array([self.simulation.values[chance.row, names.index(name)] for name in states])
        t, r = float(run.time[chance.row]), run.held(chance.row).tolist()
        goes_on = self._modes.get(chance.row)
        before, after = numeric.prepare(run.parameters), numeric.prepare(list(chance.changed))
        try:
            with beginning(numeric, goes_on):
                wanted = numeric.changed(t, x, r, before, after)
                if chance.row in self.limits.sides and isinstance(numeric, HybridEquations):
                    modes = numeric.modes_at(t, x, r, before)
                    due = numeric.settle(t + _DUE * float(run.time[-1]), x, r, after, modes, ())[0]
                    there = np.array([found[name] for name in states])
                    sizes = reference.state_scales
                    if np.max(np.abs(there - due) / sizes) < np.max(np.abs(there - wanted) / sizes):
                        wanted, goes_on = due, modes
        except (ValidationError, ArithmeticError, ValueError):
            return goes_on
        for name, value, scale in zip(states, wanted.tolist(), reference.state_scales.tolist(), strict=True):
            allowed = FACTOR * run.tolerance * max(abs(value), scale)
            tally.add(abs(found[name] - value), allowed, f"{name} as parameters change")
        return goes_on

    def _flowed(
        self, found: Mapping[str, float], rows: Sequence[Sequence[float]], modes: Modes | None, tally: Tally
    ) -> Modes | None:
        """Compare states step by step with the reference's, from the unit's own, with the changed parameters.

        Co-Simulation reconsiders modes at the beginning of the first step, Model Exchange has done so in its event:
        a contact whose gap the new parameters lift opens there.

        ``modes``: in which the first step begins; None: those of the state.

        Returns:
            Modes at the end, where they do not follow from the state: near an event.
        """
        chance = self.chance
        reference, names = chance.reference, self.simulation.names
        columns = [names.index(reference.trajectory.names[c]) for c in reference.state_columns]
        states = [[found[reference.trajectory.names[c]] for c in reference.state_columns]]
        states += [[row[c] for c in columns] for row in rows]
        run, flow = reference.conditions, StepFlow(reference, chance.changed)
        told = None if self.asked.kind == "ModelExchange" else run.parameters
        for k, (before, after) in enumerate(pairwise(states), chance.row):
            try:
                beside = np.array(after) if k + 1 in self.limits.sides else None
                step = Step(k, modes, beside, tuple(told) if told is not None and k == chance.row else None)
                landing = flow.landing(step, np.array(before))
            except (ValidationError, ArithmeticError, ValueError):
                return None
            modes = landing.modes if step.beside is not None else None
            moved = np.maximum(np.abs(landing.x - before), reference.state_scales)
            allowed, off = FACTOR * run.tolerance * moved, np.abs(np.array(after) - landing.x)
            if np.any(off > allowed):
                late = flow.lateness(step, np.array(before), landing, self.asked.kind)
                cap = INFORMATIVE * moved
                same, other = flow.spread(step, np.array(before), landing, np.minimum(allowed, cap))
                allowed = np.minimum(allowed + late + same, cap) + other
            for j, c in enumerate(reference.state_columns):
                where = f"step of {reference.trajectory.names[c]} from {run.time[k]:.6g} s"
                tally.add(float(off[j]), float(allowed[j]), where)
        return modes

    def _directional(self, answers: list[Any], tally: Tally) -> None:
        """Compare directional derivatives with differences of the reference, before and after parameters change."""
        assert self.chance.before_change is not None
        behind = self.chance.behind(self.asked.kind)
        assert behind is not None
        first, second = self._run_parameters, self.chance.changed
        self._partials(self.chance.before_change, np.array(answers[2]), tally, "", first)
        self._partials(behind, np.array(answers[4]), tally, " after parameters changed", second)

    def _adjoint(self, answers: list[Any], tally: Tally) -> None:
        """Compare adjoint derivatives times directions with differences of the reference."""
        assert self.chance.before_change is not None
        behind = self.chance.behind(self.asked.kind)
        assert behind is not None
        for directions, answer, when, parameters in (
            (self.chance.before_change, answers[2], "", self._run_parameters),
            (behind, answers[4], " after parameters changed", self.chance.changed),
        ):
            along = np.array(variable_changes(directions, self.chance.reference, self.asked.states))
            self._partials(directions, along @ np.array(answer).T, tally, when, parameters)

    def _by_parameters(self, answers: list[Any], tally: Tally) -> None:
        """Compare derivatives by parameters with differences of the reference."""
        assert self.chance.by_parameters is not None
        directions = self.chance.by_parameters
        self._partials(directions, np.array(answers[2]), tally, " by parameters", self._run_parameters)

    def _one_by_one(self, answers: list[Any], tally: Tally) -> None:
        """Compare derivatives by one seed, of one unknown and in dense directions with each other."""
        at, largest = self._places(), self._magnitudes()
        rate_of = dict(zip(self.asked.rates, self.asked.states, strict=True))
        column = self.chance.reference.trajectory.column
        scales = [self._rates[at[rate_of[n]]] if n in rate_of else largest[column(n)] for n in self.asked.unknowns]
        sizes = typical_changes(self.chance, self.asked.states)
        noise = [_NOISE * float(scale) for scale in scales]
        for difference, bound, where in compare_derivatives(answers[2:], self.asked.unknowns, sizes, noise):
            tally.add(difference, bound, where)

    def _partials(
        self, directions: Directions, found: Floats, tally: Tally, when: str, parameters: Sequence[float]
    ) -> None:
        """Compare ``found``: a row per direction, a column per unknown; drift stabilization is allowed for.

        ``parameters``: free ones at that point.
        """
        reference, at = self.chance.reference, self._places()
        names, row = self.simulation.names, self.chance.row
        columns = [names.index(reference.trajectory.names[c]) for c in reference.state_columns]
        x, pull = self.simulation.values[row, columns], choose_attractor_rate(self.definition)
        largest, more = self._magnitudes(), led_off(reference, directions, row, x, parameters, pull)
        rate_of = dict(zip(self.asked.rates, self.asked.states, strict=True))
        for column, name in enumerate(self.asked.unknowns):
            if name in rate_of:
                if rate_of[name] not in at:
                    continue
                j = at[rate_of[name]]
                wanted, off, scale = directions.rates[:, j], directions.rates_off[:, j], float(self._rates[j])
            else:
                j = reference.trajectory.column(name)
                wanted, off, scale = directions.variables[:, j], directions.variables_off[:, j], float(largest[j])
            size = float(np.max(np.abs(wanted), initial=0.0))
            for d in range(len(found)):
                if _APART * off[d] > _KNOWN * max(size, _NOISE * scale):
                    tally.left_out += 1
                    continue
                allowed = self._agreement * size + _APART * off[d] + _NOISE * scale
                allowed += float(more[d, j]) if name in rate_of else 0.0
                tally.add(abs(found[d, column] - wanted[d]), float(allowed), f"{name} in direction {d + 1}{when}")

    def _magnitudes(self) -> Floats:
        """Return each compared variable's magnitude, > 0, shape (n,), for bounds of round-off."""
        reference = self.chance.reference
        return np.asarray(np.maximum(np.max(np.abs(reference.trajectory.values), axis=0), reference.scales))

    def _output_derivatives(self, answers: list[Any], tally: Tally) -> None:
        """Compare time derivatives of outputs with differences of the reference; skip those it does not know well."""
        reference = self.chance.reference
        try:
            wanted, off = rate_in_time(reference, self.chance.point)
        except (ValidationError, ArithmeticError, ValueError):
            return
        values, time = reference.trajectory.values, reference.conditions.time
        steepest = np.max(np.abs(np.diff(values, axis=0)), axis=0) / np.diff(time)[0]
        for name, found in zip(self.asked.ordered, answers[2], strict=True):
            j = reference.trajectory.column(name)
            size = max(float(steepest[j]), abs(float(wanted[j])))
            if _APART * off[j] > _KNOWN * size:
                tally.left_out += 1
                continue
            still = _NOISE * float(self._magnitudes()[j]) / float(time[1])
            tally.add(abs(found - wanted[j]), self._agreement * size + _APART * float(off[j]) + still, name)

    def _state(self, answers: list[Any], tally: Tally) -> None:
        """Compare the run after a restored state with the uninterrupted one, to the bit."""
        self._continued(answers[3], answers[7], tally)
        self._restored(answers[8], tally)

    def _state_as_bytes(self, answers: list[Any], tally: Tally) -> None:
        """Compare the run after a state restored from bytes in another instance, to the bit."""
        self._continued(answers[3], answers[6], tally)
        self._restored(answers[7], tally)

    def _continued(self, first: list[list[float]], second: list[list[float]], tally: Tally) -> None:
        """Compare the same steps done twice; in Co-Simulation also with the uninterrupted run."""
        chance = self.chance
        time = chance.reference.conditions.time[chance.row + 1 : chance.row + chance.after + 1]
        tally.rows(second, np.array(first), self.simulation.names, time)
        if self.asked.kind == "CoSimulation":
            uninterrupted = self.simulation.values[chance.row + 1 : chance.row + chance.after + 1]
            tally.rows(first, uninterrupted, self.simulation.names, time)

    def _restored(self, read: list[float], tally: Tally) -> None:
        """Check that parameters and inputs are those of the restored state."""
        chance = self.chance
        found = dict(zip(self.asked.real, read, strict=True))
        self._knowns(found, chance.row + chance.after, chance.reference.conditions.parameters, tally)

    def _reset(self, answers: list[Any], tally: Tally) -> None:
        """Compare the run after a reset with the first one, to the bit."""
        row = self.chance.row
        time = self.chance.reference.conditions.time[1 : row + 1]
        tally.rows(answers[5], self.simulation.values[1 : row + 1], self.simulation.names, time)


def _largest_rates(reference: Reference) -> Floats:
    """Return the largest |x'| of each state at some points of the experiment, > 0."""
    numeric, run = reference.numeric, reference.conditions
    prepared = numeric.prepare(run.parameters)
    rows = np.unique(np.linspace(0, len(run.time) - 1, 10).astype(np.int64)).tolist()
    found = [
        np.abs(numeric.x_dot(float(run.time[k]), reference.states[k], run.held(k).tolist(), prepared)[0]) for k in rows
    ]
    # A rate that is smaller than that moves the state by less than its scale in the whole experiment.
    least = reference.state_scales / float(run.time[-1])
    return np.asarray(np.maximum(np.max(found, axis=0), least))
