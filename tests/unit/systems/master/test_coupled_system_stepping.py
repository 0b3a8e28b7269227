"""Laws of the master: orders, known numbers, going back, energy. The components are linear and stepped exactly."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from coupled_masses import K12, WIRING, K, exact, slaves
from representatives import by_night

from mb2fmu.systems.master.cosimulation_run import run_coupled_system
from mb2fmu.systems.master.coupled_system_stepping import CommunicationStepError, SystemStepper
from mb2fmu.systems.master.fmu_slaves import SlaveError, SlaveStepResult
from mb2fmu.systems.master.stability_forecast import LinearCoupledComponent
from mb2fmu.systems.port_and_bond_records import (
    CommunicationStepSettings,
    ComponentPort,
    PortLink,
    PowerBond,
    PowerBondSide,
    PowerBondVariable,
    SystemWiring,
)

HOLD = {"method": "jacobi", "order": 0}
LINES = {"method": "jacobi", "order": 1}
PARABOLAS = {"method": "jacobi", "order": 2}
ITERATED = {"method": "gauss-seidel", "order": 2, "passes": 30, "converged": 1e-12}


def marched(step: float, **options: object) -> tuple[float, float, float]:
    """Largest error of x1 over 1 s, x1(1), largest energy defect."""
    return _marched(step, tuple(options.items()))


@cache
def _marched(step: float, chosen: tuple[tuple[str, object], ...]) -> tuple[float, float, float]:
    rows, options = [], dict(chosen)
    run_coupled_system(
        WIRING,
        slaves(),
        CommunicationStepSettings(step=step, **options),
        1.0,
        lambda t, y, d, _: rows.append((t, y[0], d[0])),
    )
    table = np.array(rows)
    return float(np.max(np.abs(table[:, 1] - exact(table[:, 0])))), table[-1, 1], float(np.max(np.abs(table[:, 2])))


@pytest.mark.parametrize(
    ("options", "coarse", "fine", "order"),
    [
        *by_night((HOLD, 0.347, 0.0349, 1), (LINES, 3.94e-2, 6.12e-4, 2), (PARABOLAS, 7.03e-3, 1.47e-5, 3)),
        *by_night((ITERATED, 8.27e-4, 1.64e-6, 3)),
        (ITERATED, 8.27e-4, None, 3),
    ],
    ids=["hold", "lines", "parabolas", "iterated", "iterated, coarse"],
)
def test_errors_are_those_of_the_literature_and_fall_with_the_order(
    options: dict[str, object], coarse: float, fine: float | None, order: int
) -> None:
    """Outputs are read once their inputs are new; the past begins at the start (lower order in the first steps)."""
    first, last = (0.0025, 0.00125) if fine else (0.01, 0.0025)
    errors = {step: marched(step, **options)[0] for step in (0.01, first, last)}
    assert errors[0.01] == pytest.approx(coarse, rel=5e-3)
    if fine:
        assert errors[0.00125] == pytest.approx(fine, rel=5e-3)
    assert np.log2(errors[first] / errors[last]) / np.log2(first / last) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize(
    ("method", "end"), [*by_night(("gauss-seidel", 1.01993416)), ("jacobi", 1.02072823)], ids=["gauss-seidel", "jacobi"]
)
def test_held_inputs_end_at_the_known_numbers(method: str, end: float) -> None:
    """1.02072823 is what OMSimulator gives; it refreshes outputs too."""
    assert marched(0.001, method=method, order=0)[1] == pytest.approx(end, abs=5e-9)


def test_an_output_of_an_old_input_gives_the_three_times_larger_error() -> None:
    """Without closing, feedthrough outputs are one step old: the number of libcosim, planted here."""
    march = SystemStepper(WIRING, slaves(), CommunicationStepSettings(step=0.001, method="jacobi", order=0))
    march.initialize()
    closing = march.loop_solver

    def stale(**_: bool) -> None:
        closing.u[:] = closing.evaluate_links(np.arange(2))
        for k, slave in enumerate(march._slaves):
            slave.write_inputs(closing.u[closing.input_indices(k)])

    closing.make_consistent = stale  # type: ignore[method-assign]
    for _ in range(1000):
        march.step(0.001)
    assert closing.y[0] == pytest.approx(1.06181193, abs=5e-9)


def test_newton_passes_need_fewer_and_end_at_the_same() -> None:
    one = marched(0.01, **ITERATED)
    two = marched(0.01, **ITERATED, jacobian=True)
    assert two[1] == pytest.approx(one[1], abs=1e-9)
    counts = []
    for jacobian in (False, True):
        march = SystemStepper(WIRING, slaves(), CommunicationStepSettings(step=0.01, **ITERATED, jacobian=jacobian))
        march.initialize()
        counts.append(sum(march.step(0.01).iterations for _ in range(20)))
    assert counts[1] < counts[0]


def test_adapted_steps_keep_the_accuracy_and_are_as_many_as_it_needs() -> None:
    """The extrapolation's error is of order 3: a tenth of it needs 10^(1/3) as many steps."""
    counts = []
    for accuracy in (1e-2, 1e-3):
        errors: list[float] = []
        stepping = CommunicationStepSettings(step=0.002, **ITERATED, accuracy=accuracy)
        tally = run_coupled_system(
            WIRING, slaves(), stepping, 0.4, lambda t, y, *_, seen=errors: seen.append(abs(y[0] - exact(t)))
        )
        assert max(errors) < accuracy
        counts.append(tally.steps)
    assert counts[1] / counts[0] == pytest.approx(10 ** (1 / 3), rel=0.3)
    assert counts[0] < 0.4 / 0.002


