"""Tyres against closed forms of force and slope, friction's circle, relaxation, and standstill."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import given, settings
from hypothesis import strategies as st

from mb2fmu import Brush, MagicFormula, Model, Parts, Tyre, analysis, pipeline, rhs
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model
from mb2fmu.model.elements.tyre import TyreLaw

t = me.dynamicsymbols._t
TRAIL = (9.0, 1.2, 0.04, -3.0)
LOAD, RADIUS = 4e3, 0.3
BRUSH = Brush(6e4, 0.9, 8e4)
MAGIC = MagicFormula((10.0, 1.3, 1.0, -0.5), (12.0, 1.6, 1.1, 0.3), (8.0, 7.0))
TURNING = MagicFormula(MAGIC.lateral, MAGIC.longitudinal, MAGIC.combined, TRAIL)


def wheel(law: TyreLaw | None, relaxation: float | tuple[float, float] | None = None, **more: object) -> Model:
    """A wheel that stays upright; it turns about its axle at ``spin`` and, with its heading B.x, about N.z."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    x, y, yaw = me.dynamicsymbols("x y yaw")
    vx, vy, turning, spin = me.dynamicsymbols("vx vy turning spin")
    B, W = me.ReferenceFrame("B"), me.ReferenceFrame("W")
    B.orient_axis(N, N.z, yaw)
    B.set_ang_vel(N, turning * N.z)
    W.set_ang_vel(B, spin * B.y)
    C = O.locatenew("C", x * N.x + y * N.y + RADIUS * N.z)
    C.set_vel(N, vx * N.x + vy * N.y)
    P = C.locatenew("P", -RADIUS * N.z)
    P.v2pt_theory(C, N, W)
    body = me.RigidBody("wheel", C, W, 20.0, (me.inertia(B, 0.5, 1.0, 0.5), C))
    equations = [x.diff(t) - vx, y.diff(t) - vy, yaw.diff(t) - turning]
    speeds = [vx, vy, turning, spin]
    parts = Parts(frame=N, origin=O, q=[x, y, yaw], u=speeds, kinematic_equations=equations, bodies=[body])
    model = Model("Wheel", parts)
    for symbol in (x, y, yaw):
        model.coordinate(symbol, 0.0)
    for symbol in speeds:
        model.speed(symbol, 0.0)
    if law is None:
        return model
    turned = {"wheel": W} if law.has_pneumatic_trail else {}
    settings_of = {"load": LOAD, "centre": C, **turned, **more}
    model.add(Tyre("tyre", P, heading=B.x, law=law, relaxation=relaxation, **settings_of))
    return model


@functools.cache
def derived(law: TyreLaw, relaxation: float | None, centre: str = "given") -> pipeline.DerivationResult:
    more = {} if centre == "given" else {"centre": None}
    return pipeline.derive(wheel(law, relaxation, **more), method="recursive-composite")


def brush(alpha: float) -> tuple[float, float]:
    """Lateral force of the brush without longitudinal slip, and ∂F/∂α, as Pacejka's (3.12) has them."""
    s = min(1.0, 6e4 * abs(np.tan(alpha)) / (3 * 0.9 * LOAD))
    return 0.9 * LOAD * (1 - (1 - s) ** 3) * np.sign(alpha), 6e4 * (1 - s) ** 2 / np.cos(alpha) ** 2


def magic(alpha: float) -> tuple[float, float]:
    """The Magic Formula, and its slope by the chain rule."""
    B, C, mu, E = MAGIC.lateral
    inner = B * alpha - E * (B * alpha - np.arctan(B * alpha))
    slope = B - E * (B - B / (1 + (B * alpha) ** 2))
    angle = C * np.arctan(inner)
    return mu * LOAD * np.sin(angle), mu * LOAD * np.cos(angle) * C / (1 + inner**2) * slope


