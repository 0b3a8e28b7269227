"""Outputs that cannot be had, and functions that no Program computes."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu.model import Model

TIME = me.dynamicsymbols._t
THIS = "test_bad_outputs.py:"


def only(faults):
    """The one fault there is."""
    assert len(faults) == 1, "\n".join(map(str, faults))
    return faults[0]


def test_output_requests_of_the_wrong_things(pendulum, faults_of):
    model = pendulum.model()
    model.output_position("bob", pendulum.A)
    model.output_orientation("arm", pendulum.P)
    model.output_orientation("frame", pendulum.A, representation="zzx")
    model.output_power("drive_power", (pendulum.A, pendulum.N.z))
    whats = [fault.what for fault in faults_of(model)]
    assert "output_position('bob') is requested for A, which is a ReferenceFrame" in whats[0]
    assert "output_orientation('arm') is requested for P, which is a Point" in whats[1]
    assert "no representation 'zzx'" in whats[2]
    assert "output_power('drive_power')" in whats[3]
    assert len(whats) == 4


def test_outputs_of_a_lagrangian_without_a_frame(pendulum, faults_of):
    energy = pendulum.q.diff() ** 2 / 2
    model = Model("Bare", me.LagrangesMethod(energy, [pendulum.q]))
    model.coordinate(pendulum.q, 0.0)
    model.speed(pendulum.q.diff())
    model.output_position("place", me.Point("P"))
    assert "the mechanics have no inertial frame" in only(faults_of(model)).what


def test_the_power_of_something_that_is_no_load(pendulum, faults_of):
    system = pendulum.system()
    model = pendulum.model(system)
    model.output_power("wind", "wind")
    model.output_power("stranger", me.TorqueActuator(1, pendulum.N.z, pendulum.A))
    model.output_power("motor", pendulum.motor)
    assert [fault.what.split("(")[1][:6] for fault in faults_of(model)] == ["'wind'", "'stran"]


def test_an_undeclared_symbol_in_an_output(pendulum, faults_of):
    model = pendulum.model()
    model.output("twice", 2 * sm.Symbol("stiffness") * pendulum.q)
    fault = only(faults_of(model))
    assert "stiffness is not declared" in fault.what
    assert "output twice" in fault.what
    assert fault.where.startswith(THIS)


def test_jerk_in_an_output(pendulum, faults_of):
    model = pendulum.model()
    model.output("jerk", pendulum.u.diff(TIME, 2))
    assert "u_ddot is beyond accelerations" in only(faults_of(model)).what


def test_functions_that_no_program_computes(pendulum, faults_of):
    pendulum.load = sm.gamma(pendulum.q)
    model = pendulum.model()
    model.output("area", sm.Integral(pendulum.q, TIME), "rad.s")
    model.output("lookup", sm.Function("map")(pendulum.q))
    faults = faults_of(model)
    assert [fault.what.split()[0] for fault in faults] == ["gamma", "Integral", "map"]
    assert "the load on A" in faults[0].what
    assert "output area" in faults[1].what
    assert all("docs/reference/functions.md" in fault.remedy for fault in faults)