@pytest.mark.parametrize("newton", [False, True])
def test_back_and_again_gives_the_same_bits(newton: bool) -> None:
    """One step of 2 H, back, two steps of H: as if the long one had never been made."""
    march = SystemStepper(WIRING, slaves(), CommunicationStepSettings(step=0.01, **ITERATED, jacobian=newton))
    march.initialize()
    march.step(0.01)
    kept = march.save()
    march.step(0.02)
    march.restore(kept)
    done = [march.step(0.01), march.step(0.01)]
    found = [
        *(each.initial_outputs for each in done),
        *(each.input_polynomials for each in done),
        march.loop_solver.y.copy(),
    ]
    plain = SystemStepper(WIRING, slaves(), CommunicationStepSettings(step=0.01, **ITERATED, jacobian=newton))
    plain.initialize()
    plain.step(0.01)
    done = [plain.step(0.01), plain.step(0.01)]
    wanted = [
        *(each.initial_outputs for each in done),
        *(each.input_polynomials for each in done),
        plain.loop_solver.y.copy(),
    ]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    ("options", "order"), [*by_night((HOLD, 1), ({"order": 0}, 1), (LINES, 2), (PARABOLAS, 3)), (ITERATED, 3)]
)
def test_energy_over_the_bond_errs_with_the_order_of_the_method(options: dict[str, object], order: int) -> None:
    coarse, fine = (marched(step, **options)[2] for step in (0.01, 0.0025))
    assert np.log2(coarse / fine) / 2 > order - 0.2


def test_the_energy_account_is_that_of_the_mass() -> None:
    """What the left mass has taken up over the bond is what its own energy has grown by."""
    parts = slaves()
    rows = []
    stepping = CommunicationStepSettings(step=0.00125, **ITERATED)
    run_coupled_system(
        WIRING,
        parts,
        stepping,
        0.4,
        lambda _, y, __, e: rows.append((0.5 * y[1] ** 2 + 0.5 * 4 * np.pi**2 * y[0] ** 2, e[0])),
    )
    energy, taken = np.array(rows).T
    assert np.max(np.abs(energy - energy[0] - taken)) < 1e-4 * np.ptp(energy)


