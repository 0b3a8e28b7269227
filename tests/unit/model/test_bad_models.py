"""Bad input in models: each fault names the symbol, the place, and what to do."""

import math
from dataclasses import replace

import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu.errors import ModelError
from mb2fmu.model import Model, check_model
from mb2fmu.model.checks.mechanics_completeness import find_speed_unit_faults
from mb2fmu.model.quantity_declarations import Coordinate, Speed

TIME = me.dynamicsymbols._t
THIS = "test_bad_models.py:"


def only(faults):
    """The one fault there is."""
    assert len(faults) == 1, "\n".join(map(str, faults))
    return faults[0]


def test_an_undeclared_parameter(pendulum, faults_of):
    fault = only(faults_of(pendulum.model(without="m")))
    assert "m is not declared" in fault.what
    assert "the mass of body bob" in fault.what
    assert "the load on P" in fault.what
    assert "model.parameter(m, " in fault.remedy


def test_an_undeclared_input(pendulum, faults_of):
    fault = only(faults_of(pendulum.model(without="torque")))
    assert "torque(t) is not declared" in fault.what
    assert "the load on A" in fault.what
    assert "model.input(torque, " in fault.remedy


@pytest.mark.parametrize("source", ["parts", "kane", "system", "lagrange"])
def test_every_source_misses_undeclared_symbols(pendulum, faults_of, source):
    faults = faults_of(pendulum.model(getattr(pendulum, source)(), without="l c torque"))
    assert {fault.what.split()[0] for fault in faults} == {"l", "c", "torque(t)"}


def test_a_symbol_of_the_same_name_is_another_symbol(pendulum, faults_of):
    model = pendulum.model(without="m")
    model.parameter(sm.Symbol("m", positive=True), 1.0, "kg")
    fault = only(faults_of(model))
    assert "m is not declared" in fault.what
    assert "other assumptions" in fault.remedy


def test_an_undeclared_symbol_in_the_derivative_of_a_state(pendulum, faults_of):
    a, e, tau = *me.dynamicsymbols("a e"), sm.Symbol("tau")
    model = pendulum.model(pendulum.parts())
    model.state(a, (e - a) / tau, 0.0)
    names = {fault.what.split()[0] for fault in faults_of(model)}
    assert names == {"tau", "e(t)"}


def test_a_missing_start_value(pendulum, faults_of):
    faults = faults_of(pendulum.model(without="q u"))
    assert [fault.what for fault in faults] == ["the coordinate q has no start value", "the speed u has no start value"]
    assert "model.coordinate(q, 0.0" in faults[0].remedy
    assert "model.speed(u, 0.0" in faults[1].remedy


def test_a_missing_start_value_of_a_lagrangian(pendulum, faults_of):
    fault = only(faults_of(pendulum.model(pendulum.lagrange(), without="u")))
    assert "q_dot has no start value" in fault.what
    assert 'model.speed(q.diff(), 0.0, "rad/s")' in fault.remedy


def test_a_coordinate_that_the_mechanics_do_not_have(pendulum, faults_of):
    model = pendulum.model()
    model.coordinate(me.dynamicsymbols("phi"), 0.0, "rad")
    fault = only(faults_of(model))
    assert "phi(t) is declared as a coordinate" in fault.what
    assert "(q)" in fault.what
    assert fault.where.startswith(THIS)


def test_a_speed_declared_as_a_coordinate(pendulum, faults_of):
    model = pendulum.model(without="u")
    model.coordinate(pendulum.u, 0.0)
    remedies = [fault.remedy for fault in faults_of(model)]
    assert any("it is a speed: model.speed(u, …)" in remedy for remedy in remedies)


def test_an_auxiliary_speed_declared_as_a_speed(pendulum, faults_of):
    u_aux = me.dynamicsymbols("u_aux")
    model = pendulum.model(pendulum.parts(u_auxiliary=[u_aux]))
    model.speed(u_aux)
    assert "it is an auxiliary speed" in only(faults_of(model)).remedy


