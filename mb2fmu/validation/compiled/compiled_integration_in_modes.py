"""``CompiledIntegrationInModes``: steps of equations with switches between events, in C.

The twin of ``event_integration`` and ``mode_equations`` where no two of the things that hold hold the same motion, and
no signs hold beside latches. Events of equations without latches (samples of a controller, impacts, contacts that stick
and slide, dry friction) are settled in C, too; whatever C cannot do is left to the twin.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_structures import array_address
from mb2fmu.validation.compiled.compiled_equations import CompiledEquations

Floats = npt.NDArray[np.float64]
SwitchKind = Literal["sign", "truth", "truth at events", "counter", "clock"]
_KINDS: tuple[SwitchKind, ...] = ("sign", "truth", "truth at events", "counter", "clock")  # as enum switch_kind


_RECORDS = 256
"""How many events are recorded before they are passed on."""


class EventRole(enum.IntFlag):
    """What an event is, as ``enum event_role``."""

    NONE = 0
    OF_CONTACT = 1
    DEFERRED = 2
    IMPACT = 4
    FRICTION = 8


@dataclass(frozen=True, slots=True)
class ContactLayout:
    """Contacts at events, for C; the fields of ``struct contacts``.

    Attributes:
        is_sequential: Impacts follow one another.
        first_output: Number of the output that is the first quantity of contacts.
        friction_contacts: Contact of each friction.
        follow_poisson: Of each contact: Poisson's law of restitution, else Newton's.
        resting_states: Of each contact.
        sliding_states: Of each friction.
        impact_count_states: Of each contact; none without friction.
        mode_change_state: What counts changes of modes; -1 without friction.
    """

    is_sequential: bool
    first_output: int
    friction_contacts: Sequence[int]
    follow_poisson: Sequence[bool]
    resting_states: Sequence[int]
    sliding_states: Sequence[int]
    impact_count_states: Sequence[int]
    mode_change_state: int


@dataclass(frozen=True, slots=True)
class EventAssignmentLayout:
    """What events of a model set, for equations without latches.

    Attributes:
        first_condition: Number of the output that is the first condition; the values that events set follow these.
        value_counts: How many values each event sets.
        targets: States that the first values of each event set; others are no states.
        roles: Of each event.
        conditions_know_impacts: Whether conditions depend on what impacts bring about at their instant.
        contacts: None where there are none.
    """

    first_condition: int
    value_counts: tuple[int, ...]
    targets: tuple[tuple[int, ...], ...]
    roles: tuple[EventRole, ...]
    conditions_know_impacts: bool
    contacts: ContactLayout | None


@dataclass(frozen=True, slots=True)
class CompiledEventSettlingLimits:
    """How far C may go by itself.

    Attributes:
        longest_step: In s.
        instant: Time within which events count as simultaneous, s.
        count: How many events it may settle.
        recorded: Whether they are recorded.
    """

    longest_step: float
    instant: float
    count: int
    recorded: bool


@dataclass(frozen=True, slots=True)
class CompiledEventLog:
    """Events that C has settled, in their order.

    Attributes:
        times: In s.
        switches: Numbers of the switches that came first.
        fired: Number of the first event of the model that happened at each; -1: none.
        round_off: Whether the switch's margin has been zero all the time.
        modes: Before and after, shape (n, 2, switches).
        conditions: Before and after, shape (n, 2, events).
        y: (x, W) before and after, shape (n, 2, n_x + 1).
    """

    times: list[float]
    switches: list[int]
    fired: list[int]
    round_off: npt.NDArray[np.bool_]
    modes: Floats
    conditions: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class CompiledStepResult:
    """Where steps in C have ended.

    Attributes:
        time: In s.
        y: (x, W) there.
        step_size: Of the next step, s.
        evaluations: Evaluations of y' that were spent.
        event_margins: At an event that is not settled: margins at the start of its step, at the event, and a thousandth
            and a half of the last step before it, shape (4, switches). None: it ended otherwise.
        is_stopped: Nothing but room for records or the end of the span stopped it.
        values: Modes there, shape (switches,).
        conditions: Of the model's events, as they were last, shape (events,).
        event_count: How many events were settled.
        last_event_time: Of these, s; NaN: there was none.
        events: Those that were recorded; None: none.
    """

    time: float
    y: Floats
    step_size: float
    evaluations: int
    event_margins: Floats | None
    is_stopped: bool
    values: Floats
    conditions: Floats
    event_count: int
    last_event_time: float
    events: CompiledEventLog | None


class CompiledIntegrationInModes:
    """Compiled equations in given modes, for use in one thread.

    Args:
        equations: Their inputs are those of the model, then modes of all switches; their outputs those of the model,
            then surfaces, limits and rates of all switches.
        kinds: Of the switches.
        sizes: What surfaces are divided by, shape (switches,).
        inputs: Number of the model's inputs.
        outputs: Number of the model's outputs.
        counts: Numbers of all inputs and of all outputs.
        rate_outputs: Numbers of the outputs that are zero where something holds: of signs, contacts, rows of latches.
        probes: Forces by which the effect of each of these is measured, 1 of signs; adapted by C, too.
        events: What events set; None: others settle them.

    ``sizes`` are read by C wherever they lie: what changes them in place changes margins.
    """

    def __init__(
        self,
        equations: CompiledEquations,
        kinds: Sequence[SwitchKind],
        sizes: Floats,
        inputs: int,
        outputs: int,
        counts: tuple[int, int],
        rate_outputs: npt.NDArray[np.int64],
        probes: Floats,
        events: EventAssignmentLayout | None,
    ) -> None:
        self._equations, n = equations, len(kinds)
        self._kinds = np.array([_KINDS.index(kind) for kind in kinds], dtype=np.int64)
        self.sizes, self._values = np.ascontiguousarray(sizes, dtype=np.float64), np.zeros(n)
        self._margins, self._r = np.zeros((6, n)), np.zeros((2, counts[0]))
        self._x_dot, self._outputs = np.zeros(equations.n_x), np.zeros(counts[1])
        self._time, self._y = np.zeros(2), np.zeros(equations.n_x + 1)
        most_held = counts[0] - inputs
        self._held, self._rate_outputs = np.zeros(most_held, dtype=np.int64), rate_outputs
        self._probes = probes
        self._effects, self._may_hold = np.zeros((3 * most_held + 8) * most_held), np.zeros(most_held, dtype=np.int64)
        self._rest_limits = np.zeros(n)
        self._parameters: tuple[Sequence[float], Floats] = ((), np.zeros(0))
        self._scales, self._inputs = np.zeros(equations.n_x + 1), inputs
        self._modes = c_structures.SwitchModesStruct(
            switches=n, inputs=inputs, first=outputs, kinds=array_address(self._kinds),
            sizes=array_address(self.sizes), values=array_address(self._values), r=array_address(self._r[1]),
            x_dot=array_address(self._x_dot), outputs=array_address(self._outputs),
            margins=array_address(self._margins[0]), limits=array_address(self._margins[1]),
            seen=array_address(self._margins[2:]),
            held=array_address(self._held), rates=array_address(self._rate_outputs), probes=array_address(self._probes),
            effects=array_address(self._effects), may_hold=array_address(self._may_hold),
            rest_limits=array_address(self._rest_limits),
        )  # fmt: skip
        self._integration = c_structures.TrajectoryIntegrationStruct(
            time=array_address(self._time), points=2,
            inputs=array_address(self._r[0]), scales=array_address(self._scales),
            modes=ctypes.addressof(self._modes),
        )  # fmt: skip
        self._past, self._records = np.zeros(0), np.zeros((0, 0))
        self._contacts: c_structures.ContactsStruct | None = None
        self._settling = c_structures.EventSettlingStruct() if events is None else self._set_up_settling(events)

    def _set_up_settling(self, events: EventAssignmentLayout) -> c_structures.EventSettlingStruct:
        """Return the structure by which C settles events; the journey refers to it."""
        n, count, n_y = len(self._values), len(events.value_counts), len(self._y)
        begin = np.concatenate([[0], np.cumsum(events.value_counts)]).astype(np.int64)
        sets, targets = np.zeros(count, dtype=np.int64), np.zeros(begin[-1], dtype=np.int64)
        for k, places in enumerate(events.targets):
            sets[k] = len(places)
            targets[begin[k] : begin[k] + len(places)] = places
        self._past, self._records = np.zeros(count), np.zeros((_RECORDS, 4 + 2 * (n + count + n_y)))
        roles = np.array(events.roles, dtype=np.int64)
        contacts = self._contacts = _make_contacts(events.contacts) if events.contacts else None
        self._settling_arrays = begin, sets, targets, roles, np.zeros(3 * n + count + 3 * n_y)
        settling = c_structures.EventSettlingStruct(
            events=count, conditions=events.first_condition, knows_impacts=int(events.conditions_know_impacts),
            contacts=ctypes.addressof(contacts) if contacts else None, roles=array_address(roles),
            begin=array_address(begin), sets=array_address(sets), targets=array_address(targets),
            values=array_address(self._values), inputs=array_address(self._r[0]),
            past=array_address(self._past), records=array_address(self._records),
            spare=array_address(self._settling_arrays[-1]),
        )  # fmt: skip
        self._integration.settling = ctypes.addressof(settling)
        return settling

    def set_modes(
        self,
        values: Floats,
        r: Sequence[float],
        prepared: Sequence[float],
        late: float,
        held_inputs: Sequence[int] = (),
        past_conditions: Floats | None = None,
        set_inputs: Sequence[int] = (),
    ) -> None:
        """Set modes, shape (switches,), the model's inputs, parameters, by what all margins are larger, and what holds.

        ``past_conditions``: of the model's events, shape (events,), to settle events. ``set_inputs``: places of inputs
        that are 1, from their end.
        """
        self._values[:] = values
        if past_conditions is not None and len(self._past):
            self._past[:] = past_conditions
        inputs, n = self._r[0], self._inputs
        inputs[:n], inputs[n : n + len(values)], inputs[n + len(values) :] = r, values, 0.0
        if set_inputs:
            inputs[list(set_inputs)] = 1.0
        self._modes.held_count, self._modes.late = len(held_inputs), late
        self._held[: len(held_inputs)] = held_inputs
        if self._parameters[0] is not prepared or not isinstance(prepared, tuple):
            self._parameters = (prepared, np.array(prepared, dtype=np.float64))
        self._integration.parameters = array_address(self._parameters[1])

    def compute_margins(self, t: float, x: Floats) -> Floats | None:
        """Return how far each mode is from being wrong at t in s, shape (switches,); None where C cannot say."""
        margins, x = np.zeros(len(self._values)), np.array(x, dtype=np.float64)
        status = self._equations.library.reference_margins(
            self._equations.address, ctypes.addressof(self._modes), t, array_address(x), array_address(self._r[0]),
            array_address(self._parameters[1]), array_address(margins),
        )  # fmt: skip
        return margins if status == c_structures.STATUS_OK else None

    def find_holding_values(self, t: float, x: Floats) -> Floats | None:
        """Return mode values and holding forces at t in s, in the order of the own inputs; None where C finds none."""
        x = np.array(x, dtype=np.float64)
        status = self._equations.library.reference_hold(
            self._equations.address, ctypes.addressof(self._modes), t, array_address(x), array_address(self._r[0]),
            array_address(self._parameters[1]),
        )  # fmt: skip
        return self._r[1, self._inputs :].copy() if status == c_structures.STATUS_OK else None

    def find_contact_results(self, t: float, x: Floats, *, hit: bool, change: bool) -> Floats | None:
        """Return the results of contacts at t in s, as ``ContactEquations.impact_unknowns``; None where C finds none.

        ``hit``: there is an impact; ``change``: modes of friction change.
        """
        contacts, x = self._contacts, np.array(x, dtype=np.float64)
        assert contacts is not None
        self._r[1] = self._r[0]
        status = self._equations.library.reference_contact_results(
            self._equations.address, ctypes.addressof(self._modes), ctypes.addressof(contacts), t, array_address(x),
            array_address(self._r[0]), array_address(self._parameters[1]), hit, change,
        )  # fmt: skip
        first = self._inputs + len(self._values) + contacts.count + contacts.frictions
        return self._r[1, first:].copy() if status == c_structures.STATUS_OK else None

    def settle(self, t: float, x: Floats, switch: int) -> tuple[Floats, Floats, Floats] | None:
        """Return states, modes and conditions behind the event of a switch at t in s; None where C finds none."""
        y = np.append(x, 0.0)
        status = self._equations.library.reference_settle(
            self._equations.address, ctypes.addressof(self._integration), t, switch, array_address(y)
        )
        return (y[:-1], self._values.copy(), self._past.copy()) if status == c_structures.STATUS_OK else None

    def integrate(
        self,
        span: tuple[float, float],
        y: Floats,
        step: float,
        tolerances: tuple[float, Floats],
        *,
        parts: int,
        projected: bool,
        behind: bool,
        budget: int,
        limits: CompiledEventSettlingLimits,
    ) -> CompiledStepResult:
        """Integrate toward the end of ``span``, until others must settle an event, or something is wrong.

        Args:
            span: Begin and end, s.
            y: (x, W) at the beginning.
            step: Size of the step before, s; infinite: to be chosen.
            tolerances: Relative and absolute of each (x, W).
            parts: At least so many steps.
            projected: Every step ends on the constraints.
            behind: An event is at the beginning.
            budget: Evaluations that may be spent.
            limits: Of what it settles by itself.
        """
        self._time[:], self._y[:], self._scales[:] = span, y, tolerances[1] / tolerances[0]
        integration = self._integration
        integration.tolerance = integration.relative = tolerances[0]
        integration.budget, integration.spent, integration.step = budget, 0, step
        integration.parts, integration.projected, self._modes.behind = parts, int(projected), int(behind)
        settling = self._settling
        settling.longest, settling.instant, settling.left = limits.longest_step, limits.instant, limits.count
        settling.capacity, settling.count, settling.last = _RECORDS * limits.recorded, 0, np.nan
        status = self._equations.library.reference_integrate_in_modes(
            self._equations.address, ctypes.addressof(integration), array_address(self._y)
        )
        event_margins = self._margins[2:].copy() if status == c_structures.STATUS_EVENT else None
        return CompiledStepResult(
            integration.stuck, self._y.copy(), integration.step, integration.spent, event_margins,
            status == c_structures.STATUS_OK, self._values.copy(), self._past.copy(), limits.count - settling.left,
            settling.last,
            self._read_records(self._records[: settling.count].copy()) if settling.count else None,
        )  # fmt: skip

    def _read_records(self, records: Floats) -> CompiledEventLog:
        """Return events from what C wrote of them, shape (n, ...)."""
        n, count = len(self._values), len(self._past)
        sides = records[:, 4:].reshape(len(records), 2, -1)
        switches, fired = records[:, 1:3].T.astype(np.int64).tolist()
        return CompiledEventLog(
            records[:, 0].tolist(), switches, fired, records[:, 3] != 0.0,
            sides[..., :n], sides[..., n : n + count], sides[..., n + count :],
        )  # fmt: skip


def _make_contacts(layout: ContactLayout) -> c_structures.ContactsStruct:
    """Return the structure of contacts."""
    tables = {
        "rough": layout.friction_contacts, "poisson": layout.follow_poisson, "resting": layout.resting_states,
        "sliding": layout.sliding_states, "impacts": layout.impact_count_states,
    }  # fmt: skip
    arrays = {name: np.array(table, dtype=np.int64) for name, table in tables.items()}
    contacts = c_structures.ContactsStruct(
        count=len(layout.resting_states), frictions=len(layout.sliding_states), sequential=int(layout.is_sequential),
        first=layout.first_output, changes=layout.mode_change_state,
        **{name: array_address(array) for name, array in arrays.items()},
    )  # fmt: skip
    contacts.tables = tuple(arrays.values())
    return contacts