@pytest.mark.parametrize(("law", "closed"), [(BRUSH, brush), (MAGIC, magic)], ids=["brush", "magic"])
def test_force_and_slope_over_the_slip_angle_are_the_closed_form(law, closed):
    """The slope as the unit has it, by the derivative of the program: to 1e-12 of the cornering stiffness."""
    derivation = derived(law, 0.5)
    stiffness = closed(0.0)[1]
    for alpha in (0.0, 1e-9, 0.03, -0.1, 0.17, 0.178, 0.2, -0.6):
        at = {"vx": 20.0, "spin": 20.0 / RADIUS, "tyre.deflection_y": 0.5 * np.tan(alpha)}
        start = analysis.make_operating_point_start(derivation.definition, derivation.equations, at, ())
        found = analysis.linearize(derivation.equations, derivation.program, start, search=False)
        row = found.outputs.index("tyre.lateral")
        slope = found.C[row, found.states.index("tyre.deflection_y")] * 0.5 / np.cos(alpha) ** 2
        assert slope == pytest.approx(closed(alpha)[1], abs=1e-12 * stiffness)
        assert found.y[row] == pytest.approx(closed(alpha)[0], abs=1e-12 * LOAD)


def forces(f, x: np.ndarray) -> tuple[float, float]:
    """Along the heading, and lateral."""
    reported = dict(zip(f.output_names, f.outputs(0.0, x), strict=True))
    return reported["tyre.driving"], reported["tyre.lateral"]


@pytest.fixture(scope="module")
def rolling():
    return rhs(wheel(BRUSH), method="recursive-composite")


@settings(deadline=None)
@given(vx=st.floats(-30, 30), vy=st.floats(-10, 10), spin=st.floats(-200, 200))
def test_the_brush_stays_within_friction_and_takes_energy(rolling, vx, vy, spin):
    """Whatever the slips, the force is within the circle of friction, and works against the contact's velocity."""
    x = np.array([0, 0, 0, vx, vy, 0, spin], dtype=float)
    driving, lateral = forces(rolling, x)
    assert np.hypot(driving, lateral) <= 0.9 * LOAD * (1 + 1e-14)
    assert driving * (vx - RADIUS * spin) + lateral * vy <= 1e-9


def test_forces_act_on_the_wheel_at_its_contact(rolling):
    """Momentum, and the moment about the axle, written by hand; the Magic Formula's weights with them."""
    x = np.array([0, 0, 0.4, 9.0, 1.0, 0.2, 25.0])
    heading, lateral = np.array([np.cos(0.4), np.sin(0.4)]), np.array([-np.sin(0.4), np.cos(0.4)])
    travelling = np.hypot(x[3:5] @ heading, 0.01)
    kappa = -(x[3:5] @ heading - RADIUS * 25.0) / travelling
    alpha = np.arctan(-(x[3:5] @ lateral) / travelling)
    B, C, mu, E = MAGIC.longitudinal
    bent = B * kappa - E * (B * kappa - np.arctan(B * kappa))
    wanted = {
        "magic": (
            mu * LOAD * np.sin(C * np.arctan(bent)) * np.cos(np.arctan(8.0 * alpha)),
            magic(alpha)[0] * np.cos(np.arctan(7.0 * kappa)),
        )
    }
    gamma = np.hypot(8e4 * kappa, 6e4 * np.tan(alpha))
    s = min(1.0, gamma / (3 * 0.9 * LOAD * (1 + kappa * (x[3:5] @ heading) / travelling)))
    size = 0.9 * LOAD * (1 - (1 - s) ** 3) / gamma
    wanted["brush"] = (size * 8e4 * kappa, size * 6e4 * np.tan(alpha))
    for f, (F_x, F_y) in (
        (rolling, wanted["brush"]),
        (rhs(wheel(MAGIC), method="recursive-composite"), wanted["magic"]),
    ):
        assert forces(f, x) == pytest.approx((F_x, F_y), rel=1e-12)
        rates = f(0.0, x)
        assert rates[3:5] == pytest.approx((F_x * heading + F_y * lateral) / 20.0, rel=1e-12)
        assert rates[6] == pytest.approx(-RADIUS * F_x / 1.0, rel=1e-12)


