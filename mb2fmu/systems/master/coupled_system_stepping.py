"""Communication steps of a whole system: Jacobi or Gauss–Seidel, once or until inputs agree.

One step from t_n to t_n + H:

1. Form a polynomial of order k for each input, through the last k + 1 communication points. Where the value at the end
   is known (Gauss–Seidel: from components that have stepped already; repeated passes: from the pass before), take the
   newest k of these points and the end (``input_polynomial_operations``).
2. Step every component along the polynomials of its inputs.
3. Make inputs and outputs agree at the end (``algebraic_loops``), so that no output belongs to an old input.
4. If inputs at the end differ from the polynomials, and passes are left, go back to t_n and repeat.

Source: M. Busch, Continuous approximation techniques for co-simulation methods, ZAMM 96 (2016), 1061-1081; Newton
passes after S. Sicklinger et al., Interface Jacobian-based co-simulation algorithm, Int. J. Numer. Meth. Engng 98
(2014), 418-444.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master import input_polynomial_operations
from mb2fmu.systems.master.algebraic_loops import PortValuePropagation, SavedPortValues
from mb2fmu.systems.master.connection_delays import DelayedConnections
from mb2fmu.systems.master.fmu_slaves import Slave, SlaveError, SlaveStepResult
from mb2fmu.systems.master.input_evaluation_order import order_gauss_seidel_components
from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings, SystemWiring

Floats = npt.NDArray[np.float64]

_RELATIVE_INCREMENT = 1e-6
_ROUND_OFF = 8.0 * np.finfo(float).eps
_TIME_TOLERANCE = 1e-9
"""Times are compared with this, relative to the step."""


MAX_STEP_REPEATS = 50
"""Repetitions of one step, each to the earliest event: a shorter step changes inputs, and with them other events."""


class CommunicationStepError(Exception):
    """A system could not be stepped further.

    Args:
        component: Name of the component that failed; empty if it is the coupling itself.
        time: The last communication point that was reached, in s.
        reason: Happened.
    """

    def __init__(self, component: str, time: float, reason: str) -> None:
        self.component, self.time, self.reason = component, time, reason
        super().__init__(f"{component or 'the coupling'} at t = {time:.9g} s: {reason}")


@dataclass(frozen=True, slots=True)
class AcceptedCommunicationStep:
    """One accepted communication step.

    Attributes:
        start_time: Start of the step in s.
        size: Step size in s.
        input_polynomials: Coefficients of the inputs from ``start_time``, shape (n_inputs, 3).
        iterations: Number of iterations.
        last_change: Change of the inputs at the end in the last iteration, relative to their size.
        extrapolation_error: Error of the extrapolated inputs at the end, relative to their size.
        event: Whether there is an event at the end.
        initial_outputs: Outputs at the beginning with the inputs of the polynomials, shape (n_outputs,).
        final_outputs: Outputs at the end with the inputs of the polynomials, shape (n_outputs,).
        after_event: Whether there was an event at the beginning.
    """

    start_time: float
    size: float
    input_polynomials: Floats
    iterations: int
    last_change: float
    extrapolation_error: float
    event: bool
    initial_outputs: Floats
    final_outputs: Floats
    after_event: bool = False


@dataclass(frozen=True, slots=True)
class SavedSystemState:
    """State of a system at a communication point, to return to.

    Attributes:
        states: States of the components.
        time: Time of the point, in s.
        past_points: Times and inputs through which input polynomials pass.
        port_values: Inputs and outputs, from :class:`PortValuePropagation`.
        input_scale: Largest magnitude of each input so far.
        jacobian: Interface Jacobian, with the step size and order that it is valid for.
        next_event_time: Instant of the next event that is known beforehand, in s.
    """

    states: list[Any]
    time: float
    past_points: list[tuple[float, Floats]]
    port_values: SavedPortValues
    input_scale: Floats
    jacobian: tuple[tuple[float, int], Floats] | None
    next_event_time: float


class SystemStepper:
    """A system during its run.

    Args:
        wiring: The system.
        slaves: The components, in order, in Step Mode.
        stepping: Settings of the master.

    Attributes:
        time: The last communication point, s.
        loop_solver: Inputs and outputs there.
    """

    def __init__(
        self, wiring: SystemWiring, slaves: Sequence[Slave], stepping: CommunicationStepSettings, time: float = 0.0
    ) -> None:
        self._wiring, self._slaves, self._stepping = wiring, slaves, stepping
        self.loop_solver = PortValuePropagation(wiring, slaves)
        self._sequence = order_gauss_seidel_components(wiring, stepping.sequence)
        self._fed_inputs = [self.loop_solver.inputs_fed_by(component) for component in range(len(slaves))]
        self._past_points: list[tuple[float, Floats]] = []
        self._delays = DelayedConnections(wiring)
        self._is_delayed_input = np.isin(np.arange(len(wiring.inputs)), self._delays.target_inputs)
        self._input_scale = np.zeros(len(wiring.inputs))
        self._jacobian: tuple[tuple[float, int], Floats] | None = None
        self._next_event_time: float = np.inf
        self._initial_outputs = self.loop_solver.y
        self._early_component = 0
        self.time = time

    def initialize(self) -> None:
        """Make inputs and outputs agree at the first communication point."""
        self.loop_solver.u[self._delays.target_inputs] = self._delays.arriving_values(self.time)
        self._call(self.loop_solver.make_initially_consistent)
        self._record_point(after_event=True)

    def set_past_inputs(self, past_inputs: Sequence[Floats], step_size: float) -> None:
        """Set the known past of the inputs: one row per communication point, the newest last."""
        self._past_points = [
            (self.time - step_size * (len(past_inputs) - 1 - index), np.array(inputs))
            for index, inputs in enumerate(past_inputs)
        ]
        self._input_scale = np.maximum(self._input_scale, np.max(np.abs(np.array(past_inputs)), axis=0))

    @property
    def recent_inputs(self) -> tuple[Floats, ...]:
        """Inputs at the communication points from which inputs are extrapolated, the newest last."""
        return tuple(inputs for _, inputs in self._past_points[-(self._stepping.order + 1) :])

    def step(self, size: float) -> AcceptedCommunicationStep:
        """Do one communication step; a shorter one if a component returned early.

        Raises:
            CommunicationStepError: If a component fails; time and past are still those of the last communication point.
        """
        for repeats in range(MAX_STEP_REPEATS):
            size = (
                min(size, self._next_event_time - self.time)
                if self._next_event_time > self.time + _TIME_TOLERANCE * size
                else size
            )
            size = min(size, self._delays.shortest_delay)
            states = self._save_components() if self._stepping.needs_rollback or self._may_return_early() else None
            try:
                accepted = self._step_to_common_time(size, states)
            finally:
                self.free_saved_states(states)
            if accepted is not None:
                accepted = replace(accepted, after_event=repeats > 0)
                break
            self._handle_events()
            self._record_point(after_event=True)
        else:
            raise CommunicationStepError("", self.time, f"{MAX_STEP_REPEATS} events follow one another at this instant")
        self.time = accepted.start_time + accepted.size
        if accepted.event or self.time >= self._next_event_time - _TIME_TOLERANCE * size:
            self._handle_events()
        self._record_point(after_event=accepted.event)
        return accepted

    def _step_to_common_time(self, size: float, states: list[Any] | None) -> AcceptedCommunicationStep | None:
        """Step to the earliest time at which a component stopped; None if one has an event before it has moved.

        Then it stays where it is, since its inputs' polynomials may begin at slightly other values than its inputs had,
        and all others return. Where a component stopped there is an event, also if it does not detect it again when it
        comes to that instant with slightly other inputs: else it would handle it unnoticed in the next step.
        """
        port_values = self.loop_solver.save()
        attempt = self._iterate_step(size, states)
        event = False
        for _ in range(MAX_STEP_REPEATS):
            event = event or attempt.event
            if not self._ended_early(attempt.size, size):
                return replace(attempt, event=event)
            size = attempt.size
            stops_at_start = size <= _ROUND_OFF * abs(self.time)
            self._restore_components(states, except_component=self._early_component if stops_at_start else None)
            self.loop_solver.restore(port_values)
            if stops_at_start and attempt.event:
                return None
            if stops_at_start:
                raise CommunicationStepError(
                    self._wiring.components[self._early_component], self.time, "it stops without an event"
                )
            attempt = self._iterate_step(size, states)  # all go again, to where the first of them stopped
        raise CommunicationStepError(
            "", self.time, f"events recede from pass to pass, {MAX_STEP_REPEATS} times in one step"
        )

    def restore(self, saved_state: SavedSystemState) -> None:
        """Return to an earlier communication point; what follows is bitwise equal to a run that never went further."""
        self._restore_components(saved_state.states)
        self.time, self._past_points = saved_state.time, list(saved_state.past_points)
        self._input_scale, self._jacobian, self._next_event_time = (
            saved_state.input_scale.copy(),
            saved_state.jacobian,
            saved_state.next_event_time,
        )
        self.loop_solver.restore(saved_state.port_values)
        self._delays.drop_after(saved_state.time)

    def save(self) -> SavedSystemState:
        """Return the argument for :meth:`restore`."""
        return SavedSystemState(
            self._save_components(),
            self.time,
            list(self._past_points),
            self.loop_solver.save(),
            self._input_scale.copy(),
            self._jacobian,
            self._next_event_time,
        )

    def feedthrough_derivatives(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return ∂output/∂input of (input, output) at the last communication point, shape (len(pairs),)."""
        return np.asarray(self._call(self.loop_solver.feedthrough_derivatives, pairs))

    # --- one step

    def _iterate_step(self, size: float, states: list[Any] | None) -> AcceptedCommunicationStep:
        """Step all components, and repeat until the inputs at the end agree; stop early where a component did."""
        extrapolated = self._extrapolate_inputs(size)
        predicted = input_polynomial_operations.evaluate_input_polynomials(extrapolated, size)
        end_inputs: Floats | None = None
        last_change, iteration, final_outputs = np.inf, 0, self.loop_solver.y
        self._initial_outputs = self.loop_solver.y.copy()
        uses_newton = self._stepping.jacobian and states is not None
        for iteration in range(1, self._stepping.passes + 1):
            if iteration > 1:
                self._restore_components(states)
            polynomials, reached_size, event = self._step_components(size, extrapolated, end_inputs)
            if self._ended_early(reached_size, size):
                final_outputs = self.loop_solver.y.copy()
                return AcceptedCommunicationStep(
                    self.time, reached_size, polynomials, iteration, 0.0, 0.0, event, self._initial_outputs,
                    final_outputs,
                )  # fmt: skip
            linked_inputs = self.loop_solver.evaluate_links(np.arange(len(self._input_scale))) if uses_newton else None
            assumed_inputs = self.loop_solver.u.copy()  # where the polynomials end
            final_outputs = self.loop_solver.y.copy()
            # Where a component stopped at an event it has not been given the inputs of the end.
            self._call(partial(self.loop_solver.make_consistent, outputs_are_read=not event))
            self._input_scale = np.maximum(self._input_scale, np.abs(self.loop_solver.u))
            last_change = self._relative_change(self.loop_solver.u - assumed_inputs)
            if last_change <= self._stepping.converged or iteration == self._stepping.passes:
                break
            end_inputs = self.loop_solver.u.copy()
            if linked_inputs is not None:
                end_inputs = assumed_inputs + self._compute_newton_correction(
                    size, extrapolated, assumed_inputs, linked_inputs, states
                )
        extrapolation_error = self._relative_change(self.loop_solver.u - predicted)
        return AcceptedCommunicationStep(
            self.time, size, polynomials, iteration, last_change, extrapolation_error, event, self._initial_outputs,
            final_outputs,
        )  # fmt: skip

    def _step_components(
        self, size: float, extrapolated: Floats, end_inputs: Floats | None
    ) -> tuple[Floats, float, bool]:
        """Step all components once; return the input polynomials, the shortest step, and whether there is an event."""
        known_ends = np.full(len(self._input_scale), end_inputs is not None)
        target_inputs = np.zeros(len(self._input_scale)) if end_inputs is None else end_inputs.copy()
        polynomials = self._lead_to_known_ends(size, extrapolated, target_inputs, known_ends)
        reached_size, event = size, False
        for place, component in enumerate(self._sequence):
            component_inputs = self.loop_solver.input_indices(component)
            if place and self._stepping.method == "gauss-seidel" and not self._stepping.jacobian:
                polynomials[component_inputs] = self._lead_to_known_ends(size, extrapolated, target_inputs, known_ends)[
                    component_inputs
                ]
            if self._wiring.bonds and not self._stepping.order:  # a held input may jump at the beginning
                self._call(self._slaves[component].write_inputs, polynomials[component_inputs, 0], component=component)
                self._initial_outputs[self.loop_solver.output_indices(component)] = self._call(
                    self._slaves[component].read_outputs, component=component
                )
            result: SlaveStepResult = self._call(
                self._slaves[component].do_step, self.time, size, polynomials[component_inputs], component=component
            )
            reached_size = min(reached_size, result.end_time - self.time)
            event = event or result.needs_event_mode
            if self._ended_early(reached_size, size):
                self._early_component = component
                return polynomials, reached_size, event
            self.loop_solver.u[component_inputs] = input_polynomial_operations.evaluate_input_polynomials(
                polynomials[component_inputs], size
            )
            self._call(self.loop_solver.read_outputs, component, component=component)
            if self._stepping.method == "gauss-seidel":
                fed_inputs = self._fed_inputs[component]
                target_inputs[fed_inputs], known_ends[fed_inputs] = self.loop_solver.evaluate_links(fed_inputs), True
        return polynomials, reached_size, event

    def _extrapolate_inputs(self, size: float) -> Floats:
        """Return the inputs' polynomials through past points; they are the same in all passes of a step."""
        past_points = self._select_past_points(size, self._stepping.order + 1)
        times = [time - self.time for time, _ in past_points]
        extrapolated = input_polynomial_operations.fit_input_polynomials(
            times, np.array([inputs for _, inputs in past_points])
        )
        if self._delays.target_inputs.size:
            extrapolated[self._delays.target_inputs] = self._delays.input_polynomials(self.time, size)
        return extrapolated

    def _select_past_points(self, size: float, count: int) -> list[tuple[float, Floats]]:
        """Return the newest past points that are far enough apart, at most so many."""
        points = input_polynomial_operations.select_interpolation_points(self._past_points, size)
        return points[max(len(points) - count, 0) :]

    def _lead_to_known_ends(
        self, size: float, extrapolated: Floats, end_inputs: Floats, known_ends: npt.NDArray[np.bool_]
    ) -> Floats:
        """Return the inputs' polynomials: through past points and the end where it is known, else ``extrapolated``."""
        if not known_ends.any():
            return extrapolated.copy()
        past_points = self._select_past_points(size, self._stepping.order)
        times = [*(time - self.time for time, _ in past_points), size]
        interpolated = input_polynomial_operations.fit_input_polynomials(
            times, np.array([*(inputs for _, inputs in past_points), end_inputs])
        )
        return np.where((known_ends & ~self._is_delayed_input)[:, None], interpolated, extrapolated)

    def _compute_newton_correction(
        self,
        size: float,
        extrapolated: Floats,
        assumed_inputs: Floats,
        linked_inputs: Floats,
        states: list[Any] | None,
    ) -> Floats:
        """Return the change of inputs at the end for u = L y(u), by the interface Jacobian from differences."""
        jacobian_key = (
            size,
            min(
                len(input_polynomial_operations.select_interpolation_points(self._past_points, size)),
                self._stepping.order,
            ),
        )
        if self._jacobian is None or self._jacobian[0] != jacobian_key:
            self._jacobian = jacobian_key, self._compute_interface_jacobian(size, extrapolated, assumed_inputs, states)
        return np.asarray(
            np.linalg.solve(np.eye(len(assumed_inputs)) - self._jacobian[1], linked_inputs - assumed_inputs)
        )

    def _compute_interface_jacobian(
        self, size: float, extrapolated: Floats, assumed_inputs: Floats, states: list[Any] | None
    ) -> Floats:
        """Return d(L y at the end)/d(u at the end); each component steps from t_n once per input, and once more."""
        input_count = len(assumed_inputs)
        jacobian = np.zeros((input_count, input_count))
        assert states is not None
        for component, slave in enumerate(self._slaves):
            component_inputs = self.loop_solver.input_indices(component)
            end_values = []
            for perturbed_input in [None, *component_inputs.tolist()]:
                end_inputs = assumed_inputs.copy()
                if perturbed_input is not None:
                    end_inputs[perturbed_input] += _RELATIVE_INCREMENT * max(1.0, self._input_scale[perturbed_input])
                polynomials = self._lead_to_known_ends(
                    size, extrapolated, end_inputs, np.ones(input_count, dtype=bool)
                )[component_inputs]
                self._call(slave.restore_state, states[component], component=component)
                self._call(slave.do_step, self.time, size, polynomials, component=component)
                self._call(self.loop_solver.read_outputs, component, component=component)
                end_values.append(self.loop_solver.evaluate_links(self._fed_inputs[component]))
            for perturbed_input, changed_values in zip(component_inputs.tolist(), end_values[1:], strict=True):
                jacobian[self._fed_inputs[component], perturbed_input] = (changed_values - end_values[0]) / (
                    _RELATIVE_INCREMENT * max(1.0, self._input_scale[perturbed_input])
                )
        return jacobian

    def _relative_change(self, difference: Floats) -> float:
        """Return the largest change of an input, relative to its largest value so far."""
        input_scale = np.where(self._input_scale > 0.0, self._input_scale, 1.0)
        return float((np.abs(difference) / input_scale).max(initial=0.0))

    # --- states, events

    def _ended_early(self, reached_size: float, size: float) -> bool:
        """Return whether a step ended early by more than round-off, so that a component would be left behind."""
        return bool(size - reached_size > _ROUND_OFF * (abs(self.time) + size))

    def _may_return_early(self) -> bool:
        """Return whether a component may stop inside a step and all components can restore a saved state."""
        return any(slave.capabilities.early_return or slave.capabilities.event_mode for slave in self._slaves) and all(
            slave.capabilities.saves_state for slave in self._slaves
        )

    def _save_components(self) -> list[Any]:
        """Save the state of every component."""
        return [self._call(slave.save_state, component=component) for component, slave in enumerate(self._slaves)]

    def _restore_components(self, states: list[Any] | None, except_component: int | None = None) -> None:
        """Restore every component, ``except_component`` one, to saved states; raise if they could not be saved."""
        if states is None:
            raise CommunicationStepError(
                "", self.time, "a component returned early, and others cannot go back to meet it there"
            )
        for component, slave in enumerate(self._slaves):
            if component != except_component:
                self._call(slave.restore_state, states[component], component=component)

    def free_saved_states(self, states: list[Any] | None) -> None:
        """Free saved states."""
        for slave, state in zip(self._slaves, states or (), strict=False):
            slave.free_state(state)

    def _handle_events(self) -> None:
        """Handle events of all components that have Event Mode, until none has another one at this instant."""
        event_times = [
            self._call(slave.handle_events, component=component) for component, slave in enumerate(self._slaves)
        ]
        self._next_event_time = min((time for time in event_times if time is not None), default=np.inf)
        self._call(self.loop_solver.make_consistent)

    def _record_point(self, *, after_event: bool) -> None:
        """Record time and inputs of the last three points; after an event, drop earlier ones."""
        if after_event:
            self._past_points.clear()
        self._delays.record_outputs(self.time, self.loop_solver.y)
        self._past_points.append((self.time, self.loop_solver.u.copy()))
        del self._past_points[:-3]
        self._input_scale = np.maximum(self._input_scale, np.abs(self.loop_solver.u))

    def _call(self, function: Any, *arguments: Any, component: int | None = None) -> Any:
        """Call a function; an error of an FMU becomes one that names component and time."""
        try:
            return function(*arguments)
        except SlaveError as error:
            name = "" if component is None else self._wiring.components[component]
            raise CommunicationStepError(name, self.time, str(error)) from error