def test_a_speed_of_its_own_beside_a_lagrangian(pendulum, faults_of):
    model = pendulum.model(pendulum.lagrange())
    model.speed(pendulum.u)
    assert "model.speed(q.diff(), …)" in only(faults_of(model)).remedy


def test_parts_that_name_a_coordinate_twice(pendulum, faults_of):
    faults = faults_of(pendulum.model(pendulum.parts(q=[pendulum.q, pendulum.q])))
    assert any("q(t) stands twice among the coordinates and speeds" in fault.what for fault in faults)


def test_a_missing_kinematic_equation(pendulum, faults_of):
    fault = only(faults_of(pendulum.model(pendulum.parts(kinematic_equations=[]))))
    assert "no kinematic equation determines q'" in fault.what
    assert "q.diff() - u" in fault.remedy


def test_one_kinematic_equation_too_many(pendulum, faults_of):
    equation = pendulum.q.diff() - pendulum.u
    fault = only(faults_of(pendulum.model(pendulum.parts(kinematic_equations=[equation, 2 * equation]))))
    assert "there are 2 kinematic equations for 1 coordinates" in fault.what


def test_a_kinematic_equation_with_accelerations(pendulum, faults_of):
    equation = pendulum.q.diff() - pendulum.u + pendulum.u.diff()
    fault = only(faults_of(pendulum.model(pendulum.parts(kinematic_equations=[equation]))))
    assert "accelerations: of u(t)" in fault.what


def test_a_system_that_has_lost_its_kinematic_equations(pendulum, faults_of):
    system = pendulum.system()
    system.kdes = []
    assert "no kinematic equation determines q'" in only(faults_of(pendulum.model(system))).what


def test_dependent_speeds_without_constraints(pendulum, faults_of):
    fault = only(faults_of(pendulum.model(pendulum.parts(u_dependent=[pendulum.u]))))
    assert "there are 0 velocity constraints" in fault.what
    assert "1 dependent speeds" in fault.what


def test_more_dependent_coordinates_than_holonomic_constraints(pendulum, faults_of):
    faults = faults_of(pendulum.model(pendulum.parts(q_dependent=[pendulum.q])))
    assert any("0 holonomic constraints and 1 dependent coordinates" in fault.what for fault in faults)


def test_a_joint_whose_speed_is_not_in_the_system(pendulum, faults_of):
    system = pendulum.system()
    system.u_ind = []
    faults = faults_of(pendulum.model(system, without="u"))
    assert any("speed u of joint pin is not in the system" in fault.what for fault in faults)


def test_mechanics_without_bodies(pendulum, faults_of):
    faults = faults_of(pendulum.model(pendulum.parts(bodies=[])))
    assert any("no body that can move" in fault.what for fault in faults)


def test_a_kanes_method_that_was_given_no_bodies(pendulum, faults_of):
    parts = pendulum.parts()
    method = me.KanesMethod(parts.frame, parts.q, parts.u, parts.kinematic_equations)
    fault = only(faults_of(pendulum.model(method)))
    assert "kanes_equations(bodies, loads)" in fault.remedy


def test_a_mass_that_changes(pendulum, faults_of):
    parts = pendulum.parts()
    parts.bodies[0].mass = pendulum.m * (1 - TIME / 10)
    fault = only(faults_of(pendulum.model(parts)))
    assert "the mass of body bob changes with time" in fault.what


def test_mechanics_that_are_none():
    with pytest.raises(ModelError) as caught:
        check_model(Model("Nothing", {"q": 1}))
    assert "its mechanics are a dict" in str(caught.value)
    assert "hand over a System" in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_parameters_that_are_no_numbers(pendulum, faults_of, value):
    model = pendulum.model(without="m")
    model.parameter(pendulum.m, value, "kg")
    fault = only(faults_of(model))
    assert f"the value of m is {value}" in fault.what
    assert fault.where.startswith(THIS)


