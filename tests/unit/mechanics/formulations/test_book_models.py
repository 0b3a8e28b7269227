"""Models of the textbook's chapter on generalized forces and of its neighbours, each compared with what is by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import Evaluated, mechanism_of, random_states
from scipy.integrate import solve_ivp

import mb2fmu
from mb2fmu import Model
from mb2fmu.mechanics.formulations.kane_tmt_lagrange_theory_quantities import form_theory_quantities
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.model import load

MODELS = Path(__file__).parents[4] / "models"


def symbols(m: Mechanism) -> dict[str, sm.Symbol]:
    return {s.name: s for s in (*m.q, *m.u, *m.u_dot, *m.p, *m.constraint_forces, *m.u_auxiliary)}


def of_all(m: Mechanism, kind: str) -> dict[str, sm.Expr]:
    """F_r or F_r* of all together, by speed."""
    shown = form_theory_quantities(m, [kind])
    assert not [i for i in shown.intermediates if not hasattr(i, "symbol")]
    written = {item.symbol: item.expression for item in shown.intermediates}
    found = {str(q.index): q.value for q in shown[kind].quantities if not q.of}
    for _ in written:
        found = {name: value.xreplace(written) for name, value in found.items()}
    return found


@pytest.mark.repeats  # by day: the double pendulum below, and F_r + F_r* = 0 in ``test_named_quantities``
def test_the_triple_pendulum_has_the_generalized_forces_of_the_book() -> None:
    """F_r = -(sum of the masses from r on) g l_r sin q_r; F_r* from v_r · a by hand."""
    m = mechanism_of(load(MODELS / "triple_pendulum.py"))
    s, F, inertia = symbols(m), of_all(m, "generalized-active-forces"), of_all(m, "generalized-inertia-forces")
    mass = [sum(s[f"m{j}"] for j in range(i, 4)) for i in (1, 2, 3)]
    for i in (1, 2, 3):
        by_hand = -mass[i - 1] * s["g"] * s[f"l{i}"] * sm.sin(s[f"q{i}"])
        assert sm.simplify(F[f"u{i}"] - by_hand) == 0
        star = 0
        for j in (1, 2, 3):  # M_ij = (mass beyond both) l_i l_j cos(q_i - q_j), with the centripetal terms
            angle, shared = s[f"q{i}"] - s[f"q{j}"], mass[max(i, j) - 1] * s[f"l{i}"] * s[f"l{j}"]
            star -= shared * (sm.cos(angle) * s[f"u{j}_d"] + sm.sin(angle) * s[f"u{j}"] ** 2)
        assert sm.simplify(sm.expand_trig(inertia[f"u{i}"] - star)) == 0


def test_tensions_do_not_contribute_and_come_out_of_auxiliary_speeds() -> None:
    """Of the double simple pendulum: no T in F_1 and F_2, T in the auxiliary ones, and values as by Newton's law."""
    m = mechanism_of(load(MODELS / "double_simple_pendulum.py"))
    s, F = symbols(m), of_all(m, "generalized-active-forces")
    for i, mass in ((1, s["m1"] + s["m2"]), (2, s["m2"])):
        assert sm.simplify(F[f"u{i}"] + mass * s["g"] * s["l"] * sm.sin(s[f"q{i}"])) == 0
    assert sm.simplify(F["w1"].diff(s["T1"]) - 1) == 0
    assert sm.simplify(F["w2"].diff(s["T2"]) - 1) == 0
    unit = Evaluated(m, "tmt")
    for state in random_states(m, 3):
        p = dict(zip([x.name for x in m.p], state.p, strict=True))
        q1, q2, u1, _ = state.x
        d1, _ = unit("rhs", state)[2:]
        below = np.array([np.sin(q2), -np.cos(q2)])  # from P1 to P2
        along, beside = np.array([np.sin(q1), -np.cos(q1)]), np.array([np.cos(q1), np.sin(q1)])
        a1 = p["l"] * (d1 * beside - u1**2 * along)
        pulled = p["m1"] * (a1 + np.array([0, p["g"]]))  # = -T1 along + T2 below
        T1, T2 = np.linalg.solve(np.column_stack([-along, below]), pulled)
        assert unit.output("tension_upper", state) == pytest.approx(T1, rel=1e-9)
        assert unit.output("tension_lower", state) == pytest.approx(T2, rel=1e-9)


