"""Every mechanics source, asked the same questions."""

import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu.model import Parts
from mb2fmu.model.sources import mechanics_source

DOORS = ["parts", "kane", "system", "lagrange"]


@pytest.mark.parametrize("name", DOORS)
def test_the_same_answers(pendulum, name):
    mechanics = getattr(pendulum, name)()
    assert mechanics_source.is_mechanics_source(mechanics)
    assert mechanics_source.coordinates(mechanics) == (pendulum.q,)
    rate = pendulum.q.diff()
    assert mechanics_source.speeds(mechanics) == mechanics_source.GeneralizedSpeeds(
        (rate if name == "lagrange" else pendulum.u,)
    )
    kinematics = mechanics_source.kinematic_equations(mechanics)
    if name == "lagrange":
        assert kinematics == ()
    else:
        assert sm.solve(kinematics[0], rate) == [pendulum.u]
    assert mechanics_source.bodies(mechanics) == (pendulum.bob,)
    assert mechanics_source.inertial_frame(mechanics) is pendulum.N
    origin = mechanics_source.origin(mechanics)
    assert origin.name == ("wall_masscenter" if name == "system" else "O")
    assert mechanics_source.velocity_constraints(mechanics) == mechanics_source.holonomic_constraints(mechanics) == ()
    assert mechanics_source.dependent_coordinates(mechanics) == ()
    assert len(mechanics_source.loads(mechanics)) == {"parts": 2, "kane": 2, "system": 1, "lagrange": 1}[name]
    assert (
        len(mechanics_source.actuators(mechanics))
        == len(mechanics_source.joints(mechanics))
        == (1 if name == "system" else 0)
    )


def test_kinematic_equations_of_a_kanes_method_are_the_given_ones():
    """Not solved for q': Euler angles stay as small as they were given."""
    q, u, w = me.dynamicsymbols("q:2"), me.dynamicsymbols("u:2"), me.dynamicsymbols("w")
    N = me.ReferenceFrame("N")
    given = [sm.cos(q[1]) * q[0].diff() - u[0] + 2, q[1].diff() + sm.sin(q[0]) * u[0] - u[1]]
    method = me.KanesMethod(N, q, u, given, u_auxiliary=[w])
    difference = [sm.expand(a - b) for a, b in zip(mechanics_source.kinematic_equations(method), given, strict=True)]
    assert difference == [0, 0]
    assert mechanics_source.speeds(method) == mechanics_source.GeneralizedSpeeds(tuple(u), (), (w,))


@pytest.fixture
def sliding():
    """Two coordinates, one nonholonomic and one holonomic constraint."""
    return me.dynamicsymbols("q:2"), me.dynamicsymbols("u:2")


def test_constraints_of_a_kanes_method(sliding):
    q, u = sliding
    kinematics = [q[0].diff() - u[0], q[1].diff() - u[1]]
    constraint = u[1] - sm.sin(q[0]) * u[0] + 3
    method = me.KanesMethod(
        me.ReferenceFrame("N"), q, [u[0]], kinematics, u_dependent=[u[1]], velocity_constraints=[constraint]
    )
    assert [sm.expand(row - constraint) for row in mechanics_source.velocity_constraints(method)] == [0]
    assert mechanics_source.speeds(method) == mechanics_source.GeneralizedSpeeds((u[0],), (u[1],))
    assert mechanics_source.speeds(method).all == tuple(u)


def test_constraints_of_parts_and_of_a_system_are_alike(sliding):
    q, u = sliding
    N, origin = me.ReferenceFrame("N"), me.Point("O")
    shared = {"u": u[0] - 2 * u[1], "q": q[0] - sm.cos(q[1])}
    parts = Parts(
        frame=N,
        origin=origin,
        q=q,
        u=u,
        kinematic_equations=[],
        bodies=[],
        velocity_constraints=[shared["u"]],
        holonomic_constraints=[shared["q"]],
        q_dependent=[q[1]],
        u_dependent=u,
    )
    system = me.System(N, origin)
    system.add_coordinates(q[0])
    system.add_coordinates(q[1], independent=False)
    system.add_speeds(*u, independent=False)
    system.add_holonomic_constraints(shared["q"])
    system.add_nonholonomic_constraints(shared["u"])
    for ask in (
        mechanics_source.velocity_constraints,
        mechanics_source.holonomic_constraints,
        mechanics_source.dependent_coordinates,
        mechanics_source.speeds,
    ):
        assert ask(parts) == ask(system)


def test_speeds_that_are_derivatives_need_no_kinematic_equation():
    q, mass = me.dynamicsymbols("q"), sm.Symbol("m")
    wall = me.RigidBody("wall")
    system = me.System.from_newtonian(wall)
    system.add_joints(me.PrismaticJoint("slide", wall, me.Particle("P", mass=mass), q, q.diff()))
    assert mechanics_source.kinematic_equations(system) == ()
    assert mechanics_source.speeds(system).all == (q.diff(),)


def test_an_origin_is_the_nearest_fixed_point():
    N, A, far = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("far")
    far.set_vel(N, 0)
    near = far.locatenew("near", N.x)
    near.set_vel(N, 0)
    P = near.locatenew("P", A.x)
    q, u = me.dynamicsymbols("q u")
    method = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("P", P, 1)])
    assert mechanics_source.origin(method) is near


def test_without_positions_there_is_no_origin():
    N, P = me.ReferenceFrame("N"), me.Point("P")
    q, u = me.dynamicsymbols("q u")
    P.set_vel(N, u * N.x)
    method = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("P", P, 1)], forcelist=[(P, q * N.x)])
    assert mechanics_source.origin(method) is None


def test_other_things_are_no_mechanics():
    assert not mechanics_source.is_mechanics_source(me.ReferenceFrame("N"))
