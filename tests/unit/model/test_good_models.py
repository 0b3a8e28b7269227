"""Good models through every mechanics source: what ``check`` hands on, and that the user's objects stay as they are."""

from dataclasses import replace

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import given
from hypothesis import strategies as st
from sympy.physics.biomechanics import FirstOrderActivationDeGroote2016, MusculotendonDeGroote2016

from mb2fmu.errors import ModelError
from mb2fmu.mechanics import mechanism
from mb2fmu.model import Model, check_model
from mb2fmu.model.calculated_parameters import sort_calculated_parameters
from mb2fmu.model.quantity_declarations import Output, Parameter
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.supported_functions import LookupTable

DOORS = ["parts", "kane", "system", "lagrange"]
TIME = me.dynamicsymbols._t


def remembered(mechanics):
    """Everything that SymPy's points and frames remember, as text."""
    points = [
        point
        for body in mechanics_source.bodies(mechanics)
        for point in mechanics_source.list_points_joined_by_positions(body.masscenter)
    ]
    frames = {frame.name: frame for point in points for frame in point._vel_dict}
    frames |= {other.name: other for frame in list(frames.values()) for other in frame._dcm_dict}
    texts = [str(entry) for point in points for entry in point._pdlist]
    return texts + [str(entry) for _, frame in sorted(frames.items()) for entry in (*frame._dlist, frame._dcm_cache)]


@pytest.mark.parametrize("name", DOORS)
def test_every_door_is_taken(pendulum, name):
    mechanics = getattr(pendulum, name)()
    definition = check_model(pendulum.model(mechanics))
    assert definition.mechanics is mechanics
    assert [record.symbol for record in definition.coordinates] == [pendulum.q]
    assert [record.symbol for record in definition.speeds] == [pendulum.q.diff() if name == "lagrange" else pendulum.u]
    assert [record.name for record in definition.speeds] == ["q_dot" if name == "lagrange" else "u"]
    assert [record.name for record in definition.inputs] == ["torque"]


@pytest.mark.parametrize("name", DOORS)
def test_nothing_is_written_into_the_users_objects(pendulum, name):
    model = pendulum.model(getattr(pendulum, name)())
    model.output_velocity("bob", pendulum.P)
    model.output_angular_velocity("arm", pendulum.A)
    before = remembered(model.mechanics)
    assert before
    check_model(model)
    assert remembered(model.mechanics) == before


def test_a_lagrangian_alone_needs_no_frame(pendulum):
    q_dot = pendulum.q.diff()
    energy = pendulum.m * pendulum.length**2 * q_dot**2 / 2 + pendulum.m * pendulum.g * pendulum.length * sm.cos(
        pendulum.q
    )
    model = pendulum.model(me.LagrangesMethod(energy, [pendulum.q]))
    model.output("rate", q_dot, "rad/s")
    assert check_model(model).outputs[0].name == "rate"


def test_the_ground_needs_no_mass(pendulum):
    """``from_newtonian`` adds a wall with a mass and an inertia of its own, and gravity pulls at it."""
    system = pendulum.system()
    assert len(system.bodies) == 2
    assert len(system.loads) == 2
    assert mechanics_source.bodies(system) == (pendulum.bob,)
    assert [load[0] for load in mechanics_source.loads(system)] == [pendulum.P]
    check_model(pendulum.model(system))


@pytest.mark.parametrize("joint", [me.PrismaticJoint, me.PinJoint])
def test_who_never_turns_needs_no_moments_of_inertia(joint):
    """SymPy gives bodies symbols for them, ``cart_ixx`` and so on."""
    q, u, m = *me.dynamicsymbols("q u"), sm.Symbol("m")
    wall, cart = me.RigidBody("wall"), me.RigidBody("cart", mass=m)
    system = me.System.from_newtonian(wall)
    system.add_joints(joint("guide", wall, cart, q, u, child_point=cart.x))
    model = Model("Cart", system)
    model.parameter(m, 2.0, "kg")
    model.coordinate(q, 0.1, "m" if joint is me.PrismaticJoint else "rad")
    model.speed(u, 0.0, "m/s" if joint is me.PrismaticJoint else "rad/s")
    if joint is me.PinJoint:
        with pytest.raises(ModelError, match="cart_ixx is not declared"):
            check_model(model)
    else:
        (body,) = mechanism.read_mechanism(check_model(model)).bodies
        assert (body.mass, body.inertia) == (sm.Symbol("m"), sm.ImmutableMatrix.zeros(3))


def test_records_come_in_the_mechanics_order():
    """Dependent speeds behind independent ones, whatever the order of declaration."""
    q, u = me.dynamicsymbols("q:2"), me.dynamicsymbols("u:2")
    N, origin = me.ReferenceFrame("N"), me.Point("O")
    origin.set_vel(N, 0)
    P = origin.locatenew("P", q[0] * N.x + q[1] * N.y)
    P.set_vel(N, u[0] * N.x + u[1] * N.y)
    kinematics = [q[0].diff() - u[0], q[1].diff() - u[1]]
    method = me.KanesMethod(
        N,
        q,
        [u[1]],
        kinematics,
        u_dependent=[u[0]],
        velocity_constraints=[u[0] - q[1] * u[1]],
        bodies=[me.Particle("P", P, 1)],
    )
    model = Model("Skate", method)
    model.speed(u[0])
    model.coordinate(q[1], 0.0, "m")
    model.speed(u[1])
    model.coordinate(q[0], 0.0, "m")
    definition = check_model(model)
    assert [record.symbol for record in definition.coordinates] == q
    assert [record.symbol for record in definition.speeds] == [u[1], u[0]]