@pytest.mark.parametrize(
    ("options", "within"),
    [
        *by_night(
            *((HOLD, 1e-3), (LINES, 0.02), (ITERATED, 0.01), ({**ITERATED, "accuracy": 1e-4}, 0.02)),
            ({**ITERATED, "order": 1}, 0.005),
        ),
        (PARABOLAS, 0.002),
        ({**ITERATED, "accuracy": 1e-3}, 0.02),
    ],
)
def test_the_defect_is_the_energy_that_the_system_has_really_gained(options: dict[str, object], within: float) -> None:
    """Also where passes have made inputs go through their outputs' points, and where steps were made again."""
    parts, rows = slaves(), []

    def record(_: float, y: np.ndarray, defects: np.ndarray, __: object) -> None:
        springs = K * (y[0] ** 2 + y[3] ** 2) + y[2] ** 2 / K12
        rows.append((0.5 * (y[1] ** 2 + parts[1].x[1] ** 2 + springs), defects[0]))

    tally = run_coupled_system(WIRING, parts, CommunicationStepSettings(step=0.0025, **options), 1.0, record)
    energy, defect = np.array(rows).T
    assert np.max(np.abs(energy - energy[0] + defect)) < within * np.max(np.abs(energy - energy[0]))
    assert tally.rejected_steps or "accuracy" not in options


def test_slopes_leave_the_outputs_as_they_are() -> None:
    """The account holds the array: what was moved by 1e-6 for a slope stayed in it, as energy at any step."""
    march = SystemStepper(WIRING, slaves(), CommunicationStepSettings(step=0.01, **ITERATED))
    march.initialize()
    march.step(0.01)
    held, before = march.loop_solver.y, march.loop_solver.y.copy()
    assert march.feedthrough_derivatives(sorted(WIRING.feedthrough)) == pytest.approx([-K12])
    assert held.tobytes() == before.tobytes()
    assert march.loop_solver.y is held


def held_by_a_line(delay: float, mass: float = 1.0) -> tuple[SystemWiring, list[LinearCoupledComponent]]:
    """The two masses, their spring replaced by a line of its stiffness: F = Z w + c at either end."""
    Z = K12 * delay
    sides = [
        LinearCoupledComponent(
            np.array([[0.0, 1.0], [-K / m, -Z / m]]), np.array([[0.0], [-sign / m]]),
            np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0 * Z * sign], [0.0, Z]]),
            np.array([[0.0], [0.0], [1.0], [sign]]), np.array([x, 0.0]),
        )
        for sign, x, m in ((1.0, 1.0, mass), (-1.0, 0.0, 1.0))
    ]  # fmt: skip
    outputs = tuple(ComponentPort(side, name, k) for side in (0, 1) for k, name in enumerate("xvgf"))
    power = tuple(
        PowerBondSide(k, PowerBondVariable("output", 4 * k + 3), PowerBondVariable("output", 4 * k + 1), -1.0)
        for k in (0, 1)
    )  # fmt: skip
    links = (PortLink(6, 0, delay=delay, start=K12), PortLink(2, 1, delay=delay, start=K12))
    through = frozenset({(0, 2), (0, 3), (1, 6), (1, 7)})
    inputs = (ComponentPort(0, "c", 0), ComponentPort(1, "c", 0))
    return SystemWiring(("left", "right"), inputs, outputs, links, through, (PowerBond("line", power),)), sides


@pytest.mark.parametrize("parts", [1, 2, *by_night(3)])
def test_a_line_errs_with_the_second_order_of_its_delay(parts: int) -> None:
    """Its parasitic inertia is k T²; over a whole period it makes or loses energy of third order."""
    errors, defects = [], []
    for delay in (1 / 128, 1 / 256):
        wiring, sides = held_by_a_line(delay)
        rows: list[tuple[float, float, float]] = []
        stepping = CommunicationStepSettings(step=delay / parts, method="jacobi", order=2)
        tally = run_coupled_system(
            wiring, sides, stepping, 1.0, lambda t, y, d, _, seen=rows: seen.append((t, y[0], d[0]))
        )
        assert "delays" in tally.notes[0]
        t, x, defect = np.array(rows).T
        errors.append(np.max(np.abs(x - exact(t))))
        defects.append(abs(defect[-1]))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.05)
    assert np.log2(defects[0] / defects[1]) > 2.9