def test_start_values_that_are_no_numbers(pendulum, faults_of):
    model = pendulum.model(without="q torque")
    model.coordinate(pendulum.q, math.nan, "rad")
    model.input(pendulum.torque, math.inf, "N.m")
    assert [fault.what for fault in faults_of(model)] == [
        "the start value of q is nan",
        "the start value of torque is inf",
    ]


def test_a_calculated_parameter_that_divides_by_zero(pendulum, faults_of):
    model = pendulum.model(without="l")
    other = sm.Symbol("b")
    model.parameter(other, 0.0, "m")
    model.parameter(pendulum.length, 1 / other, "m")
    fault = only(faults_of(model))
    assert "the value of l, 1/b, is" in fault.what


def test_a_calculated_parameter_outside_of_its_bounds(pendulum, faults_of):
    model = pendulum.model(without="l")
    model.parameter(pendulum.length, pendulum.m - 3, "m", min=0.0)
    assert "l, m - 3 = -2, lies outside of its bounds" in only(faults_of(model)).what


def test_parameters_in_a_circle(pendulum, faults_of):
    model = pendulum.model(without="m l")
    model.parameter(pendulum.m, 2 * pendulum.length, "kg")
    model.parameter(pendulum.length, pendulum.m + 1, "m")
    fault = only(faults_of(model))
    assert "go round in a circle" in fault.what
    assert "m needs l needs m" in fault.what or "l needs m needs l" in fault.what


def test_a_calculated_parameter_of_a_coordinate(pendulum, faults_of):
    model = pendulum.model(without="l")
    model.parameter(pendulum.length, pendulum.q + 1, "m")
    fault = only(faults_of(model))
    assert "q(t) changes with time, and parameters do not" in fault.what
    assert "parameter l" in fault.what


def test_bounds_and_nominals(pendulum, faults_of):
    model = pendulum.model(without="m l g")
    model.parameter(pendulum.m, 1.0, "kg", min=2.0)
    model.parameter(pendulum.length, 1.0, "m", min=2.0, max=1.5)
    model.parameter(pendulum.g, 9.81, "m/s2", nominal=0.0)
    whats = [fault.what for fault in faults_of(model)]
    assert whats == [
        "m = 1.0 lies outside of its bounds [2.0, ∞]",
        "l has min=2.0 > max=1.5",
        "the nominal of g is 0.0",
    ]


def test_an_unknown_unit(pendulum, faults_of):
    model = pendulum.model(without="m")
    model.parameter(pendulum.m, 1.0, "kgs")
    fault = only(faults_of(model))
    assert "m: unknown unit 'kgs'" in fault.what
    assert "'kg'" in fault.what
    assert fault.where.startswith(THIS)


def test_a_display_unit_of_something_else(pendulum, faults_of):
    model = pendulum.model(without="m")
    model.parameter(pendulum.m, 1.0, "kg", display_unit="deg")
    fault = only(faults_of(model))
    assert "m: the display unit deg (rad) does not fit the unit kg (kg)" in fault.what


def test_two_variables_of_one_name(pendulum, faults_of):
    model = pendulum.model()
    model.output("q", 2 * pendulum.q, "rad")
    fault = only(faults_of(model))
    assert "two variables are called q: coordinate q(t)" in fault.what
    assert "output q" in fault.what
    assert fault.where.startswith(THIS)


@pytest.mark.parametrize("name", ["der(q)", "time", "bob.x"])
def test_names_that_mb2fmu_gives_are_taken(pendulum, faults_of, name):
    model = pendulum.model()
    model.output_position("bob", pendulum.P)
    model.output(name, pendulum.q, "rad")
    assert f"two variables are called {name}" in only(faults_of(model)).what


def test_a_symbol_declared_twice(pendulum, faults_of):
    model = pendulum.model()
    model.parameter(pendulum.m, 2.0, "kg", name="second_mass")
    fault = only(faults_of(model))
    assert "m is declared twice: as a parameter at conftest.py:" in fault.what
    assert fault.where.startswith(THIS)