def aligning(alpha: float, vx: float) -> tuple[float, float]:
    """M_z = −D cos(C atan(bent)) cos α sign(V_x) F_y without longitudinal slip, and ∂M_z/∂α by the product rule."""
    B, C, D, E = TRAIL
    bent = B * alpha - E * (B * alpha - np.arctan(B * alpha))
    slope = B - E * (B - B / (1 + (B * alpha) ** 2))
    angle = C * np.arctan(bent)
    arm, arm_slope = D * np.cos(angle), -D * np.sin(angle) * C / (1 + bent**2) * slope
    (force, force_slope), forwards = magic(alpha), vx / np.hypot(vx, 0.01)
    turned = arm_slope * np.cos(alpha) * force - arm * np.sin(alpha) * force + arm * np.cos(alpha) * force_slope
    return -arm * np.cos(alpha) * force * forwards, -turned * forwards


@pytest.mark.parametrize("vx", [20.0, -20.0, 0.0], ids=["forwards", "backwards", "at rest"])
def test_the_aligning_torque_and_its_slope_are_the_closed_form_and_turn_the_wheel(vx):
    """By the program's derivative, to 1e-12 of the slope at no slip; the torque acts about the wheel's diameter."""
    law = MagicFormula(TURNING.lateral, pneumatic_trail=TRAIL)
    derivation = derived(law, 0.5, centre="none")
    stiffness = abs(aligning(0.0, 20.0)[1])
    for alpha in (0.0, 1e-9, 0.03, -0.1, 0.2, -0.6):
        at = {"vx": vx, "tyre.deflection_y": 0.5 * np.tan(alpha)}
        start = analysis.make_operating_point_start(derivation.definition, derivation.equations, at, ())
        found = analysis.linearize(derivation.equations, derivation.program, start, search=False)
        torque, slope = aligning(alpha, vx)
        row, column = found.outputs.index("tyre.aligning"), found.states.index("tyre.deflection_y")
        assert found.y[row] == pytest.approx(torque, abs=1e-12 * stiffness)
        assert found.C[row, column] * 0.5 / np.cos(alpha) ** 2 == pytest.approx(slope, abs=1e-12 * stiffness)
        assert found.A[found.states.index("turning"), column] == pytest.approx(found.C[row, column] / 0.5, rel=1e-12)


def test_a_driven_wheel_has_less_trail_by_the_equivalent_slip():
    """M_z written by hand at combined slip, and what it turns: the wheel's inertia about its diameter is 0.5 kg.m2."""
    f = rhs(wheel(TURNING), method="recursive-composite")
    x = np.array([0, 0, 0.4, 9.0, 1.0, 0.2, 25.0])
    heading, lateral = np.array([np.cos(0.4), np.sin(0.4)]), np.array([-np.sin(0.4), np.cos(0.4)])
    V_x = x[3:5] @ heading
    travelling = np.hypot(V_x, 0.01)
    kappa, tangent = -(V_x - RADIUS * 25.0) / travelling, -(x[3:5] @ lateral) / travelling
    stiffer = np.prod(TURNING.longitudinal[:3]) / np.prod(TURNING.lateral[:3])
    slip = np.arctan(np.hypot(tangent, stiffer * kappa))
    B, C, D, E = TRAIL
    arm = D * np.cos(C * np.arctan(B * slip - E * (B * slip - np.arctan(B * slip))))
    M_z = -arm * np.cos(np.arctan(tangent)) * V_x / travelling * forces(f, x)[1]
    reported = dict(zip(f.output_names, f.outputs(0.0, x), strict=True))
    assert reported["tyre.aligning"] == pytest.approx(M_z, rel=1e-12)
    assert f(0.0, x)[5] == pytest.approx(M_z / 0.5, rel=1e-12)


