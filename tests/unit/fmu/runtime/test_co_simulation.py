"""Communication steps: exact, transactional, in time; inputs along lines, output derivatives, intermediate updates."""

import contextlib
import math

import numpy as np
import pytest
from native.fmi import CS, DISCARD, ERROR, ME, OK, WARNING, bits
from scipy.integrate import solve_ivp


def solution(times, force=lambda _t: 0.0, mass=2.0, stiffness=8.0, damping=0.5):
    """x and v at times, far more exact than what is tested."""

    def rhs(t, y):
        return [y[1], (force(t) - stiffness * y[0] - damping * y[1] + 1.0 / (1.0 + t * t)) / mass]

    found = solve_ivp(rhs, (0.0, times[-1]), [1.0, 0.0], method="DOP853", t_eval=times, rtol=1e-13, atol=1e-14)
    return found.y.T


@pytest.mark.parametrize(("solver", "tolerance"), [(1, 1e-6), (2, 1e-5), (3, 0.05), (4, 1e-6)])
def test_every_solver_moves_the_oscillator(fresh, solver, tolerance):
    unit = fresh(CS)
    assert unit.set_choice("solver", solver) == OK
    unit.start(tolerance=1e-8)
    steps, size = 40, 0.05
    for step in range(steps):
        assert unit.step(step * size, size) == OK
    assert unit.get("x", "v")[1] == pytest.approx(solution([steps * size])[0], abs=tolerance)


@pytest.mark.parametrize("solver", [2, 3])
def test_the_step_of_solvers_with_fixed_steps_is_a_parameter(fresh, solver):
    """Communication steps of 0.5 s in internal ones of 0.05 s are the same motion as communication steps of 0.05 s."""
    ends = []
    for size, internal in ((0.5, 0.05), (0.05, 0.0), (0.5, 0.0)):
        unit = fresh(CS)
        assert unit.set_choice("solver", solver) == OK
        unit.start(solver_step=internal)
        assert unit.value("solver_step") == internal
        for step in range(round(2.0 / size)):
            assert unit.step(size * step, size) == OK
        ends.append(unit.get("x", "v")[1])
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)
    assert ends[0] != pytest.approx(ends[2], rel=1e-3)


def test_the_step_of_solvers_with_fixed_steps_is_none_below_zero_and_fixed(fresh):
    unit = fresh(CS)
    assert unit.set("solver_step", -0.1) == ERROR
    assert "solver_step would be -0.1 s; it must not be negative" in unit.log[-1].text
    assert fresh(CS).start().set("solver_step", 0.1) == ERROR


def test_steps_that_begin_or_end_elsewhere_are_refused(fresh):
    for point, size, reason in (
        (0.0, 0.0, "must be positive"),
        (0.0, -0.1, "must be positive"),
        (0.0, math.nan, "is not finite"),
        (0.0, math.inf, "is not finite"),
        (math.nan, 0.1, "is not finite"),
        (0.5, 0.1, "begins at 0.5 s, but the FMU is at 0 s"),
        (0.0, 1.5, "past the stop time 1 s"),
    ):
        unit = fresh(CS).start(stop=1.0)
        before = unit.get("x", "v", "time")
        assert unit.step(point, size) == ERROR
        assert reason in unit.log[-1].text
        assert unit.get("x", "v", "time") == before


def test_the_stop_time_is_reached_in_spite_of_round_off(fresh):
    unit = fresh(CS).start(stop=1.0)
    time = 0.0
    for _ in range(10):
        assert unit.step(time, 0.1) == OK
        time += 0.1
    assert time != 1.0
    assert unit.value("time") == 1.0
    assert unit.step(time, 0.1) == ERROR


def test_time_is_the_exact_sum_of_the_steps(fresh):
    unit = fresh(CS)
    assert unit.set_choice("solver", 3) == OK
    unit.start()
    time = 0.0
    for _ in range(20_000):
        assert unit.step(time, 0.1) == OK
        time += 0.1
    assert unit.value("time") == 2000.0 != time