@pytest.mark.parametrize("name", ["arm angle", "2nd", "a..b", "x[", "größe", "der(", "'quoted'", ""])
def test_names_that_fmi_forbids(pendulum, faults_of, name):
    model = pendulum.model()
    model.output(name, pendulum.q, "rad")
    fault = only(faults_of(model))
    assert f"the FMU cannot have a variable called {name!r}" in fault.what
    assert "name=" in fault.remedy


@pytest.mark.parametrize("name", ["My Pendulum", "2pi", "class", "a-b"])
def test_a_model_name_that_is_no_identifier(pendulum, faults_of, name):
    fault = only(faults_of(pendulum.model(name=name)))
    assert f"{name!r} cannot name a model" in fault.what
    assert fault.remedy.startswith("call it ")


def test_motion_that_follows_an_input(pendulum, faults_of):
    parts = pendulum.parts()
    r = me.dynamicsymbols("r")
    pivot = parts.origin.locatenew("pivot", r * parts.frame.x)
    pendulum.P.set_pos(pivot, -pendulum.length * pendulum.A.y)
    del pendulum.P._pos_dict[parts.origin], parts.origin._pos_dict[pendulum.P]
    model = pendulum.model(parts)
    model.input(r, 0.0, "m")
    fault = only(faults_of(model))
    assert "the motion is prescribed by the input r" in fault.what
    assert "model.input(r.diff(), 0.0" in fault.remedy
    assert "model.input(r.diff(t, 2), 0.0" in fault.remedy
    assert "the position of pivot from O" in fault.what
    assert "expression of time" in fault.remedy


def test_the_rate_of_an_input_in_a_load(pendulum, faults_of):
    pendulum.load = pendulum.torque.diff()
    fault = only(faults_of(pendulum.model()))
    assert "torque_dot is used, but the input torque carries no derivatives" in fault.what
    assert "model.input(torque.diff(), " in fault.remedy


def test_a_lagrangian_with_speeds_that_are_no_derivatives(pendulum, faults_of):
    parts = pendulum.parts()
    energy = me.Lagrangian(parts.frame, pendulum.bob)
    method = me.LagrangesMethod(energy, parts.q, bodies=parts.bodies, frame=parts.frame)
    faults = faults_of(pendulum.model(method))
    said = [fault for fault in faults if "LagrangesMethod differentiates with respect to q' only" in fault.what]
    assert "u is no q'" in only(said).what
    assert "the Lagrangian" in said[0].what
    assert "q.diff()" in said[0].remedy


def test_a_lagrangian_with_as_many_constraints_as_coordinates(pendulum, faults_of):
    pendulum.speed = pendulum.q.diff()
    parts = pendulum.parts()
    energy = me.Lagrangian(parts.frame, pendulum.bob)
    method = me.LagrangesMethod(
        energy, parts.q, bodies=parts.bodies, frame=parts.frame, hol_coneqs=[sm.sin(pendulum.q)]
    )
    faults = faults_of(pendulum.model(method))
    assert any("1 constraints and 1 coordinates" in fault.what for fault in faults)


def test_loads_of_a_lagrangian_without_a_frame(pendulum, faults_of):
    method = pendulum.lagrange()
    method.inertial = None
    faults = faults_of(pendulum.model(method))
    assert any("loads, but no inertial frame" in fault.what for fault in faults)


def test_a_constraint_force_without_an_auxiliary_speed(pendulum, faults_of):
    tension = sm.Symbol("tension")
    pendulum.load = tension
    model = pendulum.model()
    model.constraint_force(tension)
    fault = only(faults_of(model))
    assert "1 constraint forces and 0 auxiliary speeds" in fault.what
    assert fault.where.startswith(THIS)


def test_derivatives_that_nobody_knows(pendulum, faults_of):
    activation, tension, u_aux = me.dynamicsymbols("activation tension u_aux")
    pendulum.load = tension
    model = pendulum.model(pendulum.parts(u_auxiliary=[u_aux]))
    model.state(activation, -activation + tension)
    model.constraint_force(tension)
    model.output(
        "rate", activation.diff(me.dynamicsymbols._t, 2) + tension.diff() + me.dynamicsymbols("stranger").diff()
    )
    whats = " ".join(fault.what for fault in faults_of(model))
    assert "a higher derivative of state activation is used (in output rate)" in whats
    assert "the derivative of the constraint force tension is used (in output rate)" in whats
    assert "stranger(t) is not declared (in output rate)" in whats
    assert "the constraint force tension stands where no load is (in the derivative of state activation)" in whats