@pytest.mark.parametrize(
    "law", [BRUSH, pytest.param(MAGIC, marks=pytest.mark.repeats), TURNING], ids=["brush", "magic", "with trail"]
)
@pytest.mark.parametrize("relaxation", [None, pytest.param(0.4, marks=pytest.mark.repeats)])
def test_at_rest_forces_and_slopes_are_finite(law, relaxation):
    derivation = derived(law, relaxation)
    for at in ({}, {"vy": 0.5}, {"spin": 3.0}):
        start = analysis.make_operating_point_start(derivation.definition, derivation.equations, at, ())
        found = analysis.linearize(derivation.equations, derivation.program, start, search=False)
        assert np.isfinite(found.A).all()
        assert np.isfinite(found.C).all()


def test_a_deflection_follows_the_slip_over_the_relaxation_length():
    """e' = −V_s − |V_x| e / σ: written by hand, each direction with its own length; at rest a spring."""
    f = rhs(wheel(BRUSH, (0.3, 0.6)), method="recursive-composite")
    assert f.states[-2:] == ("tyre.deflection_x", "tyre.deflection_y")
    x = np.array([0, 0, 0, 8.0, 0.7, 0, 30.0, 0.002, -0.01])
    travelling = np.hypot(8.0, 0.01)
    wanted = [-(8.0 - RADIUS * 30.0) - travelling * 0.002 / 0.3, -0.7 + travelling * 0.01 / 0.6]
    assert f(0.0, x)[-2:] == pytest.approx(wanted, rel=1e-13)
    x[3:7], x[7] = 0.0, 0.0
    assert forces(f, x) == pytest.approx((0.0, brush(np.arctan(-0.01 / 0.6))[0]), rel=1e-12, abs=1e-12)


def test_a_lifted_wheel_has_no_force():
    f = rhs(wheel(BRUSH, load=1e3 * sm.sin(t)), method="recursive-composite")
    x = np.array([0, 0, 0, 8.0, 0.7, 0, 10.0])
    reported = {time: dict(zip(f.output_names, f.outputs(time, x), strict=True)) for time in (1.0, 4.0)}
    assert reported[1.0]["tyre.lateral"] < -50
    assert reported[4.0]["tyre.lateral"] == reported[4.0]["tyre.driving"] == 0.0


def test_everything_wrong_is_reported_at_once() -> None:
    N = me.ReferenceFrame("N")
    far = me.Point("far")
    for contact, law, more, reported in (
        (far, BRUSH, {}, "the velocity of far is not known"),
        (far, Brush(-1.0, 0.0), {"centre": far}, "cornering is -1"),
        (far, Brush(-1.0, 0.0), {"centre": far}, "friction is 0"),
        (far, Brush(1.0, 1.0), {"centre": far}, "no longitudinal stiffness"),
        (far, MagicFormula((1.0, 2.0, 3.0)), {"centre": far}, "give 4 numbers"),
        (far, MagicFormula((1.0, 2.0, -3.0, 0.0)), {"centre": far}, "no coefficients of longitudinal slip"),
        (far, "linear", {"load": -1.0}, "the law is 'linear'"),
        (far, BRUSH, {"load": -1.0}, "load is -1"),
        (far, BRUSH, {"relaxation": 0.0}, "relaxation is 0"),
        (far, BRUSH, {"still": 0.0}, "still is 0"),
        (far, BRUSH, {"up": 3}, "up is 3"),
        (far, BRUSH, {"wheel": N}, "its law turns no wheel"),
        (far, TURNING, {"centre": far}, "its law has a trail, and no wheel"),
        (far, TURNING, {"centre": far, "wheel": far}, "wheel is far"),
        (far, TURNING, {"centre": far, "wheel": me.ReferenceFrame("lost")}, "how lost turns is not known"),
        (far, MagicFormula((1.0, 2.0, 3.0, 0.0), pneumatic_trail=(1.0, 2.0, 0.0, 0.0)), {"wheel": N}, "D is 0"),
    ):
        model = wheel(None)
        model.add(Tyre("wrong", contact, heading=N.x, law=law, **{"load": 1.0, **more}))
        with pytest.raises(ModelError, match="Tyre wrong") as caught:
            check_model(model)
        assert reported in str(caught.value)