def test_a_step_that_cannot_be_made_changes_nothing_and_a_smaller_one_follows(fresh):
    unit, twin = fresh(CS).start(force=50.0), fresh(CS).start(force=50.0)
    assert unit.step(0.0, 0.25) == twin.step(0.0, 0.25) == OK
    before = unit.get("x", "v", "time", "load", "force")
    assert unit.step(0.25, 10.0) == DISCARD
    assert unit.log[-1].status == DISCARD
    assert unit.log[-1].category == "logStatusDiscard"
    assert "the wall is singular" in unit.log[-1].text
    assert unit.get("x", "v", "time", "load", "force") == before
    assert unit.step(0.25, 0.25) == twin.step(0.25, 0.25) == OK
    assert bits(unit.get("x", "v", "time")[1]) == bits(twin.get("x", "v", "time")[1])


def beyond_the_wall(unit):
    """Explicit Euler steps lead there: x = 19.5 at 0.1 s."""
    assert unit.enter() == OK
    assert unit.set_choice("solver", 3) == OK
    assert unit.set("x", 0.0, "v", 200.0) == OK
    assert unit.call("ExitInitializationMode") == OK
    assert unit.step(0.0, 0.1) == OK
    return unit


def test_a_fmu_that_has_no_motion_at_its_start_is_not_initialized(fresh, kind):
    """Whatever the importer tries, no step could be made: Discard for ever would make it try for ever."""
    unit = fresh(kind)
    assert unit.enter() == OK
    assert unit.set("x", 20.0) == OK
    assert unit.call("ExitInitializationMode") == ERROR
    assert "the wall is singular" in unit.log[-2].text
    assert "cannot move with these parameters and start values" in unit.log[-1].text


def test_a_slope_that_is_no_number_is_not_begun_with(fresh, kind):
    unit = fresh(kind)
    assert unit.enter() == OK
    assert unit.set("x", -1e200, "stiffness", 1e200) == OK
    assert unit.call("ExitInitializationMode") == ERROR
    assert any("the derivative of v would be" in message.text for message in unit.log)


def test_what_does_not_exist_can_be_asked_for_after_a_step_that_could_not_be_made(fresh):
    """Beyond the wall there are no accelerations; reading them there takes nothing from the unit."""
    unit = beyond_the_wall(fresh(CS))
    if fresh.fmi == 2:  # Discard is no answer of reading functions of Co-Simulation
        assert beyond_the_wall(fresh(CS)).get("der(v)")[0] == ERROR
    before = unit.value("x")
    assert before > 10.0
    assert unit.step(0.1, 0.1) == DISCARD
    answer = WARNING if fresh.fmi == 2 else DISCARD
    status, (x, slope, load) = unit.get("x", "der(v)", "load")
    assert status == answer
    assert unit.log[-1].status == answer
    assert "the wall is singular" in unit.log[-1].text
    assert x == before
    assert math.isnan(slope)
    assert math.isnan(load) or fresh.fmi == 3
    for status, (value,) in (unit.slopes("load"), unit.directional(["load"], ["x"], [1.0])):
        assert status == answer
        assert math.isnan(value)
    assert unit.get("x", "tip") == (OK, [before, before * before + 0.1])
    assert unit.step(0.1, 0.05) == DISCARD
    assert unit.call("Terminate") == OK
    assert unit.get("der(v)")[0] == answer
    assert unit.call("Reset") == OK


def test_fmi2_tells_the_last_successful_time(fresh):
    import ctypes as c

    if fresh.fmi == 3:
        unit = fresh(CS).start(force=50.0)
        assert unit.step3(0.0, 0.25) == (OK, False, False, False, 0.25)
        assert unit.step3(0.25, 10.0) == (DISCARD, False, False, False, 0.25)
        return
    unit = fresh(CS).start(force=50.0)
    last, status, ended = c.c_double(9.0), c.c_int(9), c.c_int(9)
    assert unit.step(0.0, 0.25) == OK
    assert unit.step(0.25, 10.0) == DISCARD
    assert unit.call("GetRealStatus", 2, c.byref(last)) == OK
    assert unit.call("GetStatus", 0, c.byref(status)) == OK
    assert unit.call("GetBooleanStatus", 3, c.byref(ended)) == OK
    assert (last.value, status.value, ended.value) == (0.25, DISCARD, 0)
    assert unit.call("GetRealStatus", 0, c.byref(last)) == DISCARD
    assert unit.call("GetStringStatus", 1, c.byref(c.c_char_p())) == DISCARD
    assert unit.call("GetIntegerStatus", 0, c.byref(c.c_int())) == DISCARD


