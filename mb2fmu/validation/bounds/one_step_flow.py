"""The reference's flow over one communication step from an FMU's own state, with delays of its events.

An FMU has its events late: it shows indicators that are off by o (``event_time_tolerances.MARGIN_OFFSETS``), so that no
importer finds one of them zero where nothing happens. Let x⁻ be the state at which a switch's margin m(x, t) comes to
zero, f⁻ and f⁺ the slopes before and after, and R what the event makes of the state. The event is late by δ = o / |m'|
with m' = m_t + m_x f⁻, and what is behind it is off by

    R(x⁻ + f⁻ δ) − R(x⁻) − f⁺ δ = (R_x f⁻ + R_t − f⁺) o / |m'| + …

the saltation of that error, which slow impacts make large. It is not formed: the flow is made again with all margins
larger by o, and the ends are compared. So curvature, and all events of the step, are in it. Where the step then comes
through other events that set a state, the comparison is not possible, and nothing is allowed.

Source: M. di Bernardo et al., Piecewise-smooth Dynamical Systems, 2008, section 2.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.validation.bounds.event_time_tolerances import MARGIN_OFFSETS
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.modes.located_events import IntegrationEventLog, assume_start_events_done
from mb2fmu.validation.reference.event_time_matching import (
    SAME_EVENT_FRACTION,
    SimultaneousEvents,
    drop_round_off_events,
    evaluate_both_event_sides,
)
from mb2fmu.validation.reference.perturbed_contact_starts import find_switch_mode_state_indices
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem, list_graded_step_instants
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

if TYPE_CHECKING:
    from mb2fmu.validation.modes.located_events import LocatedEvent
    from mb2fmu.validation.modes.mode_equations import SwitchModes
    from mb2fmu.validation.runs.fmu_description_for_runs import InterfaceType

Floats = npt.NDArray[np.float64]

_FLOW_TOLERANCE = 1e-11


@dataclass(frozen=True, slots=True)
class OneStepFlowEnd:
    """State, work, events and modes at the end of the flow over one step.

    Attributes:
        x: The state, shape (n_x,).
        work: Done on the way, J.
        events: On the way.
        modes: There; None where nothing switches.
    """

    x: Floats
    work: float
    events: tuple[LocatedEvent, ...]
    modes: SwitchModes | None = None


@dataclass(frozen=True, slots=True)
class ExperimentCommunicationStep:
    """A communication step of an experiment.

    Attributes:
        k: Its number.
        start_modes: Modes at its beginning, where they do not follow from the state.
        fmu_state_near_event: Where it ends so near to an event that an FMU may be on either side of it: the FMU's state
            there.
        parameters_before: Free parameters before its beginning, where they change there and the state is that before
            the change.
    """

    k: int
    start_modes: SwitchModes | None = None
    fmu_state_near_event: Floats | None = None
    parameters_before: tuple[float, ...] | None = None


class OneStepFlow:
    """The reference's flow over single steps of an experiment.

    Args:
        reference: Whose flow.
        parameters: Free ones; None: those of the experiment.
    """

    def __init__(self, reference: ReferenceRun, parameters: Sequence[float] | None = None) -> None:
        self._reference, self._numeric = reference, reference.numeric
        free_parameters = reference.experiment.parameters if parameters is None else parameters
        self._prepared = reference.numeric.prepare(list(free_parameters))
        self._scales = reference.error_scales(_FLOW_TOLERANCE)
        self._step_size = np.inf  # of a flow before without events: the next one is tried with it

    def compute_step_end(
        self, step: ExperimentCommunicationStep, x: Floats, *, margin_offset: float = 0.0
    ) -> OneStepFlowEnd:
        """Return the end of the flow from a state at the beginning of a step.

        Args:
            step: The step.
            x: Shape (n_x,).
            margin_offset: What all margins of switches are larger by.

        Raises:
            ValidationError: As of
                :meth:`.TrajectoryIntegrationProblem.integrate_trajectory`.
        """
        run = self._reference.experiment
        begin, end = run.time[step.k : step.k + 2].tolist()
        time_beyond_end = 0.0 if step.fmu_state_near_event is None else SAME_EVENT_FRACTION * (end - begin)
        time = np.array([begin, end, end + time_beyond_end] if time_beyond_end else [begin, end])
        event_log = IntegrationEventLog(step_size=self._step_size)
        y = self._integrate(step, x, time, event_log, margin_offset)[1]
        modes = event_log.modes[1] if event_log.modes else None
        near_events = [
            event for event in drop_round_off_events(event_log.events) if abs(event.time - end) <= time_beyond_end
        ]
        if step.fmu_state_near_event is not None and near_events:
            y, modes = self._select_nearest_side(
                (y, modes), step.fmu_state_near_event, near_events, (end, run.inputs[step.k].tolist())
            )
        return OneStepFlowEnd(
            y[:-1], float(y[-1]), tuple(event for event in event_log.events if event.time <= end), modes
        )

    def compute_step_end_without_events(self, step: ExperimentCommunicationStep, x: Floats) -> OneStepFlowEnd:
        """Return :meth:`compute_step_end` but for its events, which take as long to record as to go through.

        Where an FMU's state is known near an event at the end, and is not where the flow ends, events are there.
        """
        event_log = IntegrationEventLog(step_size=self._step_size, records_events=False)
        y = self._integrate(step, x, self._reference.experiment.time[step.k : step.k + 2], event_log)[1]
        if step.fmu_state_near_event is not None and not self._is_at(y, step.fmu_state_near_event):
            return self.compute_step_end(step, x)
        return OneStepFlowEnd(y[:-1], float(y[-1]), (), event_log.modes[1] if event_log.modes else None)

    def compute_all_step_ends_without_events(self, states: Floats) -> list[OneStepFlowEnd] | None:
        """Return :meth:`compute_step_end_without_events` of all steps by one call; None where that is not possible.

        Args:
            states: At the beginning of each step, shape (number of steps, n_x).
        """
        run = self._reference.experiment
        integration = TrajectoryIntegrationProblem(self._numeric, run.time, run.inputs, self._prepared, stiff=run.stiff)
        starts = np.hstack([states, np.zeros((len(states), 1))])
        ends = integration.integrate_steps_in_c(starts, _FLOW_TOLERANCE, self._scales)
        return None if ends is None else [OneStepFlowEnd(y[:-1], float(y[-1]), ()) for y in ends]

    def compute_exchanged_energy(self, step: ExperimentCommunicationStep, x: Floats) -> float:
        """Return ∫|P| dt over a step in J, P the power of all loads: what goes to and fro within it, too.

        The sum of |ΔW| between the instants of :meth:`_follow_within`.
        """
        return float(np.sum(np.abs(np.diff(self._follow_within(step, x)[:, -1]))))

    def compute_excursions(self, step: ExperimentCommunicationStep, x: Floats) -> Floats:
        """Return how far each state moves from its value at the beginning of a step, within it, shape (n_x,).

        What dies out before the step's end may have moved much farther than communication points show.
        """
        flow = self._follow_within(step, x)[:, :-1]
        return np.asarray(np.max(np.abs(flow - flow[0]), axis=0))

    def _follow_within(self, step: ExperimentCommunicationStep, x: Floats) -> Floats:
        """Return states and work at :func:`list_graded_step_instants` of a step, shape (n, n_x + 1)."""
        time = list_graded_step_instants(*self._reference.experiment.time[step.k : step.k + 2].tolist())
        return self._integrate(step, x, time, IntegrationEventLog())

    def _integrate(
        self, step: ExperimentCommunicationStep, x: Floats, time: Floats, event_log: IntegrationEventLog,
        margin_offset: float = 0.0,
    ) -> Floats:  # fmt: skip
        """Return (x, W) at instants from a step's beginning on, with its inputs, shape (n, n_x + 1)."""
        run = self._reference.experiment
        inputs = np.repeat(run.inputs[step.k : step.k + 1], len(time) - 1, axis=0)
        integration = TrajectoryIntegrationProblem(self._numeric, time, inputs, self._prepared, stiff=run.stiff)
        modes, x = self._apply_input_jumps(step, x)
        with self._begin_flow(modes, margin_offset):
            y = integration.integrate_trajectory(np.append(x, 0.0), _FLOW_TOLERANCE, self._scales, event_log=event_log)
        if not event_log.event_count:
            self._step_size = event_log.step_size
        return y

    def _apply_input_jumps(self, step: ExperimentCommunicationStep, x: Floats) -> tuple[SwitchModes | None, Floats]:
        """Return modes and states at the beginning of a step, after the event in which inputs or parameters jump."""
        numeric, run, k = self._numeric, self._reference.experiment, step.k
        if not is_hybrid(numeric):
            return step.start_modes, x
        t, inputs = float(run.time[k]), run.inputs[k].tolist()
        jumped = k > 0 and not np.array_equal(run.inputs[k], run.inputs[k - 1])
        if step.parameters_before is None and not jumped:
            return step.start_modes, x
        if step.start_modes is None:
            prepared_before = (
                self._prepared if step.parameters_before is None else numeric.prepare(list(step.parameters_before))
            )
            modes = numeric.find_modes(t, x, run.inputs[k - 1].tolist() if jumped else inputs, prepared_before)
        else:
            modes = step.start_modes.copy()
        x, _ = numeric.settle_modes(t, x, inputs, self._prepared, modes, ())
        return modes, x

    def compute_delay_shift(
        self, step: ExperimentCommunicationStep, x: Floats, base: OneStepFlowEnd, kind: InterfaceType
    ) -> Floats:
        """Return the shift of the end if all events are as late as the FMU's type may have them, shape (n_x,).

        Args:
            step: The step.
            x: The state at its beginning.
            base: Where that leads.
            kind: How the FMU is run.
        """
        if not base.events:
            return np.zeros(len(x))
        try:
            end = self.compute_step_end(step, x, margin_offset=MARGIN_OFFSETS[kind])
        except (ValidationError, ArithmeticError, ValueError):
            return np.zeros(len(x))
        return np.abs(end.x - base.x) if _list_state_events(end) == _list_state_events(base) else np.zeros(len(x))

    def compute_error_after_events(
        self, step: ExperimentCommunicationStep, x: Floats, base: OneStepFlowEnd, state_errors: Floats
    ) -> tuple[Floats, Floats]:
        """Return the error after state-resetting events, for states within their bounds before.

        A ball that comes to rest by ever lower bounces is an example: a little higher it touches later, or rests one
        bounce later.

        Args:
            step: The step.
            x: The state at its beginning.
            base: Where that leads.
            state_errors: How far each state may be off, shape (n_x,).

        Returns:
            Largest shift of the end through the same events, and through other events, shapes (n_x,).
        """
        same_events, other_events = np.zeros(len(x)), np.zeros(len(x))
        event_names = _list_state_events(base)
        state_indices = [j for j in range(len(x)) if j not in find_switch_mode_state_indices(self._numeric)]
        for displacement in (
            (*np.diag(state_errors)[state_indices], *np.diag(-state_errors)[state_indices]) if event_names else ()
        ):
            try:
                end = self.compute_step_end(step, x + displacement)
            except (ValidationError, ArithmeticError, ValueError):
                continue
            shifts = same_events if _list_state_events(end) == event_names else other_events
            np.maximum(shifts, np.abs(end.x - base.x), out=shifts)
        return same_events, other_events

    @contextmanager
    def _begin_flow(self, modes: SwitchModes | None, margin_offset: float) -> Iterator[None]:
        """Begin flows in given modes, after the events of the start, with their events late."""
        with start_flow_in_modes(self._numeric, modes), assume_start_events_done(self._numeric):
            if is_hybrid(self._numeric):
                self._numeric.margin_offset = margin_offset
            try:
                yield
            finally:
                if is_hybrid(self._numeric):
                    self._numeric.margin_offset = 0.0

    def _select_nearest_side(
        self,
        flow_end: tuple[Floats, SwitchModes | None],
        fmu_state: Floats,
        near_events: Sequence[LocatedEvent],
        end_and_inputs: tuple[float, list[float]],
    ) -> tuple[Floats, SwitchModes | None]:
        """Return (x, W) and modes at the end of a step, on the side of close events that is nearer to the FMU.

        Args:
            flow_end: Those of the flow.
            fmu_state: The FMU's state.
            near_events: The events.
            end_and_inputs: The end in s, and the inputs.
        """
        assert is_hybrid(self._numeric)
        if self._is_at(flow_end[0], fmu_state):
            return flow_end
        event_group = SimultaneousEvents(near_events[0], near_events[-1], len(near_events))
        sides = [flow_end, *evaluate_both_event_sides(self._numeric, event_group, *end_and_inputs, self._prepared)]
        return sides[int(np.argmin([self._compute_distance(y, fmu_state) for y, _ in sides]))]

    def _is_at(self, y: Floats, x: Floats) -> bool:
        """Return whether (x, W) is so near to a state that no side of an event is: bounds are multiples of this."""
        return self._compute_distance(y, x) <= self._reference.experiment.tolerance

    def _compute_distance(self, y: Floats, x: Floats) -> float:
        """Return how far (x, W) is from a state at most, over the states' scales."""
        return float(np.max(np.abs(y[:-1] - x) / self._reference.state_scales, initial=0.0))


def start_flow_in_modes(numeric: NumericEquations, modes: SwitchModes | None) -> AbstractContextManager[None]:
    """Begin in these modes; None: in those that the state says."""
    if modes is None or not is_hybrid(numeric):
        return nullcontext()
    return numeric.start_in_modes(modes)


def _list_state_events(step_end: OneStepFlowEnd) -> list[str]:
    """Return the events in which states were set."""
    return [event.name for event in step_end.events if event.sets_state]