def test_conditions_on_outputs_by_name(pendulum, faults_of):
    model = pendulum.model()
    pull, again = sm.symbols("pull again")
    model.output("pull", sm.Abs(sm.Symbol("m")))
    model.output("again", again + 1)
    (speed,) = [item.symbol for item in model.declared if type(item).__name__ == "Speed"]
    model.when(pull > 3, {speed: 0})
    remedies = {fault.what: fault.remedy for fault in faults_of(model)}
    assert remedies["pull is not declared (in the event pull > 3)"].startswith(
        "pull is an output, and no symbol: write "
    )
    assert "depends on itself" in remedies["again is not declared (in output again)"]


def test_parameters_of_rates(pendulum, faults_of):
    model = pendulum.model(without="l")
    model.parameter(pendulum.length, pendulum.q.diff(), "m")
    assert "Derivative(q(t), t) changes with time" in only(faults_of(model)).what


def test_numbers_that_are_none(pendulum, faults_of):
    pendulum.load = sm.oo
    model = pendulum.model()
    model.potential_energy(pendulum.q * sm.Symbol("k") + sm.nan)
    model.experiment(signals={pendulum.torque: sm.gamma(TIME) + sm.Symbol("A")})
    whats = [fault.what for fault in faults_of(model)]
    assert any("a number is not finite (in the load on A" in what for what in whats)
    assert any("a number is not finite (in the potential energy)" in what for what in whats)
    assert any("the signal of torque(t) contains gamma" in what for what in whats)
    model.experiment(signals={pendulum.torque: math.nan})
    assert any("the signal of torque(t) is nan" in fault.what for fault in faults_of(model))


def test_a_symbol_with_a_typing_error(pendulum, faults_of):
    pendulum.load = sm.Symbol("lenght") * pendulum.q
    model = pendulum.model()
    model.parameter(sm.Symbol("length"), 1.0, "m")
    assert "or is length meant?" in only(faults_of(model)).remedy


def test_a_function_of_the_same_name_is_another_function(pendulum, faults_of):
    model = pendulum.model(without="torque")
    model.input(me.dynamicsymbols("torque", real=True), 0.0, "N.m")
    fault = only(faults_of(model))
    assert "torque(t) is not declared" in fault.what
    assert "another symbol of the same name" in fault.remedy


def test_a_constraint_force_in_no_load(pendulum, faults_of):
    tension, u_aux = me.dynamicsymbols("tension u_aux")
    model = pendulum.model(pendulum.parts(u_auxiliary=[u_aux]))
    model.constraint_force(tension)
    assert "the constraint force tension stands in no load" in only(faults_of(model)).what


def test_declarations_of_the_wrong_kind(pendulum, faults_of):
    model = pendulum.model(without="m torque")
    model.parameter(pendulum.torque, 1.0, "N.m")
    model.input(pendulum.m, 1.0, "kg")
    whats = " ".join(fault.what for fault in faults_of(model))
    assert "torque(t) is declared as a parameter, but is no plain symbol" in whats
    assert "the input m is a plain symbol, and stands where its rate counts (in the mass of" in whats


def test_declarations_of_no_symbols_at_all(pendulum, faults_of):
    model = pendulum.model(without="m q")
    model.parameter("m", 1.0, None)
    model.coordinate("q", 0.0, kind="loose")
    model.input(pendulum.m + 1, name=7)
    whats = " ".join(fault.what for fault in faults_of(model))
    assert "m is declared as a parameter, but is no plain symbol" in whats
    assert "m: a unit is text" in whats
    assert "q is declared as a coordinate, but is no function of time" in whats
    assert "the start of q cannot be 'loose'" in whats
    assert "m + 1 is declared as an input" in whats
    assert "a variable called 7" in whats