def test_inputs_along_lines(fresh):
    if fresh.fmi == 3:
        return
    unit = fresh(CS).start()
    slope, size = 3.0, 0.5
    assert unit.set_slope("force", slope) == OK
    for step in range(6):
        assert unit.step(step * size, size) == OK
        assert unit.value("force") == slope * (step + 1) * size
    assert unit.get("x", "v")[1] == pytest.approx(solution([3.0], lambda t: slope * t)[0], abs=1e-6)


@pytest.mark.parametrize(("name", "value", "order"), [("x", 1.0, 1), ("force", 1.0, 2), ("force", 1.0, 0),
                                                      ("force", math.nan, 1), (99, 1.0, 1)])  # fmt: skip
def test_input_derivatives_that_are_none(fresh, name, value, order):
    if fresh.fmi == 2:
        assert fresh(CS).start().set_slope(name, value, order) == ERROR


@pytest.mark.parametrize("name", ["x", "tip", "loss", "load"])
def test_output_derivatives_are_the_slopes_of_the_outputs(fresh, name):
    slope, h = (2.0 if fresh.fmi == 2 else 0.0), 1e-4
    values = []
    for size in (1.0 - h, 1.0, 1.0 + h):
        unit = fresh(CS).start(tolerance=1e-12, force=0.5)
        if slope:
            assert unit.set_slope("force", slope) == OK
        assert unit.step(0.0, size) == OK
        values.append(unit.value(name))
        if size == 1.0:
            status, found = unit.slopes(name)
            assert status == OK
    assert found[0] == pytest.approx((values[2] - values[0]) / (2.0 * h), rel=1e-5, abs=1e-6)


def test_output_derivatives_of_other_orders_and_variables(fresh):
    assert fresh(CS).start().slopes("x", order=2)[0] == ERROR
    assert fresh(CS).start().slopes("x", order=0)[0] == ERROR
    assert fresh(CS).start().slopes("v")[0] == ERROR
    unit = fresh(CS)
    assert unit.enter() == OK
    assert unit.slopes("x")[0] == ERROR  # not in Initialization Mode


