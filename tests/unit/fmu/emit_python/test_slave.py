"""The co-simulation slave: life cycle, variables, steps, state. Run in this process, from the printed code."""

import math
import struct
import sys

import numpy as np
import pytest
from golden.handwritten import constrained_point, double_pendulum, pendulum_interface, pendulum_program
from golden.running import started, unit_class
from hypothesis import given
from hypothesis import strategies as st
from pythonfmu.enums import Fmi2Status
from scipy.integrate import solve_ivp

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.fmu.interface import form_fmu_interface
from mb2fmu.fmu.interface.fmu_interface import FmuSolverSettings

TIME, M, L, G, D, J, TAU, Q, U, DQ, DU, TIP_X, TIP_Y, ENERGY, LOAD = range(15)
ALL = list(range(15))
SOLVERS = {
    "explicit": FmuSolverSettings("explicit", 1e-6),
    "implicit": FmuSolverSettings("implicit", 1e-6),
    "fixed": FmuSolverSettings("fixed", 1e-6, 1e-3),
}


@pytest.fixture(scope="module", params=SOLVERS)
def pendulum(request, tmp_path_factory):
    """The class of the pendulum's unit, by every solver."""
    interface = pendulum_interface(solver=SOLVERS[request.param])
    return unit_class(pendulum_program(), interface, tmp_path_factory.mktemp("unit"))