def test_all_faults_are_reported_at_once(pendulum):
    model = pendulum.model(without="m q", name="my model")
    model.parameter(sm.Symbol("k"), math.nan, "N/n")
    model.output("my output", sm.gamma(pendulum.u))
    model.experiment(step=0.0)
    with pytest.raises(ModelError) as caught:
        check_model(model)
    text = str(caught.value)
    for said in ("'my model'", "m is not", "coordinate q", "value of k", "N/n", "my output", "gamma", "step is 0.0"):
        assert said in text
    assert text.startswith("the model my model cannot be used:")
    assert len(caught.value.faults) == 8


@pytest.mark.parametrize("truth", [True, False])
def test_a_condition_that_never_becomes_true_is_reported(pendulum, faults_of, truth):
    model = pendulum.model()
    model.when(sm.sympify(truth), {pendulum.q: 0}, name="never")
    words = f"the condition of the event never is always {str(truth).lower()}: it never becomes true"
    assert any(words in fault.what for fault in faults_of(model))


def test_settings_that_are_no_dict_are_reported(pendulum, faults_of):
    model = pendulum.model()
    model.when(pendulum.q < 0, [pendulum.q], name="swing")
    assert any("the event swing sets nothing" in fault.what for fault in faults_of(model))


@pytest.mark.parametrize(
    ("period", "offset", "words"),
    [
        (0.0, 0.0, "has a period of 0 s"),
        (-1.0, 0.0, "has a period of -1 s"),
        (0.1, -0.05, "begins at -0.05 s"),
        (sm.Symbol("T"), 0.0, "instants that are no numbers"),
        (0.1, sm.Symbol("T"), "instants that are no numbers"),
    ],
)
def test_what_repeats_has_a_period_and_begins_at_zero_or_later(pendulum, faults_of, period, offset, words):
    model = pendulum.model()
    model.every(period, {pendulum.q: 0}, offset=offset)
    assert any(words in fault.what for fault in faults_of(model))


@pytest.mark.parametrize("source", ["parts", "kane", "system", "lagrange"])
@pytest.mark.parametrize("unit", ["m/s", "deg/s", "rad"])
def test_a_speed_that_is_a_rate_has_the_unit_of_a_rate(pendulum, faults_of, source, unit):
    """q' = u with q in rad and u in m/s gives right numbers, and says something wrong of each."""
    model = pendulum.model(getattr(pendulum, source)())
    model.declared = [replace(item, unit=unit) if isinstance(item, Speed) else item for item in model.declared]
    fault = only(faults_of(model))
    assert f"is q' by the kinematic equations, and is in {unit}, though q is in rad" in fault.what
    assert "the unit rad/s" in fault.remedy


@pytest.mark.parametrize(
    ("equation", "q_unit", "u_unit"),
    [
        (lambda q, u: q.diff() - u, "1", "rad/s"),
        (lambda q, u: q.diff() - u, "rad", "1/s"),
        (lambda q, u: q.diff() - u, "1", "1"),
        (lambda q, u: u - q.diff(), "mm", "mm/s"),
        (lambda q, u: q.diff() - 1000 * u, "mm", "m/s"),
        (lambda q, u: q.diff() - sm.Symbol("l") * u, "m", "rad/s"),
        (lambda q, u: q.diff() - u / sm.cos(q), "rad", "m/s"),
    ],
)
def test_rates_that_go_with_their_coordinates(pendulum, equation, q_unit, u_unit):
    """Radians are pure numbers here, numbers may convert, and what else stands in an equation may have a unit."""
    model = pendulum.model(pendulum.parts(kinematic_equations=[equation(pendulum.q, pendulum.u)]))
    units = {Coordinate: q_unit, Speed: u_unit}
    model.declared = [
        replace(item, unit=units[type(item)], display_unit=None) if type(item) in units else item
        for item in model.declared
    ]
    assert list(find_speed_unit_faults(model)) == []