@pytest.mark.parametrize("mass", [1e-6, *by_night(1e-3, 1e-2, 1.0), 1e3])
def test_a_line_carries_any_ratio_of_masses(mass: float) -> None:
    """No step is too long for it: what arrives is known. Forces that are extrapolated instead explode."""
    wiring, sides = held_by_a_line(1 / 256, mass)
    largest = []
    run_coupled_system(
        wiring,
        sides,
        CommunicationStepSettings(step=1 / 256, method="jacobi", order=2),
        2.0,
        lambda _, y, *__: largest.append(y[0]),
    )
    assert np.max(np.abs(largest)) < 1.1


def test_what_arrives_late_was_given_a_delay_ago() -> None:
    wiring, sides = held_by_a_line(0.02)
    march = SystemStepper(wiring, sides, CommunicationStepSettings(step=0.008))
    march.initialize()
    given, seen = [march.loop_solver.y[2]], [march.loop_solver.u[1]]
    for _ in range(8):
        done = march.step(0.008)
        assert done.size == pytest.approx(0.008)
        given.append(march.loop_solver.y[2])
        seen.append(march.loop_solver.u[1])
    assert seen[:3] == pytest.approx([K12] * 3)
    assert seen[3:] == pytest.approx(np.interp(0.008 * np.arange(3, 9) - 0.02, 0.008 * np.arange(9), given))
    assert march.step(0.05).size == pytest.approx(0.02)


class Failing:
    """A slave that fails at a time."""

    def __init__(self, slave: object, time: float) -> None:
        self._slave, self._time = slave, time

    def __getattr__(self, name: str) -> object:
        return getattr(self._slave, name)

    def do_step(self, time: float, size: float, course: np.ndarray) -> SlaveStepResult:
        if time >= self._time:
            raise SlaveError("fmi2DoStep returned discard")
        return self._slave.do_step(time, size, course)  # type: ignore[attr-defined, no-any-return]


def test_a_failure_names_component_and_time_and_keeps_what_was_recorded() -> None:
    rows: list[float] = []
    parts = slaves()
    tally = run_coupled_system(
        WIRING,
        [parts[0], Failing(parts[1], 0.0495)],
        CommunicationStepSettings(step=0.01),
        1.0,
        lambda t, *_: rows.append(t),
    )
    assert tally.failure == {"component": "right", "time": pytest.approx(0.05), "what": "fmi2DoStep returned discard"}
    assert rows == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04, 0.05])


class Divides(LinearCoupledComponent):
    """A slave whose output is one by its input: there is none at zero."""

    def __init__(self) -> None:
        super().__init__(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0)), np.zeros((1, 1)))

    def read_outputs(self) -> np.ndarray:
        if self.u[0] == 0.0:
            raise SlaveError("its output is infinite")
        return 1.0 / self.u


@pytest.mark.parametrize(("start", "fails"), [(2.0, False), (0.0, True)])
def test_outputs_are_first_read_of_the_start_values_of_inputs(start: float, fails: bool) -> None:
    """At zeros there may be none: orientations, lengths, ratios; a loop has its solution near the start values."""
    ports = [ComponentPort(k, name, k) for k, name in enumerate("ab")]
    links = (PortLink(1, 0, start=start), PortLink(0, 1, start=start))
    wiring = SystemWiring(("one", "other"), tuple(ports), tuple(ports), links, frozenset({(0, 0)}))
    other = LinearCoupledComponent(
        -np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.zeros((1, 1)), x=np.array([4.0])
    )
    march = SystemStepper(wiring, [Divides(), other], CommunicationStepSettings(step=0.1))
    if fails:
        with pytest.raises(CommunicationStepError, match="infinite"):
            march.initialize()
    else:
        march.initialize()
        assert march.loop_solver.y == pytest.approx([0.25, 4.0])


class Early:
    """A slave that returns early at a time, with an event, once."""

    def __init__(self, slave: object, time: float) -> None:
        self._slave, self._time, self.settled = slave, time, 0
        self.capabilities = type(slave.capabilities)(
            saves_state=True, interpolates_inputs=True, event_mode=True, early_return=True
        )  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._slave, name)

    def do_step(self, time: float, size: float, course: np.ndarray) -> SlaveStepResult:
        if time < self._time - 1e-12 and time + size > self._time + 1e-12:
            self._slave.do_step(time, self._time - time, course)  # type: ignore[attr-defined]
            return SlaveStepResult(self._time, needs_event_mode=True)
        done: SlaveStepResult = self._slave.do_step(time, size, course)  # type: ignore[attr-defined]
        return SlaveStepResult(done.end_time, needs_event_mode=abs(time + size - self._time) < 1e-12)

    def handle_events(self) -> float | None:
        self.settled += 1
        return None


