"""Frames of which only the angular velocity is given: wheels whose angle is no coordinate."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from mechanisms import model_of
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.errors import FormulationError, MechanismError
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model
from mb2fmu.validation.reference.first_integrals_along_run import find_first_integrals

METHODS = ("kane", "tmt", "recursive")


def _disc(*, oriented: bool, round_: bool = True) -> Model:
    """A disc that rolls on a plane, as SymPy's documentation writes it; its roll angle is a coordinate or is not."""
    q1, q2, q3, u1, u2, u3 = me.dynamicsymbols("q1:4 u1:4")
    m, r, g, brake = sm.symbols("m r g b")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    omega = u1 * L.x + u2 * L.y + u3 * L.z
    R = me.ReferenceFrame("R")
    kinematics = [q1.diff() - u3 / sm.cos(q2), q2.diff() - u1]
    Y.set_ang_vel(N, u3 / sm.cos(q2) * N.z)
    L.set_ang_vel(Y, u1 * Y.x)
    if oriented:
        R.orient_axis(L, L.y, q3)
        kinematics.append(q3.diff() - (u2 - u3 * sm.tan(q2)))
        R.set_ang_vel(L, (u2 - u3 * sm.tan(q2)) * L.y)
    else:
        R.set_ang_vel(N, omega)
    C = me.Point("C")
    C.set_vel(N, 0)
    centre = C.locatenew("centre", r * L.z)
    centre.set_vel(N, omega.cross(r * L.z))
    across = m * r**2 / 4
    dyadic = me.inertia(L, across, 2 * across, across if round_ else 3 * across)
    disc = me.RigidBody("disc", centre, R, m, (dyadic, centre))
    q = [q1, q2, q3] if oriented else [q1, q2]
    loads = [(centre, -m * g * N.z), (R, -brake * u2 * L.y)]
    kane = me.KanesMethod(N, q, [u1, u2, u3], kinematics, bodies=[disc], forcelist=loads)
    return model_of("Disc", kane, q, [u1, u2, u3], m=1.3, r=0.4, g=9.81, b=0.2)


@pytest.mark.parametrize("method", [*by_night("kane"), "tmt", "recursive"])
def test_an_angle_on_which_nothing_depends_need_not_be_known(method):
    known = pipeline.rhs(_disc(oriented=True), method=method)
    unknown = pipeline.rhs(_disc(oriented=False), method=method)
    rng = np.random.default_rng(3)
    q, u = rng.uniform(-0.8, 0.8, (5, 3)), rng.uniform(-3, 3, (5, 3))
    wanted = known(0.0, np.hstack([q, u]))
    found = unknown(0.0, np.hstack([q[:, :2], u]))
    np.testing.assert_allclose(found, np.delete(wanted, 2, axis=1), rtol=1e-12, atol=1e-12)


def test_a_body_that_does_not_look_the_same_from_all_sides_must_be_oriented():
    with pytest.raises(MechanismError, match="frame R of body disc has an angular velocity only") as error:
        pipeline.derive(_disc(oriented=False, round_=False))
    assert "orient R" in str(error.value)


def test_the_inertia_of_a_body_of_revolution_may_be_written_along_axes_in_which_it_spins():
    """Seen: a fault of mb2fmu, as integrals of motion were looked for; it is J sin^2 + J cos^2 along its own axes."""
    model = _disc(oriented=True)
    mechanism = read_mechanism(check_model(model))
    m, r = sm.symbols("m r")
    across = m * r**2 / 4
    assert mechanism.bodies[0].inertia == sm.diag(across, 2 * across, across).as_immutable()
    find_first_integrals(mechanism, form_equations_except_dynamics(mechanism))  # evaluates it with parameters alone


def test_an_inertia_that_changes_along_the_axes_of_its_own_body_is_refused():
    with pytest.raises(MechanismError, match="inertia of body disc changes in its own frame R with q3") as error:
        pipeline.derive(_disc(oriented=True, round_=False))
    assert "write it along R" in str(error.value)


def test_nothing_is_written_in_axes_that_nobody_knows():
    model = _disc(oriented=False)
    R = model.mechanics.bodies[0].frame
    model.output_angular_velocity("spin", R)
    pipeline.derive(model)
    model.output_orientation("turned", R)
    with pytest.raises(FormulationError, match="nothing but the angular velocity is known"):
        pipeline.derive(model)


@pytest.mark.parametrize("tilt", [sm.Symbol("tilt"), me.dynamicsymbols("tilt"), me.dynamicsymbols("tilt").diff()])
def test_a_frame_that_nothing_uses_may_be_turned_by_what_nobody_declares(tilt):
    """Seen: NameError, a fault of mb2fmu, for a frame that a script left over."""
    q, u = me.dynamicsymbols("q u")
    m, l, g = sm.symbols("m l g")
    N, A, spare, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.ReferenceFrame("S"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    spare.orient_axis(N, N.z, tilt)
    me.ReferenceFrame("beyond").orient_axis(spare, spare.x, q)
    P = O.locatenew("P", -l * A.y)
    P.v2pt_theory(O, N, A)
    bob = me.Particle("bob", P, m)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[bob], forcelist=[(P, -m * g * N.y)])
    found = pipeline.rhs(model_of("Bob", kane, [q], [u], m=1.0, l=0.5, g=9.81))(0.0, np.array([0.3, 0.2]))
    np.testing.assert_allclose(found, [0.2, -9.81 * np.sin(0.3) / 0.5], rtol=1e-12)


def test_an_angular_velocity_may_be_an_input_that_is_the_rate_of_nothing_declared():
    """A rotor whose speed is prescribed, and whose angle occurs nowhere."""
    q, u, angle = me.dynamicsymbols("q u angle")
    J, spin = sm.Symbol("J"), angle.diff()
    N, A, rotor, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.ReferenceFrame("rotor"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.x, q)
    A.set_ang_vel(N, u * N.x)
    rotor.set_ang_vel(A, spin * A.z)
    body = me.RigidBody("rotor", O, rotor, 1.0, (me.inertia(A, J, J, 2 * J), O))
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[body], forcelist=[(A, J * N.x)])
    model = model_of("Rotor", kane, [q], [u], J=1.5)
    model.input(spin, 3.0, "rad/s")
    model.input(angle.diff(me.dynamicsymbols._t, 2), 0.0, "rad/s2")
    np.testing.assert_allclose(pipeline.rhs(model)(0.0, np.array([0.3, 0.2]), r=[3.0, 0.0]), [0.2, 1.0], rtol=1e-12)
