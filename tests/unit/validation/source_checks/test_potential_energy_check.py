"""The closed form of a potential energy is compared with the loads: FMU and reference have it in common."""

from __future__ import annotations

import dataclasses

import pytest
import sympy as sm
from representatives import by_night
from shorter_validations import shorten_validations
from sympy.physics import mechanics as me

from mb2fmu import Model, model
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.validation.independent_checks import check_potential_energy
from mb2fmu.validation.source_checks import potential_energy_check


@pytest.fixture(autouse=True)
def _few_places_on_circles(monkeypatch):
    """What is done on a closed way is known of a quarter of the places, too, for loads as smooth as these."""
    monkeypatch.setattr(potential_energy_check, "_CIRCLE_POINTS", 16)


q1, q2, u1, u2, torque = me.dynamicsymbols("q1 q2 u1 u2 tau")
m, l, g, k, d = sm.symbols("m l g k d")


def _pendulum(more=lambda _, __: [], given=None, *, asks=True):
    """A double pendulum with springs that are written as torques, a damper, an input, and loads of a test."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = N.orientnew("A", "Axis", (q1, N.z)), N.orientnew("B", "Axis", (q1 + q2, N.z))
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(N, (u1 + u2) * N.z)
    P = O.locatenew("P", -l * A.y)
    P.v2pt_theory(O, N, A)
    Q = P.locatenew("Q", -l * B.y)
    Q.v2pt_theory(P, N, B)
    loads = [
        (A, (-k * q1 - d * u1 + torque) * N.z),
        (B, -k * (q1 + q2) * N.z),
        (P, -m * g * N.y),
        (Q, -m * g * N.y),
        *more((N, A, B), (P, Q)),
    ]
    bodies = [me.Particle("p", P, m), me.Particle("r", Q, m)]
    kane = me.KanesMethod(N, [q1, q2], [u1, u2], [q1.diff() - u1, q2.diff() - u2], bodies=bodies, forcelist=loads)
    made = Model("Springs", kane)
    values = {m: 1.0, l: 0.7, g: 9.81, k: 3.0, d: 0.1}
    for symbol, unit in ((m, "kg"), (l, "m"), (g, "m/s2"), (k, "N.m/rad"), (d, "N.m.s/rad")):
        made.parameter(symbol, values[symbol], unit)
    made.input(torque, 0.0, "N.m")
    for angle, speed in ((q1, u1), (q2, u2)):
        made.coordinate(angle, 0.4, "rad")
        made.speed(speed, 0.0, "rad/s")
    if given is not None:
        made.potential_energy(given)
    if asks:
        made.output_total_energy()
    return made


def _rungs(made, *factors):
    """The independent check of a model whose closed form is wrong by each of the factors."""
    checked = model.check_model(made)
    read = mechanism.read_mechanism(checked)
    equations = formulations.form_equations_except_dynamics(read)
    for factor in factors:
        wrong = dataclasses.replace(equations.energy, potential=factor * equations.energy.potential)
        (check,) = check_potential_energy(checked, read, dataclasses.replace(equations, energy=wrong))
        yield check


def _follower(frames, points):
    """A force that stays along the second link: it has no potential."""
    return [(points[1], 2 * m * g * frames[2].x)]


def _timed(frames, points):
    """A weight that grows with time."""
    return [(points[0], -m * g * me.dynamicsymbols._t * frames[0].y)]


def _stop(frames, _):
    """A one-sided spring whose force has a knee."""
    return [(frames[1], -9 * k * sm.Max(0, q1 - sm.Rational(2, 5)) * frames[0].z)]


def _two_ends(_, points):
    """A spring of no length between two points, each end told by itself: only both together have a potential."""
    stretch = points[1].pos_from(points[0])
    return [(points[0], k / l**2 * stretch), (points[1], -k / l**2 * stretch)]


@pytest.mark.parametrize("more", [*by_night(_follower, _timed, _stop), _two_ends])
def test_a_wrong_closed_form_fails_and_the_right_one_passes(more):
    assert [check.verdict for check in _rungs(_pendulum(more), 1.0, 1.001)] == ["passed", "failed"]


def test_nobody_is_asked_where_no_output_has_it():
    checked = model.check_model(_pendulum(asks=False))
    read = mechanism.read_mechanism(checked)
    assert not check_potential_energy(checked, read, formulations.form_equations_except_dynamics(read))


def test_what_the_model_gives_is_reported_but_does_not_fail():
    (check,) = _rungs(_pendulum(given=m * g * l * (1 - sm.cos(q1))), 1.0)
    assert check.verdict == "unjudged"
    assert "not the one of its loads" in check.reason


def test_the_whole_proof_finds_a_wrong_closed_form(tmp_path, monkeypatch):
    """FMU and reference agree on it to the last digit."""
    from mb2fmu import pipeline
    from mb2fmu.mechanics.formulations.energies import energy_and_power

    right = energy_and_power.find_load_potential_energy

    def wrong(kinematics):
        found = right(kinematics)
        return dataclasses.replace(found, energy=sm.Rational(51, 50) * found.energy)

    monkeypatch.setattr(energy_and_power, "find_load_potential_energy", wrong)
    shorten_validations(monkeypatch)
    result = pipeline.run(_pendulum(), tmp_path).validated.result
    assert all(v.verdict == "passed" for v in result.variables)
    assert not result.passed
    assert [check.name for check in result.independent_check_set.all_checks if check.verdict == "failed"] == [
        "the potential energy against the loads"
    ]


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "passed"), (1.001, "failed")])
def test_a_velocity_that_is_the_position_s_by_a_constraint_only_fits(factor, verdict):
    """A bucket on a winch: its velocity is written by the drum's speed, its height is a coordinate of its own."""
    q, y, u, v = me.dynamicsymbols("q y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    drum = N.orientnew("D", "Axis", (q, N.z))
    drum.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", y * N.y)
    P.set_vel(N, l * u * N.y)
    kane = me.KanesMethod(
        N, [q, y], [u], kd_eqs=[q.diff() - u, y.diff() - v], u_dependent=[v], velocity_constraints=[v - l * u]
    )
    body = me.RigidBody("drum", O, drum, m, (me.inertia(drum, 0, 0, m * l**2), O))
    kane.kanes_equations([body, me.Particle("bucket", P, m)], [(P, -m * g * N.y)])
    made = Model("Winch", kane)
    for symbol, value, unit in ((m, 2.0, "kg"), (l, 0.3, "m"), (g, 9.81, "m/s2")):
        made.parameter(symbol, value, unit)
    made.coordinate(q, 0.0, "rad")
    made.coordinate(y, 0.0, "m")
    made.speed(u, 0.0, "rad/s")
    made.speed(v, 0.0, "m/s", kind="guess")
    made.output_total_energy()
    (check,) = _rungs(made, factor)
    assert check.verdict == verdict, check