def reference(t_end, tau, q=0.5, u=0.0, m=1.0, length=0.5, g=9.81, d=0.1, t0=0.0):
    def f(_t, x):
        return x[1], (tau - d * x[1] - m * g * length * math.sin(x[0])) / (m * length**2)

    return solve_ivp(f, (t0, t_end), (q, u), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


def bits(values):
    return struct.pack(f"{len(values)}d", *values)


def test_motion_follows_the_equations(pendulum):
    unit = started(pendulum)
    unit.set_real([TAU], [0.3])
    for i in range(200):
        assert unit.do_step(i * 0.01, 0.01)
    np.testing.assert_allclose(unit.get_real([Q, U]), reference(2.0, 0.3), atol=2e-5)
    assert unit.get_real([TIME])[0] == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("start", [-5.0, 0.0, 3.3, 1e5])
def test_start_time_does_not_matter(pendulum, start):
    unit = started(pendulum, start)
    for i in range(50):
        assert unit.do_step(start + i * 0.02, 0.02)
    np.testing.assert_allclose(unit.get_real([Q, U]), reference(1.0, 0.0), atol=2e-5)


def test_step_sizes_may_change(pendulum):
    unit = started(pendulum)
    t = 0.0
    for h in (0.1, 0.001, 0.35, 1e-6, 0.5, 0.048999):
        assert unit.do_step(t, h)
        t += h
    np.testing.assert_allclose(unit.get_real([Q, U]), reference(t, 0.0), atol=2e-5)


def test_everything_can_be_read_and_is_consistent(pendulum):
    unit = started(pendulum, v6=0.7, v7=0.4, v8=-1.2)
    t, m, length, g, d, j, tau, q, u, dq, du, x, y, energy, load = unit.get_real(ALL)
    assert (t, m, length, g, d, tau, q, u) == (0.0, 1.0, 0.5, 9.81, 0.1, 0.7, 0.4, -1.2)
    assert j == m * length**2
    assert dq == u
    assert du == pytest.approx((tau - d * u - m * g * length * math.sin(q)) / j, rel=1e-14)
    assert (x, y) == pytest.approx((length * math.sin(q), -length * math.cos(q)), rel=1e-15)
    assert energy == pytest.approx(j * u**2 / 2, rel=1e-15)
    assert load == pytest.approx(j * du, rel=1e-14)


def test_only_what_is_asked_is_computed(pendulum):
    unit = started(pendulum)
    unit.set_real([TAU], [0.1])
    unit.get_real([TIME, Q, U, M, TAU])
    assert set(unit.values) == {"time", "state", "input", "parameter"}
    unit.get_real([TIP_X])
    assert set(unit.values) == {"time", "state", "input", "parameter", "position"}


def test_tunable_parameters_take_effect_at_the_next_step(pendulum):
    unit = started(pendulum)
    for i in range(50):
        unit.do_step(i * 0.01, 0.01)
    middle = unit.get_real([Q, U])
    unit.set_real([M, D], [3.0, 0.0])
    assert unit.get_real([J]) == [0.75]
    assert unit.get_real([Q, U]) == middle
    for i in range(50, 100):
        unit.do_step(i * 0.01, 0.01)
    expected = reference(1.0, 0.0, *middle, m=3.0, d=0.0, t0=0.5)
    np.testing.assert_allclose(unit.get_real([Q, U]), expected, atol=2e-5)


def test_parameters_and_start_values_can_be_set_before_the_start(pendulum):
    unit = started(pendulum, v1=2.0, v2=0.7, v7=1.0, v8=0.5)
    assert unit.do_step(0.0, 1.0)
    np.testing.assert_allclose(unit.get_real([Q, U]), reference(1.0, 0.0, 1.0, 0.5, 2.0, 0.7), atol=2e-4)


@pytest.mark.parametrize(("vr", "value"), [(L, 0.6), (G, 1.62), (Q, 0.1), (U, 0.1)])
def test_what_is_fixed_is_refused_after_initialization(pendulum, vr, value):
    unit = started(pendulum)
    before = unit.get_real(ALL)
    with pytest.raises(ValueError, match="before the end of initialization only"):
        unit.set_real([D, vr], [0.2, value])
    assert unit.get_real(ALL) == before
    assert unit.log_queue[-1].category == "logStatusError"


@pytest.mark.parametrize("vr", [TIME, J, DQ, DU, TIP_X, LOAD])
def test_computed_values_cannot_be_set(pendulum, vr):
    with pytest.raises(ValueError, match="is computed and cannot be set"):
        pendulum(instance_name="test").set_real([vr], [1.0])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("vr", [TAU, M, Q])
def test_what_is_not_finite_is_refused(pendulum, vr, value):
    unit = pendulum(instance_name="test")
    before = unit.get_real(ALL)
    with pytest.raises(ValueError, match="cannot be"):
        unit.set_real([vr], [value])
    assert unit.get_real(ALL) == before


def test_unknown_references_are_refused(pendulum):
    unit = started(pendulum)
    for call in (lambda: unit.get_real([99]), lambda: unit.set_real([99], [0.0])):
        with pytest.raises(ValueError, match="no variable with value reference 99"):
            call()


@pytest.mark.parametrize("kind", ["integer", "boolean", "string"])
def test_there_are_only_real_variables(pendulum, kind):
    unit = started(pendulum)
    assert getattr(unit, f"get_{kind}")([]) == []
    with pytest.raises(ValueError, match="are of type Real"):
        getattr(unit, f"get_{kind}")([Q])
    with pytest.raises(ValueError, match="are of type Real"):
        getattr(unit, f"set_{kind}")([TAU], [1])


@pytest.mark.parametrize("step", [0.0, -0.1, math.nan, math.inf, 1e-300])
def test_senseless_steps_are_refused(pendulum, step):
    unit = started(pendulum, 1.0)
    assert unit.do_step(1.0, 0.1)
    before = unit._get_fmu_state()
    assert not unit.do_step(1.1, step)
    assert unit._get_fmu_state() == before
    assert unit.log_queue[-1].category == "logStatusDiscard"


def test_steps_from_somewhere_else_are_refused(pendulum):
    unit = started(pendulum)
    assert unit.do_step(0.0, 0.1)
    before = unit._get_fmu_state()
    for point in (0.0, 0.2, 0.0999, math.nan):
        assert not unit.do_step(point, 0.1)
    assert unit._get_fmu_state() == before
    assert unit.do_step(0.1 + 1e-16, 0.1)


def test_the_stop_time_holds_but_for_round_off(pendulum):
    unit = started(pendulum, 0.0, 1.0)
    t = 0.0
    for _ in range(10):
        assert unit.do_step(t, 0.1)
        t += 0.1  # ends at 0.9999999999999999
    assert not unit.do_step(t, 0.1)
    assert "past the stop time" in unit.log_queue[-1].msg


def test_steps_need_initialization(pendulum):
    unit = pendulum(instance_name="test")
    assert not unit.do_step(0.0, 0.1)
    unit = started(pendulum)
    unit.terminate()
    assert not unit.do_step(0.0, 0.1)
    with pytest.raises(ValueError, match="after termination"):
        unit.set_real([TAU], [1.0])
    assert unit.get_real([Q]) == [0.5]


@pytest.mark.parametrize(("start", "stop"), [(math.nan, None), (math.inf, None), (1.0, 1.0), (1.0, 0.0)])
def test_senseless_experiments_are_refused(pendulum, start, stop):
    with pytest.raises(ValueError, match="time"):
        pendulum(instance_name="test").setup_experiment(start, stop)


def test_a_step_that_cannot_be_made_changes_nothing(pendulum):
    """Without mass there is no acceleration: the step is refused; with mass again it goes on."""
    unit = started(pendulum)
    assert unit.do_step(0.0, 0.1)
    unit.set_real([M], [0.0])
    before = unit._get_fmu_state()
    assert not unit.do_step(0.1, 0.1)
    assert unit.log_queue[-1].status == Fmi2Status.discard
    assert unit._get_fmu_state() == before
    with pytest.raises(ArithmeticError):
        unit.get_real([DU])
    unit.set_real([M], [1.0])
    assert unit.do_step(0.1, 0.1)
    np.testing.assert_allclose(unit.get_real([Q, U]), reference(0.2, 0.0), atol=1e-5)


@pytest.mark.parametrize("length", [0.0, 1e-300])
def test_a_fmu_that_can_never_move_says_so_at_initialization(pendulum, length):
    """Seen: every step was Discard, and an importer that tries shorter ones came to no end."""
    with pytest.raises(ArithmeticError, match="the FMU cannot move with these parameters and start values"):
        started(pendulum, v2=length)


def test_inputs_that_do_not_let_a_fmu_move_can_still_be_set(pendulum):
    unit = pendulum(instance_name="test")
    unit.setup_experiment(0.0)
    unit.enter_initialization_mode()
    right = unit.equations

    def blocked(entry, t, x, r, *memory):
        if entry == "rhs" and r[0] == 0.0:
            raise ZeroDivisionError from None
        return right(entry, t, x, r, *memory)

    module = sys.modules[type(right).__module__]
    unit.equations = lambda *given: undefined_for(blocked, module.UndefinedValueError, given)
    unit.exit_initialization_mode()
    assert not unit.do_step(0.0, 0.1)
    unit.equations = right
    unit.set_real([TAU], [0.1])
    assert unit.do_step(0.0, 0.1)


def undefined_for(function, error, given):
    """What an FMU's own equations say where they divide by zero."""
    try:
        return function(*given)
    except ZeroDivisionError as cause:
        raise error("division by zero") from cause


def test_messages_are_no_formats(pendulum):
    unit = started(pendulum)
    unit.report(Fmi2Status.warning, "100% of %s")
    assert "%" not in unit.log_queue[-1].msg


def test_state_is_complete_bit_for_bit(pendulum):
    """From a stored state the future is the same, in the same instance and in a new one."""
    unit = started(pendulum, 0.2, None, 1e-5)
    unit.set_real([TAU, D], [0.4, 0.05])
    for i in range(7):
        unit.do_step(0.2 + i * 0.03, 0.03)
    kept = unit._get_fmu_state()
    data = type(unit)._fmu_state_to_bytes(kept)

    def future(one):
        seen = []
        for i in range(7, 20):
            assert one.do_step(0.2 + i * 0.03, 0.03)
            seen += one.get_real(ALL)
        return bits(seen) + one._get_fmu_state()

    first = future(unit)
    unit.set_real([TAU, M], [-1.0, 9.0])
    unit._set_fmu_state(kept)
    assert future(unit) == first
    other = pendulum(instance_name="other")
    other._set_fmu_state(pendulum._fmu_state_from_bytes(data))
    assert future(other) == first


def test_states_of_other_fmus_are_refused(pendulum, tmp_path):
    stranger = unit_class(pendulum_program(), pendulum_interface("Stranger"), tmp_path)
    state = started(stranger)._get_fmu_state()
    unit = started(pendulum)
    before = unit._get_fmu_state()
    with pytest.raises(ValueError, match="belongs to the FMU"):
        unit._set_fmu_state(state)
    with pytest.raises(ValueError, match="belongs to the FMU"):
        pendulum._fmu_state_from_bytes(state)
    assert unit._get_fmu_state() == before


def test_the_same_calls_give_the_same_bits(pendulum):
    def run():
        unit = started(pendulum)
        for i in range(30):
            unit.set_real([TAU], [math.sin(i)])
            unit.do_step(i * 0.05, 0.05)
        return unit.get_real(ALL)

    assert bits(run()) == bits(run())


def test_setting_an_input_to_what_it_is_costs_nothing(pendulum):
    unit = started(pendulum)
    unit.do_step(0.0, 0.1)
    memory = unit.memory
    unit.set_real([TAU], [0.0])
    assert unit.memory is memory


def test_instances_share_nothing(pendulum):
    one, two = started(pendulum), started(pendulum, v7=1.5)
    for i in range(20):
        one.do_step(i * 0.1, 0.1)
    assert two.get_real([TIME, Q, U]) == [0.0, 1.5, 0.0]
    two.set_real([M], [5.0])
    assert one.get_real([M, J]) == [1.0, 0.25]


def test_tolerance_of_the_importer_counts(tmp_path):
    cls = unit_class(pendulum_program(), pendulum_interface(), tmp_path)
    errors = []
    for tolerance in (1e-3, 1e-6, 1e-9):
        unit = started(cls, 0.0, None, tolerance)
        assert unit.do_step(0.0, 2.0)
        errors.append(np.abs(np.array(unit.get_real([Q, U])) - reference(2.0, 0.0)).max())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-7


@pytest.mark.parametrize("tolerance", [0.0, -1e-6, 1e-300, 1.0, math.inf, math.nan])
def test_tolerances_that_cannot_be_kept_to_are_named(pendulum, tolerance):
    unit = started(pendulum, 0.0, None, tolerance)
    assert unit.log_queue[-1].category == "logStatusWarning"
    assert unit.log_queue[-1].status == Fmi2Status.warning
    assert unit.tolerance == 1e-6
    assert unit.do_step(0.0, 0.1)


@pytest.mark.parametrize("system", [double_pendulum, constrained_point])
def test_fmus_of_lowered_equations_compute_what_the_program_does(system, tmp_path):
    definition, equations = system()
    program = lower_equations_to_program(equations)
    interface = form_fmu_interface(definition, equations, program)
    unit = started(unit_class(program, interface, tmp_path))
    for i in range(10):
        assert unit.do_step(i * 0.1, 0.1)
    x = unit.get_real([v.value_reference for v in interface.variables_from_sources("state")])
    r = unit.get_real([v.value_reference for v in interface.variables_from_sources("input")])
    p = unit.get_real([v.value_reference for v in interface.variables_from_sources("parameter")])
    for variable in interface.variables:
        if variable.source in program.entries:
            expected = make_evaluator(program, variable.source, [variable.index])(1.0, x, r, p)
            assert unit.get_real([variable.value_reference]) == list(expected)


CALLS = st.one_of(
    st.tuples(st.just("set"), st.sampled_from([*ALL, 99]), st.sampled_from([0.0, 0.5, 2.0, -0.0, math.nan, math.inf])),
    st.tuples(st.just("get"), st.sampled_from([*ALL, 99]), st.none()),
    st.tuples(st.just("step"), st.sampled_from([0.0, 0.1, 0.05, -1.0, math.nan]), st.none()),
    st.tuples(st.sampled_from(["keep", "restore", "initialize", "ready", "terminate"]), st.none(), st.none()),
)


@given(calls=st.lists(CALLS, max_size=15))
def test_any_sequence_of_calls_is_answered(pendulum, calls):
    """Each call works or is refused with a reason; a refused one changes nothing, and nothing read is not finite."""
    unit = pendulum(instance_name="test")
    kept = unit._get_fmu_state()
    for name, argument, value in calls:
        before, reported = unit._get_fmu_state(), len(unit.log_queue)
        actions = {
            "set": lambda a=argument, v=value: unit.set_real([a], [v]),
            "get": lambda a=argument: unit.get_real([a]),
            "step": lambda a=argument: unit.do_step(unit.time, a),
            "restore": lambda k=kept: unit._set_fmu_state(k),
            "initialize": unit.enter_initialization_mode,
            "ready": unit.exit_initialization_mode,
            "terminate": unit.terminate,
            "keep": unit._get_fmu_state,
        }
        try:
            result = actions[name]()
        except (ValueError, ArithmeticError):
            result = False
        if result is False:
            assert unit._get_fmu_state() == before
            assert len(unit.log_queue) == reported + 1
        elif name == "get":
            assert all(map(math.isfinite, result))
        elif name == "keep":
            kept = result