def test_all_components_meet_where_one_returns_early() -> None:
    parts = slaves()
    early = Early(parts[1], 0.0333)
    times: list[float] = []
    errors: list[float] = []
    tally = run_coupled_system(
        WIRING, [parts[0], early], CommunicationStepSettings(step=0.01, **ITERATED), 0.1,
        lambda t, y, *_: (times.append(t), errors.append(abs(y[0] - exact(t)))),
    )  # fmt: skip
    assert times[:6] == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.0333, 0.04])
    assert (tally.early_returns, tally.events, early.settled) == (1, 1, 1)
    assert max(errors) < 5e-3


class Blind(Early):
    """A slave that does not see its event again when it comes to that instant once more."""

    def do_step(self, time: float, size: float, course: np.ndarray) -> SlaveStepResult:
        done = super().do_step(time, size, course)
        return done if done.end_time < time + size - 1e-12 else SlaveStepResult(done.end_time)


def test_an_event_that_is_not_seen_again_is_handled_all_the_same() -> None:
    """Else the FMU handles it unseen in the next step, and inputs go on along parabolas across it."""
    parts = slaves()
    blind = Blind(parts[1], 0.0333)
    tally = run_coupled_system(
        WIRING, [parts[0], blind], CommunicationStepSettings(step=0.01, **ITERATED), 0.1, lambda *_: None
    )
    assert (tally.early_returns, tally.events, blind.settled) == (1, 1, 1)


class AtOnce(Early):
    """A slave that has events before it moves, from a time on, until it has had so many."""

    def __init__(self, slave: object, time: float, events: int, *, event: bool = True) -> None:
        super().__init__(slave, time)
        self._events, self._event = events, event

    def do_step(self, time: float, size: float, course: np.ndarray) -> SlaveStepResult:
        if time >= self._time and self.settled < self._events:
            return SlaveStepResult(time, needs_event_mode=self._event)
        done: SlaveStepResult = self._slave.do_step(time, size, course)  # type: ignore[attr-defined]
        return done


def test_an_event_before_a_step_is_handled_where_it_is() -> None:
    """The other one, which had stepped already, goes back; the step is made then, from this instant anew."""
    parts = slaves()
    late = AtOnce(parts[1], 0.0399, 2)
    rows: list[tuple[float, float]] = []
    run_coupled_system(
        WIRING, [parts[0], late], CommunicationStepSettings(step=0.01, **ITERATED), 0.1,
        lambda t, y, *_: rows.append((t, abs(y[0] - exact(t)))),
    )  # fmt: skip
    times, errors = np.array(rows).T
    assert times == pytest.approx(0.01 * np.arange(11))
    assert late.settled == 2
    assert max(errors) < 5e-3


@pytest.mark.parametrize(("event", "words"), [(True, "events follow one another"), (False, "stops without an event")])
def test_who_never_goes_on_is_named(event: bool, words: str) -> None:
    parts = slaves()
    tally = run_coupled_system(
        WIRING,
        [parts[0], AtOnce(parts[1], 0.0399, 10**6, event=event)],
        CommunicationStepSettings(step=0.01),
        0.1,
        lambda *_: None,
    )
    assert tally.failure is not None
    assert words in tally.failure["what"]
    assert tally.failure["time"] == pytest.approx(0.04)


def test_who_cannot_go_back_cannot_meet_one_that_returns_early() -> None:
    parts = slaves()
    parts[0].capabilities = type(parts[0].capabilities)(saves_state=False)
    march = SystemStepper(WIRING, [parts[0], Early(parts[1], 0.005)], CommunicationStepSettings(step=0.01))
    march.initialize()
    with pytest.raises(CommunicationStepError, match="cannot go back"):
        march.step(0.01)
