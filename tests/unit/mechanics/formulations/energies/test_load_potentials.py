"""The total energy that a unit offers is conserved where nothing takes energy away, or it is not offered."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
import sympy as sm
from strangers import SPRINGS, STRANGERS, sprung_arm
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics.formulations.energies.potential_energy_search import (
    find_potential_energy,
    integrate_expression,
    is_conservative,
)

DRIFT = 1e-7  # of the energy's own range and size; the integrator's tolerance is 1e-10


def drift(model: Model, method: str = "tmt", stop: float = 1.5) -> float:
    """How far the output total_energy moves, relative to how much kinetic energy comes and goes."""
    model.output_kinetic_energy()
    rhs = pipeline.right_hand_side(pipeline.derive(model, method=method))
    found = scipy.integrate.solve_ivp(rhs, (0, stop), rhs.x0, rtol=1e-10, atol=1e-12, method="DOP853")
    y = np.array([rhs.outputs(t, x) for t, x in zip(found.t, found.y.T, strict=True)])
    total, kinetic = (y[:, rhs.output_names.index(name)] for name in ("total_energy", "kinetic_energy"))
    assert np.ptp(kinetic) > 0.05  # something moves
    return float(np.ptp(total) / np.ptp(kinetic))


@pytest.mark.parametrize("springs", SPRINGS)
def test_total_energy_is_conserved_however_springs_are_written(springs):
    assert drift(sprung_arm(SPRINGS[springs]), "tmt") < DRIFT


def test_energy_of_a_lagrangian_whose_weight_is_a_load_is_conserved():
    assert drift(STRANGERS["lagrangian_of_a_particle_on_a_circle"](), "lagrange") < DRIFT


def test_a_force_that_follows_a_body_has_no_potential_and_is_left_out_of_it():
    model = sprung_arm(lambda a: [(a.P2, 0.5 * a.B.y)])
    model.output_power("thrust", model.mechanics.loads[-1])
    rhs = pipeline.right_hand_side(pipeline.derive(model, method="tmt"))
    span = np.linspace(0, 1, 1001)
    found = scipy.integrate.solve_ivp(rhs, (0, 1), rhs.x0, rtol=1e-10, atol=1e-12, t_eval=span)
    y = np.array([rhs.outputs(t, x) for t, x in zip(found.t, found.y.T, strict=True)])
    energy, thrust = (y[:, rhs.output_names.index(name)] for name in ("total_energy", "thrust"))
    assert np.ptp(energy) > 0.01
    assert np.allclose(energy - energy[0], scipy.integrate.cumulative_simpson(thrust, x=span, initial=0), atol=1e-6)


def test_what_nobody_can_integrate_is_not_offered():
    def spring(a):
        d = a.P2.pos_from(a.O)
        return [(a.P2, -9 * (d.magnitude() - 0.3) * d.normalize())]

    with pytest.raises(FormulationError, match="potential energy is not known"):
        pipeline.derive(sprung_arm(spring))


def test_damping_and_motors_leave_the_potential_known():
    r = me.dynamicsymbols("r")
    model = sprung_arm(lambda a: [(a.B, (r - 0.3 * a.u[1] - 2 * a.q[1]) * a.N.z), (a.A, 2 * a.q[1] * a.N.z)])
    model.input(r, 0.0, "N.m")
    rhs = pipeline.right_hand_side(pipeline.derive(model))
    x = np.array([0.2, 0.5, 0.0, 0.0])
    level, higher = (rhs.outputs(0.0, state)[0] for state in (0 * x, x))
    m, g, tilt = 1.0, 9.81, 0.4
    up = np.array([-np.sin(tilt), np.cos(tilt)])

    def height(a: float, b: float) -> float:
        """Of both mass centres together, against the weights."""
        return float(up @ (np.array([np.cos(a), np.sin(a)]) + 0.4 * np.array([np.cos(a + b), np.sin(a + b)])))

    lifted = m * g * (height(0.2, 0.5) - height(0.0, 0.0))
    assert np.isclose(higher - level, lifted + 2 * 0.5**2 / 2, rtol=1e-12)


def test_declared_potentials_are_taken_if_they_are_those_of_the_loads():
    def model(factor: float) -> Model:
        def spring(a):
            d = a.P1.pos_from(a.O) - a.P2.pos_from(a.O) + 0.7 * a.N.x
            return [(a.P1, -9 * d.dot(d) * d), (a.P2, 9 * d.dot(d) * d)]

        made = sprung_arm(spring)
        parts = made.mechanics
        N, O = parts.frame, parts.origin
        P1, P2 = (one.masscenter for one in parts.bodies)
        d = P1.pos_from(O) - P2.pos_from(O) + 0.7 * N.x
        tilt, m, g = sm.symbols("tilt m g")
        for one in parts.bodies:
            at = one.masscenter.pos_from(O)
            height = -sm.sin(tilt) * at.dot(N.x) + sm.cos(tilt) * at.dot(N.y)
            one.potential_energy = m * g * height
        parts.bodies[0].potential_energy += factor * 9 * d.dot(d) ** 2 / 4
        return made

    assert drift(model(1.0)) < DRIFT
    try:
        offered = drift(model(1.1))
    except FormulationError as error:
        assert "potential energy is not known" in str(error)  # noqa: PT017
    else:
        assert offered < DRIFT  # found without what was declared


@pytest.mark.parametrize(
    "text",
    ["3*x**2 - a*x", "sin(2*x + b)", "x*cos(x)", "x**2*sin(3*x)", "sin(x)*cos(x)**2", "exp(-2*x)*a",
     "Max(0, x - b)", "Max(0, b - 2*x)**2", "Abs(x)", "sign(x)*x**3"],
)  # fmt: skip
def test_antiderivatives(text):
    x, a, b = sm.symbols("x a b")
    expression = sm.sympify(text, locals={"x": x, "a": a, "b": b})
    integral = integrate_expression(expression, x)
    assert integral is not None
    both = sm.lambdify((x, a, b), [integral, expression])
    for place in (-0.83, 0.41, 1.27):
        (above, _), (below, _), (_, value) = (both(place + h, 0.7, 0.3) for h in (1e-6, -1e-6, 0.0))
        assert np.isclose((above - below) / 2e-6, value, atol=1e-7)


def test_what_has_no_potential_is_none():
    x, y = sm.symbols("x y")
    assert find_potential_energy({x: -y, y: x}) is None
    assert find_potential_energy({x: y, y: sm.S.Zero}) is None
    assert not is_conservative({x: -y, y: x})
    assert is_conservative({x: y, y: x})
    assert not is_conservative({x: y, y: sm.S.Zero})
    assert find_potential_energy({x: sm.exp(x**2), y: sm.S.Zero}) is None  # has one, that nobody can write down
    assert is_conservative({x: sm.exp(x**2)})


@pytest.mark.parametrize("text", ["Abs(x)", "Abs(x - 1) - 2", "-sign(x - 1)", "Abs(2*x + a) - y"])
def test_loads_with_kinks_have_a_potential_whatever_symbols_assume(text):
    """SymPy differentiates Abs of a symbol that may be complex by its real part, which nothing evaluates."""
    x, y, a = sm.symbols("x y a")
    force = sm.sympify(text, locals={"x": x, "y": y, "a": a})
    potential = find_potential_energy({x: force, y: -y - x if force.has(y) else -y})
    assert potential is not None
    assert potential.free_symbols <= {x, y, a}
    V = sm.lambdify((x, y, a), potential)
    for place in (-0.83, 0.41, 1.27):
        slope = (V(place + 1e-6, 0.3, 0.7) - V(place - 1e-6, 0.3, 0.7)) / 2e-6
        assert np.isclose(-slope, float(force.subs({x: place, y: 0.3, a: 0.7})), atol=1e-7)