def test_tunable_parameters_between_steps(fresh):
    unit = fresh(CS).start()
    assert unit.step(0.0, 0.5) == OK
    assert unit.set("mass", 4.0) == OK
    assert unit.value("omega") == math.sqrt(2.0)
    x, v = unit.get("x", "v")[1]
    assert unit.step(0.5, 0.5) == OK

    def rhs(t, y):
        return [y[1], (-8.0 * y[0] - 0.5 * y[1] + 1.0 / (1.0 + t * t)) / 4.0]

    found = solve_ivp(rhs, (0.5, 1.0), [x, v], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    assert unit.get("x", "v")[1] == pytest.approx(found, abs=1e-6)


def test_states_and_fixed_parameters_stay_between_steps(fresh):
    for name in ("x", "damping"):
        assert fresh(CS).start().set(name, 1.0) == ERROR


class Watcher:
    """An importer that takes part in internal steps."""

    def __init__(self, act):
        self.act = act
        self.times = []
        self.unit = None

    def __call__(self, _environment, time, may_set, may_get, finished, may_return, wanted, wanted_time):
        assert may_set
        assert may_get
        assert finished
        self.times.append(time)
        self.act(self, time, may_return, wanted, wanted_time)


def watched(fresh, act, **arguments):
    watcher = Watcher(act)
    watcher.unit = fresh(CS, update=watcher, **arguments)
    return watcher, watcher.unit


def test_intermediate_updates_come_in_order_and_show_the_motion(fresh):
    if fresh.fmi == 2:
        return
    seen = []

    def act(watcher, *_):
        seen.append(watcher.unit.get("x", "tip")[1])

    watcher, unit = watched(fresh, act, required=["x", "tip"])
    unit.start()
    for step in range(4):
        assert unit.step3(step * 0.5, 0.5)[0] == OK
    assert watcher.times == sorted(watcher.times)
    assert watcher.times[-1] == 2.0
    wanted = solution(watcher.times)[:, 0]
    assert np.abs(np.array(seen)[:, 0] - wanted).max() < 1e-6
    assert np.array(seen)[:, 1] == pytest.approx(wanted**2 + watcher.times, abs=1e-5)


def wave(t):
    return 4.0 * math.sin(3.0 * t)


def waving(fresh, solver):
    """An FMU whose importer gives the force after every internal step, and at the start."""

    def act(watcher, time, *_):
        assert watcher.unit.get("x")[0] == OK
        assert watcher.unit.set("force", wave(time)) == OK

    _watcher, unit = watched(fresh, act, required=["x", "force"])
    assert unit.set_choice("solver", solver) == OK
    return unit


@pytest.mark.parametrize("solver", [2, 4])
def test_inputs_of_intermediate_updates_are_lines_between_them(fresh, solver):
    if fresh.fmi == 2:
        return
    wanted = solution([2.0], wave)[0]
    errors = []
    for pieces in (20, 40, 80, 160):
        unit = waving(fresh, solver)
        unit.start(force=wave(0.0), tolerance=1e-2)
        for step in range(pieces):
            assert unit.step3(2.0 * step / pieces, 2.0 / pieces)[0] == OK
        assert unit.value("force") == wave(2.0)
        errors.append(np.abs(np.array(unit.get("x", "v")[1]) - wanted).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 1.9, errors


def test_inputs_of_intermediate_updates_are_lines_within_a_communication_step(fresh):
    if fresh.fmi == 2:
        return
    wanted = solution([2.0], wave)[0]
    errors = []
    for pieces in (20, 40, 80):
        unit = waving(fresh, 2)
        unit.start(force=wave(0.0), solver_step=2.0 / pieces)
        assert unit.step3(0.0, 2.0)[0] == OK
        errors.append(np.abs(np.array(unit.get("x", "v")[1]) - wanted).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > 1.9, errors


@pytest.mark.parametrize("solver", [1, 4])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8])
def test_step_control_sees_inputs_of_intermediate_updates(fresh, solver, tolerance):
    """Though nothing tells a solver what its inputs will be, and steps that were accepted are not made again.

    Each step errs by about the tolerance, with the cube of its size: as many as T / tolerance^(1/3) of them.
    """
    if fresh.fmi == 2:
        return
    unit = waving(fresh, solver)
    unit.start(force=wave(0.0), tolerance=tolerance)
    assert unit.step3(0.0, 2.0)[0] == OK
    error = np.abs(np.array(unit.get("x", "v")[1]) - solution([2.0], wave)[0]).max()
    assert error < 5.0 * tolerance ** (2.0 / 3.0)


def test_the_slope_of_an_input_of_intermediate_updates_reaches_the_slopes_of_outputs(fresh):
    if fresh.fmi == 2:
        return
    unit = waving(fresh, 1)
    unit.start(force=wave(0.0), tolerance=1e-8)
    for step in range(100):
        assert unit.step3(0.01 * step, 0.01)[0] == OK
    h = 1e-5
    x, v = solution([1.0 - h, 1.0, 1.0 + h], wave).T

    def load(i, t):
        return (wave(t) - 8.0 * x[i] - 0.5 * v[i] + 1.0 / (1.0 + t * t)) / 2.0 + wave(t) / 2.0

    slope = (load(2, 1.0 + h) - load(0, 1.0 - h)) / (2.0 * h)
    assert unit.slopes("load")[1][0] == pytest.approx(slope, abs=0.25)  # the input's slope lags by half a step
    assert abs(slope) > 5.0


def test_an_input_that_is_given_no_more_keeps_its_last_value(fresh):
    if fresh.fmi == 2:
        return
    values = iter([1.0, 2.0, None, None])

    def act(watcher, *_):
        value = next(values)
        assert value is None or watcher.unit.set("force", value) == OK

    _watcher, unit = watched(fresh, act, required=["force"])
    assert unit.set_choice("solver", 2) == OK
    unit.start()
    seen = []
    size = 0.125
    for step in range(4):
        assert unit.step3(size * step, size)[0] == OK
        seen.append(unit.value("force"))
    assert seen == [1.0, 2.0, 2.0, 2.0]
    # Nobody gave the start value, so no line led on from it; the third step went on along the line from 1 to 2.
    lines = [(0.0, 0.0), (1.0, 0.0), (2.0, 1.0 / size), (2.0, 0.0)]
    motion = [1.0, 0.0]
    for step, (value, slope) in enumerate(lines):

        def rhs(t, y, start=size * step, value=value, slope=slope):
            force = value + slope * (t - start)
            return [y[1], (force - 8.0 * y[0] - 0.5 * y[1] + 1.0 / (1.0 + t * t)) / 2.0]

        span = (size * step, size * step + size)
        motion = solve_ivp(rhs, span, motion, method="DOP853", rtol=1e-10, atol=1e-11).y[:, -1]
    assert unit.get("x", "v")[1] == pytest.approx(motion, abs=1e-4)


def test_an_importer_that_adds_up_its_own_time_makes_no_jumps(fresh):
    """It sets its signal between the steps too, at times that round-off has made others than the FMU's."""
    if fresh.fmi == 2:
        return
    errors = []
    for pieces in (40, 80, 160):
        unit = waving(fresh, 2)
        unit.start(force=wave(0.0))
        time, size = 0.0, 2.0 / pieces
        others = 0
        for _ in range(pieces):
            others += unit.value("force") != wave(time)
            assert unit.set("force", wave(time)) == OK
            assert unit.step3(time, size)[0] == OK
            time += size
        assert others > 5
        errors.append(np.abs(np.array(unit.get("x", "v")[1]) - solution([2.0], wave)[0]).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > 1.9, errors


def test_an_input_that_jumps_at_a_communication_point_starts_no_line(fresh):
    """What is set between steps is no sample of the line that intermediate updates gave."""
    if fresh.fmi == 2:
        return
    ends = []
    for jump in (False, True):
        unit = waving(fresh, 2)
        unit.start(force=wave(0.0))
        for step in range(4):
            assert unit.step3(0.1 * step, 0.1)[0] == OK
        before = unit.slopes("load")[1][0]
        if jump:
            assert unit.set("force", -7.0, "force", wave(0.4)) == OK
        else:
            assert unit.set("force", wave(0.4)) == OK
        ends.append((before, unit.slopes("load")[1][0]))
    assert ends[0][0] == ends[0][1] == ends[1][0] != ends[1][1]


@pytest.mark.parametrize("solver", [1, 2, 4])
def test_lines_of_inputs_are_in_saved_states(fresh, solver):
    if fresh.fmi == 2:
        return
    seen = []
    unit = waving(fresh, solver)
    unit.start(force=wave(0.0), tolerance=1e-6)
    for step in range(10):
        assert unit.step3(0.1 * step, 0.1)[0] == OK
    data = unit.saved()
    for _ in range(2):
        for _step in range(10):
            assert unit.step3(unit.value("time"), 0.1)[0] == OK
        seen.append(unit.saved())
        unit = waving(fresh, solver)
        assert unit.restore(data) == OK
    assert seen[0] == seen[1]


@pytest.mark.parametrize("wish", [0.2, -1.0])
def test_early_return(fresh, wish):
    if fresh.fmi == 2:
        return

    def act(_watcher, _time, may_return, wanted, wanted_time):
        assert may_return
        wanted[0] = True
        wanted_time[0] = wish

    watcher, unit = watched(fresh, act, early_return=True)
    unit.start()
    status, event, terminate, early, last = unit.step3(0.0, 5.0)
    assert (status, event, terminate, early) == (OK, False, False, True)
    assert last == unit.value("time") == watcher.times[-1]
    assert last == (pytest.approx(max(wish, watcher.times[0]), abs=1e-15))
    assert unit.value("x") == pytest.approx(solution([last])[0][0], abs=1e-6)
    assert unit.step3(last, 0.01)[0] == OK


def test_who_did_not_allow_early_return_gets_none(fresh):
    if fresh.fmi == 2:
        return

    def act(_watcher, _time, may_return, wanted, wanted_time):
        assert not may_return
        wanted[0] = True
        wanted_time[0] = 0.0

    _, unit = watched(fresh, act)
    unit.start()
    assert unit.step3(0.0, 0.5) == (OK, False, False, False, 0.5)


@pytest.mark.parametrize(
    "act",
    [
        lambda watcher, *_: watcher.unit.set("mass", 1.0),
        lambda watcher, *_: watcher.unit.get("loss"),
        lambda watcher, *_: watcher.unit.slopes("loss"),
        lambda watcher, *_: (watcher.unit.set("force", 1.0), watcher.unit.get("x")),
        lambda watcher, *_: watcher.unit.set("force", math.nan),
        lambda watcher, *_: watcher.unit.call("Reset"),
        lambda watcher, *_: watcher.unit.step3(0.0, 0.1),
        lambda watcher, *_: watcher.unit.call("Terminate"),
        lambda watcher, *_: watcher.unit.free(),
        lambda watcher, *_: (watcher.unit.set("force", math.nan), watcher.unit.call("Reset")),
        lambda watcher, *_: (watcher.unit.call("Terminate"), watcher.unit.set_state(watcher.state)),
        lambda watcher, *_: watcher.unit.set_state(watcher.state),
        lambda watcher, *_: (watcher.unit.call("Reset"), watcher.unit.start()),
    ],
    ids=[
        "parameter",
        "not required",
        "slope not required",
        "get after set",
        "nan",
        "reset",
        "step",
        "terminate",
        "free",
        "reset after a refused call",
        "an older state after a refused call",
        "an older state",
        "a life begun anew",
    ],
)
def test_what_is_not_allowed_in_intermediate_updates(fresh, act):
    if fresh.fmi == 2:
        return

    def tried(watcher, *arguments):
        with contextlib.suppress(AssertionError):  # of unit.start, which wants OK
            act(watcher, *arguments)

    watcher, unit = watched(fresh, tried, required=["x", "force"])
    unit.start()
    watcher.state = unit.get_state()
    status, _, _, early, _ = unit.step3(0.0, 0.5)
    assert (status, early) == (ERROR, False)
    assert unit.get("x", "time") == (OK, [1.0, 0.0])
    assert unit.set_state(watcher.state) == OK
    assert unit.free_state(watcher.state) == OK
    assert unit.call("Reset") == OK


def test_a_failed_step_takes_back_inputs_of_intermediate_updates(fresh):
    if fresh.fmi == 2:
        return
    _, unit = watched(fresh, lambda watcher, *_: watcher.unit.set("force", 50.0), required=["force"])
    unit.start()
    assert unit.step3(0.0, 10.0)[0] == DISCARD
    assert unit.get("force", "x", "time") == (OK, [0.0, 1.0, 0.0])


def test_requests_that_the_fmu_cannot_serve(library):
    from native.fmi import Unit

    if library[1] == 2:
        return
    for arguments, reason in (
        ({"event_mode": True}, "hasEventMode is false"),
        ({"required": ["mass"]}, "neither an input nor an output"),
        ({"required": [99]}, "neither an input nor an output"),
    ):
        unit = Unit(library[0], 3, CS).instantiate(**arguments)
        assert not unit.handle
        assert reason in unit.log[-1].text
    assert not library[0].fmi3InstantiateScheduledExecution(*[None] * 10)


def test_model_exchange_makes_no_steps(fresh):
    assert fresh(ME).start().step(0.0, 0.1) == ERROR
