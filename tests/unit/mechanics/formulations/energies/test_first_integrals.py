"""Integrals of motion: found where theory has them, kept along a run, and not found where something takes them away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import mechanism_of, model_of
from representatives import marked
from scipy.integrate import solve_ivp

import mb2fmu
from mb2fmu import Model, Parts
from mb2fmu.mechanics.equations.equations_of_motion import SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import TheoryQuantities
from mb2fmu.mechanics.formulations.kane_tmt_lagrange_theory_quantities import form_theory_quantities
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model, load

MODELS = Path(__file__).parents[5] / "models"
t = me.dynamicsymbols._t


def planets(drag: sm.Expr = sm.S.Zero) -> Model:
    """Two particles in a plane that attract each other as Newton says; drag acts between them, or on one alone."""
    q, u = me.dynamicsymbols("x1 y1 x2 y2"), me.dynamicsymbols("u1 v1 u2 v2")
    m1, m2, G = sm.symbols("m1 m2 G")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = []
    for k in (0, 2):
        P = O.locatenew(f"P{k // 2 + 1}", q[k] * N.x + q[k + 1] * N.y)
        P.set_vel(N, u[k] * N.x + u[k + 1] * N.y)
        points.append(P)
    way = me.LinearPathway(*points)
    parts = Parts(
        frame=N, origin=O, q=q, u=u, kinematic_equations=[qi.diff(t) - ui for qi, ui in zip(q, u, strict=True)],
        bodies=[me.Particle("sun", points[0], m1), me.Particle("planet", points[1], m2)],
        actuators=[me.ForceActuator(-G * m1 * m2 / way.length**2, way)],
        loads=[(points[1], -drag * points[1].vel(N))] if drag != 0 else [],
    )  # fmt: skip
    model = model_of("Planets", parts, q, u, m1=2.0, m2=0.5, G=1.0)
    if drag != 0:
        model.parameter(drag, 0.1)
    return model


def hoop(*, driven: bool) -> Model:
    """A bead on a hoop that turns at a constant rate about its upright diameter, or freely with an inertia."""
    theta, omega, phi, spin = me.dynamicsymbols("theta omega phi spin")
    m, R, g, Omega, J = sm.symbols("m R g Omega J")
    N, H, B = (me.ReferenceFrame(name) for name in "NHB")
    O = me.Point("O")
    O.set_vel(N, 0)
    H.orient_axis(N, N.z, Omega * t if driven else phi)
    H.set_ang_vel(N, (Omega if driven else spin) * N.z)
    B.orient_axis(H, H.y, theta)
    B.set_ang_vel(H, omega * H.y)
    P = O.locatenew("P", -R * B.z)
    P.v2pt_theory(O, N, B)
    bead = me.Particle("bead", P, m)
    ring = me.RigidBody("ring", O, H, m, (me.inertia(H, J, J, J), O))
    q, u = ([theta], [omega]) if driven else ([theta, phi], [omega, spin])
    parts = Parts(
        frame=N, origin=O, q=q, u=u, kinematic_equations=[qi.diff(t) - ui for qi, ui in zip(q, u, strict=True)],
        bodies=[bead] if driven else [bead, ring], loads=[(P, -m * g * N.z)],
    )  # fmt: skip
    values = {"m": 1.0, "R": 0.5, "g": 9.81} | ({"Omega": 5.0} if driven else {"J": 0.2})
    return model_of("Hoop", parts, q, u, **values)


def found(model: Model) -> TheoryQuantities:
    return form_theory_quantities(mechanism_of(model), ["integrals"])


def names(shown: TheoryQuantities) -> list[str]:
    return [q.of.split(" (")[0] for q in shown["integrals"].quantities]


def drifts(model: Model, shown: TheoryQuantities, start: list[float]) -> list[float]:
    """How far each integral found moves along a run from ``start``, over the largest it could be by its terms."""
    mechanism, f = mechanism_of(model), mb2fmu.rhs(model)
    run = solve_ivp(f, (0, 1), start, rtol=1e-11, atol=1e-12, t_eval=np.linspace(0, 1, 7))
    assert run.success
    order = [mechanism.t, *mechanism.q, *mechanism.u, *mechanism.p]
    chain = [(a.symbol, a.expression) for a in shown.intermediates if isinstance(a, SymbolAssignment)]
    integrals = [q.value for q in shown["integrals"].quantities]
    evaluate = sm.lambdify(order, integrals, cse=lambda e: (chain, list(e)))
    p = [f.p0[f.parameters.index(symbol.name)] for symbol in mechanism.p]
    values = np.array([evaluate(time, *x, *p) for time, x in zip(run.t, run.y.T, strict=True)], dtype=float)
    return [float(np.ptp(column) / (1 + np.max(np.abs(column)))) for column in values.T]


KEPT = {
    "two planets": (
        planets,
        [0, 0, 1.0, 0.2, 0.1, -0.3, 0.2, 1.4],
        {"momentum of all bodies along N.x", "momentum of all bodies along N.y", "energy T + V"}
        | {"angular momentum of all bodies about N.z through the origin"},
    ),
    "driven hoop": (lambda: hoop(driven=True), [0.4, 0.3], {"Jacobi's integral T2 - T0 + V"}),
    "free hoop": (
        lambda: hoop(driven=False),
        [0.4, 0.1, 0.3, 4.0],
        {"momentum of phi, ignorable", "energy T + V", "angular momentum of all bodies about N.z through the origin"},
    ),
}


@pytest.mark.parametrize("case", marked(KEPT, repeating=["free hoop"]))
def test_integrals_are_those_of_the_textbook_and_are_kept(case: str) -> None:
    """All of them and no others; along a run they stay."""
    build, start, wanted = KEPT[case]
    model = build()
    shown = found(model)
    assert set(names(shown)) == wanted
    assert max(drifts(model, shown, start)) < 1e-8


def test_what_takes_an_integral_away_takes_it_from_the_list() -> None:
    """Drag on one planet leaves nothing."""
    assert names(found(planets(sm.Symbol("c")))) == []


def test_momenta_are_written_as_in_the_textbook_and_shown_in_symbols() -> None:
    """Of the hoop: p_phi = (J + m R² sin² θ) φ', p_theta = m R² θ'."""
    mechanism = mechanism_of(hoop(driven=False))
    shown = form_theory_quantities(mechanism, ["momenta", "integrals"])
    theta, omega, spin = mechanism.q[0], *mechanism.u
    m, R, J = (next(p for p in mechanism.p if p.name == name) for name in ("m", "R", "J"))
    p = {str(q.index): q.value for q in shown["momenta"].quantities}
    assert sm.simplify(p["phi"] - (J + m * R**2 * sm.sin(theta) ** 2) * spin) == 0
    assert sm.simplify(p["theta"] - m * R**2 * omega) == 0
    assert "momentum of phi, ignorable (shown in symbols)" in [q.of for q in shown["integrals"].quantities]


def test_of_constraints_and_other_speeds_it_says_what_it_could_not_look_for() -> None:
    """A sleigh on a blade keeps its energy and no momentum; what Lagrange's equations cannot tell is said."""
    sleigh = form_theory_quantities(mechanism_of(mb2fmu.load("models/chaplygin_sleigh.py")), ["integrals"])["integrals"]
    assert [q.of.split(" (")[0] for q in sleigh.quantities] == ["energy T + V"]
    sphere = form_theory_quantities(mechanism_of(mb2fmu.load("models/rolling_sphere.py")), ["integrals"])["integrals"]
    assert "none was looked for" in sphere.note


@pytest.mark.parametrize(("name", "words"), [("bouncing_ball", "events."), ("rocking_block", "no latch holds.")])
def test_integrals_of_models_with_events_say_where_they_hold(name: str, words: str) -> None:
    mechanism = read_mechanism(check_model(load(MODELS / f"{name}.py")))
    (section,) = form_theory_quantities(mechanism, ["integrals"]).sections
    assert section.note.endswith(words)
