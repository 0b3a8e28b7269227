"""Frames of which only the angular velocity is given: wheels whose angle is no coordinate."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from mechanisms import model_of
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.errors import FormulationError, MechanismError

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


@pytest.mark.parametrize("method", METHODS)
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


def test_nothing_is_written_in_axes_that_nobody_knows():
    model = _disc(oriented=False)
    R = model.mechanics.bodies[0].frame
    model.output_angular_velocity("spin", R)
    pipeline.derive(model)
    model.output_orientation("turned", R)
    with pytest.raises(FormulationError, match="nothing but the angular velocity is known"):
        pipeline.derive(model)