def test_a_constraint_force_comes_to_light_by_an_auxiliary_speed(pendulum):
    tension, u_aux = me.dynamicsymbols("tension u_aux")
    parts = pendulum.parts(u_auxiliary=[u_aux])
    pendulum.P.set_vel(parts.frame, pendulum.P._vel_dict[parts.frame] + u_aux * pendulum.A.y)
    parts.loads.append((pendulum.P, tension * pendulum.A.y))
    model = pendulum.model(parts)
    model.constraint_force(tension, "N")
    model.output("rod", tension, "N")
    assert check_model(model).constraint_forces[0].name == "tension"


def test_a_muscle_with_activation(pendulum):
    system = pendulum.system()
    high = system.fixed_point.locatenew("high", sm.Symbol("h") * system.frame.y)
    activation = FirstOrderActivationDeGroote2016.with_defaults("muscle")
    muscle = MusculotendonDeGroote2016.with_defaults("muscle", me.LinearPathway(high, pendulum.P), activation)
    system.add_actuators(muscle)
    model = pendulum.model(system)
    model.input(activation.excitation, 0.0)
    model.state(activation.activation, muscle.rhs()[0], 0.1)
    with pytest.raises(ModelError) as caught:
        check_model(model)
    missing = {fault.what.split()[0] for fault in caught.value.faults}
    assert missing == {"h", "F_M_max_muscle", "l_M_opt_muscle", "l_T_slack_muscle"}
    for symbol in sorted(missing):
        model.parameter(sm.Symbol(symbol), 1.0)
    model.output_force("pull", muscle)
    definition = check_model(model)
    assert [state.name for state in definition.auxiliary_states] == ["a_muscle"]


def test_springs_are_looked_into(pendulum):
    system = pendulum.system()
    k, rest = sm.symbols("k rest")
    system.add_actuators(me.LinearSpring(k, me.LinearPathway(system.fixed_point, pendulum.P), rest))
    with pytest.raises(ModelError) as caught:
        check_model(pendulum.model(system))
    assert [fault.what.split()[0] for fault in caught.value.faults] == ["k", "rest"]
    assert "actuator LinearSpring" in caught.value.faults[0].what


def test_what_no_body_needs_is_not_asked_for(pendulum):
    parts = pendulum.parts()
    parts.origin.locatenew("elsewhere", sm.Symbol("unused") * parts.frame.x)
    me.ReferenceFrame("B").orient_axis(parts.frame, parts.frame.x, sm.Symbol("unused_too"))
    check_model(pendulum.model(parts))


def test_supported_functions_in_loads_and_outputs(pendulum):
    q, u = pendulum.q, pendulum.u
    table = LookupTable("friction", [-1, 0, 1], [-2, 0, 2])
    pendulum.load = (
        sm.Piecewise((sm.Abs(u), u > 0), (sm.sign(q), sm.And(q > 0, u < 1)), (sm.Min(q, u, 1), True))
        + table(u)
        + sm.atan2(q, u)
        + sm.Max(q, 0)
        + sm.tanh(u)
        + sm.Heaviside(q)
    )
    model = pendulum.model()
    model.output("acceleration", u.diff() + q.diff(TIME, 2), "rad/s2")
    model.output("time", TIME, "s")
    with pytest.raises(ModelError, match="two variables are called time"):
        check_model(model)
    model.declared.pop()
    assert check_model(model).outputs[0].name == "acceleration"


def test_the_rate_of_an_input_may_be_an_input(pendulum):
    pendulum.load = pendulum.torque.diff()
    model = pendulum.model()
    model.input(pendulum.torque.diff(), 0.0, "N.m/s")
    assert [record.name for record in check_model(model).inputs] == ["torque", "torque_dot"]


@given(st.permutations(range(6)), st.data())
def test_calculated_parameters_come_behind_what_they_need(order, data):
    """Each parameter is the sum of some with smaller numbers, declared in any order."""
    symbols = sm.symbols("p:6")
    needs = [data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set() for i in range(6)]
    parameters = [
        Parameter(
            name=f"p{i}", symbol=symbols[i], value=sum((symbols[j] for j in needs[i]), sm.S.One) if needs[i] else 1.0
        )
        for i in order
    ]
    ordered, faults = sort_calculated_parameters(parameters)
    assert not faults
    assert sorted(p.name for p in ordered) == sorted(p.name for p in parameters)
    place = {p.symbol: i for i, p in enumerate(ordered)}
    assert all(place[need] < place[p.symbol] for p in ordered if p.calculated for need in p.value.free_symbols)


def test_a_definition_has_every_name_once(pendulum):
    definition = check_model(pendulum.model())
    with pytest.raises(ModelError, match=r"has q, torque, torque\(t\) twice"):
        replace(definition, inputs=definition.inputs * 2, outputs=(Output(name="q", expression=pendulum.q),))


def test_free_parameters_keep_their_order():
    a, b, c = sm.symbols("a b c")
    parameters = [
        Parameter(name="c", symbol=c, value=a + b),
        Parameter(name="b", symbol=b, value=1.0),
        Parameter(name="a", symbol=a, value=2.0),
    ]
    assert [p.name for p in sort_calculated_parameters(parameters)[0]] == ["b", "a", "c"]