def test_the_sliding_rod_moves_as_by_hand() -> None:
    """Newton's law along the line, and the moments about the pin: two equations for u1' and u2'."""
    m = mechanism_of(load(MODELS / "sliding_rod.py"))
    for method in ("kane", "lagrange"):
        unit = Evaluated(m, method)
        for state in random_states(m, 2):
            p = dict(zip([x.name for x in m.p], state.p, strict=True))
            _, q2, u1, u2 = state.x
            half = p["l"] / 2
            matrix = [[1, -half * np.sin(q2)], [-half * np.sin(q2), p["l"] ** 2 / 3]]
            wanted = np.linalg.solve(matrix, [half * u2**2 * np.cos(q2), -p["g"] * half * np.cos(q2)])
            assert np.allclose(unit("rhs", state), (u1, u2, *wanted), rtol=1e-11, atol=1e-12)


def test_a_speed_that_is_guessed_follows_from_the_others() -> None:
    """Of a LagrangesMethod, which names none: v2 is a guess, so v1 can be set."""
    assert names_of_dependent(load(MODELS / "particle_on_slope.py")) == ["v2"]


@pytest.mark.parametrize("guessed", ["x", "y"])
def test_the_rate_of_a_guessed_coordinate_follows(guessed: str) -> None:
    """x = 2 y: by the Jacobian alone it were always the rate of y. A guess that the row does not contain stays free."""
    q = dict(zip("xyz", me.dynamicsymbols("x y z"), strict=True))
    kinetic = sum(each.diff() ** 2 for each in q.values()) / 2
    model = Model("Row", me.LagrangesMethod(kinetic, list(q.values()), hol_coneqs=[q["x"] - 2 * q["y"]]))
    for name, each in q.items():
        model.coordinate(each, 0.0, kind="guess" if name in (guessed, "z") else "fixed")
        model.speed(each.diff(), 0.0, name=f"v_{name}", kind="guess" if name == "z" else "fixed")
    assert names_of_dependent(model) == [f"v_{guessed}"]


def names_of_dependent(model: Model) -> list[str]:
    """Speeds that follow from the constraints, as the mechanism has them."""
    m = mechanism_of(model)
    return [speed.name for i, speed in enumerate(m.declared.speeds) if i not in m.u_independent]


def test_a_particle_on_the_slope_is_pushed_at_half_and_falls_freely() -> None:
    """F = -push/2, q1'' = q2'' = push/(2 m), q3'' = -g."""
    f = mb2fmu.rhs(load(MODELS / "particle_on_slope.py"))
    push = 3.7
    assert f(0.0, f.x0, r=[push]) == pytest.approx([0.5, 5.0, push / 4, -9.81], rel=1e-12)  # of q1, q3
    outputs = dict(zip(f.output_names, f.outputs(0.0, f.x0, r=[push]), strict=True))
    assert outputs["slope_force"] == pytest.approx(push / 2, rel=1e-12)


def test_newtons_gravitation_has_a_potential_and_kepler_his_third_law() -> None:
    """V = -G m1 m2 / r; an ellipse closes after 2π sqrt(a³ / (G (m1 + m2)))."""
    model = load(MODELS / "earth_and_moon.py")
    m = mechanism_of(model)
    unit, state = Evaluated(m, "tmt"), random_states(m, 1)[0]
    p = dict(zip([x.name for x in m.p], state.p, strict=True))
    distance = np.hypot(state.x[2] - state.x[0], state.x[3] - state.x[1])
    assert unit.output("potential_energy", state) == pytest.approx(-p["G"] * p["m1"] * p["m2"] / distance, rel=1e-12)
    f = mb2fmu.rhs(model)
    values = dict(zip(f.parameters, f.p0, strict=True))
    month = 2 * np.pi * np.sqrt(3.844e8**3 / (values["G"] * (values["m1"] + values["m2"])))
    assert month / 86400 == pytest.approx(27.32, abs=0.2)
    sizes = np.repeat([3.844e8, 1e3], 4)
    run = solve_ivp(lambda s, y: month * f(s, y * sizes) / sizes, (0, 1), f.x0 / sizes, rtol=1e-12, atol=1e-14)
    assert np.allclose(run.y[:, -1], f.x0 / sizes, atol=1e-8)
